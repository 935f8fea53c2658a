"""Domains at a glance: all of them with their freshness and costs, and one of them with all that is known of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.app.database import AppDatabase
from crawler.app.reports import read_calibration
from crawler.app.status import Wait, find_wait
from crawler.core.domain import Domain
from crawler.core.http.traffic import TrafficHour
from crawler.core.visit.visit import PageCategory
from crawler.errors import find_failure
from crawler.planner.forecast import Forecast, ForecastStep, compute_forecast
from crawler.planner.traffic import JudgedHour, judge_hours
from crawler.store import domains, report, subscriptions
from crawler.store.learned.credibility import TrustRow, list_trust_rows
from crawler.store.plan import Calibration
from crawler.store.report import ANY_AGE, MAX_AGE, DomainReport, ListReport, NearDuplicateGroup, PageLine, PastFreshness
from crawler.store.subscriptions import Subscription

WINDOW = timedelta(days=30)  # that figures are summed over, as `recrawl report` does
PAST_INSTANTS = 30  # at which past freshness is reckoned
DOMAINS_PER_PAGE = 24  # on one page
PAST_PAGES = 500  # by which past freshness is told, half of them the most important ones
UNDELIVERED_AFTER = timedelta(hours=1)  # after which somebody is not told: whoever tells does so every few minutes
CARD_PAGES, CARD_INSTANTS = 200, 15  # likewise, where a page shows many domains, and each small
MAX_WEIGHED = 300  # pages in the plot of what to worry about, the most important ones
FORECAST_PAGES = 2000  # of the domain, by chance: freshness to 0.8 points, in a tenth of the time and memory of a plan
MAX_STALE_PAGES = 10  # of them in the table
TRAFFIC_HOURS = 48  # of traffic
MAX_GROUPED = 20  # pages of a group: failing, gone and the like


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
        total_bytes = self.report.received_bytes + self.report.saved_bytes
        return self.report.saved_bytes / total_bytes if total_bytes else None

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


async def make_uncounted_card(db: AppDatabase, domain: Domain) -> UncountedCard:
    """Return the card of a domain that was never counted."""
    return UncountedCard(domain, await report.count_tracked_pages(db, domain))


async def summarize_domains(db: AppDatabase, find_card: FindCard, *, at: datetime, after: str = "") -> HomeFacts:
    """Return the domains in short, by name, those that follow `after`."""
    following = await domains.list_domains_after(db, after, max_count=DOMAINS_PER_PAGE + 1)
    async with _open_task_group() as tasks:  # several connections: a page of small domains is many short questions
        lookups = [tasks.create_task(find_card(domain)) for domain in following[:DOMAINS_PER_PAGE]]
    cards = [each.result() for each in lookups]
    next_after = following[DOMAINS_PER_PAGE - 1].authority if len(following) > DOMAINS_PER_PAGE else ""
    return HomeFacts(
        at=at,
        cards=tuple(card for card in cards if isinstance(card, DomainCard)),
        count=await report.count_domains(db),
        more=next_after,
        uncounted=tuple(card for card in cards if isinstance(card, UncountedCard)),
        untold=tuple(each for each in await subscriptions.list_subscriptions(db) if _is_failing(each, at=at)),
    )


def _is_failing(subscription: Subscription, *, at: datetime) -> bool:
    since = subscription.get_overdue_since(at=at)
    return bool(subscription.failures or subscription.dead or (since is not None and at - since > UNDELIVERED_AFTER))


async def summarize_domain(
    db: AppDatabase,
    domain: Domain,
    *,
    at: datetime,
    window: timedelta = WINDOW,
    sample: int = PAST_PAGES,
    instants: int = PAST_INSTANTS,
    max_age: timedelta = MAX_AGE,
) -> DomainCard | None:
    """Return one domain in short; None if it was removed meanwhile.

    sample: pages by which past freshness is told, at so many instants.  max_age: as in report.domain_report.
    """
    domain_report = await report.read_domain_report(db, domain, at=at, window=window, max_age=max_age)
    if domain_report is None:
        return None
    # Evenly over the window, or over the domain's life where that is shorter.
    span = min(window, max(domain_report.at - domain.registered_at, timedelta(0)))
    sample_times = [domain_report.at - span + span * n / instants for n in range(instants)]
    past = await report.read_freshness_history(db, domain, instants=sample_times, sample_size=sample)
    if domain_report.freshness is not None and domain_report.freshness_plain is not None:
        past.append(
            PastFreshness(
                domain_report.at, domain_report.fetched, domain_report.freshness, domain_report.freshness_plain
            )
        )
    return DomainCard(
        domain=domain,
        report=domain_report,
        calibration=await read_calibration(db, domain, domain_report),
        past=tuple(past),
    )


@dataclass(frozen=True, slots=True)
class StalePage:
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
    worries: tuple[StalePage, ...]
    weighed_pages: tuple[PageLine, ...]
    forecast: Forecast | None
    groups: tuple[PageGroup, ...]
    alike: tuple[NearDuplicateGroup, ...]
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
    db: AppDatabase, card: DomainCard, *, max_age: timedelta = MAX_AGE, max_planned_domains: int | None = None
) -> DomainFacts:
    """Return all about the domain of a card, at the instant of its report.

    max_age: as in report.domain_report.  max_planned_domains: no forecast that is worked out with more domains than
    that.
    """
    domain, now = card.domain, card.report.at
    async with _open_task_group() as tasks:  # several connections, since each waits for the database
        weighing = tasks.create_task(report.list_top_pages(db, domain, top=MAX_WEIGHED, at=now, max_age=max_age))
        forecasting = tasks.create_task(
            compute_forecast(
                db, domain, at=now, settings=db.settings, sample_size=FORECAST_PAGES, max_domains=max_planned_domains
            )
        )
        grouping = tasks.create_task(_list_page_groups(db, domain, card, max_age=max_age))
        comparing = tasks.create_task(report.read_largest_groups(db, domain, at=now, max_age=max_age))
        judging = tasks.create_task(judge_hours(db, domain, at=now, window=timedelta(hours=TRAFFIC_HOURS)))
    weighed = tuple(weighing.result())
    return DomainFacts(
        card=card,
        wait=await find_wait(db, domain, at=now),
        worries=rank_stale_pages(weighed),
        weighed_pages=weighed,
        forecast=forecasting.result(),
        groups=grouping.result(),
        alike=tuple(comparing.result()),
        hours=tuple(judging.result()),
        trust=tuple(await list_trust_rows(db, domain)),
        lists=tuple(await report.list_url_lists(db, domain)),
    )


async def _list_page_groups(
    db: AppDatabase, domain: Domain, card: DomainCard, *, max_age: timedelta
) -> tuple[PageGroup, ...]:
    """The pages that fail, are gone, have moved or may not be fetched, and those that need a browser."""

    async def list_group(which: str) -> tuple[PageLine, ...]:
        at = card.report.at
        return tuple(
            await report.list_top_pages(db, domain, top=MAX_GROUPED + 1, at=at, ranking=which, max_age=max_age)
        )

    groups = [PageGroup("Failing", failing := await list_group(report.FAILING), len(failing))]
    for title, state, count in (
        ("Gone", PageCategory.GONE, card.report.gone),
        ("Dead links", PageCategory.DEAD_LINK, card.report.dead_links),
        ("Moved", PageCategory.MOVED, card.report.moved),
        ("May not be fetched", PageCategory.EXCLUDED, card.report.excluded),
    ):
        groups += [PageGroup(title, await list_group(state), count)] if count else []
    groups.append(PageGroup("Rendered in a browser", rendered := await list_group(report.RENDERED), len(rendered)))
    return tuple(
        replace(group, pages=group.pages[:MAX_GROUPED], count=None if group.count == MAX_GROUPED + 1 else group.count)
        for group in groups
        if group.count
    )


def rank_stale_pages(pages: Sequence[PageLine]) -> tuple[StalePage, ...]:
    """Return the pages by importance times the chance that the copy is out of date."""
    visited = [
        (page, page.importance, 1 - page.freshness)
        for page in pages
        if page.importance is not None and page.freshness is not None
    ]
    total_importance = sum(importance for _, importance, _ in visited) or 1.0
    stale_pages = [
        StalePage(page, staleness, importance * staleness / total_importance) for page, importance, staleness in visited
    ]
    return tuple(sorted(stale_pages, key=lambda worry: -worry.share)[:MAX_STALE_PAGES])


@asynccontextmanager
async def _open_task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that all have to succeed; where one fails, what a caller can do something about is raised, not a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise find_failure(group) from group
