"""Data for the web UI: an overview of all domains, and the details of one domain."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crawler.app.database import AppDatabase
from crawler.app.reports import read_calibration
from crawler.app.status import Wait, find_wait
from crawler.core.domain import Domain
from crawler.core.http.traffic import TrafficHour
from crawler.core.visit.state import PageCategory
from crawler.errors import find_failure
from crawler.planner.forecast import Forecast, ForecastStep, compute_forecast
from crawler.planner.traffic import JudgedHour, judge_hours
from crawler.store import domains, report, subscriptions
from crawler.store.learned.credibility import TrustRow, list_trust_rows
from crawler.store.plan import Calibration
from crawler.store.report import ANY_AGE, MAX_AGE, DomainReport, ListReport, NearDuplicateGroup, PageLine, PastFreshness
from crawler.store.subscriptions import Subscription

WINDOW = timedelta(days=30)  # of the counts, as in `recrawl report`
PAST_INSTANTS = 30  # points of the freshness history
DOMAINS_PER_PAGE = 24
PAST_PAGES = 500  # sampled for the freshness history; half of them are the most important ones
UNDELIVERED_AFTER = timedelta(hours=1)  # a delivery is overdue after this; deliveries run every few minutes
CARD_PAGES, CARD_INSTANTS = 200, 15  # as PAST_PAGES and PAST_INSTANTS, for the small charts of the overview
MAX_WEIGHED = 300  # the most important pages: the plot shows them, and the table ranks them by staleness
FORECAST_PAGES = 2000  # a random sample: freshness is off by 0.8 percentage points, in a tenth of a plan's time
MAX_STALE_PAGES = 10  # rows of the table of likely stale pages
TRAFFIC_HOURS = 48
MAX_GROUPED = 20  # pages per group, such as failing or gone pages


@dataclass(frozen=True, slots=True)
class DomainCard:
    """The summary of one domain. past: its freshness history over the window, ending with that of the report."""

    domain: Domain
    report: DomainReport
    calibration: Calibration
    past: tuple[PastFreshness, ...]

    @property
    def saved_share(self) -> float | None:
        """Return the share of bytes that were not transferred, because of validators and other savings."""
        total_bytes = self.report.received_bytes + self.report.saved_bytes
        return self.report.saved_bytes / total_bytes if total_bytes else None

    @property
    def is_below(self) -> bool:
        """Return whether the freshness is below the domain's target."""
        target, fresh = self.report.target_freshness, self.report.freshness
        return target is not None and fresh is not None and fresh < target


@dataclass(frozen=True, slots=True)
class UncountedCard:
    """The summary of a large domain that is being counted for the first time. tracked: its number of pages."""

    domain: Domain
    tracked: int


# Returns None for a domain that was removed meanwhile.
FindCard = Callable[[Domain], Coroutine[Any, Any, DomainCard | UncountedCard | None]]


@dataclass(frozen=True, slots=True)
class HomeFacts:
    """The overview of domains. more: the name after which the next page starts; empty on the last page.

    count: the number of all domains.  uncounted: domains on this page that are being counted.
    undelivered: subscriptions with failed, overdue or dead messages, or of a later version of recrawl.
    """

    at: datetime
    cards: tuple[DomainCard, ...]
    count: int
    more: str
    uncounted: tuple[UncountedCard, ...] = ()
    undelivered: tuple[Subscription, ...] = ()


async def make_uncounted_card(db: AppDatabase, domain: Domain) -> UncountedCard:
    """Return the summary of a domain that was never counted."""
    return UncountedCard(domain, await report.count_tracked_pages(db, domain))


async def summarize_domains(db: AppDatabase, find_card: FindCard, *, at: datetime, after: str = "") -> HomeFacts:
    """Return one page of the overview, with the domains after this name in alphabetical order."""
    following = await domains.list_domains_after(db, after, max_count=DOMAINS_PER_PAGE + 1)
    async with _open_task_group() as tasks:  # uses several connections, since each domain takes several short queries
        lookups = [tasks.create_task(find_card(domain)) for domain in following[:DOMAINS_PER_PAGE]]
    cards = [each.result() for each in lookups]
    return HomeFacts(
        at=at,
        cards=tuple(card for card in cards if isinstance(card, DomainCard)),
        count=await report.count_domains(db),
        more=following[DOMAINS_PER_PAGE - 1].authority if len(following) > DOMAINS_PER_PAGE else "",
        uncounted=tuple(card for card in cards if isinstance(card, UncountedCard)),
        undelivered=tuple(each for each in await subscriptions.list_subscriptions(db) if _is_failing(each, at=at)),
    )


