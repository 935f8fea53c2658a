"""Check that each change is delivered once and in order when four writers and a consumer are killed at random.

In a round, four processes record changes of four domains, and a fifth copies the feed into its own store. They are
killed with SIGKILL at random times and restarted. In the middle, all writers are killed, and the database is dumped and
restored as another one while the consumer continues; the round continues there. At the end, the consumer's store must
contain every event of the database exactly once, in the order of the feed, which keeps the order of each domain.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from benchmarks.feed import consumer, writer
from benchmarks.harness.database import HOME, migrated
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.runtime.postgres.binaries import list_installations
from crawler.runtime.postgres.cluster import borrow_postgres
from crawler.store import domains, report
from crawler.store.database import open_database

DOMAINS = ("apple.test", "birch.test", "cedar.test", "damson.test")
WRITERS = 4
KILLS = 5  # in each half of a round
MAX_PAUSE_S = 0.8  # between two kills
PATIENCE_S = 120.0
TRUE_FEED = """
    SELECT f.position, d.authority, e.url, e.change, e.version, e.number
      FROM event e JOIN domain d ON d.id = e.domain_id
      LEFT JOIN feed f ON f.domain_id = e.domain_id AND f.number = e.number
     ORDER BY f.position NULLS LAST, e.number
"""
# End the lease of a dead holder before it expires, as a command on the same machine does (store/domains.py).
FREE = "UPDATE domain_state SET leased_until = clock_timestamp() WHERE starts_with(holder, %(prefix)s)"
# A page that is restored may have new text or the text from before.
VERSIONS = """
    SELECT (SELECT count(*) FROM snapshot),
           (SELECT count(DISTINCT (domain_id, key, version)) FROM event WHERE change IN ('added', 'changed',
           'restored'))
"""


class NotOnce(AssertionError):
    """A change was not delivered exactly once, or not in order."""


@dataclass(slots=True)
class RoundResult:
    """The counts of one round: kills of writers and of the consumer, and events at the time of the dump."""

    changes: int = 0
    kills: int = 0
    consumer_kills: int = 0
    at_dump: int = 0


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    results: list[RoundResult] = []
    with borrow_postgres(given.home) as cluster, migrated(cluster) as template:
        for n in range(given.rounds):
            results.append(one_round(cluster.build_url("postgres"), name_of(template), seed=given.seed + n))
            print(f"round {n + 1}: {results[-1]}", file=sys.stderr, flush=True)
    reported = {
        "rounds": len(results),
        "changes": sum(each.changes for each in results),
        "writers killed": sum(each.kills for each in results),
        "consumers killed": sum(each.consumer_kills for each in results),
    }
    text = json.dumps(reported) if given.json else ", ".join(f"{many:,} {what}" for what, many in reported.items())
    print(text if given.json else f"{text}\nall changes were delivered exactly once and in order")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks feed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="number of rounds; 100 take some minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


def one_round(server: str, template: str, *, seed: int) -> RoundResult:
    """Run one round on new databases made from a migrated one. Raise NotOnce on errors."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, database(server, template) as first:
        asyncio.run(register(first))
        store = Path(folder) / "consumer.sqlite"
        consumer.make_store(store)
        crowd = Crowd(chance=chance, store=store, began=time.time())
        with crowd.at_work(first):
            crowd.kill_at_random(first)
            crowd.kill_writers(first)
            with database(server, "template0") as second:
                move(first, second)
                crowd.result.at_dump = count(second)
                crowd.kill(crowd.reader)
                with crowd.at_work(second):
                    crowd.kill_at_random(second)
                    crowd.kill_writers(second)
                    crowd.kill(crowd.reader)
                    crowd.read_to_the_end(second)
                    crowd.result.changes = compare(second, store)
    return crowd.result


