"""Measure claims and records in pages per second of several processes, next to Crawlee's queue in Postgres.

Each process has its own domain with an equal share of the pages, filled as a month of crawling leaves it. The process
selects and records 100 pages at a time: revisits that find nothing new, and first visits with text and 20 links.
Fetching and start-up are excluded. Sizes and systems take turns.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.harness.command import cpu_of_tree
from benchmarks.harness.database import HOME, empty, migrated
from benchmarks.harness.machine import described
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from benchmarks.store.aged import aged
from benchmarks.store.visits import Kind, Spent, one_batch
from benchmarks.store.workers import Work, all_ready, at_once
from crawler.cli.plot import Chart, Series
from crawler.core.domain import Lease
from crawler.engine.machine_load import prepare_memory
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from crawler.store.database import open_database
from labs.charts import write_figures
from tests.engine.crawls import coins_missing

HEAD = ("what", "total pages", "pages/s", "CPU ms/page", "Postgres CPU ms/page", "times the smallest")
VERSUS = ("times the pages/s", "times the CPU/page", "by size", "5,000 pages/s")
CRAWLEE = "crawlee queue"
START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=31)  # all fetched pages are due
FLAT = 1.2  # limit of CPU time per page, relative to the smallest size
BAR = 5000  # pages per second at ten million pages


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one process."""

    url: str
    lease: Lease
    kind: Kind
    pages: int
    batch: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Round:
    """The work of all processes. per_second: the sum of their speeds."""

    what: str
    size: int
    pages: int
    per_second: float
    cpu_s: float
    postgres_cpu_s: float

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.per_second, 1000 * self.cpu_s / self.pages, 1000 * self.postgres_cpu_s / self.pages)


Do = Callable[[int], Sequence[Work]]  # runs one round, by its number, and returns the work of each process


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    with borrow_postgres(given.home) as cluster, ExitStack() as held:
        things = [
            thing for size in given.sizes for thing in held.enter_context(filled_queues(cluster, size, given)).items()
        ]
        turns = enumerate(alternating(things, given.repeats))
        rounds = [measured(what, size, do, turn, cluster) for turn, ((what, size), do) in turns]
    if given.json:
        print(json.dumps({"rounds": [asdict(each) for each in rounds]}))
    else:
        print(f"{given.processes} processes, {given.repeats} repeats of {given.visits} pages by each process\n")
        print(shown(rounds))
        write_figures([("benchmark-queue", figure(rounds))], given.plot)
        print(f"\n{described('crawlee', 'sqlalchemy', 'asyncpg', 'psycopg')}")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks queue", description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10**4, 10**6], metavar="PAGES", help="total pages, at most 10000000"
    )
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--visits", type=int, default=300, help="visits per process and round")
    parser.add_argument("--batch", type=int, default=100, help="pages per claim and record")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write the figure to this folder as SVG")
    parser.add_argument("--json", action="store_true")
    return parser