def _is_failing(subscription: Subscription, *, at: datetime) -> bool:
    since = subscription.get_overdue_since(at=at)
    is_overdue = since is not None and at - since > UNDELIVERED_AFTER
    return bool(subscription.unknown or subscription.failures or subscription.dead or is_overdue)


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
    """Return the summary of a domain; None if it was removed meanwhile.

    sample, instants: the pages and points of the freshness history.
    max_age: the maximum age of the stored figures of a large domain.
    """
    figures = await report.read_domain_report(db, domain, at=at, window=window, max_age=max_age)
    if figures is None:
        return None
    # Spread the points over the window, or over the time since registration if that is shorter.
    span = min(window, max(figures.at - domain.registered_at, timedelta(0)))
    sample_times = [figures.at - span + span * n / instants for n in range(instants)]
    past = await report.read_freshness_history(db, domain, instants=sample_times, sample_size=sample)
    if figures.freshness is not None and figures.freshness_plain is not None:
        past.append(PastFreshness(figures.at, figures.fetched, figures.freshness, figures.freshness_plain))
    return DomainCard(domain, figures, await read_calibration(db, domain, figures), tuple(past))


@dataclass(frozen=True, slots=True)
class StalePage:
    """A likely stale page.

    staleness: the probability that its copy is stale.
    share: how much this lowers the freshness of the ranked pages, 0 to 1.
    """

    page: PageLine
    staleness: float
    share: float


@dataclass(frozen=True, slots=True)
class PageGroup:
    """A titled group of pages, most important first. count: the size of the group; None if unknown."""

    title: str
    pages: tuple[PageLine, ...]
    count: int | None


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """The details of one domain. wait: the result of `find_wait`.

    weighed_pages: its MAX_WEIGHED most important pages.  trust: how reliable its validators are.
    lists: its sitemaps and feeds.
    """

    card: DomainCard
    wait: Wait | None
    stale_pages: tuple[StalePage, ...]
    weighed_pages: tuple[PageLine, ...]
    forecast: Forecast | None
    groups: tuple[PageGroup, ...]
    near_duplicates: tuple[NearDuplicateGroup, ...]
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
        """Return the forecast for twice the budget."""
        steps = self.forecast.steps if self.forecast else ()
        return next((step for step in steps if step.factor == 2.0), None)


async def examine_domain(
    db: AppDatabase, card: DomainCard, *, max_age: timedelta = MAX_AGE, max_planned_domains: int | None = None
) -> DomainFacts:
    """Return the details of the domain of a card, at the time of its report.

    max_age: as in `summarize_domain`.  max_planned_domains: skip the forecast if it involves more domains than this.
    """
    domain, now = card.domain, card.report.at
    async with _open_task_group() as tasks:  # uses several connections
        weighing = tasks.create_task(report.list_top_pages(db, domain, top=MAX_WEIGHED, at=now, max_age=max_age))
        forecasting = tasks.create_task(
            compute_forecast(
                db, domain, at=now, settings=db.settings, sample_size=FORECAST_PAGES, max_domains=max_planned_domains
            )
        )
        grouping = tasks.create_task(_list_page_groups(db, card, max_age=max_age))
        comparing = tasks.create_task(report.read_largest_groups(db, domain, at=now, max_age=max_age))
        judging = tasks.create_task(judge_hours(db, domain, at=now, window=timedelta(hours=TRAFFIC_HOURS)))
    weighed = tuple(weighing.result())
    return DomainFacts(
        card=card,
        wait=await find_wait(db, domain, at=now),
        stale_pages=rank_stale_pages(weighed),
        weighed_pages=weighed,
        forecast=forecasting.result(),
        groups=grouping.result(),
        near_duplicates=tuple(comparing.result()),
        hours=tuple(judging.result()),
        trust=tuple(await list_trust_rows(db, domain)),
        lists=tuple(await report.read_url_lists(db, domain)),
    )


async def _list_page_groups(db: AppDatabase, card: DomainCard, *, max_age: timedelta) -> tuple[PageGroup, ...]:
    """Return the groups of failing, gone, moved and excluded pages, dead links and rendered pages."""
    counts, groups = card.report, []
    for title, ranking, count in (
        ("Failing", report.FAILING, None),
        ("Gone", PageCategory.GONE, counts.gone),
        ("Dead links", PageCategory.DEAD_LINK, counts.dead_links),
        ("Moved", PageCategory.MOVED, counts.moved),
        ("Excluded", PageCategory.EXCLUDED, counts.excluded),
        ("Rendered in a browser", report.RENDERED, None),
    ):
        if count == 0:
            continue
        pages = await report.list_top_pages(
            db, card.domain, top=MAX_GROUPED + 1, at=counts.at, ranking=ranking, max_age=max_age
        )
        total = len(pages) if count is None else count
        if total:
            groups.append(PageGroup(title, tuple(pages[:MAX_GROUPED]), None if total == MAX_GROUPED + 1 else total))
    return tuple(groups)


def rank_stale_pages(pages: Sequence[PageLine]) -> tuple[StalePage, ...]:
    """Return up to MAX_STALE_PAGES pages, ranked by importance times the probability that the copy is stale."""
    visited = [
        (page, page.importance, 1 - page.freshness)
        for page in pages
        if page.importance is not None and page.freshness is not None
    ]
    total = sum(importance for _, importance, _ in visited) or 1.0
    stale_pages = [StalePage(page, stale, importance * stale / total) for page, importance, stale in visited]
    return tuple(sorted(stale_pages, key=lambda each: -each.share)[:MAX_STALE_PAGES])


@asynccontextmanager
async def _open_task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a task group; if a task fails, raise the most relevant exception instead of an exception group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise find_failure(group) from group
