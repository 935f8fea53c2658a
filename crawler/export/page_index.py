"""What an index of pages keeps and does, whichever database holds it: pages in chunks, and a cursor for each domain."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Self

import psycopg
from psycopg.rows import TupleRow

from crawler.store.report import TakenPage

FORM = 3  # of the tables, and of the chunks in them; kept in the index
# What an older form lacks; then all pages are read anew, since they were cut by an older rule.
FROM_FORM = {1: "ALTER TABLE sync ADD COLUMN source text;", 2: ""}
READ_ANEW = "UPDATE sync SET cursor = NULL;"

PAGE_COLUMNS = ("url", "title", "language", "version", "version_at", "seen_at", "importance")
PUT_PAGE = """
    INSERT INTO page (url, domain, title, language, version, version_at, seen_at, importance, pass)
    SELECT %(url)s, domain, %(title)s, %(language)s, %(version)s, %(version_at)s, %(seen_at)s, %(importance)s, pass
      FROM sync WHERE domain = %(domain)s
    ON CONFLICT (url) DO UPDATE
       SET domain = excluded.domain, title = excluded.title, language = excluded.language, version = excluded.version,
           version_at = excluded.version_at, seen_at = excluded.seen_at, importance = excluded.importance,
           pass = excluded.pass
"""
BEGIN_ANEW = """
    INSERT INTO sync AS s (domain, pass, source) VALUES (%(domain)s, 1, %(source)s)
    ON CONFLICT (domain) DO UPDATE SET pass = s.pass + 1, cursor = NULL, source = excluded.source
"""
END_ANEW = """
    DELETE FROM page WHERE domain = %(domain)s AND pass <> (SELECT pass FROM sync WHERE domain = %(domain)s)
"""
CURSOR = "SELECT cursor FROM sync WHERE domain = %(domain)s AND source = %(source)s"
MOVE_CURSOR = "UPDATE sync SET cursor = %(cursor)s WHERE domain = %(domain)s"


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
    def turn(self) -> AbstractAsyncContextManager[None]:
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
    def _put_chunks(self, page: TakenPage) -> None:
        """Put the chunks of a page in place of those that it had."""

    def domains(self) -> list[str]:
        """The domains of which it has anything."""
        return [name for (name,) in self._fetch("SELECT domain FROM sync ORDER BY domain")]

    def forget(self, domain: str) -> int:
        """Take a domain out; gives how many pages went."""
        with self._transaction():
            removed = self._execute("DELETE FROM page WHERE domain = %(domain)s", domain=domain)
            self._execute("DELETE FROM sync WHERE domain = %(domain)s", domain=domain)
        return removed

    def cursor(self, domain: str, *, source: str) -> int | None:
        """Where the last sync of a domain ended; None where none did, or where it was of another source."""
        found = self._fetch(CURSOR, domain=domain, source=source)
        return found[0][0] if found else None

    def put(self, domain: str, pages: Sequence[TakenPage], *, cursor: int | None) -> int:
        """Take pages in, and those out that are not there any more; gives how many went. cursor: kept with them."""
        removed = 0
        with self._transaction():
            self._execute("INSERT INTO sync (domain) VALUES (%(domain)s) ON CONFLICT DO NOTHING", domain=domain)
            for page in pages:
                if page.is_there:
                    self._execute(PUT_PAGE, domain=domain, **{name: getattr(page, name) for name in PAGE_COLUMNS})
                    self._put_chunks(page)
                else:
                    removed += self._execute("DELETE FROM page WHERE url = %(url)s", url=page.url)
            if cursor is not None:
                self._execute(MOVE_CURSOR, domain=domain, cursor=cursor)
        return removed

    def begin_anew(self, domain: str, *, source: str) -> None:
        """From now on count which pages of a domain are put. source: whose cursors are kept with them."""
        with self._transaction():
            self._execute(BEGIN_ANEW, domain=domain, source=source)

    def end_anew(self, domain: str, *, cursor: int) -> int:
        """Take out the pages that were not put since then, and keep the cursor; gives how many went."""
        with self._transaction():
            removed = self._execute(END_ANEW, domain=domain)
            self._execute(MOVE_CURSOR, domain=domain, cursor=cursor)
        return removed
