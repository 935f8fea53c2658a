"""An index of pages, in any database, that is synchronized with the store by the change feed.

The index stores the feed cursor and commits it together with the changes up to there. So either side may stop at any
time: changes that were not committed are applied again, and writing a page twice has no effect. The index also stores
the source of the cursor: in another database, a restored copy, or a domain that was registered again, positions mean
other changes, and then all pages are read.
"""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

import psycopg
from psycopg.rows import TupleRow

from crawler.core.domain import Domain
from crawler.errors import CursorTooOld
from crawler.export.export import PageSource, RowKind
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ExportedPage

# The version of the tables and of the way pages are split into chunks; stored in the index.
SCHEMA_VERSION = 5
# The statement that upgrades the tables of each older version. RESET_CURSORS follows, so that the next sync reads all
# pages again, because older versions split them differently.
MIGRATIONS = {1: "ALTER TABLE sync ADD COLUMN source text;", 2: "", 3: "", 4: ""}
RESET_CURSORS = "UPDATE sync SET cursor = NULL;"

PAGE_COLUMNS = ("url", "title", "language", "version", "version_at", "seen_at", "importance")
# pass: how many full syncs had begun when a page was last written. A full sync ends by deleting pages with less.
UPSERT_PAGE = """
    INSERT INTO page (url, domain, title, language, version, version_at, seen_at, importance, pass)
    SELECT %(url)s, domain, %(title)s, %(language)s, %(version)s, %(version_at)s, %(seen_at)s, %(importance)s, pass
      FROM sync WHERE domain = %(domain)s
    ON CONFLICT (url) DO UPDATE
       SET domain = excluded.domain, title = excluded.title, language = excluded.language, version = excluded.version,
           version_at = excluded.version_at, seen_at = excluded.seen_at, importance = excluded.importance,
           pass = excluded.pass
"""
BEGIN_FULL_SYNC = """
    INSERT INTO sync AS s (domain, pass, source) VALUES (%(domain)s, 1, %(source)s)
    ON CONFLICT (domain) DO UPDATE SET pass = s.pass + 1, cursor = NULL, source = excluded.source
"""
DELETE_MISSING_PAGES = """
    DELETE FROM page WHERE domain = %(domain)s AND pass <> (SELECT pass FROM sync WHERE domain = %(domain)s)
"""
SELECT_CURSOR = "SELECT cursor FROM sync WHERE domain = %(domain)s AND source = %(source)s"
UPDATE_CURSOR = "UPDATE sync SET cursor = %(cursor)s WHERE domain = %(domain)s"


