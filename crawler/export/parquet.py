"""The Parquet writer, which writes compressed row groups."""

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from crawler.export.rows import CHUNK_COLUMNS, COLUMNS, Row, build_rows
from crawler.store.report import ExportedPage

_INSTANT = pa.timestamp("us", tz="UTC")
# The types of the columns that are not strings.
_TYPES = {
    "status": pa.int16(),
    "version": pa.int32(),
    "version_at": _INSTANT,
    "seen_at": _INSTANT,
    "changed_at": _INSTANT,
    "importance": pa.float64(),
    "heading": pa.list_(pa.string()),
    "confidence": pa.float64(),
    "content": pa.large_string(),
    "text": pa.large_string(),
}


class Parquet:
    """A writer of Parquet with one row per page, version or chunk."""

    def __init__(self, stream: BinaryIO, *, in_chunks: bool) -> None:
        self._in_chunks = in_chunks
        columns = CHUNK_COLUMNS if in_chunks else COLUMNS
        self._schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])
        self._writer = pq.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._chars = 0

    def write(self, page: ExportedPage) -> None:
        rows = build_rows(page, in_chunks=self._in_chunks)
        self._rows += rows
        self._chars += sum(len(row["text" if self._in_chunks else "content"]) for row in rows)
        if self._chars >= 16 << 20 or len(self._rows) >= 10_000:
            self._write_group()

    def close(self) -> None:
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_pylist([dict(row) for row in self._rows], schema=self._schema))
        self._rows.clear()
        self._chars = 0
