"""One polite look that is shown and not recorded: under a lease, by the rules, on the account of the day."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from crawler.clock import Clock
from crawler.core.budget.hours import opening
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.observation import Observation, update_mask
from crawler.core.domain import Domain
from crawler.core.http.response import Answer, Fetched
from crawler.core.http.urls import Url
from crawler.core.page.outline import BlockList
from crawler.core.page.selectors import WHOLE, View
from crawler.core.page.snapshot import Parsed
from crawler.core.page_rules import PageRules
from crawler.core.visit.decide import decide
from crawler.core.visit.visit import NEVER, Baseline, Known, Target, Visit, refusal_of
from crawler.engine.coordinator import give_back
from crawler.engine.extra_fetches import baseline_of, fetch_again
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.preparation import known_under, slow_down
from crawler.engine.rendering.browsers import PageRenderer
from crawler.engine.rendering.page_reader import PageRead, PageReader
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.login import Login
from crawler.engine.requests.requester import Requester, leased_server
from crawler.engine.requests.robots import robots_of
from crawler.engine.requests.session import DomainSession
from crawler.engine.resources import CrawlResources
from crawler.engine.shift import holder_name
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim
from crawler.store.claim import LeaseEnd
from crawler.store.database import Database
from crawler.store.report import target_of

PAIRS = 2  # of looks that have to agree on what is volatile
BUSY = "another worker has the domain or its address just now: try again in a moment"
CLOSED = "its hours are closed now: recrawl domains show says when they open"
SPENT = "its budget allows no request today"


@dataclass(frozen=True, slots=True)
class TryWay:
    """How a page is tried. again: twice more, each after the domain's delay.  screenshot: rendered, and pictured."""

    again: bool = False
    screenshot: bool = False


JUST_ONCE = TryWay()


@dataclass(frozen=True, slots=True)
class TryResult:
    """What one look showed.

    refusal: why the page was not asked for, or an empty string.  visit: what a crawl would make of the answer.
    whole: the blocks of the page, the user's rules not applied.  view: what the rules leave.  apart: what each rule
    alone would leave.  baseline: the blocks of the last Snapshot, if there is one and it is kept.  second_fetches: the
    page as it was seconds later, once and once more.  before: the domain's mask as it stands.
    read: without scripts and, where that was wanted, in a browser; no_browser: why not.  mask: as it would be
    after this look.
    """

    target: Target
    at: datetime
    refusal: str = ""
    answer: Answer | None = None
    visit: Visit | None = None
    read: PageRead | None = field(default=None, repr=False)
    no_browser: str = ""
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
    webs: CrawlResources,
    domain: Domain,
    url: Url,
    *,
    settings: Settings,
    clock: Clock,
    how: TryWay = JUST_ONCE,
) -> TryResult:
    """Look at a page of the domain once.

    Of the page nothing is recorded. What is kept is what any request owes others: the domain's delay, its account of
    the day, and its robots.txt.
    """
    target = await target_of(db, domain, url)
    if domain.settings.refusals:
        return TryResult(target, clock.now(), refusal=domain.settings.refusals[0])
    if opening(domain.hours, clock.now()) > clock.now():
        return TryResult(target, clock.now(), refusal=CLOSED)
    session = await webs.session_of(domain)
    if isinstance(session, str):
        return TryResult(target, clock.now(), refusal=session)  # as the reason of a hold
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
    unpaced = settings.model_copy(update={"pace": False})  # who asks for one page now does not wait for its turn
    store = LeasedStore(db, lease, settings=unpaced, clock=clock, patience=timedelta(0))
    trial = _Trial(store, session, webs, takes_pictures=how.screenshot)
    try:
        return await trial.look(target, again=how.again)
    finally:
        await trial.renderer.aclose()
        # No record tells of what was received: it is charged here, and what was debited for it is given back.
        received_bytes = trial.budget.unrecorded_bytes
        with suppress(StoreUnavailable):
            await claim.charge(db, domain, requests=0, received_bytes=received_bytes, at=clock.now())
            if settings.shared_budget.is_limited:
                await claim.charge_shared_budget(db, requests=0, received_bytes=received_bytes, at=clock.now())
        await give_back(store, trial.end())


