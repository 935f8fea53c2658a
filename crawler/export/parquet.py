"""Parquet: the rows of pages in columns, compressed, a group of rows at a time."""

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from crawler.export.rows import Row, rows_of
from crawler.store.report import TakenPage

GROUP_CHARS = 16 << 20  # of text, after which a group of rows is written
GROUP_ROWS = 10_000

_INSTANT = pa.timestamp("us", tz="UTC")
_PAGES = pa.schema(
    [
        ("url", pa.string()),
        ("state", pa.string()),
        ("status", pa.int16()),
        ("version", pa.int32()),
        ("version_at", _INSTANT),
        ("seen_at", _INSTANT),
        ("changed_at", _INSTANT),
        ("title", pa.string()),
        ("language", pa.string()),
        ("content_type", pa.string()),
        ("importance", pa.float64()),
        ("digest", pa.string()),
        ("text", pa.large_string()),
    ]
)
_CHUNKS = pa.schema(
    [
        ("url", pa.string()),
        ("state", pa.string()),
        ("chunk", pa.string()),
        ("heading", pa.list_(pa.string())),
        ("title", pa.string()),
        ("language", pa.string()),
        ("version", pa.int32()),
        ("version_at", _INSTANT),
        ("text", pa.large_string()),
    ]
)


class Parquet:
    """One row for each page, or for each chunk of it."""

    def __init__(self, stream: BinaryIO, *, in_chunks: bool) -> None:
        self._in_chunks = in_chunks
        self._schema = _CHUNKS if in_chunks else _PAGES
        self._writer = pq.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._chars = 0

    def write(self, page: TakenPage) -> None:
        rows = rows_of(page, in_chunks=self._in_chunks)
        self._rows += rows
        self._chars += sum(len(row["text"]) for row in rows)
        if self._chars >= GROUP_CHARS or len(self._rows) >= GROUP_ROWS:
            self._write_group()

    def close(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_pylist([dict(row) for row in self._rows], schema=self._schema))
        self._rows.clear()
        self._chars = 0
