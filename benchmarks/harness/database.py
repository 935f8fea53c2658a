"""A database for one benchmark."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from crawler.store.database import upgrade_schema

HOME = Path(__file__).parents[2] / ".cache" / "bench"  # where the Postgres of benchmarks lives


@contextmanager
def new_database(home: Path) -> Iterator[str]:
    """The address of one with all tables and nothing in them, on a server that lives there; both end with it."""
    with borrow_postgres(home) as cluster, migrated(cluster) as url:
        yield url


@contextmanager
def migrated(cluster: Cluster) -> Iterator[str]:
    """The address of a database with all of the product's tables and nothing in them, until the block ends."""
    with empty(cluster) as url:
        upgrade_schema(url)
        yield url


@contextmanager
def empty(cluster: Cluster, name: str = "") -> Iterator[str]:
    """The address of a database without any table, until the block ends. name: a new one where none is given."""
    name = name or f"bench_{uuid.uuid4().hex}"
    cluster.create_database(name)
    try:
        yield cluster.build_url(name)
    finally:
        cluster.drop_database(name)
