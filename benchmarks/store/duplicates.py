"""Measure how fast a million fingerprints are stored and near-duplicates looked up, and check that all pairs are found.

There are two domains: one with random fingerprints, and one whose pages share a template, which clusters their
fingerprints. Both contain planted pairs that differ in 0 to 3 bits. Besides elapsed time, CPU time of crawler and
Postgres is measured, and the elapsed time of empty transactions: on a busy machine, the slowest look-ups are slow
because they wait for a core, as these transactions do.
"""

import argparse
import asyncio
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.table import table
from benchmarks.harness.timings import backend_of, cpu_of, percentile_ms
from crawler.core.change.near_duplicates import MIN_TEXT_BYTES, NEAR_BITS
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, PageKey, Url, compute_page_key
from crawler.core.page.fingerprint import Fingerprint
from crawler.store import domains, report
from crawler.store.database import Database, open_database
from crawler.store.rows import encode_fingerprint

HEAD = (
    "fingerprints",
    "pages",
    "fill s",
    "pages/s",
    "look-up p50 ms",
    "p99 ms",
    "p50 cpu ms",
    "p99 cpu ms",
    "empty p99 ms",
    "pairs",
    "found",
    "groups s",
    "MB",
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
BAR_MS = 5.0  # limit at the 99th percentile
CROWDED_BITS = (2, 8)  # of 64; in how many bits pages of a template differ from it
YES_NO = {True: "met", False: "missed"}
MOST = 10**6  # pages of a look-up: all
# The columns of a page that the fill of the fingerprint tables reads.
MADE = "CREATE TEMP TABLE made (n INTEGER, key BYTEA, url TEXT, fingerprint BIGINT) ON COMMIT DROP"
COPY = "COPY made FROM STDIN"
ROWS = (
    """INSERT INTO page (domain_id, key, url, first_seen_at, version, fingerprint)
       SELECT %(id)s, key, url, %(at)s, 1, fingerprint FROM made""",
    "INSERT INTO frontier (domain_id, key, state, rank, due_at) SELECT %(id)s, key, 'fetched', 0, %(at)s FROM made",
    """INSERT INTO snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                             main_digest, fingerprint)
       SELECT %(id)s, key, 1, %(at)s, '', '', '', repeat('x', %(bytes)s), '', '', '', fingerprint FROM made""",
    """INSERT INTO event (domain_id, number, at, key, url, change, version)
       SELECT %(id)s, n + 1, %(at)s, key, url, 'added', 1 FROM made""",
)
SIZE = """
    SELECT sum(pg_total_relation_size(t.relid)) / 1e6
      FROM unnest('{page_fingerprint,fingerprint_band}'::regclass[]) r, pg_partition_tree(r) t
     WHERE t.isleaf AND t.relid::regclass::text LIKE '%%' || right(
           (SELECT tableoid::regclass::text FROM page WHERE domain_id = %(id)s LIMIT 1), 4)
"""


@dataclass(frozen=True, slots=True)
class Scores:
    """The results of one domain.

    pairs: planted pairs.
    found: pairs found by looking up their first pages.
    seconds, cpu_seconds: of each look-up.
    idle_seconds: of empty transactions.
    """

    name: str
    pages: int
    fill_s: float
    seconds: Sequence[float]
    cpu_seconds: Sequence[float]
    idle_seconds: Sequence[float]
    pairs: int
    found: int
    groups_s: float
    megabytes: float

    @property
    def row(self) -> tuple[object, ...]:
        return (
            self.name,
            self.pages,
            self.fill_s,
            self.pages / self.fill_s,
            *(percentile_ms(seconds, percent) for seconds in (self.seconds, self.cpu_seconds) for percent in (50, 99)),
            percentile_ms(self.idle_seconds, 99),
            self.pairs,
            self.found,
            self.groups_s,
            self.megabytes,
        )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    with new_database(given.home) as url:
        scores = asyncio.run(measure(url, given))
    print(table(HEAD, [each.row for each in scores]))
    print(verdict(scores))
    return 0


def verdict(scores: Sequence[Scores]) -> str:
    by_chance = scores[0]
    passed, worked = (percentile_ms(each, 99) < BAR_MS for each in (by_chance.seconds, by_chance.cpu_seconds))
    found = all(each.found == each.pairs for each in scores)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return "\n".join(
        [
            f"\nLoad average over 1, 5 and 15 minutes, including this benchmark: {load} on {os.cpu_count()} cores",
            f"99 of 100 look-ups of random fingerprints under {BAR_MS} ms: {YES_NO[passed]}, on this machine",
            f"The same in CPU time: {YES_NO[worked]}",
            f"All pairs found: {'yes' if found else 'no'}",
        ]
    )


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks duplicates", description=__doc__)
    parser.add_argument("--pages", type=int, default=10**6, help="number of pages with random fingerprints")
    parser.add_argument("--crowded", type=int, default=10**5, help="number of pages that share a template")
    parser.add_argument("--pairs", type=int, default=4000, help="number of planted pairs in each domain")
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    return parser


async def measure(url: str, given: argparse.Namespace) -> list[Scores]:
    chance = random.Random(1)
    template = chance.getrandbits(64)
    by_chance = planted((chance.getrandbits(64) for _ in iter(int, 1)), given.pairs, chance)
    crowd = (differing(template, chance.randint(*CROWDED_BITS), chance) for _ in iter(int, 1))
    crowded = planted(crowd, given.pairs, chance)
    async with open_database(url, max_connections=1) as db:
        return [
            await scored(db, "random", [next(by_chance) for _ in range(given.pages)], given.pairs),
            await scored(db, "crowded", [next(crowded) for _ in range(given.crowded)], given.pairs),
        ]


def planted(source: Iterator[int], pairs: int, chance: random.Random) -> Iterator[Fingerprint]:
    """Yield pairs of fingerprints that differ in 0, 1, 2, 3, 0, ... bits, then the rest of the source."""
    for n in range(pairs):
        one = next(source)
        yield Fingerprint(one)
        yield Fingerprint(differing(one, n % (NEAR_BITS + 1), chance))
    yield from map(Fingerprint, source)


def differing(fingerprint: int, bits: int, chance: random.Random) -> int:
    for place in chance.sample(range(64), bits):
        fingerprint ^= 1 << place
    return fingerprint


async def scored(db: Database, name: str, fingerprints: Sequence[Fingerprint], pairs: int) -> Scores:
    domain = await domains.register(
        db, Authority(f"{name.replace(' ', '-')}.test"), scheme="http", domain_settings=DomainSettings(), at=AT
    )
    keys = await fill_pages(db, domain, fingerprints)
    began = time.perf_counter()
    assert await report.fill_fingerprints(db, domain) == len(keys)
    filled = time.perf_counter()
    seconds, cpu_seconds, found = await look_up(db, domain, keys, pairs)
    idle_seconds = await time_empty_transactions(db, pairs)
    grouping = time.perf_counter()
    await report.find_near_duplicate_groups(db, domain, bits=NEAR_BITS, max_groups=20, max_members=5)
    grouped = time.perf_counter()
    return Scores(
        name=name,
        pages=len(keys),
        fill_s=filled - began,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        idle_seconds=idle_seconds,
        pairs=pairs,
        found=found,
        groups_s=grouped - grouping,
        megabytes=await megabytes(db, domain),
    )


async def fill_pages(db: Database, domain: Domain, fingerprints: Sequence[Fingerprint]) -> list[PageKey]:
    urls = [page_url(domain, n) for n in range(len(fingerprints))]
    keys = [compute_page_key(url) for url in urls]
    values = {"id": domain.id, "at": AT, "bytes": MIN_TEXT_BYTES}
    async with db.transaction() as connection:
        await connection.execute(MADE.encode())
        async with connection.cursor() as cursor, cursor.copy(COPY) as copy:
            for n, each in enumerate(fingerprints):
                await copy.write_row((n, keys[n], urls[n], encode_fingerprint(each)))
        for statement in ROWS:
            await connection.execute(statement.encode(), values)
    async with db.transaction() as connection:
        await connection.execute("ANALYZE page, frontier, snapshot, event")
    return keys


def page_url(domain: Domain, n: int) -> Url:
    return Url(f"{domain.root}p{n}")


async def look_up(
    db: Database, domain: Domain, keys: Sequence[PageKey], pairs: int
) -> tuple[list[float], list[float], int]:
    """Look up the first page of each pair.

    Return elapsed seconds and CPU seconds of each look-up, and how many found the second page.
    """
    backend = await backend_of(db)
    seconds, cpu_seconds, found = [], [], 0
    for n in range(pairs):
        began, began_cpu = time.perf_counter(), time.process_time() + cpu_of(backend)
        near = await report.find_near_duplicates(db, domain, keys[2 * n], bits=NEAR_BITS, max_pages=MOST)
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() + cpu_of(backend) - began_cpu)
        assert near is not None
        other, bits = page_url(domain, 2 * n + 1), n % (NEAR_BITS + 1)
        found += any(page.url == other and page.bits == bits for page in near)
    return seconds, cpu_seconds, found


async def time_empty_transactions(db: Database, times: int) -> list[float]:
    """Return the seconds of empty transactions, the minimum for a look-up."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        async with db.transaction() as connection:
            await connection.execute("SELECT 1")
        seconds.append(time.perf_counter() - began)
    return seconds


async def megabytes(db: Database, domain: Domain) -> float:
    """Return the disk space of the partitions with the domain's fingerprints in MB, including indexes."""
    async with db.transaction() as connection:
        row = await (await connection.execute(SIZE.encode(), {"id": domain.id})).fetchone()
        assert row is not None
        return float(row[0])
