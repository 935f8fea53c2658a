"""Domains at a glance: all of them with their freshness and costs, and one of them with all that is known of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.app.database import Database
from crawler.app.reports import calibration_of
from crawler.app.status import Wait, why_not_now
from crawler.core.domain import Domain
from crawler.core.http.traffic import TrafficHour
from crawler.core.visit.visit import CountedAs
from crawler.errors import failure_in
from crawler.planner.forecast import Forecast, ForecastStep, forecast
from crawler.planner.traffic import JudgedHour, judged_hours
from crawler.store import domains, report, subscriptions
from crawler.store.learned.credibility import TrustRow, trust_rows
from crawler.store.plan import Calibration
from crawler.store.report import HOWEVER_OLD, KEPT_FOR, Alike, DomainReport, ListReport, PageLine, PastFreshness
from crawler.store.subscriptions import Subscription

WINDOW = timedelta(days=30)  # that figures are summed over, as `recrawl report` does
INSTANTS = 30  # at which past freshness is reckoned
DOMAINS_SHOWN = 24  # on one page
PAST_PAGES = 500  # by which past freshness is told, half of them the most important ones
UNTOLD = timedelta(hours=1)  # after which somebody is not told: whoever tells does so every few minutes
CARD_PAGES, CARD_INSTANTS = 200, 15  # likewise, where a page shows many domains, and each small
MOST_WEIGHED = 300  # pages in the plot of what to worry about, the most important ones
FORECAST_PAGES = 2000  # of the domain, by chance: freshness to 0.8 points, in a tenth of the time and memory of a plan
WORRIES = 10  # of them in the table
HOURS = 48  # of traffic
MOST_GROUPED = 20  # pages of a group: failing, gone and the like


@dataclass(frozen=True, slots=True)
class DomainCard:
    """One domain in short. past: its freshness over the window, today's report last."""

    domain: Domain
    report: DomainReport
    calibration: Calibration
    past: tuple[PastFreshness, ...]

    @property
    def saved_share(self) -> float | None:
        """The part of all bytes that were not sent for validators and the like."""
        whole = self.report.received_bytes + self.report.saved_bytes
        return self.report.saved_bytes / whole if whole else None

    @property
    def is_below(self) -> bool:
        """Whether the copy is less fresh than its user wants."""
        target, fresh = self.report.target_freshness, self.report.freshness
        return target is not None and fresh is not None and fresh < target


@dataclass(frozen=True, slots=True)
class UncountedCard:
    """A large domain that was never counted before, and is now. tracked: its pages, whatever became of them."""

    domain: Domain
    tracked: int


# None for a domain that was removed meanwhile.
FindCard = Callable[[Domain], Coroutine[Any, Any, DomainCard | UncountedCard | None]]


@dataclass(frozen=True, slots=True)
class HomeFacts:
    """Domains in short. more: the name after which the next domains stand; empty where these are the last.

    uncounted: those of its domains that are being counted.  untold: subscriptions that fail, or gave messages up.
    """

    at: datetime
    cards: tuple[DomainCard, ...]
    count: int
    more: str
    uncounted: tuple[UncountedCard, ...] = ()
    untold: tuple[Subscription, ...] = ()


async def uncounted_card(db: Database, domain: Domain) -> UncountedCard:
    """Return the card of a domain that was never counted."""
    return UncountedCard(domain, await report.tracked_pages(db, domain))


async def list_summaries(db: Database, find_card: FindCard, *, at: datetime, after: str = "") -> HomeFacts:
    """Return the domains in short, by name, those that follow `after`."""
    following = await domains.named_after(db, after, most=DOMAINS_SHOWN + 1)
    async with _at_once() as tasks:  # several connections: a page of small domains is many short questions
        asked = [tasks.create_task(find_card(domain)) for domain in following[:DOMAINS_SHOWN]]
    cards = [each.result() for each in asked]
    more = following[DOMAINS_SHOWN - 1].authority if len(following) > DOMAINS_SHOWN else ""
    return HomeFacts(
        at=at,
        cards=tuple(card for card in cards if isinstance(card, DomainCard)),
        count=await report.count_domains(db),
        more=more,
        uncounted=tuple(card for card in cards if isinstance(card, UncountedCard)),
        untold=tuple(each for each in await subscriptions.every(db) if _is_in_trouble(each, at=at)),
    )


def _is_in_trouble(found: Subscription, *, at: datetime) -> bool:
    since = found.untold_since(at=at)
    return bool(found.failures or found.dead or (since is not None and at - since > UNTOLD))


async def summarize_domain(
    db: Database,
    domain: Domain,
    *,
    at: datetime,
    window: timedelta = WINDOW,
    sample: int = PAST_PAGES,
    instants: int = INSTANTS,
    kept_for: timedelta = KEPT_FOR,
) -> DomainCard | None:
    """Return one domain in short; None if it was removed meanwhile.

    sample: pages by which past freshness is told, at so many instants.  kept_for: as in report.domain_report.
    """
    found = await report.domain_report(db, domain, at=at, window=window, kept_for=kept_for)
    if found is None:
        return None
    # Evenly over the window, or over the domain's life where that is shorter.
    length = min(window, max(found.at - domain.registered_at, timedelta(0)))
    at_each = [found.at - length + length * n / instants for n in range(instants)]
    past = await report.freshness_over_time(db, domain, instants=at_each, sample=sample)
    if found.freshness is not None and found.freshness_plain is not None:
        past.append(PastFreshness(found.at, found.known, found.freshness, found.freshness_plain))
    return DomainCard(
        domain=domain,
        report=found,
        calibration=await calibration_of(db, domain, found),
        past=tuple(past),
    )


