"""One polite look that is shown and not recorded: under a lease, by the rules, on the account of the day."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawler.clock import Clock
from crawler.core.change import NO_MASK, NoiseMask, Observation, update_mask
from crawler.core.domain import Domain, Lease
from crawler.core.http import Answer, Fetched, Url
from crawler.core.page import WHOLE, BlockList, Parsed, View
from crawler.core.page_rules import PageRules
from crawler.core.visit import NEVER, Baseline, Known, Target, Visit, decide, refusal_of
from crawler.crawl.extra_fetches import baseline_of, fetch_again
from crawler.crawl.lease import give_back
from crawler.crawl.pacer import Pacer
from crawler.crawl.parser_pool import DomainParser, ParserPool
from crawler.crawl.requester import Web, received_of
from crawler.crawl.robots import robots_of
from crawler.crawl.shift import holder_name
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim, learned, record
from crawler.store.database import Database
from crawler.store.report import target_of

PAIRS = 2  # of looks that have to agree on what is volatile
BUSY = "another worker has the domain or its address just now: try again in a moment"
SPENT = "its budget allows no request today"


@dataclass(frozen=True, slots=True)
class TryResult:
    """What one look showed.

    refusal: why the page was not asked for, or an empty string.  visit: what a crawl would make of the answer.
    whole: the pieces of the page, whatever the rules say.  view: what they leave.  apart: and what each of them would.
    earlier: the last Snapshot's pieces, if there is one and it is kept.  again: the page as it was
    seconds later, once and once more.
    before: the domain's mask as it stands.  mask: as it would be after this look.
    """

    target: Target
    at: datetime
    refusal: str = ""
    answer: Answer | None = None
    visit: Visit | None = None
    parsed: Parsed | None = field(default=None, repr=False)
    whole: BlockList = field(default=(), repr=False)
    view: View = WHOLE
    apart: Mapping[str, BlockList] = field(default_factory=dict, repr=False)
    baseline: Baseline | None = field(default=None, repr=False)
    second_fetches: tuple[BlockList, ...] = field(default=(), repr=False)
    before: NoiseMask = field(default=NO_MASK, repr=False)
    mask: NoiseMask = field(default=NO_MASK, repr=False)


async def try_page(
    db: Database,
    web: Web,
    readers: ParserPool,
    domain: Domain,
    url: Url,
    *,
    settings: Settings,
    clock: Clock,
    again: bool,
) -> TryResult:
    """Look at a page of the domain once. again: and twice more, each after the domain's delay.

    Of the page nothing is recorded. What is kept is what any request owes others: the domain's delay, its account of
    the day, and its robots.txt.
    """
    target = await target_of(db, domain, url)
    lease = await claim.claim(
        db,
        at=NEVER,  # whether anything is due makes no difference
        holder=holder_name("try"),
        term=settings.lease_term,
        only=[domain],
        exempt_addresses=settings.exempt_addresses,
        delay=settings.delay,
    )
    if lease is None:
        return TryResult(target, clock.now(), refusal=BUSY)
    parser = DomainParser(readers, PageRules(lease.domain.settings.rules))
    eye = _Try(db, lease, web, parser, settings=settings, clock=clock)
    try:
        return await eye.look(target, again=again)
    finally:
        with suppress(StoreUnavailable):
            await claim.charge(db, domain, requests=0, received_bytes=eye.received_bytes, at=clock.now())
        await give_back(
            db,
            lease,
            at=clock.now(),
            refund_bytes=eye.debited_bytes,  # they are charged as they came
            refund_day=clock.now().date(),
            wait=eye.gate.wait,
            together=settings.shared_budget.is_limited,
        )


class _Try:
    """Asks under one lease."""

    def __init__(
        self, db: Database, lease: Lease, web: Web, readers: DomainParser, *, settings: Settings, clock: Clock
    ) -> None:
        self.db, self.lease, self.web, self.readers = db, lease, web, readers
        self.settings, self.clock = settings, clock
        self.gate = Pacer(delay=settings.delay_of(lease.domain.settings), wait=lease.wait)
        self.received_bytes = self.debited_bytes = 0

    async def look(self, target: Target, *, again: bool) -> TryResult:
        known = await self.known()
        if isinstance(known, str):
            return TryResult(target, self.clock.now(), refusal=known)
        refusal = refusal_of(target.url, depth=target.depth, known=known)
        if refusal:
            return TryResult(target, self.clock.now(), refusal=refusal)
        answer = await self.ask(target.url)
        now = self.clock.now()
        if answer is None:
            return TryResult(target, now, refusal=self.why_silent)
        seen = TryResult(target, now, answer=answer, before=known.mask, mask=known.mask)
        if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
            return replace(seen, visit=decide(target, answer, now=now, known=known))
        parsed = await self.readers.parse(answer, target.url)
        if parsed is None:
            return replace(seen, refusal="it was had, and cannot be read in bounded time")
        whole = await self.readers.whole_blocks(answer, target.url)
        seen = replace(seen, whole=whole or (), view=self.readers.view(target.url))
        seen = replace(seen, apart=await self.readers.apart(answer, target.url))
        baseline = await self.earlier_of(target, answer, parsed)
        later = await self.later(target, parsed, known) if again else ()
        if baseline is not None:
            baseline = replace(baseline, second_fetches=later)
        visit = decide(target, answer, now=now, known=known, parsed=parsed, baseline=baseline)
        mask = visit.mask or known.mask
        if later:
            lesson = Observation(target.key, parsed.blocks, now, second_fetches=later)
            if baseline is not None:
                lesson = replace(lesson, before=baseline.blocks, then=baseline.at)
            mask = update_mask(known.mask, lesson)
        return replace(seen, visit=visit, parsed=parsed, baseline=baseline, second_fetches=later, mask=mask)

    async def known(self) -> Known | str:
        """What the domain knows; or why it may not be asked."""
        found = await robots_of(self.lease, self.ask, clock=self.clock)
        if found.copy is not None:
            await claim.save_robots(self.db, self.lease, found.copy, changed=found.rules_changed)
        if found.is_spent:
            return self.why_silent
        if found.outage is not None:
            return f"its robots.txt cannot be had ({found.outage})"
        self.gate.delay = max(self.gate.delay, found.rules.crawl_delay(self.settings.agent) or timedelta(0))
        domain = self.lease.domain
        mask, shown = await learned.learnt_of(self.db, domain.id)
        scope = domain.scope(max_depth=self.settings.max_depth)
        return Known(scope=scope, rules=found.rules, agent=self.settings.agent, mask=mask, soft_errors=shown)

    @property
    def is_slow(self) -> bool:
        """The next request is so far off that only a crawl waits for it."""
        return self.gate.wait > self.lease.term / 2

    @property
    def why_silent(self) -> str:
        return f"its next request is {self.gate.wait.total_seconds():.0f} s off" if self.is_slow else SPENT

    async def ask(self, url: Url) -> Answer | None:
        """One request at the domain's pace; None where it cannot be afforded."""
        if self.is_slow:
            return None
        granted = await claim.debit(
            self.db, self.lease, most=1, at=self.clock.now(), paced=False, together=self.settings.shared_budget
        )
        if not granted.requests:
            return None
        self.debited_bytes += granted.received_bytes or 0
        await self.gate.pass_through(self.renew)
        deadline = min(self.settings.deadline, self.lease.term / 2)
        answer = await self.web.fetch(url, deadline=deadline, language=self.lease.domain.settings.language)
        self.gate.answered()
        self.received_bytes += received_of(answer)
        return answer

    async def renew(self) -> None:
        """Hold the lease for longer than the request takes. Raises LeaseLost."""
        await claim.renew(self.db, self.lease)

    async def earlier_of(self, target: Target, answer: Fetched, parsed: Parsed) -> Baseline | None:
        if target.version is None:
            return None
        digest = parsed.version.text_digest
        kept = await record.stored_body(
            self.db, self.lease.domain.id, target.key, target.version.number, text_digest=digest
        )
        return await baseline_of(kept, target, answer, parsed, readers=self.readers)

    async def later(self, target: Target, parsed: Parsed, known: Known) -> tuple[BlockList, ...]:
        """The page a moment later, and once more: what differs in two pairs of looks is volatile (core/volatile)."""
        found: list[BlockList] = []
        while len(found) < PAIRS:
            outline = await fetch_again(target, parsed, self.ask, self.readers, now=self.clock.now(), known=known)
            if not outline:
                break
            found.append(outline)
        return tuple(found)
