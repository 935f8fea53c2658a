"""Measure how claims grow with the number of domains, the cost of a claim with nothing due, and the effects of a month.

Domains: there are many, with one page each. Each is claimed, its page is selected and recorded, and the lease is
released. Then nothing is due anywhere, and a claim has to find that out. Month: one domain is revisited for thirty
virtual days as its pages fall due. The table shows rows written, how many updates were HOT, dead rows, and table sizes
before the month, after it, and after a vacuum. Autovacuum runs on the real clock: a month in minutes leaves more dead
rows than a real one.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from benchmarks.harness.timings import backend_of, cpu_of
from benchmarks.store.aged import TERM, aged
from benchmarks.store.visits import Kind, Spent, one_batch
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import claim, domains, record
from crawler.store.database import Database, open_database

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TABLES = ("page", "frontier", "cash", "visit", "domain_state")
CLAIM_HEAD = ("domains", "claim ms", "claim CPU ms", "pages CPU ms/page", "nothing due, ms", "nothing due, CPU ms")
MONTH_HEAD = ("table", "rows written", "of updates HOT", "dead rows", "MB before", "MB after", "MB vacuumed")
STATISTICS = """
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0), coalesce(sum(n_tup_upd), 0),
           coalesce(sum(n_tup_hot_upd), 0), coalesce(sum(n_dead_tup), 0),
           coalesce(sum(pg_total_relation_size(relid)), 0)
      FROM pg_stat_user_tables
     WHERE relid = %(table)s::regclass OR relid IN (SELECT relid FROM pg_partition_tree(%(table)s::regclass))
"""


@dataclass(frozen=True, slots=True)
class Claims:
    """Median times of claims among `domains` domains in ms: elapsed, and CPU of crawler and Postgres."""

    domains: int
    passed_ms: float
    cpu_ms: float
    page_cpu_ms: float  # selection and record, per page
    idle_ms: float
    idle_cpu_ms: float

    @property
    def row(self) -> tuple[object, ...]:
        return (self.domains, self.passed_ms, self.cpu_ms, self.page_cpu_ms, self.idle_ms, self.idle_cpu_ms)


@dataclass(frozen=True, slots=True)
class Stored:
    """The statistics of a table with all its partitions and indexes."""

    written: int
    updated: int
    hot: int
    dead: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Left:
    """The effects of a month on one table."""

    table: str
    before: Stored
    after: Stored
    vacuumed: Stored

    @property
    def row(self) -> tuple[object, ...]:
        updated, hot = self.after.updated - self.before.updated, self.after.hot - self.before.hot
        sizes = (each.size_bytes / 1e6 for each in (self.before, self.after, self.vacuumed))
        share = f"{hot / updated:.0%}" if updated else "none"
        return (self.table, self.after.written - self.before.written, share, self.after.dead, *sizes)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    claims = []
    for count in given.domains:
        with new_database(given.home) as url:
            claims.append(asyncio.run(claims_among(url, count, given)))
    with new_database(given.home) as url:
        visits, left = asyncio.run(month(url, given))
    if given.json:
        report = {
            "claims": [asdict(each) for each in claims],
            "visits": visits,
            "left": [asdict(each) for each in left],
        }
        print(json.dumps(report))
        return 0
    print(table(CLAIM_HEAD, [each.row for each in claims]))
    print(f"\n{given.pages:,} pages, {given.days} days, {visits:,} revisits\n")
    print(table(MONTH_HEAD, [each.row for each in left]))
    print(f"\n{described('psycopg')}")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument(
        "--domains", type=int, nargs="+", default=[100, 2000], help="numbers of domains; 10000 takes minutes to fill"
    )
    parser.add_argument("--claims", type=int, default=200, help="number of claims with nothing due")
    parser.add_argument("--pages", type=int, default=10_000, help="number of pages of the domain for the month")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


async def claims_among(url: str, count: int, given: argparse.Namespace) -> Claims:
    async with open_database(url, max_connections=1) as db:
        await fill(db, count)
        timer = Timer(await backend_of(db))
        spent = Spent()
        for _ in range(count):
            await one_lease(db, timer, spent, at=START)
        idle = Timer(timer.backend)
        for _ in range(given.claims):
            with idle:
                lease = await claim.claim(db, at=START, holder="bench", term=TERM)
            assert lease is None
        return Claims(count, *timer.middle, 1000 * spent.cpu_s / max(spent.pages, 1), *idle.middle)


class Timer:
    """Measure successive blocks: elapsed time, and CPU time of this process and its backend."""

    def __init__(self, backend: int) -> None:
        self.backend = backend
        self._passed: list[float] = []
        self._cpu: list[float] = []

    def __enter__(self) -> None:
        self._began, self._began_cpu = time.perf_counter(), time.process_time() + cpu_of(self.backend)

    def __exit__(self, *_: object) -> None:
        self._passed.append(time.perf_counter() - self._began)
        self._cpu.append(time.process_time() + cpu_of(self.backend) - self._began_cpu)

    @property
    def middle(self) -> tuple[float, float]:
        """Return the medians in milliseconds."""
        return 1000 * median(self._passed), 1000 * median(self._cpu)


async def fill(db: Database, count: int) -> None:
    """Add `count` domains with only a root page, all due at START."""
    for n in range(count):
        await domains.register(
            db, Authority(f"site{n}.test"), scheme="http", domain_settings=DomainSettings(), at=START
        )
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
        await connection.execute("VACUUM (ANALYZE)")
        await connection.set_autocommit(False)


async def one_lease(db: Database, timer: Timer, spent: Spent, *, at: datetime) -> None:
    with timer:
        lease = await claim.claim(db, at=at, holder="bench", term=TERM)
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    _ = await one_batch(db, lease, Kind.ONLY, spent, most=10, at=at)
    await claim.release(db, lease, at=at)


async def month(url: str, given: argparse.Namespace) -> tuple[int, Sequence[Left]]:
    """Return the number of visits and their effects on the tables."""
    spent = Spent()
    async with open_database(url, max_connections=1) as db:
        lease = await aged(db, "site.test", pages=given.pages, at=START)
        before = await statistics(db)
        for day in range(1, given.days + 1):
            at = START + day * DAY
            while await one_batch(db, lease, Kind.REVISIT, spent, most=100, at=at):
                pass
        after = await statistics(db)
        async with db.pool.connection() as connection:
            await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
            await connection.execute(f"VACUUM {', '.join(TABLES)}".encode())
            await connection.set_autocommit(False)
        vacuumed = await statistics(db)
    return spent.pages, [Left(name, before[name], after[name], vacuumed[name]) for name in TABLES]


async def statistics(db: Database) -> Mapping[str, Stored]:
    """Return the statistics by table. db must have one connection, whose counters are flushed first."""
    found = {}
    async with db.transaction() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with db.transaction() as connection:
        for name in TABLES:
            row = await (await connection.execute(STATISTICS.encode(), {"table": name})).fetchone()
            assert row is not None
            found[name] = Stored(*map(int, row))
    return found
