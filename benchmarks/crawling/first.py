"""Compare a first crawl with other crawlers: pages per second, CPU time per page and memory.

All crawl the same real documentation, served by nginx, in turn, several times and with equal parallelism; recrawl
stores everything. The server counts pages. Time runs from a crawler's first request to its end, which excludes imports.
CPU time is the total minus that of a crawl of one page.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import CRAWLEE, RECRAWLER, SCRAPY, SCRAPY_POSTGRES, Crawler
from benchmarks.crawling.crawls import Corpus, Run, corpus_in, crawled_afresh
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described, pin_to_one_core, share_cores
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from crawler.cli.plot import Chart, Series
from crawler.runtime.postgres.cluster import borrow_postgres
from labs.charts import write_figures
from tests.engine.corpus import fetch

CRAWLERS = {each.name: each for each in (RECRAWLER, SCRAPY, SCRAPY_POSTGRES, CRAWLEE)}
HEAD = ("crawler", "pages", "pages/s", "CPU ms/page", "Postgres CPU ms/page", "peak MB", "seconds", "command s")
VERSUS = ("recrawl against", "times the pages/s", "times the CPU/page", "with Postgres")


@dataclass(frozen=True, slots=True)
class Costs:
    """The table row of one run, or the medians of several."""

    pages: float
    per_second: float
    cpu_ms: float
    postgres_cpu_ms: float
    peak_mb: float
    seconds: float
    command_s: float

    @property
    def all_cpu_ms(self) -> float:
        return self.cpu_ms + self.postgres_cpu_ms

    @property
    def row(self) -> tuple[float, ...]:
        return (int(self.pages), *self.numbers[1:])

    @property
    def numbers(self) -> tuple[float, ...]:
        return tuple(asdict(self).values())


def costs(run: Run, idle: Run) -> Costs:
    """Return the cost of a run minus start-up. idle: the same crawler on a site of a single page."""
    per_page = 1000 / max(1, run.pages - idle.pages)
    return Costs(
        pages=run.pages,
        per_second=run.pages / run.seconds,
        cpu_ms=(run.cpu_s - idle.cpu_s) * per_page,
        postgres_cpu_ms=(run.postgres_cpu_s - idle.postgres_cpu_s) * per_page,
        peak_mb=run.peak_bytes / 1e6,
        seconds=run.seconds,
        command_s=run.command_s,
    )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    if given.pinned:
        pin_to_one_core()
    corpus = corpus_in(given.site or fetch(given.corpus))
    expected = len(corpus.linked)
    idle, runs = measure(corpus, [CRAWLERS[name] for name in given.only or CRAWLERS], given)
    if given.json:
        print(json.dumps({"expected": expected, "runs": [asdict(run) for run in (*idle.values(), *runs)]}))
    else:
        print(f"{given.site or given.corpus}: {expected} linked pages, parallelism {given.parallelism}\n")
        print(report(idle, runs))
        write_figures([("benchmark-crawl", figure(runs))], given.plot)
        print(f"\n{described('nginx', 'scrapy', 'crawlee', 'psycopg')}")
    return 0 if all(run.pages == expected for run in runs) else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks crawl", description=__doc__)
    parser.add_argument("--corpus", default="postgresql-doc-15", help="a Debian documentation package")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="crawl this folder of HTML instead")
    parser.add_argument("--repeats", type=int, default=5, help="number of crawls by each crawler")
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--only", nargs="+", choices=tuple(CRAWLERS))
    parser.add_argument(
        "--pinned", action="store_true", help="run everything on one core, including Postgres and nginx"
    )
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write the figure to this folder as SVG")
    parser.add_argument("--json", action="store_true")
    return parser


def measure(
    corpus: Corpus, chosen: Sequence[Crawler], given: argparse.Namespace
) -> tuple[Mapping[str, Run], list[Run]]:
    """Crawl a single page with each crawler, then the site with all in turn."""
    with borrow_postgres(given.home) as cluster, single_page() as small:
        share_cores(cluster)
        idle = {
            crawler.name: crawled_afresh(crawler, small, cluster, parallelism=given.parallelism) for crawler in chosen
        }
        runs = [
            crawled_afresh(crawler, corpus, cluster, parallelism=given.parallelism)
            for crawler in alternating(chosen, given.repeats)
        ]
    return idle, runs


@contextmanager
def single_page() -> Iterator[Corpus]:
    """Provide a site with one page, which shows the fixed cost of a crawler."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "index.html").write_text("<!DOCTYPE html><title>One</title><p>One page.</p>", encoding="utf-8")
        yield corpus_in(Path(folder))


def report(idle: Mapping[str, Run], runs: Sequence[Run]) -> str:
    each = [(run.crawler, costs(run, idle[run.crawler])) for run in runs]
    middles = {name: Costs(*middle([cost.numbers for other, cost in each if other == name])) for name in idle}
    rows = [(name, *cost.row) for name, cost in (*each, *((f"{name}, median", cost) for name, cost in middles.items()))]
    lines = [table(HEAD, rows)]
    ours = middles.pop(RECRAWLER.name, None)
    if ours and middles:
        lines += ["", table(VERSUS, [(name, *ratios(ours, cost)) for name, cost in middles.items()])]
    return "\n".join(lines)


def figure(runs: Sequence[Run]) -> Chart:
    """Plot the pages per second of each repeat, to show the spread."""
    names = dict.fromkeys(run.crawler for run in runs)
    speeds = {name: [run.pages / run.seconds for run in runs if run.crawler == name] for name in names}
    lines = (Series(name, tuple((float(n), speed) for n, speed in enumerate(speeds[name], 1))) for name in names)
    return Chart("First crawl", "repeat", "pages per second", tuple(lines))


def ratios(ours: Costs, rival: Costs) -> tuple[float, float, float]:
    """Return the ratios of pages per second and CPU time per page, without and with Postgres."""
    return (
        ours.per_second / rival.per_second,
        ours.cpu_ms / rival.cpu_ms,
        ours.all_cpu_ms / rival.all_cpu_ms,
    )
