"""Measure the peak memory and speed of `recrawl export` by the number of rows.

SQL fills a domain (store/aged.py) whose fetched pages have a text of 100 words and a body. The command exports them to
a file in each format; Postgres is not included. Rows of JSON and records of WARC are counted in the file.
"""

import argparse
import asyncio
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.command import succeeded
from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from benchmarks.store.aged import aged
from crawler.store import claim
from crawler.store.database import open_database

RECRAWL = Path(sys.executable).with_name("recrawl")
AT = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "site.test"
HEAD = ("format", "rows", "MB written", "seconds", "rows/s", "peak MB")
FLAT = 1.15  # limit of the peak at the most rows divided by that at the fewest
# 600 characters that differ on each page. Two thirds of all pages are fetched (store/aged.py).
TEXTS = """
    INSERT INTO snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                          main_digest, fingerprint)
    SELECT p.domain_id, p.key, 1, p.last_good_at, 'Page ' || p.fingerprint, 'en', 'text/html; charset=utf-8',
           (SELECT string_agg(md5(p.fingerprint || 'w' || w), ' ') FROM generate_series(1, 20) w),
           p.body_digest, p.text_digest, p.main_digest, p.fingerprint
      FROM page p WHERE p.domain_id = %(id)s AND p.version > 0
"""
BODIES = """
    INSERT INTO content (domain_id, digest, encoding, body_bytes, data)
    SELECT s.domain_id, s.body_digest, 'identity', octet_length(b.body), b.body
      FROM snapshot s,
           LATERAL (SELECT convert_to('<!DOCTYPE html><title>' || s.title || '</title><main><h1>' || s.title || '</h1>'
                                      || '<p>' || s.text || '</p></main>', 'UTF8') AS body) b
     WHERE s.domain_id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class ExportRun:
    """One export. peak_bytes: peak resident memory of the command."""

    form: str
    rows: int
    written_bytes: int
    seconds: float
    peak_bytes: int

    @property
    def line(self) -> tuple[object, ...]:
        speed = self.rows / self.seconds
        return self.form, self.rows, self.written_bytes / 1e6, self.seconds, speed, self.peak_bytes / 1e6


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    runs: list[ExportRun] = []
    for rows in given.rows:
        with new_database(given.home) as url:
            asyncio.run(fill(url, rows))
            runs += [run(url, form) for form in given.formats]
    if given.json:
        print(json.dumps([each.line for each in runs]))
        return 0
    print(table(HEAD, [each.line for each in runs]))
    for form in given.formats:
        peaks = [each.peak_bytes for each in runs if each.form == form]
        growth = peaks[-1] / peaks[0]
        print(f"{form}: {growth:.2f} times the memory at {given.rows[-1]:,} rows: {verdict(growth)}")
    print(f"\n{described('psycopg')}")
    return 0


def verdict(growth: float) -> str:
    return "flat" if growth < FLAT else "growing"


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks export", description=__doc__)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[10_000, 100_000], help="numbers of rows; 1000000 takes many minutes"
    )
    parser.add_argument("--formats", nargs="+", default=["jsonl", "csv", "parquet", "warc"])
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


async def fill(url: str, rows: int) -> None:
    """Create a domain with `rows` fetched pages, each with text and body, and half as many unfetched pages."""
    async with open_database(url, max_connections=2) as db:
        lease = await aged(db, NAME, pages=-(-rows * 3 // 2), at=AT)
        for statement in (TEXTS, BODIES):
            async with db.transaction() as connection:
                await connection.execute(statement.encode(), {"id": lease.domain.id})
        await claim.release(db, lease, at=AT)
        async with db.pool.connection() as connection:
            await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
            await connection.execute("VACUUM (ANALYZE)")
            await connection.set_autocommit(False)


def run(url: str, form: str) -> ExportRun:
    """Export everything to a temporary file."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / form
        environment = kept | {"RECRAWL_DATABASE_URL": url, "RECRAWL_HOME": folder}
        done = succeeded([str(RECRAWL), "export", NAME, "--format", form, "--to", str(file), "--json"], environment)
        reported = int(json.loads(done.output)["pages"])
        if (there := counted(file, form)) not in {None, reported}:
            raise AssertionError(f"export reported {reported} rows, but the file has {there}")
        return ExportRun(form, reported, file.stat().st_size, done.seconds, done.peak_bytes)


def counted(file: Path, form: str) -> int | None:
    """Return the number of rows or records in a file; None for a format without a count."""
    match form:
        case "jsonl":
            with file.open("rb") as lines:
                return sum(1 for _ in lines)
        case "warc":
            with gzip.open(file) as records:
                return sum(line.startswith(b"WARC-Type: re") for line in records)
        case _:
            return None
