"""Databases for benchmarks."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from crawler.store.database import upgrade_schema

HOME = Path(__file__).parents[2] / ".cache" / "bench"  # the folder of the Postgres server for benchmarks


@contextmanager
def new_database(home: Path) -> Iterator[str]:
    """Start a server in this folder and provide the URL of a database with empty tables, until the block ends."""
    with borrow_postgres(home) as cluster, migrated(cluster) as url:
        yield url


@contextmanager
def migrated(cluster: Cluster) -> Iterator[str]:
    """Provide the URL of a database with recrawl's empty tables, until the block ends."""
    with empty(cluster) as url:
        upgrade_schema(url)
        yield url


@contextmanager
def empty(cluster: Cluster, name: str = "") -> Iterator[str]:
    """Provide the URL of a database without tables, until the block ends. name: empty for a generated name."""
    name = name or f"bench_{uuid.uuid4().hex}"
    cluster.create_database(name)
    try:
        yield cluster.build_url(name)
    finally:
        cluster.drop_database(name)
