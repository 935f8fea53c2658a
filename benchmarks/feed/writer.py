"""A process that records generated changes and appends them to the feed, without HTTP, until it is killed."""

import asyncio
import os
import random
import time
from datetime import UTC, datetime, timedelta

from crawler.core.domain import Lease
from crawler.core.http.response import Fetched
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.visit import DomainKnowledge, Target
from crawler.errors import LeaseLost
from crawler.store import claim, domains, frontier, record, report
from crawler.store.database import Database, open_database
from tests.store.made_up import USUAL

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS_A_SECOND = 10  # virtual days per second, which makes pages due again and lets them disappear
TERM = timedelta(seconds=30)
PAGES = 25  # pages per domain
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu")


def holder_prefix(pid: int) -> str:
    """Return the prefix of the names of a writer's lease holders."""
    return f"feed/{pid}/"


def main(url: str, seed: int, began: float) -> None:
    """Write until killed. began: the system time, in seconds, that corresponds to START."""
    asyncio.run(write(url, random.Random(seed), began))


async def write(url: str, chance: random.Random, began: float) -> None:
    async with open_database(url, max_connections=2) as db:
        while True:
            at = START + timedelta(days=(time.time() - began) * DAYS_A_SECOND)
            lease = await claim.claim(db, at=at, holder=f"{holder_prefix(os.getpid())}writer", term=TERM)
            if lease is None:
                await asyncio.sleep(0.01)
                continue
            try:
                await one_lease(db, lease, chance, at=at)
            except LeaseLost:
                continue


async def one_lease(db: Database, lease: Lease, chance: random.Random, *, at: datetime) -> None:
    await domains.request_refresh(db, lease.domain, prefix=lease.domain.root, at=at)
    while await record.drain_inbox(db, lease, at=at, defaults=USUAL):
        pass
    known = DomainKnowledge(scope=lease.domain.build_scope(max_depth=100), rules=ALLOW_ALL, agent="recrawl")
    for _ in range(chance.randint(1, 4)):
        targets = await frontier.select_targets(
            db, lease, max_targets=chance.randint(5, 25), at=at, dispatched=(), defaults=USUAL
        )
        if not targets:
            break
        visits = [
            decide_visit(target, response_to(target, lease, chance), now=at, knowledge=known) for target in targets
        ]
        await record.record_visits(db, lease, record.Batch(visits=visits, max_pages=PAGES))
        if chance.random() < 0.4:
            await report.append_to_feed(db, at=at)
    await claim.release(db, lease, at=at)


def response_to(target: Target, lease: Lease, chance: random.Random) -> Fetched:
    """Return a page of new words that links to all others; sometimes the page is missing."""
    is_there = target.url == lease.domain.root or chance.random() < 0.85
    words = " ".join("".join(chance.choices(SYLLABLES, k=3)) for _ in range(60))
    links = "".join(f'<a href="{lease.domain.root}p{n}">next</a>' for n in range(PAGES - 1))
    body = f"<!DOCTYPE html><title>A page</title><main><p>{words}</p>{links}</main>".encode() if is_there else b""
    return Fetched(
        status=200 if is_there else 404,
        body=body,
        received_bytes=len(body) + 100,
        elapsed=timedelta(milliseconds=5),
        content_type="text/html; charset=utf-8",
    )
