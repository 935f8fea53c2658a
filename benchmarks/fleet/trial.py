"""Three workers on separate hosts, one Postgres, one Prefect server: throughput, a killed worker, an outage.

The workers are `recrawl worker`, each in a network namespace if the system allows it, else with a separate home on this
machine. The server is `recrawl server`, prepared by `recrawl deploy`. The limits of a crawl are realistic: the delay of
each site and the number of domains that a worker crawls at a time. The sites log all requests; every crawl is checked
against this log and the store.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil
import psycopg

from benchmarks.crawling.crawlers import RECRAWL
from benchmarks.fleet import sites
from benchmarks.fleet.findings import Fleet, fleet_of, problems
from benchmarks.fleet.leases import Killed, LeaseWatch, recorded_pages
from benchmarks.fleet.network import Network, can_be_made, loopback, namespaces
from benchmarks.harness.command import CommandFailed
from benchmarks.harness.database import HOME, empty
from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from crawler.runtime.background_processes import SERVICE_TAG
from crawler.runtime.environment import PrefectApi
from crawler.runtime.machine import find_free_port
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from tests.flows.stage import ask, change, start_run

AUTH = "recrawl:of-the-benchmark"
PATIENCE_S = 600.0
LEASE_TERM_S = 10
BUSY_SITES = 3  # sites in progress, with BUSY_PAGES requested pages each, that a worker needs before it is killed
BUSY_PAGES = 10
KILLED, AWAY = "one killed", "server away"
HEAD = (
    "crawl",
    "workers",
    "pages",
    "seconds",
    "pages/s",
    "times one",
    "requested again",
    "shortest gap, s",
    "by worker",
)


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl of all sites. problems: what went wrong. remarks: other facts."""

    name: str
    workers: int
    found: Fleet
    problems: list[str]
    remarks: str = ""