@contextmanager
def filled_queues(cluster: Cluster, size: int, given: argparse.Namespace) -> Iterator[Mapping[tuple[str, int], Do]]:
    """Fill a queue of recrawl and one of Crawlee, and provide the operations on them by kind and size."""
    from benchmarks.store import crawlee_queue  # noqa: PLC0415  other benchmarks of the store do without Crawlee

    began = time.monotonic()
    with migrated(cluster) as url, empty(cluster) as rival:
        leases = asyncio.run(fill(url, size // given.processes, given.processes))
        between = time.monotonic()
        asyncio.run(crawlee_queue.fill(rival, size))
        ours_s, theirs_s = between - began, time.monotonic() - between
        filled = f"{size:,} pages: filled in {ours_s:.0f} s, Crawlee's queue in {theirs_s:.0f} s"
        print(filled, file=sys.stderr)

        def ours(kind: Kind, visits: int) -> Do:
            def do(turn: int) -> Sequence[Work]:
                at = LATER + timedelta(minutes=turn)
                parts = [Part(url, lease, kind, visits, given.batch, at) for lease in leases]
                return at_once(crawled, parts)

            return do

        def theirs(_turn: int) -> Sequence[Work]:
            return at_once(crawlee_queue.handle, [crawlee_queue.Part(rival, given.visits)] * given.processes)

        yield {
            (Kind.REVISIT.value, size): ours(Kind.REVISIT, given.visits),
            (Kind.FIRST.value, size): ours(Kind.FIRST, max(given.visits // 3, 1)),
            (CRAWLEE, size): theirs,
        }
        assert asyncio.run(missing(url)) == 0


async def fill(url: str, pages: int, domains: int) -> list[Lease]:
    async with open_database(url, max_connections=1) as db:
        return [await aged(db, f"site{n}.test", pages=pages, at=START) for n in range(domains)]


async def missing(url: str) -> int:
    """Return the cash that is not where it should be."""
    async with open_database(url, max_connections=1) as db:
        return await coins_missing(db)


def crawled(part: Part) -> Work:
    """Claim and record in this process."""
    return asyncio.run(_crawled(part))


async def _crawled(part: Part) -> Work:
    spent = Spent()
    async with open_database(part.url, max_connections=1) as db:
        # The first batch, which prepares statements and reads the catalog, does not count.
        dispatched = await one_batch(db, part.lease, part.kind, Spent(), most=10, at=part.at)
        prepare_memory()
        all_ready()
        while spent.pages < part.pages and dispatched:
            most = min(part.batch, part.pages - spent.pages)
            dispatched = await one_batch(db, part.lease, part.kind, spent, most=most, at=part.at)
    return Work(spent.pages, spent.seconds, spent.cpu_s)


def measured(what: str, size: int, do: Do, turn: int, cluster: Cluster) -> Round:
    before = cpu_of_tree(cluster.pid)
    done = do(turn)
    postgres_cpu_s = cpu_of_tree(cluster.pid) - before
    return Round(
        what=what,
        size=size,
        pages=sum(each.pages for each in done),
        per_second=sum(each.pages / each.seconds for each in done),
        cpu_s=sum(each.cpu_s for each in done),
        postgres_cpu_s=postgres_cpu_s,
    )


def middles_of(rounds: Sequence[Round]) -> Mapping[tuple[str, int], list[float]]:
    """Return the medians by kind and size."""
    return {
        (each.what, each.size): middle(
            [other.numbers for other in rounds if (other.what, other.size) == (each.what, each.size)]
        )
        for each in sorted(rounds, key=lambda each: (each.what, each.size))
    }


def figure(rounds: Sequence[Round]) -> Chart:
    """Plot the CPU time per page, including Postgres, by total pages."""
    found = middles_of(rounds)
    lines = (
        Series(name, tuple((float(size), sum(row[1:])) for (what, size), row in found.items() if what == name))
        for name in dict.fromkeys(what for what, _ in found)
    )
    return Chart("Claim and record", "total pages", "CPU ms/page", tuple(lines), is_log_x=True, is_log_y=True)


def shown(rounds: Sequence[Round]) -> str:
    middles = middles_of(rounds)
    smallest = {what: sum(middles[what, min(size for w, size in middles if w == what)][1:]) for what, _ in middles}
    rows = [(what, size, *found, (found[1] + found[2]) / smallest[what]) for (what, size), found in middles.items()]
    largest = max(size for _, size in middles)
    rival = middles[CRAWLEE, largest]
    versus = []
    for kind in (Kind.REVISIT, Kind.FIRST):
        ours = middles[kind.value, largest]
        growth = sum(ours[1:]) / smallest[kind.value]
        verdicts = ("flat" if growth < FLAT else "growing", "met" if ours[0] >= BAR else "missed")
        versus.append((kind.value, ours[0] / rival[0], sum(ours[1:]) / sum(rival[1:]), *verdicts))
    head = (f"{largest:,} pages against {CRAWLEE}", *VERSUS)
    lines = [table(HEAD, rows), "", "The last column compares CPU time, including Postgres.", "", table(head, versus)]
    return "\n".join(lines)
