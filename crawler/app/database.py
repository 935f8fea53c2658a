"""Open the database of the settings: for one command, for a flow, for a server, for a program."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from crawler.errors import find_failure
from crawler.runtime.stack import open_crawl_database
from crawler.settings import Settings
from crawler.store import database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AppDatabase(database.Database):
    """The database of a crawl, open, with the settings of whoever opened it."""

    settings: Settings


@asynccontextmanager
async def open_configured_database(settings: Settings, *, connections: int = 8) -> AsyncIterator[AppDatabase]:
    """Open the database that the settings name, with the newest schema, as long as the block runs.

    Without a name it is that of the Postgres in RECRAWL_HOME, which is started and stopped where nobody else needs it.
    Raises StoreUnavailable where nothing answers, CrawlerError for a database that the user has to migrate.
    """
    with open_crawl_database(settings) as url:
        async with database.open_database(url, max_connections=connections) as db:
            yield AppDatabase(db.pool, settings)


def run_with_database(
    work: Callable[[AppDatabase], Awaitable[T]],
    settings: Settings,
    *,
    connections: int,
    run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run,
) -> T:
    """Run asynchronous work as `open_configured_database` does, for a program without an event loop.

    run: what runs the loop, for whoever handles signals. Postgres is started before the loop, and stopped after it.
    """

    async def run_work(url: str) -> T:
        async with database.open_database(url, max_connections=connections) as db:
            return await work(AppDatabase(db.pool, settings))

    with open_crawl_database(settings) as url:
        try:
            return run(run_work(url))
        except BaseExceptionGroup as group:
            raise find_failure(group) from group