@dataclass(frozen=True, slots=True)
class Worry:
    """A page and how much of the domain's importance is probably out of date with it."""

    page: PageLine
    staleness: float
    share: float


@dataclass(frozen=True, slots=True)
class PageGroup:
    """Pages that somebody may look for, the most important first. count: of them all; None for more than shown."""

    title: str
    pages: tuple[PageLine, ...]
    count: int | None


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """All about one domain. wait: why nothing of it is fetched now, if so."""

    card: DomainCard
    wait: Wait | None
    worries: tuple[Worry, ...]
    weighed: tuple[PageLine, ...]
    forecast: Forecast | None
    groups: tuple[PageGroup, ...]
    alike: tuple[Alike, ...]
    hours: tuple[JudgedHour, ...]
    trust: tuple[TrustRow, ...]
    lists: tuple[ListReport, ...]

    @property
    def domain(self) -> Domain:
        return self.card.domain

    @property
    def at(self) -> datetime:
        return self.card.report.at

    @property
    def doubled(self) -> ForecastStep | None:
        """What twice the requests would buy."""
        steps = self.forecast.steps if self.forecast else ()
        return next((step for step in steps if step.factor == 2.0), None)


async def examine_domain(
    db: Database, card: DomainCard, *, kept_for: timedelta = KEPT_FOR, most_planned: int | None = None
) -> DomainFacts:
    """Return all about the domain of a card, at the instant of its report.

    kept_for: as in report.domain_report.  most_planned: no forecast that is worked out with more domains than that.
    """
    domain, now = card.domain, card.report.at
    async with _at_once() as tasks:  # several connections, since each waits for the database
        weighing = tasks.create_task(report.pages(db, domain, top=MOST_WEIGHED, at=now, kept_for=kept_for))
        forecasting = tasks.create_task(
            forecast(db, domain, at=now, settings=db.settings, sample=FORECAST_PAGES, most_domains=most_planned)
        )
        grouping = tasks.create_task(_groups(db, domain, card, kept_for=kept_for))
        comparing = tasks.create_task(report.usual_alike(db, domain, at=now, kept_for=kept_for))
        judging = tasks.create_task(judged_hours(db, domain, at=now, last=timedelta(hours=HOURS)))
    weighed = tuple(weighing.result())
    return DomainFacts(
        card=card,
        wait=await why_not_now(db, domain, at=now),
        worries=worries_of(weighed),
        weighed=weighed,
        forecast=forecasting.result(),
        groups=grouping.result(),
        alike=tuple(comparing.result()),
        hours=tuple(judging.result()),
        trust=tuple(await trust_rows(db, domain)),
        lists=tuple(await report.lists_of(db, domain)),
    )


async def _groups(db: Database, domain: Domain, card: DomainCard, *, kept_for: timedelta) -> tuple[PageGroup, ...]:
    """The pages that fail, are gone, have moved or may not be fetched, and those that need a browser."""

    async def found(which: str) -> tuple[PageLine, ...]:
        at = card.report.at
        return tuple(await report.pages(db, domain, top=MOST_GROUPED + 1, at=at, which=which, kept_for=kept_for))

    groups = [PageGroup("Failing", failing := await found(report.FAILING), len(failing))]
    for title, state, count in (
        ("Gone", CountedAs.GONE, card.report.gone),
        ("Dead links", CountedAs.DEAD_LINK, card.report.dead_links),
        ("Moved", CountedAs.MOVED, card.report.moved),
        ("May not be fetched", CountedAs.REFUSED, card.report.refused),
    ):
        groups += [PageGroup(title, await found(state), count)] if count else []
    groups.append(PageGroup("Rendered in a browser", rendered := await found(report.RENDERED), len(rendered)))
    return tuple(
        replace(group, pages=group.pages[:MOST_GROUPED], count=None if group.count == MOST_GROUPED + 1 else group.count)
        for group in groups
        if group.count
    )


def worries_of(pages: Sequence[PageLine]) -> tuple[Worry, ...]:
    """Return the pages by importance times the chance that the copy is out of date."""
    known = [
        (page, page.importance, 1 - page.freshness)
        for page in pages
        if page.importance is not None and page.freshness is not None
    ]
    whole = sum(importance for _, importance, _ in known) or 1.0
    found = [Worry(page, staleness, importance * staleness / whole) for page, importance, staleness in known]
    return tuple(sorted(found, key=lambda worry: -worry.share)[:WORRIES])


@asynccontextmanager
async def _at_once() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that all have to succeed; where one fails, what a caller can do something about is raised, not a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise failure_in(group) from group
