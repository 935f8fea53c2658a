"""Measure the overhead of Prefect per lease: the command and the flow crawl the same domains of one page each.

The server is a local stack in a separate folder (`recrawl up`) with its Postgres. The flow runs in a separate process,
as a worker starts it, and creates a task run, an artifact and an event per lease. Each figure is the cost of one more
lease: many domains minus one domain, which excludes start-up.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import RECRAWL, RECRAWLER, register
from benchmarks.crawling.crawls import Corpus
from benchmarks.crawling.first import single_page
from benchmarks.harness.command import cpu_of_tree, succeeded
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described
from benchmarks.harness.nginx import folder_site, serving
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from crawler.runtime.environment import build_client_environment
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres, find_running_postgres
from crawler.runtime.stack import Stack
from crawler.settings import Settings

FLOW = "import asyncio\nfrom flows.crawl import crawl\nasyncio.run(crawl())"
COMMANDS: Mapping[str, Sequence[str]] = {
    "command": [RECRAWL, "crawl", "--due", "--json"],
    "flow": [sys.executable, "-c", FLOW],
}
SETTLE_S = 4.0  # time for the server to write its last events
HEAD = ("crawled by", "ms/lease", "CPU ms/lease", "server's CPU ms/lease", "Postgres CPU ms/lease")


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl of some domains. server_cpu_s: CPU time of the Prefect server and its Postgres."""

    by: str
    domains: int
    seconds: float
    cpu_s: float
    server_cpu_s: float
    postgres_cpu_s: float

    @property
    def numbers(self) -> list[float]:
        return [1000 * each for each in (self.seconds, self.cpu_s, self.server_cpu_s, self.postgres_cpu_s)]


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    turns = [(by, domains) for by in COMMANDS for domains in (1, given.leases + 1)]
    with borrow_postgres(given.home) as cluster, prefect_stack() as stack, single_page() as site:
        crawls = [crawled(by, domains, site, cluster, stack) for by, domains in alternating(turns, given.repeats)]
    if given.json:
        print(json.dumps([asdict(each) for each in crawls]))
    else:
        print(f"{given.leases} leases of one page each, {given.repeats} repeats\n")
        print(report(crawls))
        print(f"\n{described('nginx', 'prefect', 'psycopg')}")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks orchestration", description=__doc__)
    parser.add_argument("--leases", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server for the crawls")
    parser.add_argument("--json", action="store_true")
    return parser


@contextmanager
def prefect_stack() -> Iterator[Stack]:
    """Start a separate local stack until the block ends."""
    with tempfile.TemporaryDirectory(prefix="bench-stack-") as folder:
        Path(folder).chmod(0o755)  # when run as root, its Postgres runs as another user
        before = dict(os.environ)  # `up` sets variables of this process
        chosen = Settings(home=Path(folder))
        try:
            yield start_stack(chosen, report=note)
        finally:
            stop_stack(chosen, report=note)
            os.environ.clear()
            os.environ.update(before)


def note(line: str) -> None:
    print(line, file=sys.stderr)


def crawled(by: str, domains: int, site: Corpus, cluster: Cluster, stack: Stack) -> Crawl:
    """Crawl the domains once. Raise CommandFailed or NginxError on errors."""
    own = find_running_postgres(stack.home)
    assert own is not None
    assert stack.server is not None
    with serving(*[folder_site(site.root)] * domains) as server, RECRAWLER.place(cluster) as place:
        environment = place.environment | build_client_environment(stack.home, stack.api)
        register(server.urls, place)
        server_before = cpu_of_tree(stack.server.pid) + cpu_of_tree(own.pid)
        before = cpu_of_tree(cluster.pid)
        done = succeeded(COMMANDS[by], environment, folder=place.folder)
        postgres_cpu_s = cpu_of_tree(cluster.pid) - before
        time.sleep(SETTLE_S)
        server_cpu_s = cpu_of_tree(stack.server.pid) + cpu_of_tree(own.pid) - server_before
        given = {each.port for each in server.requests() if each.path == "/" and each.status == 200}
    assert len(given) == domains, f"{by} crawled {len(given)} of {domains} domains"
    return Crawl(by, domains, done.seconds, done.cpu_s, server_cpu_s, postgres_cpu_s)


def report(crawls: Sequence[Crawl]) -> str:
    leases = max(each.domains for each in crawls) - 1
    rows = {by: per_lease([each for each in crawls if each.by == by], leases) for by in COMMANDS}
    added = [with_it - without for with_it, without in zip(rows["flow"], rows["command"], strict=True)]
    return table(HEAD, [*((by, *row) for by, row in rows.items()), ("Prefect adds", *added)])


def per_lease(crawls: Sequence[Crawl], leases: int) -> list[float]:
    """Return the cost of one more lease, from medians."""
    one, many = (middle([each.numbers for each in crawls if each.domains == domains]) for domains in (1, leases + 1))
    return [(more - less) / leases for more, less in zip(many, one, strict=True)]
