"""One lease on its way: a coordinator, who alone writes to the store, and those who look at pages.

How the parts work together
---------------------------
`run` starts three kinds of tasks in one group, and ends when the coordinator does:

- The renewer keeps the lease by timer. While the store is silent it cannot, and the LeaseDeadline holds every request
  back, so that none is sent that the lease may not outlast.
- Lookers, as many as the domain may be asked at once: each takes a Target from the TargetQueue, has the Visitor fetch
  and decide it, and leaves the Visit with the CircuitBreaker. What that lets through is with the Recorder.
- The coordinator first lets the Preparation apply what others left for the domain and read robots.txt. Then it goes
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
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from crawler.core.domain import Hold
from crawler.core.page_rules import PageRules
from crawler.engine.extra_fetches import settle_pending
from crawler.engine.lists import ListReader
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.preparation import Preparation
from crawler.engine.recorder import Recorder
from crawler.engine.rendering.browsers import PageRenderer
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.login import Login
from crawler.engine.requests.pacer import LeaseDeadline
from crawler.engine.requests.requester import Requester, leased_server
from crawler.engine.requests.session import DomainSession
from crawler.engine.resources import CrawlResources
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.engine.targets import TargetQueue
from crawler.engine.visitor import Visitor
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store.claim import LeaseEnd

IDLE_PAUSE = timedelta(minutes=1)  # of knowledge time, after a lease that made no request


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """Where a crawl ends early; what is in flight then is still recorded.

    pages: looks, at most; None: no limit.  time_limit: of a shift.  stop: ends the crawl when set.
    """

    pages: int | None = None
    time_limit: timedelta | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class LeaseCrawler:
    """Crawls a domain under one lease.

    session: what the domain is shown.  claimed: monotonic seconds, read before the claim was sent.  progress: called
    after each record.
    """

    def __init__(
        self,
        store: LeasedStore,
        webs: CrawlResources,
        session: DomainSession,
        *,
        settings: Settings,
        claimed: float,
        limits: CrawlLimits,
        progress: Callable[[CrawlStats], None],
    ) -> None:
        lease, clock = store.lease, store.clock
        self._store, self._settings, self._progress = store, settings, progress
        self._parser = DomainParser(webs.parsers, PageRules(lease.domain.settings.rules))
        self._browsers = webs.browsers
        self._stop = limits.stop
        self.stats = CrawlStats(leases=1)
        self._is_paused = False  # by its user, since the claim
        self._finished = False
        self._news = asyncio.Event()  # for the coordinator
        self._work = asyncio.Event()  # for those who look
        self._breaker = CircuitBreaker(lease, settings=settings, clock=clock)
        self._budget = LeaseBudget(store, clock=clock)
        self._deadline = LeaseDeadline(lease, since=claimed)
        server = leased_server(session, lease, settings=settings, clock=clock, fence=self._deadline.room_for)
        self._requester = Requester(
            server,
            self._budget,
            term=lease.term,
            stats=self.stats,
            is_ending=self._is_ending,
            answered=webs.answered,
        )
        self._targets = TargetQueue(store, self._budget, self._requester, settings=settings, pages=limits.pages)
        self._login: Login | None = None
        if session.login is not None:
            leave_alone = partial(self._breaker.leave_alone, asked=None)
            self._login = Login(session, self._requester, lease.domain, leave_alone=leave_alone)
        self._preparation = Preparation(
            store, self._requester, self._breaker, settings=settings, stats=self.stats, login=self._login
        )

    @property
    def hold(self) -> Hold | None:
        """Why and until when the domain is left alone after this lease."""
        return self._breaker.hold

    def _is_ending(self) -> bool:
        return self.hold is not None or self._stop.is_set() or self._is_paused

    def end(self) -> LeaseEnd:
        """What is left over when the lease ends now. Requests in flight may have been sent; they stay debited."""
        self._targets.take_back()
        return LeaseEnd(
            self._budget.left_over(),
            wait=self._requester.pacer.wait,
            not_before=self._not_before(),
            is_shared=self._settings.shared_budget.is_limited,
            uses_whole_budget=self._uses_whole_budget,
        )

    @property
    def _uses_whole_budget(self) -> bool:
        return self._store.lease.domain.settings.uses_whole_budget and self._settings.defaults.fills_budgets

    def _not_before(self) -> datetime | None:
        """Return the earliest time at which the domain is claimed again; None where its due times alone decide.

        A lease that made no request though it might have does not wake the domain at once: the next one would find as
        little. What is requested meanwhile comes by the inbox, which wakes the domain whatever this says.
        """
        not_before = self._budget.not_before
        if self.stats.requests or not self._targets.is_dry or self._is_ending():
            return not_before
        pause = max(self._settings.least_interval, IDLE_PAUSE) if self._uses_whole_budget else IDLE_PAUSE
        rested = self._store.clock.now() + pause
        return rested if not_before is None else max(not_before, rested)

    async def run(self) -> None:
        """Crawl until nothing is due, or the lease is to end."""
        domain = self._store.lease.domain
        renderer = PageRenderer(self._browsers, self._requester, domain)
        async with contextlib.aclosing(renderer), asyncio.TaskGroup() as tasks:
            renewer = tasks.create_task(self._keep_lease(), name="renew")
            try:
                known = await self._preparation.prepare()
                if known is not None:
                    visitor = Visitor(
                        self._requester,
                        self._parser,
                        PageReader(self._parser, renderer, domain.settings),
                        known,
                        clock=self._store.clock,
                        stored_body=self._store.stored_body,
                        lists=ListReader(self._store.admit_listed, self._parser),
                        login=self._login,
                    )
                    recorder = Recorder(self._store, self._budget, self._breaker, settings=self._settings, kept=known)
                    for n in range(self._targets.parallelism):
                        tasks.create_task(self._look_on(visitor, recorder), name=f"look-{n}")
                    await self._coordinate(visitor, recorder)
            finally:
                self._finished = True
                self._work.set()
                renewer.cancel()

    async def _keep_lease(self) -> None:
        """Renew by timer, well before the end."""
        pause = self._store.lease.term / 4
        while True:
            await asyncio.sleep(pause.total_seconds())
            sent = time.monotonic()
            with contextlib.suppress(StoreUnavailable):  # the deadline holds requests back meanwhile
                self._is_paused = not await self._store.renew()
                self._deadline.renewed(since=sent)
            if self._is_paused:
                self._news.set()

    async def _coordinate(self, visitor: Visitor, recorder: Recorder) -> None:
        breaker, targets = self._breaker, self._targets
        while True:
            all_recorded = recorder.is_empty and not breaker.pending
            await targets.refill(all_recorded=all_recorded, one=breaker.is_half_open)
            if breaker.pending and (targets.is_quiet or breaker.is_in_doubt):
                root = self._store.lease.domain.root
                recorder.add(await settle_pending(breaker, self._requester.ask, root=root, known=visitor.known))
            # No wait from here to that for news: what happens meanwhile would be news that is forgotten.
            is_quiet = targets.is_quiet
            if not targets.is_empty and not self._requester.is_stopping:
                self._work.set()
            # Without targets, the links of the batch are all the work that may be left.
            if not recorder.is_empty and (is_quiet or self.hold is not None or targets.is_empty or recorder.is_due):
                await self._record(visitor, recorder)
            elif is_quiet and self._requester.is_stopping:
                return
            elif self._requester.is_stopping and not targets.is_empty:
                continue  # it was told to stop while these were handed out: nobody looks at them, or has news of them
            elif is_quiet and targets.is_dry:
                if targets.is_used_up:
                    return
                if not await recorder.request_renders(visitor) and not await self._preparation.catch_up():
                    return
                targets.is_dry = False  # somebody wanted something
            else:
                self._news.clear()
                with contextlib.suppress(TimeoutError):  # then the batch is old enough
                    async with asyncio.timeout(recorder.patience):
                        await self._news.wait()

    async def _record(self, visitor: Visitor, recorder: Recorder) -> None:
        recorded = await recorder.record(visitor, handed_out=self._targets.handed_out)
        self._deadline.renewed(since=recorded.since)
        self._targets.recorded(recorded.visits)
        for visit in recorded.visits:
            self.stats.add(visit)
        self.stats.new += recorded.new
        self._progress(self.stats)

    async def _look_on(self, visitor: Visitor, recorder: Recorder) -> None:
        """Look at one page after the other, as long as there are any."""
        while not self._finished:
            may_look = not (self._requester.is_stopping or self._breaker.is_in_doubt)
            target = self._targets.next() if may_look else None
            if target is None:
                self._work.clear()
                self._news.set()
                await self._work.wait()
                continue
            visit = await visitor.visit(target)
            if visit is None:
                self._targets.put_back(target)
            else:
                self._budget.end_look(visit.requests)
                recorder.add(self._breaker.take_in(visit))
            self._news.set()