@dataclass
class Trial:
    """The environment of the trial: network, folder and servers."""

    given: argparse.Namespace
    network: Network
    folder: Path
    cluster: Cluster
    ports: dict[str, int] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def api(self) -> PrefectApi:
        return PrefectApi(f"http://{self.network.hub}:{self.ports['prefect']}/api", AUTH)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset({"/"} | {f"/{sites.name_of(number)}" for number in range(1, self.given.pages)})

    def url(self, name: str) -> str:
        """Return the URL of a database for other hosts."""
        return self.cluster.build_url(name).replace("127.0.0.1", self.network.hub)

    def environment(self, home: str, database: str) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("RECRAWL_", "PREFECT_"))}
        own = {
            "RECRAWL_HOME": str(self.folder / home),
            "RECRAWL_DATABASE_URL": self.url(database),
            "RECRAWL_PREFECT_DATABASE_URL": self.url(f"prefect_{self.mark}"),
            "PREFECT_API_URL": self.api.url,
            "PREFECT_API_AUTH_STRING": AUTH,
            "RECRAWL_PROBE_SITEMAPS": "false",
            "RECRAWL_PARSER_PROCESSES": "1",
            "RECRAWL_LEASE_TERM": str(LEASE_TERM_S),
            "RECRAWL_REQUEST_TIMEOUT": "5",
            "RECRAWL_CONCURRENT_DOMAINS": str(self.given.leases_at_once),
            "RECRAWL_MAX_RUN_TIME": "1h",
            "RECRAWL_MAX_BATCH_AGE": "1",
        }
        return plain | own

    def command(self, *words: str, database: str) -> None:
        """Run a command to its end. Raise CommandFailed on errors."""
        done = subprocess.run(
            [RECRAWL, *words], env=self.environment("commands", database), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(f"recrawl {words[0]}: {done.stderr[-2000:]}")

    @contextmanager
    def server(self) -> Iterator[psutil.Process]:
        words = [RECRAWL, "server", "--host", self.network.hub, "--port", str(self.ports["prefect"])]
        with self.started(words, "server", "none") as process:
            self.until(lambda: is_healthy(self.api), "the Prefect server responds", process)
            yield process

    @contextmanager
    def started(self, words: Sequence[str], home: str, database: str) -> Iterator[psutil.Process]:
        """Run a process until the block ends, then stop it and all its children."""
        with (self.folder / f"{home}.log").open("ab") as log:
            process = psutil.Popen(
                words, env=self.environment(home, database), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            if process.is_running():
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except psutil.TimeoutExpired:
                kill(process)

    def until(self, happens: Callable[[], bool], what: str, process: psutil.Process | None = None) -> None:
        """Wait for a condition. Raise CommandFailed after PATIENCE_S or if the process that should cause it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not happens():
            if time.monotonic() > deadline or (process is not None and process.status() == psutil.STATUS_ZOMBIE):
                raise CommandFailed(f"timed out waiting until {what}: see the logs in {self.folder}")
            time.sleep(0.2)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    given.home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        make = namespaces if can_be_made() and not given.loopback else loopback
        network = stack.enter_context(make(workers=3, sites=given.sites))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-fleet-")))
        cluster = stack.enter_context(borrow_postgres(given.home))
        trial = Trial(given, network, folder, cluster)
        for name in ("prefect", "sites"):
            trial.ports[name] = find_free_port(f"fleet {name}", excluded=tuple(trial.ports.values()))
        crawls = []
        for each in run_crawls(trial, stack):
            print(f"{each.name}: {each.found}", file=sys.stderr, flush=True)
            crawls.append(each)
    if given.json:
        print(json.dumps([asdict(each) for each in crawls]))
    else:
        print(report(crawls, given, is_apart=network.is_apart))
    return 1 if any(each.problems for each in crawls) else 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet", description=__doc__)
    parser.add_argument("--sites", type=int, default=24)
    parser.add_argument("--pages", type=int, default=100, help="number of pages of each site")
    parser.add_argument("--delay", type=float, default=0.25, metavar="SECONDS", help="delay of each site")
    parser.add_argument("--leases-at-once", type=int, default=8, help="domains that a worker crawls at a time")
    parser.add_argument(
        "--away", type=float, default=120, metavar="SECONDS", help="how long the Prefect server is down"
    )
    parser.add_argument(
        "--loopback", action="store_true", help="run all workers on this machine, without network namespaces"
    )
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


def run_crawls(trial: Trial, stack: ExitStack) -> Iterator[Crawl]:
    """Run the crawls in turn. Raise CommandFailed on errors."""
    stack.enter_context(empty(trial.cluster, f"prefect_{trial.mark}"))
    if trial.network.is_apart:
        port = trial.cluster.build_url("x").rpartition(":")[2].partition("/")[0]
        stack.enter_context(helper("relay", trial.network.hub, port))
    with trial.server():
        for workers in (1, 2, 3):
            with crawl_database(trial, f"fleet_{workers}") as database:
                yield crawled(trial, database, workers=workers)
        with crawl_database(trial, "fleet_killed") as database:
            yield crawled(trial, database, workers=3, name=KILLED, kills=True)
    with crawl_database(trial, "fleet_away", deploy=False) as database:
        yield crawled_without_server(trial, database)


@contextmanager
def crawl_database(trial: Trial, name: str, *, deploy: bool = True) -> Iterator[str]:
    """Provide a migrated database with paused deployments; the trial starts runs itself."""
    name = f"{name}_{trial.mark}"  # unique: a killed trial may leave its databases behind
    with empty(trial.cluster, name):
        trial.command("db", "upgrade", database=name)
        if deploy:
            trial.command("deploy", database=name)
            for each in ask(trial.api, "/deployments/filter", {}):
                change(trial.api, f"/deployments/{each['id']}", {"paused": True})
        yield name


@contextmanager
def helper(module: str, *words: str) -> Iterator[None]:
    """Run a module of this package until the block ends; wait until it is ready."""
    command = [sys.executable, "-m", f"benchmarks.fleet.{module}", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != sites.READY:
            raise CommandFailed(f"{module} did not start")
        yield
        process.terminate()


@contextmanager
def fleet(trial: Trial, database: str, *, workers: int) -> Iterator[tuple[list[psutil.Process], Path]]:
    """Run the registered sites and the workers that are about to crawl them."""
    log = trial.folder / f"{database}.tsv"
    port, given = str(trial.ports["sites"]), trial.given
    words = ["--port", port, "--pages", str(given.pages), "--log", str(log), *trial.network.sites]
    with helper("sites", *words), ExitStack() as stack:
        origins = [f"http://{address}:{port}" for address in trial.network.sites]
        how = ["--allow-private", "--delay", str(given.delay), "--parallelism", "1"]
        trial.command("domains", "add", "--offline", *origins, *how, database=database)
        running = []
        for number, host in zip(range(workers), trial.network.hosts, strict=False):
            home = f"{database}-{number}"
            words = [*host, RECRAWL, "worker", "--limit", "1", "--grace", "60"]
            running.append(stack.enter_context(trial.started(words, home, database)))
        # Runs start together: a late worker would find nothing left to crawl.
        trial.until(lambda: tags_of(trial, database, workers=workers) <= known_workers(trial), "all workers are known")
        for _ in running:
            start_run(trial.api, "crawl/crawl")
        yield running, log


def crawled(trial: Trial, database: str, *, workers: int, name: str = "", kills: bool = False) -> Crawl:
    wanted = trial.given.sites * trial.given.pages
    killed = None
    with fleet(trial, database, workers=workers) as (running, log):
        if kills:
            killed = killed_in_the_middle(trial, database, running, log)
        trial.until(lambda: recorded(trial, database) >= wanted, "all pages are recorded")
    found = judged(trial, database, log, name=name or f"{workers} of 3", workers=workers)
    if killed is None:
        return found
    requested = sites.read_log(log)
    return replace(found, remarks=killed.describe(requested), problems=[*found.problems, *killed.problems(requested)])


def killed_in_the_middle(trial: Trial, database: str, running: Sequence[psutil.Process], log: Path) -> Killed:
    """Kill a worker in the middle of its sites and return its state."""
    url = trial.cluster.build_url(database)
    watch = LeaseWatch(url)

    def all_are_in_the_middle() -> bool:
        requested = watch.requested(sites.read_log(log), trial.paths).values()
        busy = [sum(len(pages) >= BUSY_PAGES for pages in held.values()) >= BUSY_SITES for held in requested]
        return len(busy) == len(running) and all(busy)

    trial.until(all_are_in_the_middle, "every worker has sites in progress")
    tag = Path(trial.folder, f"{database}-0", "run", SERVICE_TAG).read_text(encoding="ascii")
    kill(running[0])
    at = time.monotonic()
    # Read the leases again: the worker continued during the check. Entries after `at` are requests of other workers.
    final = watch.requested([each for each in sites.read_log(log) if each.began <= at], trial.paths)[tag]
    return Killed(requested=final, recorded=recorded_pages(url), at=at)


def tags_of(trial: Trial, database: str, *, workers: int) -> set[str]:
    """Return the tags of the workers of a crawl; those that have not started have none."""
    files = [Path(trial.folder, f"{database}-{number}", "run", SERVICE_TAG) for number in range(workers)]
    return {file.read_text(encoding="ascii") if file.exists() else "" for file in files}


def known_workers(trial: Trial) -> set[str]:
    """Return the tags of all workers that the Prefect server knows."""
    found = ask(trial.api, "/work_pools/recrawl/workers/filter", {})
    return {each["name"].split("-")[1] for each in found if each["name"].startswith("recrawl-")}


def crawled_without_server(trial: Trial, database: str) -> Crawl:
    """Kill the Prefect server in the middle of a crawl and restart it later."""
    # A delay that makes the crawl outlast the outage.
    given = argparse.Namespace(**vars(trial.given))
    given.delay = max(given.delay, 1.4 * given.away / given.pages)
    trial = replace(trial, given=given)
    wanted = given.sites * given.pages
    with ExitStack() as stack:
        with ExitStack() as first:
            server = first.enter_context(trial.server())
            trial.command("deploy", database=database)
            running, log = stack.enter_context(fleet(trial, database, workers=3))
            trial.until(lambda: len(pages_in(trial, log)) > wanted / 10, "a tenth of the pages is fetched")
            kill(server)
        gone = time.monotonic()
        before = len(pages_in(trial, log))
        trial.until(
            lambda: time.monotonic() > gone + given.away or recorded(trial, database) >= wanted,
            "the outage is over",
        )
        back = time.monotonic()
        meanwhile = len(pages_in(trial, log)) - before
        alive = sum(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in running)
        stack.enter_context(trial.server())
        trial.until(lambda: recorded(trial, database) >= wanted, "all pages are recorded")
        remarks = (
            f"down for {back - gone:.0f} s, in which {meanwhile} pages were fetched "
            f"({meanwhile / (back - gone):.1f} per second); {alive} of 3 workers alive"
        )
        stack.pop_all().close()
    found = judged(trial, database, log, name=AWAY, workers=3, remarks=remarks)
    return found if alive == 3 and meanwhile else Crawl(AWAY, 3, found.found, [*found.problems, remarks], remarks)


def judged(trial: Trial, database: str, log: Path, *, name: str, workers: int, remarks: str = "") -> Crawl:
    found = fleet_of(sites.read_log(log), trial.paths)
    url = trial.cluster.build_url(database)
    wanted = trial.given.sites * trial.given.pages
    wrong = problems(found, url, wanted_pages=wanted, delay_s=trial.given.delay)
    if trial.network.is_apart and len(found.by_host) < workers:
        wrong.append(f"{len(found.by_host)} of {workers} workers crawled: {dict(found.by_host)}")
    trial.command("db", "check", database=database)
    return Crawl(name, workers, found, wrong, remarks)


def pages_in(trial: Trial, log: Path) -> set[tuple[str, str]]:
    return {(each.site, each.path) for each in sites.read_log(log) if each.path in trial.paths}


def recorded(trial: Trial, database: str) -> int:
    with psycopg.connect(trial.cluster.build_url(database)) as connection:
        row = connection.execute("SELECT count(*) FROM page WHERE version > 0").fetchone()
    assert row is not None
    return int(row[0])


def is_healthy(api: PrefectApi) -> bool:
    try:
        ask(api, "/health")
    except OSError:
        return False
    return True


def kill(process: psutil.Process) -> None:
    """Kill a process and its children without warning, like a power failure."""
    for each in [process, *process.children(recursive=True)]:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait(60)


def report(crawls: Sequence[Crawl], given: argparse.Namespace, *, is_apart: bool) -> str:
    where = "separate network namespaces" if is_apart else "separate homes on one machine"
    alone = crawls[0].found.steady_pages_per_s
    rows = [
        (
            each.name,
            each.workers,
            each.found.pages,
            each.found.ended - each.found.began,
            each.found.steady_pages_per_s,
            each.found.steady_pages_per_s / alone,
            each.found.again,
            each.found.shortest_gap_s,
            " ".join(str(many) for _, many in sorted(each.found.by_host.items())),
        )
        for each in crawls
    ]
    lines = [
        f"{given.sites} sites of {given.pages} pages, {given.delay:g} s between requests to each, workers in {where},",
        f"{given.leases_at_once} domains per worker at a time\n",
        table(HEAD, rows),
        "",
        *(f"{each.name}: {each.remarks}" for each in crawls if each.remarks),
        *(f"{each.name}: PROBLEM: {problem}" for each in crawls for problem in each.problems),
        f"\n{described('prefect', 'psycopg')}",
    ]
    return "\n".join(lines)