@dataclass(slots=True)
class Crowd:
    """The processes of a round, which work on one database at a time."""

    chance: random.Random
    store: Path
    began: float
    result: RoundResult = field(default_factory=RoundResult)
    writers: list[BaseProcess] = field(default_factory=list)
    reader: BaseProcess | None = None

    @contextmanager
    def at_work(self, url: str) -> Iterator[None]:
        """Run the writers and the consumer on this database; stop all of them at the end."""
        self.writers = [self.new_writer(url) for _ in range(WRITERS)]
        self.reader = self.new_reader(url)
        try:
            yield
        finally:
            for process in (*self.writers, self.reader):
                self.kill(process)

    def kill_at_random(self, url: str) -> None:
        """Kill processes at random and restart them."""
        for _ in range(KILLS):
            time.sleep(self.chance.uniform(0.02, MAX_PAUSE_S))
            if self.chance.random() < 0.4:
                self.kill(self.reader)
                self.reader = self.new_reader(url)
                self.result.consumer_kills += 1
            else:
                chosen = self.chance.randrange(WRITERS)
                self.end_writer(url, self.writers[chosen])
                self.writers[chosen] = self.new_writer(url)

    def kill_writers(self, url: str) -> None:
        for process in self.writers:
            self.end_writer(url, process)

    def end_writer(self, url: str, process: BaseProcess) -> None:
        self.kill(process)
        self.result.kills += 1
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FREE, {"prefix": writer.holder_prefix(process.pid or 0)})

    def kill(self, process: BaseProcess | None) -> None:
        if process is not None and process.is_alive():
            process.kill()
            process.join(PATIENCE_S)

    def read_to_the_end(self, url: str) -> None:
        """Read the rest of the feed; only a consumer that finds no more changes exits without a kill."""
        last = self.process(consumer.main, url, self.store, self.chance.random(), to_the_end=True)
        last.join(PATIENCE_S)
        if last.exitcode != 0:
            self.kill(last)
            raise NotOnce(f"the consumer did not reach the end of the feed: exit code {last.exitcode}")

    def new_writer(self, url: str) -> BaseProcess:
        return self.process(writer.main, url, self.chance.randrange(10**9), self.began)

    def new_reader(self, url: str) -> BaseProcess:
        return self.process(consumer.main, url, self.store, self.chance.randrange(10**9), to_the_end=False)

    def process(self, work: Callable[..., None], *given: object, **named: object) -> BaseProcess:
        # Fork from a process that has imported everything and opened nothing, for a fast start.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.feed.writer", "benchmarks.feed.consumer"])
        process = context.Process(target=work, args=given, kwargs=named, daemon=True)
        process.start()
        return process


async def register(url: str) -> None:
    usual = DomainSettings(delay=timedelta(0))
    async with open_database(url, max_connections=1) as db:
        for name in DOMAINS:
            await domains.register(db, Authority(name), scheme="http", domain_settings=usual, at=writer.START)


def move(source: str, target: str) -> None:
    """Restore a dump of one database as another."""
    programs = list_installations()[0].bin
    with tempfile.NamedTemporaryFile(suffix=".dump") as file:
        dump = [str(programs / "pg_dump"), "--format=custom", f"--file={file.name}", f"--dbname={source}"]
        restore = [str(programs / "pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={target}", file.name]
        for command in (dump, restore):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
            if done.returncode != 0:
                raise AssertionError(done.stderr)


def compare(url: str, store: Path) -> int:
    """Return the number of changes. Raise NotOnce unless the consumer has each of them once and in order."""
    with psycopg.connect(url) as connection:
        feed = connection.execute(TRUE_FEED).fetchall()
        versions, reported = connection.execute(VERSIONS).fetchone() or (0, 0)
    taken = consumer.taken_in(store)
    if taken != [row[:5] for row in feed]:
        wrong = next((n for n, pair in enumerate(zip(taken, feed, strict=False)) if pair[0] != pair[1][:5]), None)
        raise NotOnce(f"the consumer has {len(taken)} of {len(feed)} changes; the first difference is {wrong}")
    if [row[0] for row in feed] != list(range(1, len(feed) + 1)):
        raise NotOnce("the positions of the feed have gaps")
    for name in DOMAINS:
        numbers = [row[5] for row in feed if row[1] == name]
        if numbers != list(range(1, len(numbers) + 1)):
            raise NotOnce(f"the changes of {name} are not in the order of recording")
    if versions != reported:
        raise NotOnce(f"there are {versions} versions, but {reported} changes report a version")
    findings = asyncio.run(check(url))
    if findings:
        raise NotOnce(f"db check: {findings}")
    return len(feed)


async def check(url: str) -> list[str]:
    async with open_database(url, max_connections=1) as db:
        return [each.text for each in await report.check_invariants(db)]


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        return int((connection.execute("SELECT count(*) FROM event").fetchone() or (0,))[0])


@contextmanager
def database(server: str, template: str) -> Iterator[str]:
    """Create a database from a template until the block ends."""
    name = f"feed_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        with suppress(psycopg.OperationalError), psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def name_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
