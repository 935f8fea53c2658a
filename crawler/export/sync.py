"""An index of pages kept in step with the store: what came and changed is put into it, what went is taken out.

The index keeps the cursor of the change feed itself, and commits it with what it was told up to there. So it does not
matter when either side ends: what was not committed is told again, and putting a page twice is putting it once. With
the cursor it keeps whose it is: positions of another database, of a copy that was restored, or of a domain that was
registered anew mean other changes, and then all pages are read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from crawler.core.domain import Domain
from crawler.errors import CursorTooOld
from crawler.export.export import Source, What
from crawler.export.page_index import PageIndex
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import TakenPage

Opened = TypeVar("Opened", bound=PageIndex)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did. put, removed: pages.  is_anew: all pages were read, not those that changed alone."""

    put: int
    removed: int
    cursor: int
    is_anew: bool


async def sync(
    db: Database,
    domain: Domain,
    index: PageIndex,
    *,
    anew: bool = False,
    progress: Callable[[int], None] = lambda _: None,
    thread: Executor | None = None,
) -> Synced:
    """Bring an index to where a domain's feed ends. The first time, with a useless cursor, or `anew`, all is read.

    progress: called with the pages so far.  thread: in which the index is called (`in_thread`); None for this one.
    """
    async with index.turn():
        source, until = await report.feed_source(db, domain), await report.end_of_feed(db)
        pages = Source(db, domain, What.PAGES, bodies=True)
        name, put, removed = domain.authority, 0, 0

        async def take_in(batches: AsyncIterator[tuple[list[TakenPage], int | None]]) -> None:
            nonlocal put, removed
            async for batch, cursor in batches:
                removed += await called(thread, index.put, name, batch, cursor=cursor)
                put += sum(page.is_there for page in batch)
                progress(put)

        since = None if anew else await called(thread, index.cursor, name, source=source)
        if since is not None and since <= until:
            with suppress(CursorTooOld):
                await take_in(pages.changed(after=since, until=until))
                return Synced(put, removed, until, is_anew=False)
        put = removed = 0
        await called(thread, index.begin_anew, name, source=source)
        await take_in(pages.all())
        removed = await called(thread, index.end_anew, name, cursor=until)
        return Synced(put, removed, until, is_anew=True)


@asynccontextmanager
async def in_thread(index: Opened) -> AsyncIterator[tuple[Opened, Executor]]:
    """An index, open until the block ends, and the thread in which alone it is to be called (`called`).

    The thread does one thing after the other: what a cancelled caller has begun is done before the index is closed.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="index")
    try:
        await called(thread, index.__enter__)
        try:
            yield index, thread
        finally:
            await called(thread, index.__exit__, None, None, None)
    finally:
        thread.shutdown(wait=False)


async def called(thread: Executor | None, function: Callable[..., T], *given: Any, **named: Any) -> T:
    """What a function gives that is called in a thread; None for the caller's own."""
    if thread is None:
        return function(*given, **named)
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *given, **named))
