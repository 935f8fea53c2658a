"""A full-text index of pages by chunks, in one SQLite file with FTS5, and the search in it.

SELECT p.url, c.heading, snippet(chunk_text, 1, '[', ']', '...', 12)
FROM chunk_text JOIN chunk c ON c.rowid = chunk_text.rowid JOIN page p ON p.id = c.page
WHERE chunk_text MATCH 'pear tree' ORDER BY rank LIMIT 10;
"""

import asyncio
import fcntl
import os
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from crawler.core.http.urls import Url
from crawler.errors import BadInput, CrawlerError
from crawler.export.page_index import MIGRATIONS, RESET_CURSORS, SCHEMA_VERSION, PageIndex
from crawler.store.report import ExportedPage

BUSY_SECONDS = 30.0  # to wait for other readers and writers of the file
LOCK_POLL_SECONDS = 0.05  # between checks whether another sync has ended
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")  # a named parameter of psycopg

# IF NOT EXISTS, because two processes may open a new file at once.
TABLES = """
CREATE TABLE IF NOT EXISTS page (
    id INTEGER PRIMARY KEY,
    domain TEXT NOT NULL,
    url TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    language TEXT NOT NULL,
    version INTEGER NOT NULL,
    version_at TEXT,   -- when this version was first seen, ISO 8601
    seen_at TEXT,      -- the last successful fetch
    importance REAL,
    pass INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS page_pass ON page (domain, pass);
CREATE TABLE IF NOT EXISTS chunk (
    id TEXT NOT NULL UNIQUE,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    heading TEXT NOT NULL,  -- the headings above it, outermost first, separated by " > "
    text TEXT NOT NULL      -- Markdown
);
CREATE INDEX IF NOT EXISTS chunk_page ON chunk (page);
CREATE VIRTUAL TABLE IF NOT EXISTS chunk_text USING fts5 (
    heading, text, content='chunk', tokenize='unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS chunk_in AFTER INSERT ON chunk BEGIN
    INSERT INTO chunk_text (rowid, heading, text) VALUES (new.rowid, new.heading, new.text);
END;
CREATE TRIGGER IF NOT EXISTS chunk_out AFTER DELETE ON chunk BEGIN
    INSERT INTO chunk_text (chunk_text, rowid, heading, text) VALUES ('delete', old.rowid, old.heading, old.text);
END;
CREATE TABLE IF NOT EXISTS sync (domain TEXT PRIMARY KEY, cursor INTEGER, pass INTEGER NOT NULL DEFAULT 0, source TEXT);
"""

MAX_WORDS = 32
SEARCH_TIMEOUT = timedelta(seconds=20)  # a single letter with a * may match half of a large index
# A match in a heading counts three times, because headings describe the topic of a part.
SEARCH_CHUNKS = """
    SELECT p.url, p.domain, p.title, p.version, p.version_at, c.id, c.heading,
           snippet(chunk_text, 1, '[', ']', ' ... ', 40)
      FROM chunk_text
      JOIN chunk c ON c.rowid = chunk_text.rowid
      JOIN page p ON p.id = c.page
     WHERE chunk_text MATCH ?1 AND (?2 IS NULL OR p.domain = ?2)
     ORDER BY bm25(chunk_text, 3.0, 1.0) LIMIT ?3
"""


SEARCH_TITLES = """
    SELECT url, domain, title FROM page WHERE {conditions} ORDER BY importance DESC NULLS LAST LIMIT ?
"""
COUNT_PAGES = "SELECT count(*) FROM page"


