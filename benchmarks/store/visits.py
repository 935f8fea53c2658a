"""Visits to an aged domain without HTTP: select, decide, record. Only the store is timed."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec.structs import replace

from crawler.core.domain import Lease
from crawler.core.http.response import Fetched, NotModified, Response
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import PageKey
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.visit import DomainKnowledge, Target
from crawler.store import frontier, record
from crawler.store.database import Database
from tests.store.made_up import USUAL

LINKS = 20  # of a page at its first visit, to existing pages
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu")
UNCHANGED = NotModified(elapsed=timedelta(milliseconds=5), received_bytes=200)


class Kind(StrEnum):
    """The kind of visit: revisits without changes (304), first visits to pages with text and links, or without
    links.
    """

    REVISIT = "revisit"
    FIRST = "first visit"
    ONLY = "only page"  # a first visit to a page without links


@dataclass(slots=True)
class Spent:
    """Elapsed time of claims and records so far, and the CPU time of this process."""

    pages: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0


async def one_batch(
    db: Database, lease: Lease, kind: Kind, spent: Spent, *, most: int, at: datetime, without: Sequence[PageKey] = ()
) -> list[PageKey]:
    """Select, visit and record at most `most` pages; return their keys."""
    defaults = replace(
        USUAL,
        shadow_price=1e-9,  # low enough to select every due page
        discovery_share=float(kind is not Kind.REVISIT),
        refresh_share=float(kind is Kind.REVISIT),
    )
    clock = _Clock(spent)
    targets = await frontier.select_targets(db, lease, max_targets=most, at=at, dispatched=without, defaults=defaults)
    clock.stop()
    if not targets:
        return []
    known = DomainKnowledge(scope=lease.domain.build_scope(max_depth=100), rules=ALLOW_ALL, agent="recrawl")
    response = response_to(kind, lease)
    visits = [decide_visit(target, response(target), now=at, knowledge=known) for target in targets]
    clock.start()
    await record.record_visits(db, lease, record.Batch(visits=visits, max_pages=10**8))
    clock.stop()
    spent.pages += len(visits)
    return [target.key for target in targets]


class _Clock:
    """Add the time between start and stop to the time spent."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self.start()

    def start(self) -> None:
        self._began, self._began_cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self._spent.seconds += time.perf_counter() - self._began
        self._spent.cpu_s += time.process_time() - self._began_cpu


def response_to(kind: Kind, lease: Lease) -> Callable[[Target], Response]:
    if kind is Kind.REVISIT:
        return lambda _: UNCHANGED
    return lambda target: page_of(target, lease, links=0 if kind is Kind.ONLY else LINKS)


def page_of(target: Target, lease: Lease, *, links: int) -> Fetched:
    """Return a page with unique words, which keeps it from being deferred, and links that depend on its key."""
    chance = random.Random(target.key)
    words = " ".join("".join(chance.choices(SYLLABLES, k=3)) for _ in range(100))
    others = (chance.randrange(1000) * 3 + 1 for _ in range(links))
    anchors = "".join(f'<a href="{lease.domain.root}s1/p{n}">next</a>' for n in others)
    body = f"<!DOCTYPE html><title>A page</title><main><p>{words}</p>{anchors}</main>".encode()
    return Fetched(
        status=200,
        body=body,
        received_bytes=len(body),
        elapsed=timedelta(milliseconds=5),
        content_type="text/html; charset=utf-8",
    )
