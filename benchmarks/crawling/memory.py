"""Measure the resident memory of a first crawl, with all its processes, by the number of pages crawled so far.

nginx generates the pages (harness/virtual_site.py), each with different text and ten links. Postgres is not included.
Memory is sampled five times a second, and the server counts pages.
"""

import argparse
import json
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import RECRAWLER
from benchmarks.harness.command import succeeded
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described
from benchmarks.harness.nginx import serving
from benchmarks.harness.table import table
from benchmarks.harness.virtual_site import MAX_DEPTH, pages_of, virtual_site
from crawler.runtime.postgres.cluster import borrow_postgres

HEAD = ("pages so far", "peak MB of all processes", "MB at the end")
BAR_MB = 300.0  # limit of the peak
STEPS = 10  # rows of the table
FLAT = 1.1  # limit of the last step's peak divided by the second step's


@dataclass(frozen=True, slots=True)
class Step:
    """A tenth of a crawl. pages: the number of pages crawled by its end."""

    pages: int
    max_bytes: int
    last_bytes: int


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    steps, visits, per_second = measure(given)
    if given.json:
        shown = [(each.pages, each.max_bytes, each.last_bytes) for each in steps]
        print(json.dumps({"visits": visits, "per_second": per_second, "steps": shown}))
        return 0
    print(table(HEAD, [(each.pages, each.max_bytes / 1e6, each.last_bytes / 1e6) for each in steps]))
    most_mb, growth = max(each.max_bytes for each in steps) / 1e6, steps[-1].max_bytes / steps[1].max_bytes
    print(f"\n{visits:,} pages, {per_second:.0f} per second")
    print(f"Peak {most_mb:.0f} MB, limit {BAR_MB:.0f} MB: {'met' if most_mb < BAR_MB else 'missed'} on this machine")
    print(f"The last tenth has {growth:.2f} times the memory of the second: {'flat' if growth < FLAT else 'growing'}")
    print(f"\n{described('nginx', 'psycopg')}")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000, help="number of pages to crawl, at most 11,111,111")
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


def measure(given: argparse.Namespace) -> tuple[list[Step], int, float]:
    """Return the steps of one crawl, its visits, and visits per second. Raise CommandFailed or NginxError on errors."""
    depth = next(each for each in range(1, MAX_DEPTH + 1) if pages_of(each) >= given.pages or each == MAX_DEPTH)
    with (
        borrow_postgres(given.home) as cluster,
        serving(virtual_site(depth=depth)) as server,
        RECRAWLER.place(cluster) as place,
    ):
        command = [*RECRAWLER.command(server.url, given.parallelism), "--pages", str(given.pages)]
        done = succeeded(command, place.environment, folder=place.folder)
        ended = [each.ended for each in server.requests() if each.status == 200]
    visits = int(json.loads(done.output)["visits"])
    marks = [ended[len(ended) * n // STEPS] for n in range(STEPS)]
    parts: list[list[int]] = [[] for _ in marks]
    for sample in done.memory[:-1]:  # the last sample may be of a process that is ending
        parts[max(bisect(marks, sample.at) - 1, 0)].append(sample.bytes)
    steps = [Step(len(ended) * (n + 1) // STEPS, max(part), part[-1]) for n, part in enumerate(parts) if part]
    return steps, visits, visits / (done.ended - ended[0])
