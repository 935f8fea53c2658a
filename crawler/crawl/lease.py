"""The corridor: walks one lease through the rooms. claim -> [fetch -> decide]* -> record -> ... -> release."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.clock import Clock
from crawler.core.budget import Refund
from crawler.core.domain import Hold, Lease
from crawler.core.page_rules import PageRules
from crawler.crawl.coordinator import LeaseCrawler
from crawler.crawl.parser_pool import DomainParser, ParserPool
from crawler.crawl.requester import Web
from crawler.crawl.stats import CrawlStats
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable, failure_in
from crawler.settings import Settings
from crawler.store import claim
from crawler.store.claim import NOTHING_LEFT_OVER, LeaseEnd
from crawler.store.database import Database

RELEASE_DEADLINE = timedelta(seconds=10)
BROKEN_FOR = timedelta(hours=1)  # a domain that our own code chokes on; the others go on


@dataclass(frozen=True, slots=True)
class LeaseResult:
    """What came of one lease. hold: why the domain is left alone now, or None."""

    stats: CrawlStats
    hold: Hold | None


async def crawl_lease(
    db: Database,
    lease: Lease,
    web: Web,
    *,
    settings: Settings,
    clock: Clock,
    claimed: float,
    readers: ParserPool,
    pages: int | None = None,
    stop: asyncio.Event | None = None,
    progress: Callable[[CrawlStats], None] = lambda _tally: None,
) -> LeaseResult:
    """Crawl a domain under its lease until nothing is due, or it must be left alone, and release it.

    claimed: monotonic seconds, read before the claim was sent.  pages: looks at most.  stop: finish early when set;
    what is in flight is still recorded.  progress: called after each record.
    Raises LeaseLost where another worker took the domain, StoreUnavailable where the database stays silent. What was
    recorded before is safe; the rest will be looked at again.
    """
    parser = DomainParser(readers, PageRules(lease.domain.settings.rules))
    walker = LeaseCrawler(
        db,
        lease,
        web,
        parser,
        settings=settings,
        clock=clock,
        claimed=claimed,
        pages=pages,
        stop=stop,
        progress=progress,
    )
    began = time.monotonic()
    try:
        await walker.run()
    except BaseExceptionGroup as group:
        failure = failure_in(group)
        if not isinstance(failure, CrawlerError):
            await _hold_broken(walker)
        raise failure from group
    finally:
        await give_back(
            db,
            lease,
            at=clock.now(),
            end=LeaseEnd(
                Refund(walker.budget.day, walker.unused, walker.budget.received_bytes),
                wait=walker.requester.pacer.wait,
                not_before=walker.budget.not_before,
                is_shared=settings.shared_budget.is_limited,
            ),
        )
    walker.stats.elapsed = timedelta(seconds=time.monotonic() - began)
    return LeaseResult(walker.stats, walker.hold)


async def _hold_broken(walker: LeaseCrawler) -> None:
    """Leave a domain alone that an error of our own has ended, so that it does not end every shift."""
    until = walker.clock.now() + BROKEN_FOR
    with contextlib.suppress(StoreUnavailable, LeaseLost):
        await claim.hold(walker.db, walker.lease, Hold(until=until, reason="error", refusals=walker.lease.refusals))


async def give_back(db: Database, lease: Lease, end: LeaseEnd = NOTHING_LEFT_OVER, *, at: datetime) -> None:
    """Give the domain back, whatever happened; if that fails, the lease runs out by itself. Twice does no harm."""
    releasing = asyncio.create_task(_try_to_release(db, lease, end, at=at), name=f"release-{lease.domain.authority}")
    was_cancelled = False
    while not releasing.done():
        try:
            await asyncio.shield(releasing)
        except asyncio.CancelledError:
            # A run that is cancelled is cancelled several times: by its signal and by every group of tasks around it.
            was_cancelled = True
    if was_cancelled:
        raise asyncio.CancelledError


async def _try_to_release(db: Database, lease: Lease, end: LeaseEnd, *, at: datetime) -> None:
    with contextlib.suppress(StoreUnavailable, TimeoutError):
        async with asyncio.timeout(RELEASE_DEADLINE.total_seconds()):
            await claim.release(db, lease, end, at=at)
