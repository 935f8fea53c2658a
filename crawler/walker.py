"""One lease on its way through the rooms: a coordinator that talks to the store, and lookers that fetch and decide."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Protocol, TypeVar

from crawler.clock import Clock
from crawler.core.answer import NO_VALIDATORS, Answer, Fetched, NotModified, Unreached, Validators
from crawler.core.change import Understood
from crawler.core.compare import NO_MASK, Mask
from crawler.core.decide import decide, needs_earlier, needs_reading, reconsider, wants_again, wants_outline
from crawler.core.domain import Hold, Lease
from crawler.core.lifecycle import refuse, unreadable
from crawler.core.politeness import backoff
from crawler.core.rules import Rules
from crawler.core.trust import in_doubt
from crawler.core.urls import PageKey, Url
from crawler.core.visit import FIRST_RETRY, SILENCE, Earlier, Known, Target, Visit, refusal_of
from crawler.core.walls import NO_WALLS, asked, is_due, told
from crawler.core.withheld import Firsts, is_suspect, walls_after
from crawler.errors import StoreUnavailable
from crawler.gate import Fence, Gate
from crawler.probe import ask_nowhere
from crawler.readers import Lens, Readers
from crawler.robots_txt import robots_of
from crawler.settings import Settings
from crawler.store import budgets, content, frontier, inbox, leases, masks, moves, repricing, visits, walls
from crawler.store.budgets import NO_SPARE, Spare, Together
from crawler.store.database import Database
from crawler.store.standards import Usual
from crawler.tally import Tally

log = logging.getLogger("recrawl.crawl")
T = TypeVar("T")

LOOKS_UNTIL_OUTAGE = 5  # in a row without any answer
STORE_RETRY = timedelta(seconds=1)
STORE_PATIENCE = timedelta(minutes=10)  # a restart or a failover of Postgres is shorter


def usual_of(settings: Settings) -> Usual:
    """What holds for pages where neither plan nor rules say otherwise."""
    return Usual(
        price=settings.price,
        least=settings.least_interval,
        most=settings.most_interval,
        discovery_share=settings.discovery_share,
        refresh_share=settings.refresh_share,
        budget_per_day=settings.budget_per_day,
        bytes_per_day=settings.bytes_per_day,
    )


def together_of(settings: Settings) -> Together:
    """What all domains together may spend on a day."""
    return Together(settings.budget_per_day, settings.bytes_per_day)


def received_of(answer: Answer) -> int:
    """Bytes of a body that came over the wire."""
    return 0 if isinstance(answer, NotModified) else answer.received_bytes


class Web(Protocol):
    """One request to the web."""

    async def fetch(self, url: Url, *, validators: Validators = NO_VALIDATORS, deadline: timedelta) -> Answer: ...


class Walker:
    """One lease on its way. The coordinator alone talks to the store; the lookers only fetch and decide."""

    def __init__(
        self,
        db: Database,
        lease: Lease,
        web: Web,
        *,
        settings: Settings,
        clock: Clock,
        claimed: float,
        pages: int | None,
        stop: asyncio.Event | None,
    ) -> None:
        self.db, self.lease, self.web, self.settings, self.clock = db, lease, web, settings, clock
        self.stop = stop or asyncio.Event()
        self.readers = Lens(Readers(0), Rules(lease.domain.wishes.rules))
        self.progress: Callable[[Tally], None] = lambda _tally: None
        self.pages_left = pages
        self.not_before: datetime | None = None  # the budget has nothing for this domain until then
        self.known: Known | None = None
        self.mask_kept: Mask = NO_MASK  # as the store has it
        self.walls_kept = NO_WALLS  # as well
        self.firsts = Firsts()
        self.fence = Fence(lease, since=claimed)
        self.gate = Gate(delay=settings.delay_of(lease.domain.wishes), wait=lease.wait)
        self.tally = Tally(leases=1)
        self.queue: deque[Target] = deque()
        self.looking = 0
        self.done: list[Visit] = []
        self.silent: list[Visit] = []  # without an answer since the last one: their own fault, or everybody's?
        self.has_done_well = False  # something good came under this lease
        self.is_paused = False  # by its user, since the claim
        self.debit_day: date | None = None  # the day that the credit was taken from
        self.handed_out: set[PageKey] = set()  # and not recorded
        self.credit = 0  # requests taken from the budget and not used
        self.counts_bytes = False  # somebody limits them
        self.bytes_credit = 0  # bytes taken from the budget and not settled by a record
        self.bytes_taken = 0  # received for pages, and in no record yet
        self.oldest = 0.0  # when the first of `done` was complete
        self.hold: Hold | None = None
        self.is_dry = False  # there was nothing more when the frontier was asked last
        self.finished = False
        self.news = asyncio.Event()  # for the coordinator
        self.work = asyncio.Event()  # for the lookers

    @property
    def deadline(self) -> timedelta:
        """Of one request: a longer one could outlast the lease."""
        return min(self.settings.deadline, self.lease.term / 2)

    @property
    def is_stopping(self) -> bool:
        """Nothing new is begun; a domain whose next request is far off is released, not held."""
        return self.is_ending or self.gate.wait > self.lease.term / 2

    @property
    def has_bytes(self) -> bool:
        """More of them may be received; what is under way then may go over, by a body to each looker."""
        return not self.counts_bytes or self.bytes_credit > self.bytes_taken

    @property
    def is_over(self) -> bool:
        """The day that the waiting requests were taken from; a grant ends with its day."""
        return self.debit_day is not None and self.clock.now().astimezone(UTC).date() > self.debit_day

    @property
    def is_ending(self) -> bool:
        return self.hold is not None or self.stop.is_set() or self.is_paused

    @property
    def is_in_doubt(self) -> bool:
        """So many looks without an answer that the domain must be asked whether it is there at all."""
        return len(self.silent) >= LOOKS_UNTIL_OUTAGE

    @property
    def lookahead(self) -> int:
        """Pages to hand out ahead: two batches, or what the delay lets through in the time of two."""
        most = 2 * self.settings.batch_visits
        if self.gate.delay:
            most = min(most, int(2 * self.settings.batch_age / self.gate.delay) + 1)
        return max(most, self.parallelism)

    @property
    def parallelism(self) -> int:
        wishes = self.lease.domain.wishes
        own = self.settings.private_parallelism if wishes.allow_private else self.settings.parallelism
        return wishes.parallelism or own

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            renewer = tasks.create_task(self.keep_lease(), name="renew")
            try:
                if await self.prepare():
                    for n in range(self.parallelism):
                        tasks.create_task(self.look_on(), name=f"look-{n}")
                    await self.coordinate()
            finally:
                self.finished = True
                self.work.set()
                renewer.cancel()

    async def prepare(self) -> bool:
        """Read what others left for the domain, and its robots.txt; whether its pages may be asked for at all."""
        await self.drain()
        usual = usual_of(self.settings)
        await self.patiently(lambda _again: repricing.reprice(self.db, self.lease, at=self.clock.now(), usual=usual))
        found = await robots_of(self.lease, self.ask, clock=self.clock)
        self.tally.requests += found.requests
        if found.copy is not None:
            copy = found.copy
            await self.patiently(
                lambda _again: leases.save_robots(self.db, self.lease, copy, changed=found.rules_changed)
            )
        if found.is_spent:
            return False
        if found.outage is not None:
            self.leave_alone(found.outage, asked=found.asked)
            hold = self.hold
            assert hold is not None
            await self.patiently(lambda _again: leases.hold(self.db, self.lease, hold))
            self.tally.failed += 1
            self.tally.reasons[found.outage] += 1
            return False
        self.gate.delay = max(self.gate.delay, found.rules.crawl_delay(self.settings.agent) or timedelta(0))
        delay = self.gate.delay
        await self.patiently(lambda _again: leases.announce_delay(self.db, self.lease, delay=delay))
        self.known = Known(
            scope=self.lease.domain.scope(max_depth=self.settings.max_depth),
            rules=found.rules,
            agent=self.settings.agent,
            mask=await self.patiently(lambda _again: masks.mask_of(self.db, self.lease.domain.id)),
            walls=await self.patiently(lambda _again: walls.walls_of(self.db, self.lease.domain.id)),
        )
        self.walls_kept = self.known.walls
        self.mask_kept = self.known.mask
        return True

    async def ask(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """One request for what is no page; None where the budget has none left."""
        if not await self.may_ask():
            return None
        await self.gate.pass_through(self.room)
        answer = await self.web.fetch(url, validators=validators, deadline=self.deadline)
        self.gate.answered()
        if self.counts_bytes:
            self.bytes_credit -= received_of(answer)  # in no record, so nothing of it is given back
        return answer

    async def drain(self) -> bool:
        """Apply what others left in the domain's inbox; whether there was anything."""
        count = 0
        while await self.patiently(lambda _again: inbox.drain(self.db, self.lease, at=self.clock.now())):
            count += 1
        return count > 0

    # The coordinator.

    async def coordinate(self) -> None:
        while True:
            await self.refill()
            is_quiet = not self.queue and not self.looking
            if self.silent and (is_quiet or self.is_in_doubt):
                await self.settle_silence()
            if self.queue and not self.is_stopping:
                self.work.set()
            if self.done and (is_quiet or self.hold is not None or self.is_batch_due()):
                await self.record()
            elif is_quiet and self.is_stopping:
                return
            elif is_quiet and self.is_dry:
                if self.pages_left == 0 or not await self.drain():
                    return
                self.is_dry = False  # somebody wanted something meanwhile
            else:
                await self.wait_for_news()

    def is_batch_due(self) -> bool:
        """A full batch, an old one, or one whose links are all the work that may be left."""
        return len(self.done) >= self.settings.batch_visits or not self.queue or self.batch_time_left <= 0

    @property
    def batch_time_left(self) -> float:
        return self.oldest + self.settings.batch_age.total_seconds() - time.monotonic()

    async def wait_for_news(self) -> None:
        self.news.clear()
        with contextlib.suppress(TimeoutError):  # then the batch is old enough
            async with asyncio.timeout(max(self.batch_time_left, 0.01) if self.done else None):
                await self.news.wait()

    async def refill(self) -> None:
        """Hand out more pages before the lookers run dry; take back what they will not get to."""
        if self.is_over:
            self.take_back(refund=0)
        elif self.is_stopping or not self.has_bytes:
            self.take_back(refund=len(self.queue))
        if self.is_stopping or (not self.has_bytes and (self.looking or self.done or self.silent)):
            return  # how much is left of the bytes is known when these are recorded
        wanted = self.lookahead - len(self.queue)
        if self.pages_left is not None:
            wanted = min(wanted, self.pages_left)
        if self.is_dry or len(self.queue) > self.lookahead // 2:
            return
        targets = await self.hand_out(wanted) if wanted > 0 else []
        self.is_dry = not targets
        self.handed_out.update(target.key for target in targets)
        self.queue.extend(targets)
        self.work.set()

    def take_back(self, *, refund: int) -> None:
        """Nobody looks at what waits in the queue; the budget may get the requests back."""
        self.credit += refund
        if self.pages_left is not None:
            self.pages_left += len(self.queue)
        self.handed_out.difference_update(target.key for target in self.queue)
        self.queue.clear()

    async def hand_out(self, wanted: int) -> list[Target]:
        now = self.clock.now()
        granted = await self.debit(wanted)
        if not granted:
            return []
        targets = await self.patiently(
            lambda _again: frontier.hand_out(
                self.db, self.lease, most=granted, at=now, without=self.handed_out, usual=usual_of(self.settings)
            )
        )
        self.credit += granted - len(targets)
        if self.pages_left is not None:
            self.pages_left -= len(targets)
        return targets

    async def debit(self, most: int) -> int:
        """Take up to so many requests from the budgets of the day."""
        now = self.clock.now()
        spare = unused = Spare(max(self.bytes_credit - self.bytes_taken, 0), self.debit_day)
        granted = await self.patiently(
            lambda again: budgets.debit(
                self.db,
                self.lease,
                most=most,
                at=now,
                paced=self.settings.pace,
                together=together_of(self.settings),
                waiting=len(self.queue) + self.looking,
                spare=NO_SPARE if again else unused,
            )
        )
        self.not_before = granted.next_at
        if granted.day != self.debit_day:
            self.begin_day(granted.day)
            spare = NO_SPARE
        self.counts_bytes = granted.received_bytes is not None
        if granted.received_bytes is not None:
            self.bytes_credit += granted.received_bytes - spare.received_bytes
        return granted.requests

    def begin_day(self, day: date) -> None:
        """What another day has left over is that day's: it is neither sent nor given back on this one's account."""
        self.debit_day = day
        self.take_back(refund=0)
        self.bytes_credit = 0
        # A record gives back what its visits did not send, which was the other day's.
        self.credit = -sum(1 - visit.requests for visit in (*self.done, *self.silent))

    async def record(self) -> None:
        done, self.done = self.done, []
        batch = await self.patiently(lambda _again: moves.judge_moves(self.db, self.lease, done))
        mask = None
        if self.known is not None:
            known = self.known
            batch = [reconsider(visit, known) for visit in batch]
            mask = None if known.mask is self.mask_kept else known.mask
        refund, self.credit, day = self.credit, 0, self.debit_day
        received = sum(visit.received_bytes for visit in batch)
        debited = min(self.bytes_credit, received)  # below nothing where robots.txt took more than was guessed
        self.bytes_credit, self.bytes_taken = self.bytes_credit - debited, self.bytes_taken - received
        hold, sent = self.hold, time.monotonic()
        new = await self.patiently(
            lambda again: visits.record(
                self.db,
                self.lease,
                batch,
                max_pages=self.lease.domain.wishes.max_pages or self.settings.max_pages,
                refund=refund,
                refund_day=day,
                debited_bytes=debited,
                hold=hold,
                again=again,
                together=together_of(self.settings).is_limited,
                mask=mask,
            )
        )
        self.mask_kept = mask or self.mask_kept
        await self.keep_walls()
        self.fence.renewed(since=sent)
        self.handed_out.difference_update(visit.target.key for visit in batch)
        self.is_dry = False
        for visit in batch:
            self.tally.add(visit)
        self.tally.new += new
        self.progress(self.tally)

    async def keep_walls(self) -> None:
        """Write down what the domain shows in place of its pages, where that has changed."""
        now_known = self.known.walls if self.known is not None else NO_WALLS
        if now_known != self.walls_kept:
            await self.patiently(lambda _again: walls.put(self.db, self.lease, now_known))
            self.walls_kept = now_known

    async def patiently(self, ask: Callable[[bool], Awaitable[T]]) -> T:
        """Ask the store until it answers: while it restarts, the lease pauses. `ask` is told if it asked before."""
        give_up_at = time.monotonic() + STORE_PATIENCE.total_seconds()
        again = False
        while True:
            try:
                return await ask(again)
            except StoreUnavailable as error:
                if time.monotonic() > give_up_at:
                    raise
                log.warning("store.silent", extra={"domain": self.lease.domain.authority, "error": str(error)})
                again = True
                await asyncio.sleep(STORE_RETRY.total_seconds())

    async def keep_lease(self) -> None:
        """Renew by timer, well before the end."""
        pause = self.lease.term / 4
        while True:
            await asyncio.sleep(pause.total_seconds())
            sent = time.monotonic()
            with contextlib.suppress(StoreUnavailable):  # the fence holds the lookers back meanwhile
                self.is_paused = not await leases.renew(self.db, self.lease)
                self.fence.renewed(since=sent)
            if self.is_paused:
                self.news.set()

    # The lookers.

    async def look_on(self) -> None:
        while not self.finished:
            if not self.queue or self.is_stopping or self.is_in_doubt:
                self.work.clear()
                self.news.set()
                await self.work.wait()
                continue
            target = self.queue.popleft()
            self.looking += 1
            try:
                visit = await self.look(target)
            finally:
                self.looking -= 1
            if visit is None:
                self.handed_out.discard(target.key)
                self.pages_left = None if self.pages_left is None else self.pages_left + 1
            else:
                self.take_in(visit)
            self.news.set()

    async def look(self, target: Target) -> Visit | None:
        """One look; None if it was not begun, or the lease ended before it did."""
        assert self.known is not None
        refusal = refusal_of(target.url, depth=target.depth, known=self.known)
        if refusal:
            return refuse(target, reason=refusal, now=self.clock.now())
        day = self.debit_day
        await self.gate.pass_through(self.room)
        if self.is_over or day != self.debit_day:
            return None
        if self.is_ending or not self.has_bytes:
            self.credit += 1
            return None
        answer = await self.web.fetch(target.url, validators=target.validators, deadline=self.deadline)
        self.gate.answered()
        self.bytes_taken += received_of(answer)
        now = self.clock.now()
        understood = earlier = None
        if isinstance(answer, Fetched) and needs_reading(target, answer):
            understood = await self.readers.read(answer, target.url, outlined=wants_outline(target, self.known))
            if understood is None:
                return unreadable(target, answer, now=now)
            if needs_earlier(target, understood):
                earlier = await self.earlier_of(target, answer, understood, now=now)
        visit = decide(target, answer, now=now, known=self.known, understood=understood, earlier=earlier)
        if self.is_doubtful(visit):
            await self.probe(target)
            visit = decide(target, answer, now=now, known=self.known, understood=understood, earlier=earlier)
        self.known = replace(self.known, mask=visit.mask or self.known.mask, walls=walls_after(self.known.walls, visit))
        doubted = in_doubt(visit)
        return await self.tested(visit, doubted) if doubted else visit

    async def tested(self, visit: Visit, doubted: Validators) -> Visit:
        """A challenge that found a change, with what the server says to the validators that it would have got."""
        answer = await self.ask_beside(visit.target.url, validators=doubted) if not self.is_stopping else None
        if answer is None or isinstance(answer, Unreached):
            return visit
        return replace(visit, again=visit.again + 1, refused_304=not isinstance(answer, NotModified))

    def is_doubtful(self, visit: Visit) -> bool:
        """Whether what the domain says where nothing can be would tell more of this look."""
        assert self.known is not None
        return is_due(self.known.walls, now=visit.at) and (is_suspect(visit) or self.firsts.are_like(visit))

    async def probe(self, target: Target) -> None:
        """Ask the domain for what cannot exist, to know that again."""
        assert self.known is not None
        self.known = replace(self.known, walls=asked(self.known.walls, now=self.clock.now()))
        absent = await ask_nowhere(target, self.ask_beside, self.readers, known=self.known)
        if absent is not None:
            self.known = replace(self.known, walls=told(self.known.walls, absent))

    async def ask_beside(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """One request more for the sake of a look; None where the budget has none left."""
        answer = await self.ask(url, validators=validators)
        self.tally.requests += answer is not None
        return answer

    async def earlier_of(
        self, target: Target, answer: Fetched, understood: Understood, *, now: datetime
    ) -> Earlier | None:
        """What a page is compared with: its last Snapshot and, where that would tell more, itself seconds later."""
        assert self.known is not None
        assert target.version is not None
        key, number, digest = target.key, target.version.number, understood.version.text_digest
        kept = await self.patiently(
            lambda _again: content.kept(self.db, self.lease.domain.id, key, number, text_digest=digest)
        )
        if kept is None:
            return None
        before = await self.readers.read(replace(answer, body=kept.body, content_type=kept.content_type), target.url)
        if before is None or not before.outline:
            return None
        earlier = Earlier(before.outline, kept.at, kept.has_returned)
        while not self.is_stopping and wants_again(target, understood, earlier, now=now, known=self.known):
            again = await self.look_again(target)
            if again is None:
                break
            earlier = replace(earlier, again=(*earlier.again, again.outline))
        return earlier

    async def look_again(self, target: Target) -> Understood | None:
        """The page as it is a moment later; None where that cannot be had."""
        answer = await self.ask_beside(target.url)
        if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
            return None
        return await self.readers.read(answer, target.url)

    async def room(self) -> None:
        """Wait until the lease lasts longer than a request may take."""
        await self.fence.room_for(self.deadline)

    def take_in(self, visit: Visit) -> None:
        """Put a visit into the batch, unless it may be the sign of an outage."""
        if visit.silent:
            self.silent.append(visit)
            return
        if visit.requests:
            self.add_done(self.silent)  # the domain answers, so it was theirs
            self.silent = []
        self.has_done_well = self.has_done_well or visit.is_good
        self.add_done([visit])
        if visit.busy:
            self.leave_alone(visit.reason, asked=visit.retry_after)

    async def settle_silence(self) -> None:
        """Say whose fault the silence is: if the domain answers for its robots.txt, it was the pages' own."""
        silent, self.silent = self.silent, []
        if self.hold is None and await self.domain_answers():
            self.add_done(silent)
            return
        self.leave_alone(silent[-1].reason, asked=None)
        hold = self.hold
        assert hold is not None
        # It says nothing about the pages, but others shall come first when the domain is asked again.
        due_at = hold.until + FIRST_RETRY
        self.add_done([replace(visit, failures=visit.target.failures, gives=None, due_at=due_at) for visit in silent])

    async def domain_answers(self) -> bool:
        """Ask for robots.txt; whether there is any answer. Without a budget for it, nothing is known against it."""
        answer = await self.ask(Url(f"{self.lease.domain.root}robots.txt"))
        self.tally.requests += answer is not None
        return not (isinstance(answer, Unreached) and answer.reason in SILENCE)

    async def may_ask(self) -> bool:
        """Take one request from the budget, for what is no page."""
        return await self.debit(1) == 1

    def leave_alone(self, reason: str, *, asked: timedelta | None) -> None:
        """Hold the domain; a burst of refusals counts once, and the longest wait asked for wins."""
        refusals = 1 if self.has_done_well else self.lease.refusals + 1
        wait = backoff(refusals, asked=asked, most=self.settings.max_backoff, most_asked=self.settings.max_retry_after)
        until = self.clock.now() + wait
        if self.hold is None or until > self.hold.until:
            self.hold = Hold(until=until, reason=reason, refusals=refusals)

    def add_done(self, batch: list[Visit]) -> None:
        if batch and not self.done:
            self.oldest = time.monotonic()
        self.done += batch
