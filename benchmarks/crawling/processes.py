"""Measure one, two and four crawling processes that share a database and eight domains: pages per second and CPU time.

All domains serve the first pages of the same real documentation, on different ports of one nginx. Processes are
`recrawl crawl --due` commands, each with its share of the concurrent domains; leases keep them apart. Time runs from
the first request to the end of the last command. CPU time includes start-up.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from benchmarks.crawling.crawlers import RECRAWL, RECRAWLER, Place, register
from benchmarks.crawling.crawls import Corpus, corpus_in
from benchmarks.harness.command import Measured, cpu_of_tree, succeeded
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described
from benchmarks.harness.nginx import Nginx, folder_site, serving
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from tests.engine.corpus import fetch

HEAD = ("processes", "pages", "pages/s", "times one", "CPU ms/page", "Postgres CPU ms/page", "peak MB")


@dataclass(frozen=True, slots=True)
class Shift:
    """One crawl of all domains. pages: pages that the server sent, over all domains."""

    processes: int
    pages: int
    seconds: float
    cpu_s: float
    postgres_cpu_s: float
    peak_bytes: int

    @property
    def numbers(self) -> tuple[float, ...]:
        per_page = 1000 / self.pages
        speed = self.pages / self.seconds
        return (self.pages, speed, self.cpu_s * per_page, self.postgres_cpu_s * per_page, self.peak_bytes / 1e6)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    corpus = corpus_in(given.site or fetch(given.corpus))
    with borrow_postgres(given.home) as cluster:
        shifts = [shift(corpus, cluster, given, processes=many) for many in alternating(given.processes, given.repeats)]
    if given.json:
        print(json.dumps([asdict(each) for each in shifts]))
    else:
        print(f"{given.domains} domains of {given.pages} pages, each with parallelism {given.parallelism}\n")
        print(report(shifts))
        print(f"\n{described('nginx', 'psycopg')}")
    return 0 if {each.pages for each in shifts} == {shifts[0].pages} else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks processes", description=__doc__)
    parser.add_argument("--corpus", default="postgresql-doc-15", help="a Debian documentation package")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="crawl this folder of HTML instead")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--domains", type=int, default=8)
    parser.add_argument("--pages", type=int, default=300, help="maximum number of pages of each domain")
    parser.add_argument("--parallelism", type=int, default=16, help="concurrent requests per domain")
    parser.add_argument("--repeats", type=int, default=5, help="repeats for each number of processes")
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


def shift(corpus: Corpus, cluster: Cluster, given: argparse.Namespace, *, processes: int) -> Shift:
    """Crawl all domains once. Raise CommandFailed or NginxError on errors."""
    with serving(*[folder_site(corpus.root)] * given.domains) as server, RECRAWLER.place(cluster) as place:
        settings = ["--parallelism", str(given.parallelism), "--max-pages", str(given.pages)]
        register(server.urls, place, *settings)
        before = cpu_of_tree(place.postgres)
        done = crawled_by(processes, place, domains=given.domains)
        postgres_cpu_s = cpu_of_tree(place.postgres) - before
        return Shift(
            processes=processes,
            pages=pages_given(server, corpus.linked),
            seconds=max(each.ended for each in done) - min(each.began for each in server.requests()),
            cpu_s=sum(each.cpu_s for each in done),
            postgres_cpu_s=postgres_cpu_s,
            peak_bytes=sum(each.peak_bytes for each in done),
        )


def crawled_by(processes: int, place: Place, *, domains: int) -> Sequence[Measured]:
    """Run the commands at the same time until nothing is due."""
    environment: Mapping[str, str] = place.environment | {"RECRAWL_CONCURRENT_DOMAINS": str(ceil(domains / processes))}
    command = [RECRAWL, "crawl", "--due", "--json"]
    with ThreadPoolExecutor(processes) as pool:
        waiting = [pool.submit(succeeded, command, environment, folder=place.folder) for _ in range(processes)]
        return [each.result() for each in waiting]


def pages_given(server: Nginx, linked: frozenset[str]) -> int:
    found = {(each.port, each.path) for each in server.requests() if each.status == 200 and each.path in linked}
    return len(found)


def report(shifts: Sequence[Shift]) -> str:
    middles = {
        many: middle([each.numbers for each in shifts if each.processes == many])
        for many in sorted({each.processes for each in shifts})
    }
    alone = next(iter(middles.values()))[1]
    rows = [(many, int(found[0]), found[1], found[1] / alone, *found[2:]) for many, found in middles.items()]
    return table(HEAD, rows)
