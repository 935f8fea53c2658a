"""Lines of JSON, and CSV."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import BinaryIO

from crawler.export.cells import cell
from crawler.export.rows import COLUMNS, Row, chunk_rows, row_of
from crawler.store.report import TakenPage


class JsonLines:
    """One JSON object in a line for each page, or for each chunk of it; UTF-8. Instants are in ISO 8601."""

    def __init__(self, stream: BinaryIO, *, in_chunks: bool) -> None:
        self._stream, self._in_chunks = stream, in_chunks

    def write(self, page: TakenPage) -> None:
        rows: Sequence[Row] = list(chunk_rows(page)) if self._in_chunks else [row_of(page)]
        for row in rows:
            self._stream.write(json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n")

    def close(self) -> None:
        self._stream.flush()


class Csv:
    """One row for each page, behind a row of names; UTF-8. No cell is a formula."""

    def __init__(self, stream: BinaryIO) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(COLUMNS)

    def write(self, page: TakenPage) -> None:
        row = row_of(page)
        self._rows.writerow([cell(row[name]) for name in COLUMNS])

    def close(self) -> None:
        self._text.detach().flush()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} has no place in JSON")
