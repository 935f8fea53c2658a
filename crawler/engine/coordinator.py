"""One lease from its claim to its release: a coordinator, who alone writes to the store, and those who look at pages.

How the parts work together
---------------------------
`run` starts three kinds of tasks in one group, and ends when the coordinator does:

- The renewer keeps the lease by timer. While the store is silent it cannot, and the LeaseDeadline holds every request
  back, so that none is sent that the lease may not outlast.
- Lookers, as many as the domain may be asked at once: each takes a Target from the TargetQueue, has the Visitor fetch
  and decide it, and leaves the Visit with the CircuitBreaker. What that lets through is with the Recorder.
- The coordinator first has `prepare` apply what others left for the domain and read robots.txt. Then it goes
  round: top up the queue; say whose fault failures are; record, when a batch is full or old, or nobody can go on
  without it; else wait for news. It ends when nobody looks, all is recorded, and the frontier and the inbox have
  nothing more, or the lease is to end.

Two events join them: lookers wait for `work`, the coordinator for `news`. Nothing else is shared between the tasks but
the objects named above, each of which alone writes its own state: requests and bytes are numbers of the LeaseBudget,
delays of the Pacer, the knowledge of the domain is the Visitor's.

What must hold: every request was taken from the budget before; a page is handed out to one looker and not again until
its visit is recorded; a visit is recorded once, or never, and then the page is seen again.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from crawler.core.domain import Suspension
from crawler.core.page_rules import PageRules
from crawler.engine.extra_fetches import settle_pending
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.preparation import apply_updates, prepare_lease
from crawler.engine.recorder import Recorder
from crawler.engine.rendering.browsers import PageRenderer
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.login import Login
from crawler.engine.requests.pacer import LeaseDeadline
from crawler.engine.requests.requester import Requester, build_leased_server
from crawler.engine.requests.session import DomainSession
from crawler.engine.resources import CrawlResources
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.engine.store_port import LeasedStore
from crawler.engine.targets import TargetQueue
from crawler.engine.visitor import Visitor
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable, find_failure
from crawler.store.claim import EMPTY_LEASE_END, LeaseEnd

log = logging.getLogger("recrawl.lease")

IDLE_PAUSE = timedelta(minutes=1)  # of knowledge time, after a lease that made no request
RELEASE_DEADLINE = timedelta(seconds=10)
# a domain that our own code chokes on, or that has a bad pattern; the others go on
ERROR_SUSPENSION = timedelta(hours=1)
MISSING_SECRET_SUSPENSION = timedelta(minutes=10)  # a domain of which a secret is missing: that bothers nobody's server
BAD_PATTERN = "bad_pattern"  # the reason of a hold: a pattern of its settings is not used


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """Where a crawl ends early; what is in flight then is still recorded.

    max_visits: looks, at most; None: no limit.  time_limit: of a shift.  stop: ends the crawl when set.
    """

    max_visits: int | None = None
    time_limit: timedelta | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class LeaseCrawler:
    """Crawls a domain under one lease.

    session: what the domain is shown.  progress: called after each record.
    """

    def __init__(
        self,
        store: LeasedStore,
        resources: CrawlResources,
        session: DomainSession,
        *,
        limits: CrawlLimits,
        progress: Callable[[CrawlStats], None],
    ) -> None:
        lease = store.lease
        self._store, self._progress = store, progress
        self._parser = DomainParser(resources.parsers, PageRules(lease.domain.settings.rules))
        self._browsers = resources.browsers
        self._stop = limits.stop
        self.stats = CrawlStats(leases=1)
        self._is_paused = False  # by its user, since the claim
        self._is_finished = False
        self._has_news = asyncio.Event()  # for the coordinator
        self._has_work = asyncio.Event()  # for those who look
        self._breaker = CircuitBreaker(store)
        self._budget = LeaseBudget(store)
        self._deadline = LeaseDeadline(lease)
        server = build_leased_server(session, store, fence=self._deadline.wait_for_time_left)
        self._requester = Requester(
            server,
            self._budget,
            term=lease.term,
            stats=self.stats,
            is_ending=self._is_ending,
            prefetched=resources.prefetched,
        )
        self._targets = TargetQueue(store, self._budget, self._requester, max_visits=limits.max_visits)
        self._login: Login | None = None
        if session.login is not None:
            suspend = partial(self._breaker.suspend, requested_wait=None)
            self._login = Login(session, self._requester, lease.domain, suspend=suspend)

    @property
    def suspension(self) -> Suspension | None:
        """Why and until when the domain is left alone after this lease."""
        return self._breaker.suspension

    def _is_ending(self) -> bool:
        return self.suspension is not None or self._stop.is_set() or self._is_paused

    def build_lease_end(self) -> LeaseEnd:
        """What is left over when the lease ends now. Requests in flight may have been sent; they stay debited."""
        self._targets.return_waiting()
        return LeaseEnd(
            self._budget.compute_refund(),
            wait=self._requester.pacer.wait,
            not_before=self._compute_not_before(),
            is_shared=self._store.settings.shared_budget.is_limited,
            uses_whole_budget=self._store.uses_whole_budget,
        )

    def _compute_not_before(self) -> datetime | None:
        """Return the earliest time at which the domain is claimed again; None where its due times alone decide.

        A lease that made no request though it might have does not wake the domain at once: the next one would find as
        little. What is requested meanwhile comes by the inbox, which wakes the domain whatever this says.
        """
        not_before = self._budget.not_before
        if self.stats.requests or not self._targets.is_exhausted or self._is_ending():
            return not_before
        pause = max(self._store.settings.min_interval, IDLE_PAUSE) if self._store.uses_whole_budget else IDLE_PAUSE
        idle_until = self._store.clock.now() + pause
        return idle_until if not_before is None else max(not_before, idle_until)

    async def run(self) -> None:
        """Crawl until nothing is due, or the lease is to end."""
        domain = self._store.lease.domain
        renderer = PageRenderer(self._browsers, self._requester, domain)
        async with contextlib.aclosing(renderer), asyncio.TaskGroup() as tasks:
            renewer = tasks.create_task(self._renew_lease(), name="renew")
            try:
                knowledge = await prepare_lease(self._store, self._requester, self._breaker, login=self._login)
                if knowledge is None and self.suspension is not None:
                    await self._store.suspend_domain(self.suspension)
                    self.stats.outages[self.suspension.reason] += 1
                elif knowledge is not None:
                    reader = PageReader(self._parser, renderer, domain.settings)
                    visitor = Visitor(self._store, self._requester, reader, knowledge, login=self._login)
                    recorder = Recorder(self._store, self._budget, self._breaker, stored=knowledge)
                    for n in range(self._targets.parallelism):
                        tasks.create_task(self._run_fetch_worker(visitor, recorder), name=f"look-{n}")
                    await self._coordinate(visitor, recorder)
            finally:
                self._is_finished = True
                self._has_work.set()
                renewer.cancel()

    async def _renew_lease(self) -> None:
        """Renew by timer, well before the end."""
        pause = self._store.lease.term / 4
        while True:
            await asyncio.sleep(pause.total_seconds())
            sent = time.monotonic()
            with contextlib.suppress(StoreUnavailable):  # the deadline holds requests back meanwhile
                self._is_paused = not await self._store.renew()
                self._deadline.extend(since=sent)
            if self._is_paused:
                self._has_news.set()

    async def _coordinate(self, visitor: Visitor, recorder: Recorder) -> None:
        breaker, targets = self._breaker, self._targets
        while True:
            all_recorded = recorder.is_empty and not breaker.pending
            await targets.refill(all_recorded=all_recorded, only_one=breaker.is_half_open)
            if breaker.pending and (self._budget.is_idle or breaker.is_in_doubt):
                root = self._store.lease.domain.root
                recorder.add(
                    await settle_pending(breaker, self._requester.request_url, root=root, knowledge=visitor.knowledge)
                )
            # No wait from here to that for news: what happens meanwhile would be news that is forgotten.
            is_idle = self._budget.is_idle
            if not targets.is_empty and not self._requester.is_stopping:
                self._has_work.set()
            # Without targets, the links of the batch are all the work that may be left.
            if not recorder.is_empty and (
                is_idle or self.suspension is not None or targets.is_empty or recorder.is_due
            ):
                await self._record(visitor, recorder)
            elif is_idle and self._requester.is_stopping:
                return
            elif self._requester.is_stopping and not targets.is_empty:
                continue  # it was told to stop while these were handed out: nobody looks at them, or has news of them
            elif is_idle and targets.is_exhausted:
                if targets.visits_left == 0:
                    return
                if not await recorder.request_renders(visitor) and not await apply_updates(self._store):
                    return
                targets.is_exhausted = False  # somebody wanted something
            else:
                self._has_news.clear()
                with contextlib.suppress(TimeoutError):  # then the batch is old enough
                    async with asyncio.timeout(recorder.seconds_until_due):
                        await self._has_news.wait()

    async def _record(self, visitor: Visitor, recorder: Recorder) -> None:
        visits, new_pages, since = await recorder.record(visitor, dispatched=self._targets.dispatched)
        self._deadline.extend(since=since)
        self._targets.mark_recorded(visits)
        for visit in visits:
            self.stats.add_visit(visit)
        self.stats.new_pages += new_pages
        self._progress(self.stats)

    async def _run_fetch_worker(self, visitor: Visitor, recorder: Recorder) -> None:
        """Look at one page after the other, as long as there are any."""
        while not self._is_finished:
            may_fetch = not (self._requester.is_stopping or self._breaker.is_in_doubt or recorder.is_full)
            target = self._targets.pop_target() if may_fetch else None
            if target is None:
                self._has_work.clear()
                self._has_news.set()
                await self._has_work.wait()
                continue
            visit = await visitor.visit_page(target)
            if visit is None:
                self._targets.return_target(target)
            else:
                self._budget.end_visit(visit.requests)
                recorder.add(self._breaker.add_visit(visit))
            self._has_news.set()


async def crawl_lease(
    store: LeasedStore, resources: CrawlResources, *, limits: CrawlLimits, progress: Callable[[CrawlStats], None]
) -> LeaseResult:
    """Crawl a domain under its lease until nothing is due, or it must be left alone, and release it.

    progress: called after each record.
    A domain with a pattern that is not used is left alone: without it other pages would be crawled than its user said.
    So is one for which a secret is missing: without it other pages would be read.
    Raises LeaseLost where another worker took the domain, StoreUnavailable where the database stays silent. What was
    recorded before is safe; the rest will be looked at again.
    """
    domain = store.lease.domain
    if domain.settings.problems:
        log.warning("lease.pattern", extra={"domain": domain.authority, "patterns": domain.settings.problems})
        return await _suspend_domain(store, BAD_PATTERN, span=ERROR_SUSPENSION)
    session = await resources.open_session(domain)
    if isinstance(session, str):
        return await _suspend_domain(store, session, span=MISSING_SECRET_SUSPENSION)
    crawler = LeaseCrawler(store, resources, session, limits=limits, progress=progress)
    began = time.monotonic()
    try:
        await crawler.run()
    except BaseExceptionGroup as group:
        failure = find_failure(group)
        if not isinstance(failure, CrawlerError):
            await _suspend_after_error(store)
        raise failure from group
    finally:
        await release_lease(store, crawler.build_lease_end())
    crawler.stats.elapsed += timedelta(seconds=time.monotonic() - began)
    return LeaseResult(crawler.stats, crawler.suspension)


async def _suspend_domain(store: LeasedStore, reason: str, *, span: timedelta) -> LeaseResult:
    """Leave a domain alone that cannot be asked until its user has seen to something; no request is sent."""
    stats = CrawlStats(leases=1, outages=Counter([reason]))
    suspension = Suspension(until=store.clock.now() + span, reason=reason, rejections=store.lease.rejections)
    try:
        await store.suspend_domain(suspension)
    finally:
        await release_lease(store)
    return LeaseResult(stats, suspension)


async def _suspend_after_error(store: LeasedStore) -> None:
    """Leave a domain alone that an error of our own has ended, so that it does not end every shift."""
    until = store.clock.now() + ERROR_SUSPENSION
    with contextlib.suppress(StoreUnavailable, LeaseLost, TimeoutError):
        async with asyncio.timeout(RELEASE_DEADLINE.total_seconds()):
            await store.suspend_domain(Suspension(until=until, reason="error", rejections=store.lease.rejections))


async def release_lease(store: LeasedStore, end: LeaseEnd = EMPTY_LEASE_END) -> None:
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
