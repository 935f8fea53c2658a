"""An index of pages kept in step with the store: what came and changed is put into it, what went is taken out.

The index keeps the cursor of the change feed itself, and commits it with what it was told up to there. So it does not
matter when either side ends: what was not committed is told again, and putting a page twice is putting it once. With
the cursor it keeps whose it is: positions of another database, of a copy that was restored, or of a domain that was
registered anew mean other changes, and then all pages are read.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

from crawler.core.domain import Domain
from crawler.core.http import PageKey
from crawler.errors import CursorTooOld
from crawler.export.in_thread import called
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import TakenPage

PAGES_AT_ONCE = 20  # with their bodies; a commit each


class Index(Protocol):
    """What keeps pages elsewhere. Each verb is one transaction of its own."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Whoever keeps it in step has it alone: what one has read long ago must not follow what another read later."""
        ...

    def cursor(self, domain: str, *, source: str) -> int | None:
        """Where the last sync of a domain ended; None where none did, or where it was of another source."""
        ...

    def put(self, domain: str, pages: Sequence[TakenPage], *, cursor: int | None) -> int:
        """Take pages in, and those out that are not there any more; gives how many went. cursor: kept with them."""
        ...

    def begin_anew(self, domain: str, *, source: str) -> None:
        """From now on count which pages of a domain are put. source: whose cursors are kept with them."""
        ...

    def end_anew(self, domain: str, *, cursor: int) -> int:
        """Take out the pages that were not put since then, and keep the cursor; gives how many went."""
        ...


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
    index: Index,
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
        since = None if anew else await called(thread, index.cursor, domain.authority, source=source)
        if since is not None and since <= until:
            with suppress(CursorTooOld):
                return await _go_on(db, domain, index, since=since, until=until, progress=progress, thread=thread)
        await called(thread, index.begin_anew, domain.authority, source=source)
        return await _all(db, domain, index, until=until, progress=progress, thread=thread)


async def _go_on(
    db: Database,
    domain: Domain,
    index: Index,
    *,
    since: int,
    until: int,
    progress: Callable[[int], None],
    thread: Executor | None,
) -> Synced:
    """Put what changed after a cursor. Raises CursorTooOld."""
    pages, removed = 0, 0
    while since < until:
        batch, since = await report.changed_pages_to_take(
            db, domain, after=since, until=until, most=PAGES_AT_ONCE, bodies=True
        )
        removed += await called(thread, index.put, domain.authority, batch, cursor=since)
        pages += sum(page.is_there for page in batch)
        progress(pages)
    return Synced(put=pages, removed=removed, cursor=until, is_anew=False)


async def _all(
    db: Database,
    domain: Domain,
    index: Index,
    *,
    until: int,
    progress: Callable[[int], None],
    thread: Executor | None,
) -> Synced:
    pages, key = 0, PageKey(b"")
    while batch := await report.pages_to_take(db, domain, after=key, most=PAGES_AT_ONCE, bodies=True):
        await called(thread, index.put, domain.authority, batch, cursor=None)
        pages, key = pages + len(batch), batch[-1].key
        progress(pages)
    removed = await called(thread, index.end_anew, domain.authority, cursor=until)
    return Synced(put=pages, removed=removed, cursor=until, is_anew=True)
