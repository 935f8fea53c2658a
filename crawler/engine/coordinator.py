"""Crawl one domain under a lease: a coordinator, which records the visits, and several fetch workers.

How the parts work together
---------------------------
`run` starts three kinds of tasks in one group and ends when the coordinator ends:

- The renewer renews the lease by timer. While the store does not respond, the LeaseDeadline blocks every request that
  might outlast the lease.
- Fetch workers, as many as the domain's parallelism: each takes a Target from the TargetQueue, has the Visitor fetch
  and decide it, and gives the Visit to the CircuitBreaker. Visits that the breaker passes on go to the Recorder.
- The coordinator first has `prepare_lease` apply the domain's inbox and read robots.txt. Then it loops: refill the
  queue; decide whether failures are the fault of the pages or of the domain; record the batch if it is full or old, or
  if no other page can be fetched until then; otherwise wait for news. It ends when the lease must end, or when no
  worker is busy, everything is recorded, no page may be selected, and the inbox is empty.

Two events connect the tasks: workers wait for `_has_work`, the coordinator waits for `_has_news`. Otherwise the tasks
share only the objects named above. Only the LeaseBudget debits requests and bytes, only the Pacer keeps the delays, and
only the Visitor changes the knowledge of the domain.

Invariants: every request is debited from the budget before it is sent. A page is dispatched to one worker, and not
again until its visit is recorded. A visit is recorded at most once; if it is not recorded, the page is fetched again.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct, field

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
from crawler.engine.stats import CrawlStats, LeaseResult, Progress
from crawler.engine.store_port import LeasedStore
from crawler.engine.targets import TargetQueue
from crawler.engine.visitor import Visitor
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable, find_failure
from crawler.store.claim import EMPTY_LEASE_END, LeaseEnd

log = logging.getLogger("recrawl.lease")

IDLE_PAUSE = timedelta(minutes=1)  # at least, until the next claim after a lease without a request (knowledge time)
RELEASE_DEADLINE = timedelta(seconds=10)
ERROR_SUSPENSION = timedelta(hours=1)  # after an internal error or a bad pattern, so that other domains get their turn
MISSING_SECRET_SUSPENSION = timedelta(minutes=10)  # short, since no request is sent
BAD_PATTERN = "bad_pattern"  # reason of a suspension: a pattern in the domain's settings is not accepted


class CrawlLimits(Struct, frozen=True):
    """Limits at which a crawl ends early; visits in progress are still recorded.

    max_visits: the maximum number of visits.  time_limit: the maximum duration of a crawl run, ignored for a single
    lease. None: no limit.  stop: ends the crawl when set.
    """

    max_visits: int | None = None
    time_limit: timedelta | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class LeaseCrawler:
    """The crawler of one domain under one lease.

    session: the domain's HTTP client, credentials and cookies.  progress: called after each recorded batch.
    """

    def __init__(
        self,
        store: LeasedStore,
        resources: CrawlResources,
        session: DomainSession,
        *,
        limits: CrawlLimits,
        progress: Progress,
    ) -> None:
        lease = store.lease
        self._store, self._progress = store, progress
        self._parser = DomainParser(resources.parsers, PageRules(lease.domain.settings.rules))
        self._browsers = resources.browsers
        self._stop = limits.stop
        self.stats = CrawlStats(leases=1)
        self._is_paused = False  # whether the user has paused the domain since the claim
        self._is_finished = False
        self._has_news = asyncio.Event()  # for the coordinator
        self._has_work = asyncio.Event()  # for the fetch workers
        self._breaker = CircuitBreaker(store)
        self._budget = LeaseBudget(store)
        self._deadline = LeaseDeadline(lease)
        server = build_leased_server(session, store, fence=self._deadline.wait_for_time_left)
        self._requester = Requester(
            server, self._budget, lease.term, self.stats, is_ending=self._is_ending, prefetched=resources.prefetched
        )
        self._targets = TargetQueue(store, self._budget, self._requester, max_visits=limits.max_visits)
        self._login: Login | None = None
        if session.login is not None:
            suspend = partial(self._breaker.suspend, requested_wait=None)
            self._login = Login(session, self._requester, lease.domain, suspend=suspend)

    @property
    def suspension(self) -> Suspension | None:
        """Return why and until when the domain is suspended after this lease."""
        return self._breaker.suspension

    def _is_ending(self) -> bool:
        return self.suspension is not None or self._stop.is_set() or self._is_paused

    def build_lease_end(self) -> LeaseEnd:
        """Return waiting pages to the frontier and build the LeaseEnd. Requests in flight stay debited."""
        self._targets.return_waiting()
        return LeaseEnd(
            self._budget.compute_refund(),
            wait=self._requester.pacer.wait,
            not_before=self._compute_not_before(),
            is_shared=self._store.settings.shared_budget.is_limited,
            uses_whole_budget=self._store.uses_whole_budget,
        )

    def _compute_not_before(self) -> datetime | None:
        """Return the earliest time at which the domain may be claimed again; None if its due times alone decide.

        If this lease could make requests but found no page for them, the next lease is delayed: it would find none
        either. Requested visits arrive through the inbox, which wakes the domain regardless of this time.
        """
        not_before = self._budget.not_before
        if self.stats.requests or not self._targets.is_exhausted or self._is_ending():
            return not_before
        pause = max(self._store.settings.min_interval, IDLE_PAUSE) if self._store.uses_whole_budget else IDLE_PAUSE
        idle_until = self._store.clock.now() + pause
        return idle_until if not_before is None else max(not_before, idle_until)

    async def run(self) -> None:
        """Crawl until nothing is due or the lease must end."""
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
                        tasks.create_task(self._run_fetch_worker(visitor, recorder), name=f"fetch-{n}")
                    await self._coordinate(visitor, recorder)
            finally:
                self._is_finished = True
                self._has_work.set()
                renewer.cancel()

    async def _renew_lease(self) -> None:
        """Renew the lease by timer, well before it expires."""
        pause = self._store.lease.term / 4
        while True:
            await asyncio.sleep(pause.total_seconds())
            sent = time.monotonic()
            with contextlib.suppress(StoreUnavailable):  # the deadline blocks requests meanwhile
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
                root, knowledge = self._store.lease.domain.root, visitor.knowledge
                settled = await settle_pending(breaker, self._requester.request_url, root=root, knowledge=knowledge)
                recorder.add(settled)
            # No await from here to the wait for news: news that arrived meanwhile would be lost by `clear`.
            is_idle = self._budget.is_idle
            if not targets.is_empty and not self._requester.is_stopping:
                self._has_work.set()
            # Without targets, only the links of the unrecorded batch may bring more work.
            if not recorder.is_empty and (is_idle or self.suspension or targets.is_empty or recorder.is_due):
                await self._record(visitor, recorder)
            elif is_idle and self._requester.is_stopping:
                return
            elif self._requester.is_stopping and not targets.is_empty:
                continue  # stopped while these targets were being selected: `refill` returns them
            elif is_idle and targets.is_exhausted:
                if targets.visits_left == 0:
                    return
                if not await recorder.request_renders(visitor) and not await apply_updates(self._store):
                    return
                targets.is_exhausted = False  # there may be requested pages now
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
        """Fetch one page after the other until the crawl is finished."""
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
    store: LeasedStore, resources: CrawlResources, *, limits: CrawlLimits, progress: Progress
) -> LeaseResult:
    """Crawl a domain under its lease until nothing is due or the lease must end, then release the lease.

    progress: called after each recorded batch.
    A domain with an invalid pattern is suspended: without the pattern, pages outside of the intended scope would be
    crawled. A domain with a missing secret or certificate file is suspended, too: without it, pages may differ.
    Raise LeaseLost if another worker claimed the domain, and StoreUnavailable if the database does not come back.
    Visits that were recorded before the error are safe; the other pages are fetched again.
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
    """Suspend a domain for `span` because of a problem that its user must fix; send no request."""
    stats = CrawlStats(leases=1, outages=Counter([reason]))
    suspension = Suspension(until=store.clock.now() + span, reason=reason, rejections=store.lease.rejections)
    try:
        await store.suspend_domain(suspension)
    finally:
        await release_lease(store)
    return LeaseResult(stats, suspension)


async def _suspend_after_error(store: LeasedStore) -> None:
    """Suspend a domain whose crawl ended with an internal error, so that not every crawl run meets the error."""
    until, rejections = store.clock.now() + ERROR_SUSPENSION, store.lease.rejections
    with contextlib.suppress(StoreUnavailable, LeaseLost, TimeoutError):
        async with asyncio.timeout(RELEASE_DEADLINE.total_seconds()):
            await store.suspend_domain(Suspension(until=until, reason="error", rejections=rejections))


async def release_lease(store: LeasedStore, end: LeaseEnd = EMPTY_LEASE_END) -> None:
    """Release the domain, even during cancellation. If this fails, the lease expires later. May be repeated."""

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
            # A cancelled run is cancelled several times: by its signal and by each task group around it.
            was_cancelled = True
    if was_cancelled:
        raise asyncio.CancelledError