class SqliteIndex(PageIndex):
    """An index in a file, which it creates. Raises CrawlerError for a file of another kind."""

    _db: sqlite3.Connection

    def __init__(self, file: Path) -> None:
        self._file = file

    def _connect(self) -> None:
        with _convert_errors(self._file):
            self._db = sqlite3.connect(self._file, timeout=BUSY_SECONDS, isolation_level=None)

    def _set_up(self) -> None:
        with _convert_errors(self._file):
            self._db.execute("PRAGMA foreign_keys = ON")
            self._use_wal()
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == SCHEMA_VERSION:
                return
            if version not in {0, *MIGRATIONS} or (version == 0 and tables):
                raise CrawlerError(f"{self._file} exists and is not an index of this version: use another file")
            statements = f"{MIGRATIONS[version]} {RESET_CURSORS}" if version else TABLES
            self._db.executescript(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    def _use_wal(self) -> None:
        """Enable WAL, so that writes do not block readers. SQLite does not wait for another process that enables it."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(LOCK_POLL_SECONDS)

    @asynccontextmanager
    async def sync_lock(self) -> AsyncIterator[None]:
        """Wait for other syncs of the file to end, and exclude them during the block, also in other processes.

        The lock is on a separate file next to it; the system releases it even if its holder is killed.
        """
        try:
            lock = os.open(f"{self._file}-sync", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CrawlerError(f"{self._file}-sync cannot be written: {error.strerror or error}") from error
        try:
            while not _try_lock(lock):  # noqa: ASYNC110  other processes cannot set an event
                await asyncio.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block as one transaction, with the file locked for writing from the beginning."""
        with _convert_errors(self._file):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # a full disk has already ended the transaction
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _execute(self, statement: str, **values: object) -> int:
        return self._run_statement(statement, values).rowcount

    def _fetch(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        with _convert_errors(self._file):
            return self._run_statement(statement, values).fetchall()

    def _run_statement(self, statement: str, values: Mapping[str, object]) -> sqlite3.Cursor:
        parameters = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in values.items()}
        return self._db.execute(_PLACEHOLDER.sub(r":\1", statement), parameters)

    def _put_chunks(self, page: ExportedPage) -> None:
        from crawler.export.chunks import chunk_page

        ((page_id,),) = self._fetch("SELECT id FROM page WHERE url = %(url)s", url=page.url)
        self._execute("DELETE FROM chunk WHERE page = %(page)s", page=page_id)
        rows = [(chunk.id, page_id, " > ".join(chunk.headings), chunk.text) for chunk in chunk_page(page)]
        self._db.executemany("INSERT INTO chunk (id, page, heading, text) VALUES (?, ?, ?, ?)", rows)


def _try_lock(lock: int) -> bool:
    """Try to lock an open file, and return whether that succeeded."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _convert_errors(file: Path) -> Iterator[None]:
    """Convert errors of SQLite to a CrawlerError with one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise CrawlerError(f"the index {file} cannot be written: {error}") from error


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A part of a page that contains the search words.

    chunk: the stable id of the chunk (export/chunks.py).  heading: the headings above it, separated by " > ".
    excerpt: Markdown around the words, which are in brackets.  version_at: when this version was first seen, ISO 8601.
    """

    url: Url
    domain: str
    title: str
    version: int
    version_at: str | None
    chunk: str
    heading: str
    excerpt: str


def is_searchable(file: Path) -> bool:
    """Return whether the file is an index with tables, which can be searched."""
    with suppress(sqlite3.Error), closing(_open_read_only(file)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        return 1 <= int(version) <= SCHEMA_VERSION  # older versions differ only in the data for sync
    return False


def require_words(words: str) -> None:
    """Raise BadInput if there are no search words, or too many."""
    _build_query(words)


@dataclass(frozen=True, slots=True)
class IndexState:
    """The size of an index. pages: the number of its pages.  synced_at: when it was last written."""

    pages: int
    size_bytes: int
    synced_at: datetime


def read_index_state(file: Path) -> IndexState | None:
    """Return the size of an index; None if it does not exist or cannot be read."""
    if not is_searchable(file):
        return None
    with suppress(sqlite3.Error, OSError), closing(_open_read_only(file)) as db:
        (pages,) = db.execute(COUNT_PAGES).fetchone()
        written = [each.stat() for each in (file, file.with_name(f"{file.name}-wal")) if each.exists()]
        synced_at = datetime.fromtimestamp(max(each.st_mtime for each in written), UTC)
        return IndexState(pages, sum(each.st_size for each in written), synced_at)
    return None


def search_titles(file: Path, words: Sequence[str], *, max_count: int) -> list[tuple[Url, str, str]]:
    """Return the URL, domain and title of pages whose title contains all words, most important first.

    Raises CrawlerError if the file is not an index.
    """
    conditions = " AND ".join(["instr(lower(title), lower(?)) > 0"] * len(words))
    try:
        with closing(_open_read_only(file)) as db:
            return db.execute(SEARCH_TITLES.format(conditions=conditions), (*words, max_count)).fetchall()
    except sqlite3.Error as error:
        raise CrawlerError(f"{file} cannot be searched: {error}") from error


def search(
    file: Path, words: str, *, domain: str | None = None, max_count: int = 10, timeout: timedelta = SEARCH_TIMEOUT
) -> list[SearchHit]:
    """Return the parts that contain all words in any order, best first; a * at the end of a word matches any ending.

    Raises BadInput for no words or too many, and CrawlerError if the file is not an index or the search times out.
    """
    query = _build_query(words)
    end = time.monotonic() + timeout.total_seconds()
    try:
        with closing(_open_read_only(file)) as db:
            # Every 100,000 instructions of SQLite, which take some milliseconds.
            db.set_progress_handler(lambda: time.monotonic() > end, 100_000)
            return [SearchHit(*row) for row in db.execute(SEARCH_CHUNKS, (query, domain, max_count))]
    except sqlite3.Error as error:
        if time.monotonic() > end:
            problem = f"the search took longer than {timeout.total_seconds():g} s"
            raise CrawlerError(f"{problem}: use more words, or longer ones") from error
        raise CrawlerError(f"{file} cannot be searched: {error}; create an index with recrawl sync {file}") from error


def _open_read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def _build_query(words: str) -> str:
    """Return the words as an FTS5 query, each quoted, so that none is an operator."""
    bare = {word: word.rstrip("*").replace('"', "").replace("\0", "") for word in words.split()}
    valid_words = [word for word, bare_word in bare.items() if any(map(str.isalnum, bare_word))]
    if not valid_words or len(valid_words) > MAX_WORDS:
        raise BadInput(f"search for one to {MAX_WORDS} words")
    return " ".join(f'"{bare[word]}"{"*" if word.endswith("*") else ""}' for word in valid_words)