class _Trial:
    """One look under one lease, which is kept from request to request."""

    def __init__(
        self, store: LeasedStore, session: DomainSession, webs: CrawlResources, *, takes_pictures: bool
    ) -> None:
        domain = store.lease.domain
        self._session, self._login_failed = session, ""
        self._store, self._clock = store, store.clock
        self.budget = LeaseBudget(store)
        server = leased_server(session, store, fence=self._keep_lease)
        self._requester = Requester(server, self.budget, term=store.lease.term, stats=CrawlStats())
        self._parser = DomainParser(webs.parsers, PageRules(domain.settings.rules))
        self.renderer = PageRenderer(webs.browsers, self._requester, domain)
        wished = replace(domain.settings, render="always", rules=()) if takes_pictures else domain.settings
        self._reader = PageReader(self._parser, self.renderer, wished, takes_pictures=takes_pictures, is_trial=True)

    def end(self) -> LeaseEnd:
        """What is left over when the lease ends now."""
        is_shared = self._store.settings.shared_budget.is_limited
        return LeaseEnd(self.budget.left_over(), wait=self._requester.pacer.wait, is_shared=is_shared)

    async def _keep_lease(self, _longest: timedelta) -> None:
        """Hold the lease for longer than a request takes. Raises LeaseLost."""
        await self._store.renew()

    async def look(self, target: Target, *, again: bool) -> TryResult:
        """The page as it is, and what a crawl would make of it."""
        known = await self._known()
        if isinstance(known, str):
            return TryResult(target, self._clock.now(), refusal=known)
        refusal = refusal_of(target.url, depth=target.depth, known=known)
        if refusal:
            return TryResult(target, self._clock.now(), refusal=refusal)
        answer = await self._requester.look_on(target.url)
        now = self._clock.now()
        if answer is None:
            return TryResult(target, now, refusal=self._why_silent)
        seen = TryResult(target, now, answer=answer, before=known.mask, mask=known.mask)
        if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
            return replace(seen, visit=decide(target, answer, now=now, known=known))
        # As a page that was never read: all of it is wanted, even where nothing differs.
        unread = replace(target, version=target.version and replace(target.version, body_digest=b""))
        read = await self._reader.read(unread, answer, known)
        seen = replace(seen, read=read, no_browser=self.renderer.source.missing)
        if read.failure is not None:
            return replace(seen, refusal=f"it was had, and no browser shows it now ({read.failure.value})")
        answer, parsed = read.judged.answer, read.judged.parsed
        if parsed is None:
            return replace(seen, refusal="it was had, and cannot be read in bounded time")
        seen = replace(await self._with_views(seen, answer), parsed=parsed)
        baseline = await baseline_of(self._store, target, answer, parsed, readers=self._parser)
        later = await self._later(target, parsed, known) if again else ()
        if baseline is not None:
            baseline = replace(baseline, second_fetches=later)
        visit = decide(target, answer, now=now, known=known, parsed=parsed, baseline=baseline)
        mask = visit.mask or known.mask
        if later:
            lesson = Observation(target.key, parsed.blocks, now, second_fetches=later)
            if baseline is not None:
                lesson = replace(lesson, before=baseline.blocks, then=baseline.at)
            mask = update_mask(known.mask, lesson)
        return replace(seen, visit=visit, baseline=baseline, second_fetches=later, mask=mask)

    async def _known(self) -> Known | str:
        """What is known of the domain; or why it may not be asked."""
        found = await robots_of(self._store, self._requester.look_on)
        if found.is_spent:
            return self._why_silent
        if found.outage is not None:
            return f"its robots.txt cannot be had ({found.outage})"
        slow_down(self._requester.pacer, found.rules, agent=self._store.settings.agent)
        if self._session.login is not None and not await self._login().begin():
            return self._login_failed or self._why_silent
        return await known_under(self._store, found.rules)

    def _login(self) -> Login:
        def failed(why: str) -> None:
            self._login_failed = why

        return Login(self._session, self._requester, self._store.lease.domain, leave_alone=failed)

    @property
    def _why_silent(self) -> str:
        """Why no request was sent: only a crawl waits for the next one, or the budget is spent."""
        requester = self._requester
        return (
            f"its next request is {requester.pacer.wait.total_seconds():.0f} s off" if requester.is_stopping else SPENT
        )

    async def _with_views(self, seen: TryResult, answer: Fetched) -> TryResult:
        """The result with the blocks of the page: all, and as the user's rules leave them."""
        url = seen.target.url
        whole = await self._parser.blocks(answer, url, view=WHOLE)
        return replace(
            seen, whole=whole or (), view=self._parser.view(url), apart=await self._parser.apart(answer, url)
        )

    async def _later(self, target: Target, parsed: Parsed, known: Known) -> tuple[BlockList, ...]:
        """The page a moment later, and once more: what differs in two pairs of looks is volatile (core/noise)."""
        found: list[BlockList] = []
        read = partial(self._reader.read_again, target, known=known, is_rendered=parsed.version.is_rendered)
        while len(found) < PAIRS:
            now = self._clock.now()
            blocks = await fetch_again(target, parsed, self._requester.look_on, read, now=now, known=known)
            if not blocks:
                break
            found.append(blocks)
        return tuple(found)
