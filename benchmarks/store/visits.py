"""Looks at an aged domain without a web: hand out, look, record; what the store does is timed, the looks are not."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.core.domain import Lease
from crawler.core.http.response import Fetched, NotModified, Response
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import PageKey
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.visit import DomainKnowledge, Target
from crawler.store import frontier, record
from crawler.store.database import Database
from tests.store.made_up import USUAL

LINKS = 20  # of a page that is looked at for the first time, to pages that are known
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu")
UNCHANGED = NotModified(elapsed=timedelta(milliseconds=5), received_bytes=200)


class Kind(StrEnum):
    """Revisits that find nothing new (304), first looks at pages with text and links, or at pages without links."""

    REVISIT = "revisit"
    FIRST = "first look"
    ONLY = "only page"  # a first look at a page without links


@dataclass(slots=True)
class Spent:
    """What claims and records took so far: of the clock, and of this process's processor time."""

    pages: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0


async def one_batch(
    db: Database, lease: Lease, kind: Kind, spent: Spent, *, most: int, at: datetime, without: Sequence[PageKey] = ()
) -> list[PageKey]:
    """Hand out, look at and record so many pages at most; gives those that were."""
    defaults = replace(
        USUAL,
        shadow_price=1e-9,  # all that is due is worth it, as it is where due times come from the price
        discovery_share=float(kind is not Kind.REVISIT),
        refresh_share=float(kind is Kind.REVISIT),
    )
    clock = _Clock(spent)
    targets = await frontier.select_targets(db, lease, max_targets=most, at=at, dispatched=without, defaults=defaults)
    clock.stop()
    if not targets:
        return []
    known = DomainKnowledge(scope=lease.domain.build_scope(max_depth=100), rules=ALLOW_ALL, agent="recrawl")
    answer = answer_to(kind, lease)
    visits = [decide_visit(target, answer(target), now=at, knowledge=known) for target in targets]
    clock.go_on()
    await record.record_visits(db, lease, record.Batch(visits=visits, max_pages=10**8))
    clock.stop()
    spent.pages += len(visits)
    return [target.key for target in targets]


class _Clock:
    """Adds to what was spent whatever passes while it runs."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self.go_on()

    def go_on(self) -> None:
        self._began, self._began_cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self._spent.seconds += time.perf_counter() - self._began
        self._spent.cpu_s += time.process_time() - self._began_cpu


def answer_to(kind: Kind, lease: Lease) -> Callable[[Target], Response]:
    if kind is Kind.REVISIT:
        return lambda _: UNCHANGED
    return lambda target: page_of(target, lease, links=0 if kind is Kind.ONLY else LINKS)


def page_of(target: Target, lease: Lease, *, links: int) -> Fetched:
    """A page of words of its own, or it would be held back, that links to others which its key decides."""
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
