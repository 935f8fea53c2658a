"""Open the database that the settings select."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from crawler.app.actor import ActorKind
from crawler.errors import find_failure
from crawler.runtime.stack import open_crawl_database
from crawler.settings import Settings
from crawler.store import database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AppDatabase(database.Database):
    """An open database with the settings of the process that opened it.

    actor_kind: how the account of the system acts here, for the log of actions; None for schedules, which have no
    rows there.
    """

    settings: Settings
    actor_kind: ActorKind | None = None


@asynccontextmanager
async def open_configured_database(
    settings: Settings, *, connections: int = 8, actor_kind: ActorKind | None = None
) -> AsyncIterator[AppDatabase]:
    """Open the database that the settings select, with the current schema, for the duration of the block.

    The default is the embedded Postgres in RECRAWL_HOME, which is started if needed. Raises StoreUnavailable if the
    database does not respond, and CrawlerError if the user must migrate it.
    """
    with open_crawl_database(settings) as url:
        async with database.open_database(url, max_connections=connections) as db:
            yield AppDatabase(db.pool, settings, actor_kind)


def run_with_database(
    work: Callable[[AppDatabase], Awaitable[T]],
    settings: Settings,
    *,
    connections: int,
    run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run,
) -> T:
    """Open the database as `open_configured_database` does, and run a command's work with it in a new event loop.

    run: runs the event loop; for callers that handle signals. Postgres starts before the loop.
    If several tasks fail, the most relevant exception is raised instead of an exception group.
    """

    async def run_work(url: str) -> T:
        async with database.open_database(url, max_connections=connections) as db:
            return await work(AppDatabase(db.pool, settings, ActorKind.COMMAND))

    with open_crawl_database(settings) as url:
        try:
            return run(run_work(url))
        except BaseExceptionGroup as group:
            raise find_failure(group) from group
