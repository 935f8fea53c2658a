"""A database for one benchmark."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.local.postgres import borrowed_postgres
from crawler.store.database import upgrade


@contextmanager
def new_database(home: Path) -> Iterator[str]:
    """The address of one with all tables and nothing in them, on a server that lives there; both end with it."""
    name = f"bench_{uuid.uuid4().hex}"
    with borrowed_postgres(home) as cluster:
        cluster.create_database(name)
        try:
            upgrade(cluster.url(name))
            yield cluster.url(name)
        finally:
            cluster.drop_database(name)
