"""Measure recording 500 visits with 50 links each in domains of 10^5 and 10^6 pages.

SQL fills both domains with cash conserved. The crawl continues from there: the best pages are selected, visited, and
recorded in one transaction. Postgres counts the written cash rows; distinct targets are counted here.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.table import table
from benchmarks.store.filled import Filled, filled, touched, visit_pages
from crawler.store import record, report
from crawler.store.database import Database, open_database

HEAD = ("pages", "visits", "links each", "distinct targets", "cash rows written", "seconds", "ms/visit")
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one record. targets: distinct pages that receive cash or are visited. rows: updates of cash rows."""

    pages: int
    visits: int
    links: int
    targets: int
    rows: int
    seconds: float

    @property
    def row(self) -> tuple[object, ...]:
        return (
            self.pages,
            self.visits,
            self.links,
            self.targets,
            self.rows,
            self.seconds,
            1000 * self.seconds / self.visits,
        )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    with new_database(given.home) as url:
        costs, findings = asyncio.run(measure(url, given))
    print(shown(costs))
    for finding in findings:
        print(f"{finding.domain}: {finding.text}", file=sys.stderr)
    return 0 if not findings and all(cost.rows == cost.targets for cost in costs) else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks record", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6], metavar="PAGES")
    parser.add_argument("--visits", type=int, default=500)
    parser.add_argument("--links", type=int, default=50, help="links per page")
    parser.add_argument("--times", type=int, default=5, help="number of records, not counting a first one")
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    return parser


async def measure(url: str, given: argparse.Namespace) -> tuple[list[Cost], list[report.Finding]]:
    """Record in each domain in turn, to spread a drift of the machine evenly."""
    async with open_database(url, max_connections=1) as db:  # the server counts by connection
        domains = [await filled(db, f"site{n}.test", pages=n, at=START) for n in given.sizes]
        chance = random.Random(0)
        costs = []
        for turn in range(given.times + 1):
            for domain in domains:
                cost = await recorded(db, domain, chance, at=START + timedelta(hours=turn + 1), given=given)
                costs += [cost] if turn else []
        return costs, await report.check_invariants(db)


async def recorded(
    db: Database, domain: Filled, chance: random.Random, *, at: datetime, given: argparse.Namespace
) -> Cost:
    batch = await visit_pages(db, domain, chance, most=given.visits, links=given.links, at=at)
    targets = {visit.target.key for visit in batch}.union(*(visit.recipients or () for visit in batch))
    before, _ = await touched(db, "cash")
    began = time.perf_counter()
    await record.record_visits(db, domain.lease, record.Batch(batch, max_pages=10**8))
    seconds = time.perf_counter() - began
    after, _ = await touched(db, "cash")
    return Cost(domain.pages, len(batch), given.links, len(targets), after - before, seconds)


def shown(costs: Sequence[Cost]) -> str:
    sizes = sorted({cost.pages for cost in costs})
    lines = [table(HEAD, [cost.row for cost in costs]), ""]
    whole = {n: median(cost.seconds for cost in costs if cost.pages == n) for n in sizes}
    each = {n: median(cost.seconds / cost.targets for cost in costs if cost.pages == n) for n in sizes}
    lines += [f"{n:,} pages: {whole[n]:.3f} s, {1e6 * each[n]:.0f} us for each target, median" for n in sizes]
    if len(sizes) > 1:
        least, most = sizes[0], sizes[-1]
        ratio = f"{whole[most] / whole[least]:.2f} times the time, {each[most] / each[least]:.2f} for each target"
        lines.append(f"{most:,} against {least:,} pages: {ratio}")
    return "\n".join(lines)
