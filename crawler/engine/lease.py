"""One lease from its claim to its release: claim -> [fetch -> decide]* -> record -> ... -> release."""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from crawler.core.domain import Hold
from crawler.engine.coordinator import CrawlLimits, LeaseCrawler
from crawler.engine.resources import CrawlResources
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.engine.store_port import LeasedStore
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable, failure_in
from crawler.settings import Settings
from crawler.store.claim import NOTHING_LEFT_OVER, LeaseEnd

log = logging.getLogger("recrawl.lease")

RELEASE_DEADLINE = timedelta(seconds=10)
BROKEN_FOR = timedelta(hours=1)  # a domain that our own code chokes on, or that has a bad pattern; the others go on
UNEQUIPPED_FOR = timedelta(minutes=10)  # a domain of which a secret is missing: that bothers nobody's server
BAD_PATTERN = "bad_pattern"  # the reason of a hold: a pattern of its settings is not used


async def crawl_lease(
    store: LeasedStore,
    webs: CrawlResources,
    *,
    settings: Settings,
    claimed: float,
    limits: CrawlLimits,
    progress: Callable[[CrawlStats], None],
) -> LeaseResult:
    """Crawl a domain under its lease until nothing is due, or it must be left alone, and release it.

    claimed: monotonic seconds, read before the claim was sent.  progress: called after each record.
    A domain with a pattern that is not used is left alone: without it other pages would be crawled than its user said.
    So is one for which a secret is missing: without it other pages would be read.
    Raises LeaseLost where another worker took the domain, StoreUnavailable where the database stays silent. What was
    recorded before is safe; the rest will be looked at again.
    """
    domain = store.lease.domain
    if domain.settings.refusals:
        log.warning("lease.pattern", extra={"domain": domain.authority, "patterns": domain.settings.refusals})
        return await _left_alone(store, BAD_PATTERN, span=BROKEN_FOR)
    session = await webs.session_of(domain)
    if isinstance(session, str):
        return await _left_alone(store, session, span=UNEQUIPPED_FOR)
    crawler = LeaseCrawler(store, webs, session, settings=settings, claimed=claimed, limits=limits, progress=progress)
    began = time.monotonic()
    try:
        await crawler.run()
    except BaseExceptionGroup as group:
        failure = failure_in(group)
        if not isinstance(failure, CrawlerError):
            await _hold_broken(store)
        raise failure from group
    finally:
        await give_back(store, crawler.end())
    crawler.stats.elapsed += timedelta(seconds=time.monotonic() - began)
    return LeaseResult(crawler.stats, crawler.hold)


async def _left_alone(store: LeasedStore, reason: str, *, span: timedelta) -> LeaseResult:
    """Leave a domain alone that cannot be asked until its user has seen to something; no request is sent."""
    stats = CrawlStats(leases=1, outages=Counter([reason]))
    hold = Hold(until=store.clock.now() + span, reason=reason, refusals=store.lease.refusals)
    try:
        await store.hold(hold)
    finally:
        await give_back(store)
    return LeaseResult(stats, hold)


async def _hold_broken(store: LeasedStore) -> None:
    """Leave a domain alone that an error of our own has ended, so that it does not end every shift."""
    until = store.clock.now() + BROKEN_FOR
    with contextlib.suppress(StoreUnavailable, LeaseLost, TimeoutError):
        async with asyncio.timeout(RELEASE_DEADLINE.total_seconds()):
            await store.hold(Hold(until=until, reason="error", refusals=store.lease.refusals))


async def give_back(store: LeasedStore, end: LeaseEnd = NOTHING_LEFT_OVER) -> None:
    """Give the domain back, whatever happened; if that fails, the lease runs out by itself. Twice does no harm."""

    async def release() -> None:
        with contextlib.suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(RELEASE_DEADLINE.total_seconds()):
                await store.release(end)

    releasing = asyncio.create_task(release(), name=f"release-{store.lease.domain.authority}")
    was_cancelled = False
    while not releasing.done():
        try:
            await asyncio.shield(releasing)
        except asyncio.CancelledError:
            # A run that is cancelled is cancelled several times: by its signal and by every group of tasks around it.
            was_cancelled = True
    if was_cancelled:
        raise asyncio.CancelledError
