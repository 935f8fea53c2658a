"""Pages as rows, with the same names and values in JSON lines, CSV and Parquet."""

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
    *("content_type", "importance", "digest", "confidence", "content"),
)
CHUNK_COLUMNS = ("url", "state", "chunk", "heading", "title", "language", "version", "version_at", "text")


# Spreadsheets read cells with these prefixes as formulas. Source: OWASP, "CSV Injection".
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def build_rows(page: ExportedPage, *, in_chunks: bool) -> list[Row]:
    """Return a page as one row with COLUMNS, or as a row per chunk with CHUNK_COLUMNS."""
    return list(_build_chunk_rows(page)) if in_chunks else [_build_page_row(page)]


def _build_page_row(page: ExportedPage) -> Row:
    """Return a page as one row with COLUMNS. A page that is no longer available has no content."""
    row = {name: getattr(page, name) for name in COLUMNS}
    row["state"], row["digest"] = page.state.value, page.digest.hex() if page.digest is not None else None
    if not page.has_content:
        row["content"] = ""
    return row


def _build_chunk_rows(page: ExportedPage) -> Iterator[Row]:
    """Yield a row with CHUNK_COLUMNS for each chunk of a page read with its body.

    A page that is no longer available yields one row without a chunk, so that consumers can delete its old chunks.
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
    """A writer of JSON lines in UTF-8, with one object per page, version or chunk. Instants are in ISO 8601."""

    def __init__(self, stream: BinaryIO, *, in_chunks: bool) -> None:
        self._stream, self._in_chunks = stream, in_chunks

    def write(self, page: ExportedPage) -> None:
        for row in build_rows(page, in_chunks=self._in_chunks):
            self._stream.write(json.dumps(row, ensure_ascii=False, default=datetime.isoformat).encode() + b"\n")

    def close(self) -> None:
        self._stream.flush()


class Csv:
    """A writer of CSV in UTF-8, with a header and one row per page or version. No cell is a formula."""

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
    """Return a value as a CSV cell. Text that would be a formula gets an apostrophe; numbers stay unchanged."""
    if value is None or isinstance(value, int | float):
        return value
    text = format_value(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def format_value(value: object) -> str:
    """Return a value as text: instants in ISO 8601, bytes in hexadecimal digits."""
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
