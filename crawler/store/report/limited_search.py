"""The time limit of searches by words, which may have to read everything."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import psycopg

from crawler.errors import BadInput
from crawler.store.database import Connection
from crawler.store.rows import build_like_pattern

SEARCH_MS = 2000  # then a search ends with an error instead of reading on


def build_patterns(words: Collection[str]) -> list[str]:
    """Return the LIKE patterns of texts that contain the words."""
    return list(map(build_like_pattern, words))


@asynccontextmanager
async def limit_search(connection: Connection, *, remedy: str) -> AsyncIterator[None]:
    """Raise BadInput if the statements of the block take longer than SEARCH_MS each. remedy: what to do then."""
    await connection.execute(f"SET LOCAL statement_timeout = {SEARCH_MS}".encode())
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise BadInput(f"the search took longer than {SEARCH_MS / 1000:g} s: {remedy}") from error
    await connection.execute(b"SET LOCAL statement_timeout = 0")
