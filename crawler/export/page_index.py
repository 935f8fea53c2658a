"""An index of pages, whichever database holds it, kept in step with the store: what went is taken out, the rest put in.

The index keeps the cursor of the change feed itself, and commits it with what it was told up to there. So it does not
matter when either side ends: what was not committed is told again, and putting a page twice is putting it once. With
the cursor it keeps whose it is: positions of another database, of a copy that was restored, or of a domain that was
registered anew mean other changes, and then all pages are read.
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

SCHEMA_VERSION = 3  # of the tables, and of the chunks in them; kept in the index
# What an older form lacks; then all pages are read anew, since they were cut by an older rule.
MIGRATIONS = {1: "ALTER TABLE sync ADD COLUMN source text;", 2: ""}
RESET_CURSORS = "UPDATE sync SET cursor = NULL;"

PAGE_COLUMNS = ("url", "title", "language", "version", "version_at", "seen_at", "importance")
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
    """An index of pages; a context manager. Each verb is a transaction of its own.

    Raises CrawlerError where the index cannot be written.
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
        """Make the tables, or bring older ones up to date."""

    @abstractmethod
    def sync_lock(self) -> AbstractAsyncContextManager[None]:
        """Have the index for oneself among those that sync it; until it is free one waits."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Do all that is done in the block, or nothing of it."""

    @abstractmethod
    def _execute(self, statement: str, **values: object) -> int:
        """Execute a statement with values by name; return how many rows it touched."""

    @abstractmethod
    def _fetch(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with values by name."""

    @abstractmethod
    def _put_chunks(self, page: ExportedPage) -> None:
        """Put the chunks of a page in place of those that it had."""

    def list_domains(self) -> list[str]:
        """The domains of which it has anything."""
        return [name for (name,) in self._fetch("SELECT domain FROM sync ORDER BY domain")]

    def remove_domain(self, domain: str) -> int:
        """Take a domain out; gives how many pages went."""
        with self._transaction():
            removed = self._execute("DELETE FROM page WHERE domain = %(domain)s", domain=domain)
            self._execute("DELETE FROM sync WHERE domain = %(domain)s", domain=domain)
        return removed

    def read_cursor(self, domain: str, *, source: str) -> int | None:
        """Where the last sync of a domain ended; None where none did, or where it was of another source."""
        rows = self._fetch(SELECT_CURSOR, domain=domain, source=source)
        return rows[0][0] if rows else None

    def apply_pages(self, domain: str, pages: Sequence[ExportedPage], *, cursor: int | None) -> int:
        """Take pages in, and those out that are not there any more; gives how many went. cursor: kept with them."""
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
        """From now on count which pages of a domain are put. source: whose cursors are kept with them."""
        with self._transaction():
            self._execute(BEGIN_FULL_SYNC, domain=domain, source=source)

    def end_full_sync(self, domain: str, *, cursor: int) -> int:
        """Take out the pages that were not put since then, and keep the cursor; gives how many went."""
        with self._transaction():
            removed = self._execute(DELETE_MISSING_PAGES, domain=domain)
            self._execute(UPDATE_CURSOR, domain=domain, cursor=cursor)
        return removed


IndexT = TypeVar("IndexT", bound=PageIndex)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SyncResult:
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
    on_progress: Callable[[int], None] = lambda _: None,
    thread: Executor | None = None,
) -> SyncResult:
    """Bring an index to where a domain's feed ends. The first time, with a useless cursor, or `anew`, all is read.

    on_progress: called with the pages so far.  thread: in which the index is called (`open_in_thread`); None for this
    one.
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

        since = None if anew else await call_in_thread(thread, index.read_cursor, name, source=source)
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
    """An index, open until the block ends, and the thread in which alone it is to be called (`called`).

    The thread does one thing after the other: what a cancelled caller has begun is done before the index is closed.
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
    """What a function gives that is called in a thread; None for the caller's own."""
    if thread is None:
        return function(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *args, **kwargs))
