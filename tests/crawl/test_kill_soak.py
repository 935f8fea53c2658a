"""Three hundred rounds of whatever may happen to a crawl, beside a twin that nothing happens to."""

import asyncio
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

from crawler.core.domain import Domain
from crawler.local.postgres import Cluster, ensure_postgres
from crawler.store import domains
from crawler.store.database import Database, open_database, upgrade
from tests.crawl.crawls import DAY, RECRAWL, START, answered, answering, coins_missing, crawl, environ, register, rows
from tests.crawl.test_kill import expire
from tests.patience import PATIENCE_S

ROUNDS = 300
PAGES = 144
TERM_S = 2  # of a lease
WORDS = [
    "amber",
    "birch",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "heath",
    "islet",
    "jetty",
    "knoll",
    "ledge",
    "marsh",
    "pine",
]


def page(target: str) -> bytes:
    """A page of a tree with twelve branches of eleven leaves each; its words are its own."""
    if target != "/" and not (target[1:].isdigit() and 0 < int(target[1:]) <= PAGES):
        return answered(404, b"no such page")
    number = int(target[1:] or 0)
    links = range(1, 13) if number == 0 else range(12 * number + 1, 12 * number + 13) if number < 12 else ()
    chance = random.Random(number)
    said = " ".join(chance.choices(WORDS, k=80))
    linked = "".join(f"<a href=/{each}>{chance.choice(WORDS)}</a> " for each in links)
    return answered(200, f"<title>{said[:20]}</title><p>{said}</p><p>{linked}</p>".encode())


@dataclass(slots=True)
class Disturbed:
    """A Postgres of its own, a crawl of a site in it, and what happens to both."""

    home: Path
    cluster: Cluster
    site: str
    chance: random.Random
    requests: int = 0
    done: Counter[str] = field(default_factory=Counter)

    @property
    def url(self) -> str:
        return self.cluster.url("crawl")

    def respond(self, target: str) -> bytes:
        self.requests += 1
        return page(target)

    def start(self, at: datetime) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(RECRAWL), "crawl", self.site, "--at", at.isoformat(), "--json"],
            env=environ(
                self.url,
                self.home,
                RECRAWL_LEASE_TERM=str(TERM_S),
                RECRAWL_BATCH_VISITS="8",
                RECRAWL_BATCH_AGE="0.2",
                RECRAWL_PARALLELISM="4",
            ),
            stdout=subprocess.DEVNULL,
            stderr=(self.home / "stderr").open("w"),
        )

    async def under_way(self, process: subprocess.Popen[bytes], requests: int) -> bool:
        """Wait until the crawl has sent so many requests; False where it ended before."""
        enough = self.requests + requests
        while process.poll() is None and self.requests < enough:
            await asyncio.sleep(0.002)
        return process.poll() is None

    async def ended(self, process: subprocess.Popen[bytes]) -> None:
        await asyncio.to_thread(process.wait, PATIENCE_S)

    async def kill_crawler(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        process.kill()

    async def kill_readers(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()

    async def kill_postgres(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        os.kill(self.cluster.pid, signal.SIGKILL)
        self.cluster = await asyncio.to_thread(ensure_postgres, self.home)

    async def cut_connections(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        async with open_database(self.url, connections=1) as db:
            await rows(db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    async def stop_longer_than_the_lease(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(TERM_S)
        await self.start_a_second(process, at + timedelta(seconds=TERM_S))
        process.send_signal(signal.SIGCONT)

    async def start_a_second(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        await self.ended(self.start(at))

    async def round(self, number: int) -> None:
        happens: list[Callable[[subprocess.Popen[bytes], datetime], Awaitable[None]]] = [
            *[self.kill_crawler] * 10,
            *[self.kill_readers] * 2,
            self.kill_postgres,
            self.cut_connections,
            self.stop_longer_than_the_lease,
            self.start_a_second,
        ]
        at, what = START + timedelta(minutes=number), self.chance.choice(happens)
        process = self.start(at)
        if await self.under_way(process, self.chance.randint(1, 60)):
            await what(process, at)
            self.done[what.__name__] += 1
        await self.ended(process)


async def kept(db: Database, domain: Domain) -> list[tuple[object, ...]]:
    """What is kept of each page, whatever it took."""
    return await rows(
        db,
        "SELECT p.url, f.state, p.version, p.body_digest, p.text_digest"
        " FROM page p JOIN frontier f USING (domain_id, key) WHERE domain_id = %s ORDER BY p.url",
        domain.id,
    )


@pytest.mark.soak
async def test_whatever_happens_three_hundred_times_the_copy_is_that_of_a_twin_that_nothing_happened_to(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("disturbed")
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o755)
    cluster = ensure_postgres(home)
    disturbed = Disturbed(home, cluster, "", random.Random(300))
    try:
        for name in ("crawl", "twin"):
            cluster.create_database(name)
            upgrade(cluster.url(name))
        async with answering(disturbed.respond) as site:
            disturbed.site = site
            async with open_database(disturbed.url) as db:
                domain = await register(db, site, max_depth=12)
            number = 0
            while disturbed.done.total() < ROUNDS:
                await disturbed.round(number)
                number += 1
                async with open_database(disturbed.url, connections=1) as db:
                    assert await coins_missing(db) == 0, (number, disturbed.done)
                    await expire(db)
                    await domains.refresh(db, domain, prefix=domain.root, at=START + timedelta(minutes=number))
            async with open_database(disturbed.url) as db:
                await crawl(db, at=START + DAY)
                twice = await rows(db, "SELECT key, at FROM visit GROUP BY 1, 2 HAVING count(*) > 1")
                firsts = await rows(db, "SELECT key FROM visit WHERE change = 'first' GROUP BY 1 HAVING count(*) > 1")
                ((numbers,),) = await rows(db, "SELECT array_agg(number ORDER BY number) FROM event")
                copy = await kept(db, domain)
            async with open_database(disturbed.cluster.url("twin")) as db:
                twin = await register(db, site, max_depth=12)
                await crawl(db, at=START)
                expected = await kept(db, twin)
    finally:
        disturbed.cluster.stop()
    print(disturbed.done)  # noqa: T201  with -s, what happened how often
    assert twice == firsts == []
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(expected) == PAGES + 1
    assert copy == expected
    assert set(disturbed.done) == {
        "kill_crawler",
        "kill_readers",
        "kill_postgres",
        "cut_connections",
        "stop_longer_than_the_lease",
        "start_a_second",
    }
