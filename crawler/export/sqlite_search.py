"""Search in a full-text index of `recrawl sync`: which parts of which pages say the words, the best first (BM25)."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from crawler.core.http import Url
from crawler.errors import BadInput, CrawlerError
from crawler.export.sqlite_index import BUSY_SECONDS, FORM

MOST_WORDS = 32
WITHIN = timedelta(seconds=20)  # of one search: a single letter with a * may stand for half of a large index
STEPS = 100_000  # of SQLite's machine, after which the clock is looked at: some milliseconds
# A heading says more of what a part is about than one sentence of it.
FOUND = """
    SELECT p.url, p.domain, p.title, p.version, p.version_at, c.id, c.heading,
           snippet(chunk_text, 1, '[', ']', ' ... ', 40)
      FROM chunk_text
      JOIN chunk c ON c.rowid = chunk_text.rowid
      JOIN page p ON p.id = c.page
     WHERE chunk_text MATCH ?1 AND (?2 IS NULL OR p.domain = ?2)
     ORDER BY bm25(chunk_text, 3.0, 1.0) LIMIT ?3
"""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A part of a page that says what was searched for.

    chunk: the part's id, which stays (export/chunks.py).  heading: those it stands under.  excerpt: Markdown around the
    words, which stand in brackets.  version_at: ISO 8601, when that version was first seen.
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
    """Whether an index is there that can be searched: not before its tables are made."""
    try:
        with closing(_opened(file)) as db:
            (form,) = db.execute("PRAGMA user_version").fetchone()
            return 1 <= int(form) <= FORM  # older ones differ in what they keep for sync
    except sqlite3.Error:
        return False


def require_words(words: str) -> None:
    """Raise BadInput for what nothing can be searched for by: no words, or too many."""
    _query(words)


def search(
    file: Path, words: str, *, domain: str | None = None, most: int = 10, within: timedelta = WITHIN
) -> list[SearchHit]:
    """The parts that have all of the words, in any order; a * at the end of a word stands for any ending.

    Raises BadInput for no words or too many, CrawlerError where the file is no index, or where it takes too long.
    """
    query = _query(words)
    end = time.monotonic() + within.total_seconds()
    try:
        with closing(_opened(file)) as db:
            db.set_progress_handler(lambda: time.monotonic() > end, STEPS)
            return [SearchHit(*row) for row in db.execute(FOUND, (query, domain, most))]
    except sqlite3.Error as error:
        if time.monotonic() > end:
            raise CrawlerError(
                f"the search takes longer than {within.total_seconds():g} s: say more words, or longer ones"
            ) from error
        raise CrawlerError(f"{file} cannot be searched: {error}; recrawl sync {file} makes an index") from error


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def _query(words: str) -> str:
    """The words as FTS5 takes them: each a string of its own, so that none is an operator."""
    bare = {word: word.rstrip("*").replace('"', "").replace("\0", "") for word in words.split()}
    typed = [word for word, said in bare.items() if any(map(str.isalnum, said))]
    if not typed or len(typed) > MOST_WORDS:
        raise BadInput(f"search for one to {MOST_WORDS} words")
    return " ".join(f'"{bare[word]}"{"*" if word.endswith("*") else ""}' for word in typed)
