"""Three workers on hosts of their own, one Postgres, one Prefect server: throughput, a kill, an outage.

The workers are `recrawl worker`, each in a network namespace of its own where the system lets us make them, else with a
home of its own on this machine; the server is `recrawl server`, prepared by `recrawl deploy`. What bounds a crawl here
is what bounds it in the world: the delay of each site, and how many domains a worker walks at a time. Sites count what
they were asked, by whom and when; every crawl is held to that and to what is in the store.
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
from crawler.runtime.children import SERVICE_TAG
from crawler.runtime.environment import PrefectApi
from crawler.runtime.machine import find_free_port
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from tests.flows.stage import ask, change, start_run

AUTH = "recrawl:of-the-benchmark"
PATIENCE_S = 600.0
LEASE_TERM_S = 10
ASKED_SITES = 3  # that a worker is in the middle of, with so many pages each, before it is killed
ASKED_PAGES = 10
KILLED, AWAY = "one killed", "server away"
HEAD = ("crawl", "workers", "pages", "seconds", "pages/s", "times one", "asked again", "shortest gap, s", "by worker")


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl of all sites. problems: what went wrong.  told: what else there is to say."""

    name: str
    workers: int
    found: Fleet
    problems: list[str]
    told: str = ""


@dataclass
class Trial:
    """Where the trial stands: its network, its folder, its servers."""

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
        """A database as other hosts reach it."""
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
        """Run a command to its end. Raises CommandFailed."""
        done = subprocess.run(
            [RECRAWL, *words], env=self.environment("commands", database), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(f"recrawl {words[0]}: {done.stderr[-2000:]}")

    @contextmanager
    def server(self) -> Iterator[psutil.Process]:
        words = [RECRAWL, "server", "--host", self.network.hub, "--port", str(self.ports["prefect"])]
        with self.started(words, "server", "none") as process:
            self.until(lambda: answers(self.api), "the Prefect server answers", process)
            yield process

    @contextmanager
    def started(self, words: Sequence[str], home: str, database: str) -> Iterator[psutil.Process]:
        """A process until the block ends; then it, and all that it has started, is ended."""
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
        """Raises CommandFailed where it does not, or where the process that is to do it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not happens():
            if time.monotonic() > deadline or (process is not None and process.status() == psutil.STATUS_ZOMBIE):
                raise CommandFailed(f"it does not come about that {what}: see {self.folder}")
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
        for each in of_the_trial(trial, stack):
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
    parser.add_argument("--pages", type=int, default=100, help="of each site")
    parser.add_argument("--delay", type=float, default=0.25, metavar="SECONDS", help="of each site")
    parser.add_argument("--leases-at-once", type=int, default=8, help="domains that a worker walks at a time")
    parser.add_argument(
        "--away", type=float, default=120, metavar="SECONDS", help="how long the Prefect server is away"
    )
    parser.add_argument("--loopback", action="store_true", help="without hosts of their own")
    parser.add_argument("--home", type=Path, default=HOME, help="where Postgres lives")
    parser.add_argument("--json", action="store_true")
    return parser


def of_the_trial(trial: Trial, stack: ExitStack) -> Iterator[Crawl]:
    """The crawls, one after the other. Raises CommandFailed."""
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
    """A migrated database, and the deployments of the server, whose schedules sleep: runs are begun by hand."""
    name = f"{name}_{trial.mark}"  # one that was killed may have left its own
    with empty(trial.cluster, name):
        trial.command("db", "upgrade", database=name)
        if deploy:
            trial.command("deploy", database=name)
            for each in ask(trial.api, "/deployments/filter", {}):
                change(trial.api, f"/deployments/{each['id']}", {"paused": True})
        yield name


@contextmanager
def helper(module: str, *words: str) -> Iterator[None]:
    """A program of this package, ready, until the block ends."""
    command = [sys.executable, "-m", f"benchmarks.fleet.{module}", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != sites.READY:
            raise CommandFailed(f"{module} does not start")
        yield
        process.terminate()


@contextmanager
def fleet(trial: Trial, database: str, *, workers: int) -> Iterator[tuple[list[psutil.Process], Path]]:
    """Sites with their log, registered, and so many workers that are about to crawl them."""
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
        # Runs begin together: a worker that begins later finds nothing left, and the crawl is one of fewer workers.
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
    asked = sites.read_log(log)
    return replace(found, told=killed.told(asked), problems=[*found.problems, *killed.problems(asked)])


def killed_in_the_middle(trial: Trial, database: str, running: Sequence[psutil.Process], log: Path) -> Killed:
    """Kill a worker that holds sites which it has asked for pages, and tell what it was about."""
    url = trial.cluster.build_url(database)
    watch = LeaseWatch(url)

    def all_are_in_the_middle() -> bool:
        asked = watch.asked(sites.read_log(log), trial.paths).values()
        busy = [sum(len(pages) >= ASKED_PAGES for pages in held.values()) >= ASKED_SITES for held in asked]
        return len(busy) == len(running) and all(busy)

    trial.until(all_are_in_the_middle, "every worker is in the middle of its sites")
    tag = Path(trial.folder, f"{database}-0", "run", SERVICE_TAG).read_text(encoding="ascii")
    kill(running[0])
    at = time.monotonic()
    # Once more: it has gone on while the trial looked. What is logged after `at` others have asked.
    final = watch.asked([each for each in sites.read_log(log) if each.began <= at], trial.paths)[tag]
    return Killed(asked=final, recorded=recorded_pages(url), at=at)


def tags_of(trial: Trial, database: str, *, workers: int) -> set[str]:
    """How the workers of a crawl call themselves; those that have not begun have no name."""
    files = [Path(trial.folder, f"{database}-{number}", "run", SERVICE_TAG) for number in range(workers)]
    return {file.read_text(encoding="ascii") if file.exists() else "" for file in files}


def known_workers(trial: Trial) -> set[str]:
    """The tags of all workers that the Prefect server has heard of."""
    found = ask(trial.api, "/work_pools/recrawl/workers/filter", {})
    return {each["name"].split("-")[1] for each in found if each["name"].startswith("recrawl-")}


def crawled_without_server(trial: Trial, database: str) -> Crawl:
    """A crawl in whose middle the Prefect server is killed, and comes back."""
    # So slow that it lasts longer than the server is away.
    given = argparse.Namespace(**vars(trial.given))
    given.delay = max(given.delay, 1.4 * given.away / given.pages)
    trial = replace(trial, given=given)
    wanted = given.sites * given.pages
    with ExitStack() as stack:
        with ExitStack() as first:
            server = first.enter_context(trial.server())
            trial.command("deploy", database=database)
            running, log = stack.enter_context(fleet(trial, database, workers=3))
            trial.until(lambda: len(pages_in(trial, log)) > wanted / 10, "a tenth is read")
            kill(server)
        gone = time.monotonic()
        before = len(pages_in(trial, log))
        trial.until(
            lambda: time.monotonic() > gone + given.away or recorded(trial, database) >= wanted,
            "the time is over",
        )
        back = time.monotonic()
        meanwhile = len(pages_in(trial, log)) - before
        alive = sum(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in running)
        stack.enter_context(trial.server())
        trial.until(lambda: recorded(trial, database) >= wanted, "all pages are recorded")
        told = (
            f"away for {back - gone:.0f} s, in which {meanwhile} pages were read "
            f"({meanwhile / (back - gone):.1f} a second), {alive} of 3 workers alive"
        )
        stack.pop_all().close()
    found = judged(trial, database, log, name=AWAY, workers=3, told=told)
    return found if alive == 3 and meanwhile else Crawl(AWAY, 3, found.found, [*found.problems, told], told)


def judged(trial: Trial, database: str, log: Path, *, name: str, workers: int, told: str = "") -> Crawl:
    found = fleet_of(sites.read_log(log), trial.paths)
    url = trial.cluster.build_url(database)
    wanted = trial.given.sites * trial.given.pages
    wrong = problems(found, url, wanted_pages=wanted, delay_s=trial.given.delay)
    if trial.network.is_apart and len(found.by_host) < workers:
        wrong.append(f"{len(found.by_host)} of {workers} workers have crawled: {dict(found.by_host)}")
    trial.command("db", "check", database=database)
    return Crawl(name, workers, found, wrong, told)


def pages_in(trial: Trial, log: Path) -> set[tuple[str, str]]:
    return {(each.site, each.path) for each in sites.read_log(log) if each.path in trial.paths}


def recorded(trial: Trial, database: str) -> int:
    with psycopg.connect(trial.cluster.build_url(database)) as connection:
        row = connection.execute("SELECT count(*) FROM page WHERE version > 0").fetchone()
    assert row is not None
    return int(row[0])


def answers(api: PrefectApi) -> bool:
    try:
        ask(api, "/health")
    except OSError:
        return False
    return True


def kill(process: psutil.Process) -> None:
    """End a process and all that it has started without a word, as a machine that loses power does."""
    for each in [process, *process.children(recursive=True)]:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait(60)


def report(crawls: Sequence[Crawl], given: argparse.Namespace, *, is_apart: bool) -> str:
    where = "network namespaces of their own" if is_apart else "one machine, homes of their own"
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
        f"{given.leases_at_once} domains of each at a time\n",
        table(HEAD, rows),
        "",
        *(f"{each.name}: {each.told}" for each in crawls if each.told),
        *(f"{each.name}: WRONG: {problem}" for each in crawls for problem in each.problems),
        f"\n{described('prefect', 'psycopg')}",
    ]
    return "\n".join(lines)
