"""Fetch a page without recording a visit: under a lease, with the domain's rules, delay and daily budget."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.clock import Clock
from crawler.core.budget.hours import find_opening
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched, Response
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page.snapshot import Parsed
from crawler.core.page_rules import PageRules
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.state import NEVER
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, Visit, find_exclusion
from crawler.engine.coordinator import release_lease
from crawler.engine.extra_fetches import load_baseline, refetch_page
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.preparation import apply_crawl_delay, load_knowledge
from crawler.engine.rendering.browsers import PageRenderer
from crawler.engine.rendering.page_reader import PageReader, PageResult
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.login import Login
from crawler.engine.requests.requester import Requester, build_leased_server
from crawler.engine.requests.robots import load_robots
from crawler.engine.requests.session import DomainSession
from crawler.engine.resources import CrawlResources
from crawler.engine.shift import build_holder_name
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim
from crawler.store.claim import LeaseEnd
from crawler.store.database import Database
from crawler.store.report import read_target

PAIRS = 2  # pairs of fetches that must agree on what is volatile
CLOSED = "the domain's crawl hours are closed; `recrawl domains show` prints when they open"
SPENT = "the domain's budget allows no more requests today"


class TryOptions(Struct, frozen=True):
    """Options of a trial.

    again: fetch the page up to twice more, each time after the domain's delay.  screenshot: render the page, whatever
    its rules say, and take a screenshot.
    """

    again: bool = False
    screenshot: bool = False


DEFAULT_TRY = TryOptions()


class TryResult(Struct, frozen=True):
    """The result of a trial.

    problem: why the page was not fetched or read; empty if it was.  visit: the visit that a crawl would record.
    page: the page without scripts and, if needed, rendered in a browser.  no_browser_reason: why there is no browser.
    parsed: the page as it would be compared.  all_blocks: its blocks without the user's rules.  view: the rules for the
    page.  blocks_by_rule: as from DomainParser.parse_by_rule.  baseline: the blocks of the last snapshot, if it is
    stored.  second_fetches: the blocks of the page when fetched again, up to twice.  old_mask: the domain's current
    noise mask.  new_mask: the noise mask after this visit.
    """

    target: Target
    at: datetime
    problem: str = ""
    response: Response | None = None
    visit: Visit | None = None
    page: PageResult | None = None
    no_browser_reason: str = ""
    parsed: Parsed | None = None
    all_blocks: BlockList = ()
    view: View = FULL_VIEW
    blocks_by_rule: Mapping[str, BlockList] = field(default_factory=dict)
    baseline: Baseline | None = None
    second_fetches: tuple[BlockList, ...] = ()
    old_mask: NoiseMask = NO_MASK
    new_mask: NoiseMask = NO_MASK


async def try_page(
    db: Database,
    resources: CrawlResources,
    domain: Domain,
    url: Url,
    *,
    settings: Settings,
    clock: Clock,
    options: TryOptions = DEFAULT_TRY,
) -> TryResult:
    """Fetch a page of the domain, without recording a visit.

    The requests respect and update the domain's delay, its daily budget and its stored robots.txt, as any other.
    """
    target = await read_target(db, domain, url)
    if domain.settings.problems:
        return TryResult(target, clock.now(), problem=domain.settings.problems[0])
    if find_opening(domain.hours, clock.now()) > clock.now():
        return TryResult(target, clock.now(), problem=CLOSED)
    session = await resources.open_session(domain)
    if isinstance(session, str):
        return TryResult(target, clock.now(), problem=session)  # the reason of a suspension
    lease = await claim.claim(
        db,
        at=NEVER,  # claim the domain even if nothing is due
        holder=build_holder_name("try"),
        term=settings.lease_term,
        only=[domain],
        exempt_addresses=settings.exempt_addresses,
        delay=settings.delay,
    )
    if lease is None:
        busy = "another worker is crawling the domain or its address; try again in a moment"
        return TryResult(target, clock.now(), problem=busy)
    unpaced = settings.model_copy(update={"pace": False})  # use the budget now instead of spread over the day
    store = LeasedStore(db, lease, settings=unpaced, clock=clock, patience=timedelta(0))
    trial = _Trial(store, session, resources, screenshot=options.screenshot)
    try:
        return await trial.run(target, again=options.again)
    finally:
        await trial.renderer.aclose()
        # No visit records the received bytes, so charge them here; the lease end refunds what was debited for them.
        received_bytes = trial.budget.unrecorded_bytes
        with suppress(StoreUnavailable):
            await claim.charge(db, domain, requests=0, received_bytes=received_bytes, at=clock.now())
            if settings.shared_budget.is_limited:
                await claim.charge_shared_budget(db, requests=0, received_bytes=received_bytes, at=clock.now())
        await release_lease(store, trial.build_lease_end())


class _Trial:
    """A trial under one lease, which is renewed before each request."""

    def __init__(
        self, store: LeasedStore, session: DomainSession, resources: CrawlResources, *, screenshot: bool
    ) -> None:
        domain = store.lease.domain
        self._session, self._login_failed = session, ""
        self._store, self._clock = store, store.clock
        self.budget = LeaseBudget(store)
        server = build_leased_server(session, store, fence=self._renew_lease)
        self._requester = Requester(server, self.budget, term=store.lease.term, stats=CrawlStats())
        self._parser = DomainParser(resources.parsers, PageRules(domain.settings.rules))
        self.renderer = PageRenderer(resources.browsers, self._requester, domain)
        settings = replace(domain.settings, render="always", rules=()) if screenshot else domain.settings
        self._reader = PageReader(self._parser, self.renderer, settings, takes_screenshots=screenshot, is_trial=True)

    def build_lease_end(self) -> LeaseEnd:
        """Build the LeaseEnd for an end of the lease now."""
        is_shared = self._store.settings.shared_budget.is_limited
        return LeaseEnd(self.budget.compute_refund(), wait=self._requester.pacer.wait, is_shared=is_shared)

    async def _renew_lease(self, _max_duration: timedelta) -> None:
        """Renew the lease for longer than a request takes. Raise LeaseLost if it is lost."""
        await self._store.renew()

    async def run(self, target: Target, *, again: bool) -> TryResult:
        """Fetch the page and return it with the visit that a crawl would record."""
        knowledge = await self._load_knowledge()
        if isinstance(knowledge, str):
            return TryResult(target, self._clock.now(), problem=knowledge)
        exclusion = find_exclusion(target.url, depth=target.depth, knowledge=knowledge)
        if exclusion:
            return TryResult(target, self._clock.now(), problem=exclusion)
        response = await self._requester.fetch_extra(target.url)
        now = self._clock.now()
        if response is None:
            return TryResult(target, now, problem=self._no_request_reason)
        result = TryResult(target, now, response=response, old_mask=knowledge.mask, new_mask=knowledge.mask)
        if not isinstance(response, Fetched) or not 200 <= response.status < 300:
            return replace(result, visit=decide_visit(target, response, now=now, knowledge=knowledge))
        # Clear the stored digest, so that the page is parsed in full even if its body is the same.
        unread_target = replace(target, version=target.version and replace(target.version, body_digest=b""))
        page = await self._reader.read_page(unread_target, response, knowledge)
        result = replace(result, page=page, no_browser_reason=self.renderer.source.missing_reason)
        if page.failure is not None:
            return replace(result, problem=f"the page was fetched, but it could not be rendered ({page.failure.value})")
        response, parsed = page.compared.response, page.compared.parsed
        if parsed is None:
            return replace(result, problem="the page was fetched, but it cannot be parsed within the limits")
        result = replace(await self._add_views(result, response), parsed=parsed)
        baseline = await load_baseline(self._store, target, response, parsed, parser=self._parser)
        second_fetches = await self._refetch_page(target, parsed, knowledge) if again else ()
        if baseline is not None:
            baseline = replace(baseline, second_fetches=second_fetches)
        visit = decide_visit(target, response, now=now, knowledge=knowledge, parsed=parsed, baseline=baseline)
        mask = visit.mask or knowledge.mask
        if second_fetches:
            observation = Observation(target.key, parsed.blocks, now, second_fetches=second_fetches)
            if baseline is not None:
                observation = replace(observation, before=baseline.blocks, then=baseline.at)
            mask = update_mask(knowledge.mask, observation)
        return replace(result, visit=visit, baseline=baseline, second_fetches=second_fetches, new_mask=mask)

    async def _load_knowledge(self) -> DomainKnowledge | str:
        """Load what is known of the domain, or return why no request may be sent."""
        robots = await load_robots(self._store, self._requester.fetch_extra)
        if robots.is_budget_spent:
            return self._no_request_reason
        if robots.outage is not None:
            return f"the domain's robots.txt cannot be fetched ({robots.outage})"
        apply_crawl_delay(self._requester.pacer, robots.rules, agent=self._store.settings.user_agent)
        if self._session.login is not None:
            login = Login(self._session, self._requester, self._store.lease.domain, suspend=self._note_failure)
            if not await login.ensure_logged_in():
                return self._login_failed or self._no_request_reason
        return await load_knowledge(self._store, robots.rules)

    def _note_failure(self, why: str) -> None:
        self._login_failed = why

    @property
    def _no_request_reason(self) -> str:
        """Return why no request was sent: a long delay, for which only a crawl waits, or a spent budget."""
        if not self._requester.is_stopping:
            return SPENT
        return f"the domain allows its next request only in {self._requester.pacer.wait.total_seconds():.0f} s"

    async def _add_views(self, result: TryResult, response: Fetched) -> TryResult:
        """Return the result with the blocks of the page: all of them, and what remains with the user's rules."""
        url = result.target.url
        all_blocks = await self._parser.parse_blocks(response, url, view=FULL_VIEW) or ()
        by_rule = await self._parser.parse_by_rule(response, url)
        return replace(result, all_blocks=all_blocks, view=self._parser.build_view(url), blocks_by_rule=by_rule)

    async def _refetch_page(self, target: Target, parsed: Parsed, knowledge: DomainKnowledge) -> tuple[BlockList, ...]:
        """Fetch the page up to twice more; what differs in two pairs of fetches is volatile (see core/change)."""
        fetches: list[BlockList] = []
        read = partial(self._reader.reread_page, target, knowledge=knowledge, is_rendered=parsed.version.is_rendered)
        while len(fetches) < PAIRS:
            now = self._clock.now()
            blocks = await refetch_page(target, parsed, self._requester.fetch_extra, read, now=now, knowledge=knowledge)
            if not blocks:
                break
            fetches.append(blocks)
        return tuple(fetches)
