"""One lease on its way through the rooms: the coordinator, who alone talks to the store, and those who look."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.budget import Refund
from crawler.core.change import NO_MASK, NoiseMask, take_site_edits
from crawler.core.domain import Hold, Lease
from crawler.core.http import Fetched, RobotsRules, Unreached, Url
from crawler.core.page import Parsed
from crawler.core.soft_errors import NO_SOFT_ERRORS, SoftErrorMemory
from crawler.core.visit import NETWORK_FAILURES, Known, Target, Visit, reconsider, refusal_of
from crawler.crawl.breaker import CircuitBreaker
from crawler.crawl.lease_budget import LeaseBudget
from crawler.crawl.parser_pool import DomainParser
from crawler.crawl.patience import until_available
from crawler.crawl.requester import Requester, Web
from crawler.crawl.robots import robots_of
from crawler.crawl.stats import CrawlStats
from crawler.crawl.targets import TargetQueue
from crawler.crawl.visitor import Visitor
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim, hand_out, learned, record
from crawler.store.database import Database
from crawler.store.record import StoredBody


class LeaseCrawler:
    """One lease on its way.

    claimed: monotonic seconds, read before the claim was sent.  pages: looks at most.  stop: finish early when set.
    """

    def __init__(
        self,
        db: Database,
        lease: Lease,
        web: Web,
        readers: DomainParser,
        *,
        settings: Settings,
        clock: Clock,
        claimed: float,
        pages: int | None = None,
        stop: asyncio.Event | None = None,
        progress: Callable[[CrawlStats], None] = lambda _tally: None,
    ) -> None:
        self.db, self.lease, self.parser, self.settings, self.clock = db, lease, readers, settings, clock
        self.stop, self.progress = stop or asyncio.Event(), progress
        self.stats = CrawlStats(leases=1)
        self.done: list[Visit] = []
        self.oldest = 0.0  # when the first of `done` was complete
        self.mask_kept: NoiseMask = NO_MASK  # as the store has it
        self.soft_errors_kept: SoftErrorMemory = NO_SOFT_ERRORS  # as well
        self.is_paused = False  # by its user, since the claim
        self.finished = False
        self.news = asyncio.Event()  # for the coordinator
        self.work = asyncio.Event()  # for those who look
        self.breaker = CircuitBreaker(lease, settings=settings, clock=clock)
        self.budget = LeaseBudget(
            db,
            lease,
            settings=settings,
            clock=clock,
            waiting=lambda: len(self.targets.waiting) + self.targets.looking,
            begins=self.begin_day,
        )
        self.requester = Requester(
            lease,
            web,
            self.budget,
            settings=settings,
            claimed=claimed,
            is_ending=lambda: self.hold is not None or self.stop.is_set() or self.is_paused,
            stats=self.stats,
        )
        self.targets = TargetQueue(db, lease, self.requester, settings=settings, clock=clock, pages=pages)

    @property
    def hold(self) -> Hold | None:
        """Why and until when the domain is left alone after this lease."""
        return self.breaker.hold

    @property
    def unused(self) -> int:
        """Requests that were taken from the budget, and are not sent any more when the lease ends now."""
        return self.budget.requests + len(self.targets.waiting)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            renewer = tasks.create_task(self.keep_lease(), name="renew")
            try:
                known = await self.prepare()
                if known is not None:
                    visitor = Visitor(self.requester, self.parser, known, clock=self.clock, kept=self.stored_body)
                    for n in range(self.targets.parallelism):
                        tasks.create_task(self.look_on(visitor), name=f"look-{n}")
                    await self.coordinate(visitor)
            finally:
                self.finished = True
                self.work.set()
                renewer.cancel()

    async def keep_lease(self) -> None:
        """Renew by timer, well before the end."""
        pause = self.lease.term / 4
        while True:
            await asyncio.sleep(pause.total_seconds())
            sent = time.monotonic()
            with contextlib.suppress(StoreUnavailable):  # the fence holds requests back meanwhile
                self.is_paused = not await claim.renew(self.db, self.lease)
                self.requester.lease_deadline.renewed(since=sent)
            if self.is_paused:
                self.news.set()

    # Before the first look.

    async def prepare(self) -> Known | None:
        """Read what others left for the domain, and what it knows; None if its pages may not be asked for now."""
        await self.drain()
        defaults = self.settings.defaults
        await until_available(
            self.lease, lambda _again: hand_out.reprice(self.db, self.lease, at=self.clock.now(), defaults=defaults)
        )
        rules = await self.rules()
        if rules is None:
            return None
        gate = self.requester.pacer
        gate.delay = max(gate.delay, rules.crawl_delay(self.settings.agent) or timedelta(0))
        await until_available(self.lease, lambda _again: claim.announce_delay(self.db, self.lease, delay=gate.delay))
        mask, shown = await until_available(self.lease, lambda _again: learned.learnt_of(self.db, self.lease.domain.id))
        scope = self.lease.domain.scope(max_depth=self.settings.max_depth)
        self.mask_kept, self.soft_errors_kept = mask, shown
        return Known(scope=scope, rules=rules, agent=self.settings.agent, mask=mask, soft_errors=shown)

    async def rules(self) -> RobotsRules | None:
        """Those of robots.txt; None where it says by its silence that nothing may be asked for, or the budget does."""
        found = await robots_of(self.lease, self.requester.ask, clock=self.clock)
        if found.copy is not None:
            copy, changed = found.copy, found.rules_changed
            await until_available(
                self.lease, lambda _again: claim.save_robots(self.db, self.lease, copy, changed=changed)
            )
        if found.outage is not None:
            hold = self.breaker.leave_alone(found.outage, asked=found.asked)
            await until_available(self.lease, lambda _again: claim.hold(self.db, self.lease, hold))
            self.stats.failed += 1
            self.stats.reasons[found.outage] += 1
        return None if found.is_spent or found.outage is not None else found.rules

    async def drain(self) -> bool:
        """Apply what others left in the domain's inbox; whether there was anything."""
        count = 0
        while await until_available(self.lease, lambda _again: record.drain(self.db, self.lease, at=self.clock.now())):
            count += 1
        return count > 0

    # The coordinator.

    async def coordinate(self, visitor: Visitor) -> None:
        while True:
            is_recorded = not self.done and not self.breaker.pending
            await self.targets.refill(is_recorded=is_recorded, one=self.breaker.is_half_open)
            is_quiet = self.targets.is_quiet
            if self.breaker.pending and (is_quiet or self.breaker.is_in_doubt):
                await self.settle_pending(visitor.known)
            if self.targets.waiting and not self.requester.is_stopping:
                self.work.set()
            if self.done and (is_quiet or self.hold is not None or self.is_batch_due()):
                await self.record(visitor)
            elif is_quiet and self.requester.is_stopping:
                return
            elif is_quiet and self.targets.is_dry:
                if self.targets.pages_left == 0 or not await self.drain():
                    return
                self.targets.is_dry = False  # somebody wanted something meanwhile
            else:
                await self.wait_for_news()

    def is_batch_due(self) -> bool:
        """A full batch, an old one, or one whose links are all the work that may be left."""
        return len(self.done) >= self.settings.batch_visits or not self.targets.waiting or self.batch_time_left <= 0

    @property
    def batch_time_left(self) -> float:
        return self.oldest + self.settings.batch_age.total_seconds() - time.monotonic()

    async def wait_for_news(self) -> None:
        self.news.clear()
        with contextlib.suppress(TimeoutError):  # then the batch is old enough
            async with asyncio.timeout(max(self.batch_time_left, 0.01) if self.done else None):
                await self.news.wait()

    def begin_day(self) -> int:
        """What waits was another day's. A record gives back what its visits did not send; so much of that, as well."""
        self.targets.take_back(refund=0)
        return sum(1 - visit.requests for visit in (*self.done, *self.breaker.pending))

    async def record(self, visitor: Visitor) -> None:
        done, self.done = self.done, []
        batch = await until_available(self.lease, lambda _again: record.judge_moves(self.db, self.lease, done))
        known = visitor.known
        batch = [reconsider(visit, known) for visit in batch]
        edit, mask = take_site_edits(known.mask, at=max(visit.at for visit in batch))
        visitor.known = known = replace(known, mask=mask)
        day, hold, sent = self.budget.day, self.hold, time.monotonic()
        refund, debited_bytes = self.budget.settle(sum(visit.received_bytes for visit in batch))
        new = await until_available(
            self.lease,
            lambda again: record.record(
                self.db,
                self.lease,
                record.Batch(
                    batch,
                    max_pages=self.lease.domain.settings.max_pages or self.settings.max_pages,
                    refund=Refund(day, refund + sum(1 - visit.requests for visit in batch), debited_bytes),
                    is_shared=self.settings.shared_budget.is_limited,
                    hold=hold,
                    mask=None if known.mask is self.mask_kept else known.mask,
                    soft_errors=None if known.soft_errors == self.soft_errors_kept else known.soft_errors,
                    edit=edit,
                ),
                retrying=again,
            ),
        )
        self.mask_kept, self.soft_errors_kept = known.mask, known.soft_errors
        self.requester.lease_deadline.renewed(since=sent)
        self.targets.recorded(batch)
        for visit in batch:
            self.stats.add(visit)
        self.stats.new += new
        self.progress(self.stats)

    async def settle_pending(self, known: Known) -> None:
        """Say whose fault silence and errors are: if the domain is there and well, it was the pages' own."""
        is_in_doubt, suspects = self.breaker.is_in_doubt, self.breaker.release_as_page_faults()
        is_theirs = self.hold is None
        if is_theirs and is_in_doubt and any(visit.is_server_error for visit in suspects):
            is_theirs = await self.is_well(suspects, known)
        elif is_theirs and any(visit.no_response for visit in suspects):
            is_theirs = await self.answers()
        if is_theirs:
            self.breaker.is_half_open = False
        self.add_done(suspects if is_theirs else self.breaker.release_as_outage(suspects))

    async def answers(self) -> bool:
        """Ask for robots.txt; whether there is any answer. Without a budget for it, nothing is known against it."""
        answer = await self.requester.ask(Url(f"{self.lease.domain.root}robots.txt"))
        return not (isinstance(answer, Unreached) and answer.reason in NETWORK_FAILURES)

    async def is_well(self, suspects: list[Visit], known: Known) -> bool:
        """Ask for the front page, unless that is one of them; whether there is an answer that is no 5xx."""
        front = self.lease.domain.root
        if any(visit.target.url == front for visit in suspects) or refusal_of(front, depth=0, known=known):
            return False
        answer = await self.requester.ask(front)
        if isinstance(answer, Unreached):
            return answer.reason not in NETWORK_FAILURES
        return not (isinstance(answer, Fetched) and answer.status >= 500)

    def add_done(self, batch: list[Visit]) -> None:
        if batch and not self.done:
            self.oldest = time.monotonic()
        self.done += batch

    # Those who look.

    async def look_on(self, visitor: Visitor) -> None:
        while not self.finished:
            if not self.targets.waiting or self.requester.is_stopping or self.breaker.is_in_doubt:
                self.work.clear()
                self.news.set()
                await self.work.wait()
                continue
            target = self.targets.waiting.popleft()
            self.targets.looking += 1
            try:
                visit = await visitor.visit(target)
            finally:
                self.targets.looking -= 1
            if visit is None:
                self.targets.put_back(target)
            else:
                self.add_done(self.breaker.take_in(visit))
            self.news.set()

    async def stored_body(self, target: Target, parsed: Parsed) -> StoredBody | None:
        """The body of a page's last Snapshot, to be held against what the page says now."""
        assert target.version is not None
        key, number, digest = target.key, target.version.number, parsed.version.text_digest
        return await until_available(
            self.lease,
            lambda _again: record.stored_body(self.db, self.lease.domain.id, key, number, text_digest=digest),
        )
