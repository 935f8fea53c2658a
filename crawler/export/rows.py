"""A page as a row: the same names and values in lines of JSON, in CSV and in Parquet."""

from collections.abc import Iterator, Mapping
from typing import Any

from crawler.store.report import TakenPage

Row = Mapping[str, Any]

COLUMNS = (
    *("url", "state", "status", "version", "version_at", "seen_at", "changed_at", "title", "language"),
    *("content_type", "importance", "digest", "text"),
)
CHUNK_COLUMNS = ("url", "state", "chunk", "heading", "title", "language", "version", "version_at", "text")


def row_of(page: TakenPage) -> Row:
    """A page as one row, by the names of COLUMNS. A page that is not there any more has no text."""
    row = {name: getattr(page, name) for name in COLUMNS}
    row["state"], row["digest"] = page.state.value, page.digest.hex() if page.digest is not None else None
    if not page.has_content:
        row["text"] = ""
    return row


def chunk_rows(page: TakenPage) -> Iterator[Row]:
    """A page as a row for each part of it under a heading, by the names of CHUNK_COLUMNS; needs its body.

    A page that is not there any more is one row with no chunk: whoever keeps chunks deletes those that it had.
    """
    from crawler.export.chunks import chunks_of_page

    shared = {name: getattr(page, name) for name in ("url", "title", "language", "version", "version_at")}
    shared["state"] = page.state.value
    if not page.is_there:
        yield shared | {"chunk": None, "heading": [], "text": ""}
        return
    for chunk in chunks_of_page(page):
        yield shared | {"chunk": chunk.id, "heading": list(chunk.headings), "text": chunk.text}
