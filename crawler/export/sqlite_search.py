"""Search in a full-text index of `recrawl sync`: which parts of which pages say the words, the best first (BM25)."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crawler.core.http import Url
from crawler.errors import BadInput, CrawlerError
from crawler.export.sqlite_index import BUSY_SECONDS

MOST_WORDS = 32
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


def search(file: Path, words: str, *, domain: str | None = None, most: int = 10) -> list[SearchHit]:
    """The parts that have all of the words, in any order; a * at the end of a word stands for any ending.

    Raises BadInput for no words or too many, CrawlerError where the file is no index.
    """
    query = _query(words)
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as db:
            return [
                SearchHit(
                    url=Url(url),
                    domain=name,
                    title=title,
                    version=version,
                    version_at=version_at,
                    chunk=chunk,
                    heading=heading,
                    excerpt=excerpt,
                )
                for url, name, title, version, version_at, chunk, heading, excerpt in db.execute(
                    FOUND, (query, domain, most)
                )
            ]
    except sqlite3.Error as error:
        raise CrawlerError(f"{file} cannot be searched: {error}; recrawl sync {file} makes an index") from error


def _query(words: str) -> str:
    """The words as FTS5 takes them: each a string of its own, so that none is an operator."""
    typed = words.split()
    if not typed or len(typed) > MOST_WORDS:
        raise BadInput(f"search for one to {MOST_WORDS} words")
    return " ".join(f'"{bare}"{"*" if word.endswith("*") else ""}' for word in typed if (bare := _bare(word)))


def _bare(word: str) -> str:
    return word.rstrip("*").replace('"', "").replace("\0", "")