class PageIndex(ABC):
    """An index of pages, to be used as a context manager. Each public method that reads or writes is one transaction.

    Raises CrawlerError if the index cannot be opened, read or written.
    """

    _db: sqlite3.Connection | psycopg.Connection[TupleRow]

    def __enter__(self) -> Self:
        self._connect()
        try:
            self._set_up()
        except BaseException:
            self._db.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @abstractmethod
    def _connect(self) -> None:
        """Open the connection."""

    @abstractmethod
    def _set_up(self) -> None:
        """Create the tables, or upgrade older ones."""

    @abstractmethod
    def sync_lock(self) -> AbstractAsyncContextManager[None]:
        """Wait for other syncs of the index to end, and exclude them during the block."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Run the block as one transaction."""

    @abstractmethod
    def _execute(self, statement: str, **values: object) -> int:
        """Execute a statement with named values and return the number of affected rows."""

    @abstractmethod
    def _fetch(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with named values."""

    @abstractmethod
    def _put_chunks(self, page: ExportedPage) -> None:
        """Replace the chunks of a page."""

    def list_domains(self) -> list[str]:
        """Return the domains in the index."""
        return [name for (name,) in self._fetch("SELECT domain FROM sync ORDER BY domain")]

    def remove_domain(self, domain: str) -> int:
        """Remove a domain and return the number of removed pages."""
        with self._transaction():
            removed = self._execute("DELETE FROM page WHERE domain = %(domain)s", domain=domain)
            self._execute("DELETE FROM sync WHERE domain = %(domain)s", domain=domain)
        return removed

    def read_cursor(self, domain: str, *, source: str) -> int | None:
        """Return the cursor of the last sync of a domain; None without one, or if it was from another source."""
        rows = self._fetch(SELECT_CURSOR, domain=domain, source=source)
        return rows[0][0] if rows else None

    def apply_pages(self, domain: str, pages: Sequence[ExportedPage], *, cursor: int | None) -> int:
        """Write available pages, delete the others, and store the cursor, if any. Return how many were deleted."""
        removed = 0
        with self._transaction():
            self._execute("INSERT INTO sync (domain) VALUES (%(domain)s) ON CONFLICT DO NOTHING", domain=domain)
            for page in pages:
                if page.is_available:
                    self._execute(UPSERT_PAGE, domain=domain, **{name: getattr(page, name) for name in PAGE_COLUMNS})
                    self._put_chunks(page)
                else:
                    removed += self._execute("DELETE FROM page WHERE url = %(url)s", url=page.url)
            if cursor is not None:
                self._execute(UPDATE_CURSOR, domain=domain, cursor=cursor)
        return removed

    def begin_full_sync(self, domain: str, *, source: str) -> None:
        """Start a full sync of a domain, which marks all pages that it writes. source: the source of its cursors."""
        with self._transaction():
            self._execute(BEGIN_FULL_SYNC, domain=domain, source=source)

    def end_full_sync(self, domain: str, *, cursor: int) -> int:
        """Delete the pages that the full sync has not written, and store the cursor. Return how many were deleted."""
        with self._transaction():
            removed = self._execute(DELETE_MISSING_PAGES, domain=domain)
            self._execute(UPDATE_CURSOR, domain=domain, cursor=cursor)
        return removed


IndexT = TypeVar("IndexT", bound=PageIndex)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result of a sync. put, removed: the numbers of written and deleted pages.

    cursor: the feed cursor of the index.  is_anew: whether all pages were read, not only changes.
    """

    put: int
    removed: int
    cursor: int
    is_anew: bool


async def sync(
    db: Database,
    domain: Domain,
    index: PageIndex,
    *,
    full: bool = False,
    on_progress: Callable[[int], None] = lambda _: None,
    thread: Executor | None = None,
) -> SyncResult:
    """Apply the changes of a domain to an index, up to the end of the feed.

    All pages are read in the first sync, if the stored cursor is not usable, or with `full`.  on_progress: is called
    with the number of pages so far.  thread: the thread of the index (see `open_in_thread`), or None for this one.
    """
    async with index.sync_lock():
        source, until = await report.read_feed_source(db, domain), await report.read_feed_end(db)
        pages = PageSource(db, domain, RowKind.PAGES, with_bodies=True)
        name, put, removed = domain.authority, 0, 0

        async def apply_batches(batches: AsyncIterator[tuple[list[ExportedPage], int | None]]) -> None:
            nonlocal put, removed
            async for batch, cursor in batches:
                removed += await call_in_thread(thread, index.apply_pages, name, batch, cursor=cursor)
                put += sum(page.is_available for page in batch)
                on_progress(put)

        since = None if full else await call_in_thread(thread, index.read_cursor, name, source=source)
        if since is not None and since <= until:
            with suppress(CursorTooOld):
                await apply_batches(pages.read_changed(after=since, until=until))
                return SyncResult(put, removed, until, is_anew=False)
        put = removed = 0
        await call_in_thread(thread, index.begin_full_sync, name, source=source)
        await apply_batches(pages.read_all())
        removed = await call_in_thread(thread, index.end_full_sync, name, cursor=until)
        return SyncResult(put, removed, until, is_anew=True)


@asynccontextmanager
async def open_in_thread(index: IndexT) -> AsyncIterator[tuple[IndexT, Executor]]:
    """Open an index for the block, with the only thread in which it may be called (see `call_in_thread`).

    The thread runs one call at a time: a call whose caller was canceled finishes before the index is closed.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="index")
    try:
        await call_in_thread(thread, index.__enter__)
        try:
            yield index, thread
        finally:
            await call_in_thread(thread, index.__exit__, None, None, None)
    finally:
        thread.shutdown(wait=False)


async def call_in_thread(thread: Executor | None, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function in a thread, or directly if the thread is None, and return its result."""
    if thread is None:
        return function(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *args, **kwargs))
