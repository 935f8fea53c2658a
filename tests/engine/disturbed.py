"""A disturbed crawl with its own Postgres, compared with an undisturbed crawl of the same site."""

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from crawler.core.domain import Domain
from crawler.runtime.postgres.cluster import Cluster, ensure_postgres
from crawler.store.database import Database, open_database, upgrade_schema
from tests.engine.crawls import RECRAWL, START, answered, answering, coins_missing, crawl, environ, register, rows
from tests.patience import PATIENCE_S

PAGES = 144
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
    """Return a page of a tree with twelve branches of eleven leaves; each page has its own text."""
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
    """A Postgres in a home folder, a site, and the command that crawls the site."""

    home: Path
    cluster: Cluster
    site: str = ""
    requests: int = 0

    @property
    def url(self) -> str:
        return self.cluster.build_url("crawl")

    def respond(self, target: str) -> bytes:
        self.requests += 1
        return page(target)

    def start(self, at: datetime, **settings: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(RECRAWL), "crawl", self.site, "--at", at.isoformat(), "--json"],
            env=environ(
                self.url,
                self.home,
                RECRAWL_MAX_BATCH_SIZE="8",
                RECRAWL_MAX_BATCH_AGE="0.2",
                RECRAWL_PARALLELISM="4",
                **settings,
            ),
            stdout=subprocess.DEVNULL,
            stderr=(self.home / "stderr").open("w"),
        )

    def said(self) -> str:
        """Return what the last command wrote to stderr."""
        return (self.home / "stderr").read_text()

    async def under_way(self, process: subprocess.Popen[bytes], requests: int) -> bool:
        """Wait until the crawl has sent this many requests; return False if it ended before."""
        enough = self.requests + requests
        while process.poll() is None and self.requests < enough:
            await asyncio.sleep(0.002)
        return process.poll() is None

    async def ended(self, process: subprocess.Popen[bytes], *, within_s: float = PATIENCE_S) -> None:
        await asyncio.to_thread(process.wait, within_s)

    async def back(self) -> None:
        """Start Postgres again, as every command does if it is not running."""
        self.cluster = await asyncio.to_thread(ensure_postgres, self.home)

    async def kill_postgres(self) -> None:
        os.kill(self.cluster.pid, signal.SIGKILL)
        await self.back()

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        async with open_database(self.url, max_connections=2) as db:
            yield db

    async def query(self, query: str) -> list[tuple[object, ...]]:
        async with self.database() as db:
            return await rows(db, query)

    async def coins_missing(self) -> int:
        async with self.database() as db:
            return await coins_missing(db)

    async def registered(self) -> Domain:
        async with self.database() as db:
            return await register(db, self.site, max_depth=12)

    async def check(self, domain: Domain) -> None:
        """Check that each change was reported once, without gaps, and that the copy equals the undisturbed one."""
        twice = await self.query("SELECT key, at FROM visit GROUP BY 1, 2 HAVING count(*) > 1")
        firsts = await self.query("SELECT key FROM visit WHERE change = 'added' GROUP BY 1 HAVING count(*) > 1")
        ((numbers,),) = await self.query("SELECT array_agg(number ORDER BY number) FROM event")
        assert twice == firsts == []
        assert isinstance(numbers, list)
        assert numbers == list(range(1, len(numbers) + 1))
        async with self.database() as db:
            copy = await kept(db, domain)
        self.cluster.create_database("twin")
        upgrade_schema(self.cluster.build_url("twin"))
        async with open_database(self.cluster.build_url("twin")) as db:
            twin = await register(db, self.site, max_depth=12)
            await crawl(db, at=START)
            expected = await kept(db, twin)
        assert len(expected) == PAGES + 1
        assert copy == expected


@asynccontextmanager
async def disturbed_crawl(home: Path) -> AsyncIterator[Disturbed]:
    """Set up a site and an empty database in a home folder that other accounts can read, as Postgres requires."""
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o755)
    disturbed = Disturbed(home, ensure_postgres(home))
    try:
        disturbed.cluster.create_database("crawl")
        upgrade_schema(disturbed.url)
        async with answering(disturbed.respond) as disturbed.site:
            yield disturbed
    finally:
        disturbed.cluster.stop()


async def kept(db: Database, domain: Domain) -> list[tuple[Any, ...]]:
    """Return what is stored of each page, without regard to the number of visits."""
    return await rows(
        db,
        "SELECT p.url, f.state, p.version, p.body_digest, p.text_digest"
        " FROM page p JOIN frontier f USING (domain_id, key) WHERE domain_id = %s ORDER BY p.url",
        domain.id,
    )
