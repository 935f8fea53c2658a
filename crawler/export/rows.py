"""Pages as rows: the same names and values in lines of JSON, in CSV and in Parquet."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any, BinaryIO

from crawler.store.report import ExportedPage

Row = Mapping[str, Any]

COLUMNS = (
    *("url", "state", "status", "version", "version_at", "seen_at", "changed_at", "title", "language"),
    *("content_type", "importance", "digest", "text"),
)
CHUNK_COLUMNS = ("url", "state", "chunk", "heading", "title", "language", "version", "version_at", "text")


# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, "CSV Injection".
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def build_rows(page: ExportedPage, *, in_chunks: bool) -> list[Row]:
    """Return a page as rows: one by the names of COLUMNS, or one for each chunk by those of CHUNK_COLUMNS."""
    return list(_build_chunk_rows(page)) if in_chunks else [_build_page_row(page)]


def _build_page_row(page: ExportedPage) -> Row:
    """A page as one row, by the names of COLUMNS. A page that is not there any more has no text."""
    row = {name: getattr(page, name) for name in COLUMNS}
    row["state"], row["digest"] = page.state.value, page.digest.hex() if page.digest is not None else None
    if not page.has_content:
        row["text"] = ""
    return row


def _build_chunk_rows(page: ExportedPage) -> Iterator[Row]:
    """A page as a row for each part of it under a heading, by the names of CHUNK_COLUMNS; needs its body.

    A page that is not there any more is one row with no chunk: whoever keeps chunks deletes those that it had.
    """
    from crawler.export.chunks import chunk_page

    shared = {name: getattr(page, name) for name in ("url", "title", "language", "version", "version_at")}
    shared["state"] = page.state.value
    if not page.is_available:
        yield shared | {"chunk": None, "heading": [], "text": ""}
        return
    for chunk in chunk_page(page):
        yield shared | {"chunk": chunk.id, "heading": list(chunk.headings), "text": chunk.text}


class JsonLines:
    """One JSON object in a line for each page, or for each chunk of it; UTF-8. Instants are in ISO 8601."""

    def __init__(self, stream: BinaryIO, *, in_chunks: bool) -> None:
        self._stream, self._in_chunks = stream, in_chunks

    def write(self, page: ExportedPage) -> None:
        for row in build_rows(page, in_chunks=self._in_chunks):
            self._stream.write(json.dumps(row, ensure_ascii=False, default=datetime.isoformat).encode() + b"\n")

    def close(self) -> None:
        self._stream.flush()


class Csv:
    """One row for each page, behind a row of names; UTF-8. No cell is a formula."""

    def __init__(self, stream: BinaryIO) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(COLUMNS)

    def write(self, page: ExportedPage) -> None:
        row = _build_page_row(page)
        self._rows.writerow([format_cell(row[name]) for name in COLUMNS])

    def close(self) -> None:
        self._text.detach().flush()


def format_cell(value: object) -> object:
    """A value as a cell: text that would be a formula begins with an apostrophe; numbers are as they are."""
    if value is None or isinstance(value, int | float):
        return value
    text = format_value(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def format_value(value: object) -> str:
    """A value of a column in one word: instants in ISO 8601, bytes in hexadecimal digits."""
    match value:
        case None:
            return ""
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
