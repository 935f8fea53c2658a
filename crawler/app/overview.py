"""Data for the web UI: the list of domains, and the state, freshness, traffic and groups of pages of one domain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.app.database import AppDatabase
from crawler.app.reports import read_calibration
from crawler.app.status import Wait, find_wait
from crawler.core.domain import Domain
from crawler.core.http.traffic import TrafficHour
from crawler.core.visit.state import PageCategory
from crawler.errors import BadInput, find_failure
from crawler.planner.forecast import Forecast, ForecastStep, compute_forecast
from crawler.planner.traffic import JudgedHour, judge_hours
from crawler.store import domains, report, subscriptions
from crawler.store.learned.credibility import TrustRow, list_trust_rows
from crawler.store.plan import Calibration
from crawler.store.report import ANY_AGE, MAX_AGE, DomainReport, ListReport, NearDuplicateGroup, PageLine, PastFreshness
from crawler.store.report.domain_list import DomainOrder, DomainQuery, DomainRow, list_domain_rows
from crawler.store.subscriptions import Subscription

WINDOW = timedelta(days=30)  # of the counts, as in `recrawl report`
PAST_INSTANTS = 30  # points of the freshness history
PAST_PAGES = 500  # sampled for the freshness history; half of them are the most important ones
UNDELIVERED_AFTER = timedelta(hours=1)  # a delivery is overdue after this; deliveries run every few minutes
MAX_WEIGHED = 300  # the most important pages: the plot shows them, and the table ranks them by staleness
FORECAST_PAGES = 2000  # a random sample: freshness is off by 0.8 percentage points, in a tenth of a plan's time
MAX_STALE_PAGES = 10  # rows of the table of likely stale pages
TRAFFIC_HOURS = 48
MAX_GROUPED = 20  # pages per group, such as failing or gone pages

HasFigures = Callable[[Domain], Awaitable[bool]]  # whether a large domain was counted; queues a count that is due


@dataclass(frozen=True, slots=True)
class DomainList:
    """A part of the list of domains. count: the number of domains in all parts, after the filter by name."""

    at: datetime
    query: DomainQuery
    rows: tuple[DomainRow, ...]
    count: int
    max_count: int

    @property
    def previous(self) -> int | None:
        """Return the number of domains before the previous part; None on the first part."""
        return max(self.query.skipped - self.max_count, 0) if self.query.skipped else None

    @property
    def next(self) -> int | None:
        """Return the number of domains before the next part; None on the last part."""
        end = self.query.skipped + len(self.rows)
        return end if end < self.count else None


async def list_domains(
    db: AppDatabase, query: DomainQuery, *, max_count: int, at: datetime, has_figures: HasFigures | None = None
) -> DomainList:
    """Return a part of the list of domains. has_figures: is called for each large domain on it; None to skip that."""
    rows, count = await list_domain_rows(db, query, max_count=max_count, at=at)
    for row in rows if has_figures else ():
        if row.is_large and has_figures and (domain := await domains.find_domain(db, row.domain)) is not None:
            await has_figures(domain)
    return DomainList(at, query, tuple(rows), count, max_count)


async def list_undelivered(db: AppDatabase, *, at: datetime) -> list[Subscription]:
    """Return the subscriptions with failed, overdue or dead messages, or of a later version of recrawl."""
    return [each for each in await subscriptions.list_subscriptions(db) if _is_failing(each, at=at)]


def _is_failing(subscription: Subscription, *, at: datetime) -> bool:
    since = subscription.get_overdue_since(at=at)
    is_overdue = since is not None and at - since > UNDELIVERED_AFTER
    return bool(subscription.unknown or subscription.failures or subscription.dead or is_overdue)


@dataclass(frozen=True, slots=True)
class DomainHead:
    """What each part of the page of a domain shows. wait: the result of `find_wait`."""

    at: datetime
    domain: Domain
    row: DomainRow
    wait: Wait | None


async def read_domain_head(db: AppDatabase, domain: Domain, *, at: datetime) -> DomainHead:
    """Return the state of a domain in short. Raises BadInput if it was removed meanwhile."""
    rows, _ = await list_domain_rows(db, DomainQuery(only=[domain.id]), max_count=1, at=at)
    if not rows:
        raise BadInput(f"{domain.authority} is no longer registered")
    return DomainHead(at, domain, rows[0], await find_wait(db, domain, at=at))


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
class FreshnessFacts:
    """The freshness of one domain: its history, audits, likely stale pages, and a forecast for other budgets.

    past: the history, which ends with the freshness of the report.  weighed_pages: its MAX_WEIGHED most important
    pages.
    """

    report: DomainReport
    calibration: Calibration
    past: tuple[PastFreshness, ...]
    weighed_pages: tuple[PageLine, ...]
    forecast: Forecast | None

    @property
    def stale_pages(self) -> tuple[StalePage, ...]:
        """Return up to MAX_STALE_PAGES pages, ranked by importance times the probability that the copy is stale."""
        return rank_stale_pages(self.weighed_pages)

    @property
    def doubled(self) -> ForecastStep | None:
        """Return the forecast for twice the budget."""
        steps = self.forecast.steps if self.forecast else ()
        return next((step for step in steps if step.factor == 2.0), None)


async def examine_freshness(
    db: AppDatabase,
    domain: Domain,
    *,
    at: datetime,
    span: timedelta = WINDOW,
    window: timedelta = WINDOW,
    max_age: timedelta = MAX_AGE,
    max_planned_domains: int | None = None,
) -> FreshnessFacts | None:
    """Return the freshness of a domain; None if it was removed meanwhile.

    span: the length of the history.  window: the period of the report and the audits.
    max_age: the maximum age of the stored figures of a large domain.
    max_planned_domains: skip the forecast if it involves more domains than this.
    """
    figures = await report.read_domain_report(db, domain, at=at, window=window, max_age=max_age)
    if figures is None:
        return None
    now = figures.at
    async with _open_task_group() as tasks:  # uses several connections
        remembering = tasks.create_task(_read_past(db, domain, figures, span))
        weighing = tasks.create_task(report.list_top_pages(db, domain, top=MAX_WEIGHED, at=now, max_age=max_age))
        forecasting = tasks.create_task(
            compute_forecast(
                db, domain, at=now, settings=db.settings, sample_size=FORECAST_PAGES, max_domains=max_planned_domains
            )
        )
    calibration = await read_calibration(db, domain, figures)
    past, weighed = tuple(remembering.result()), tuple(weighing.result())
    return FreshnessFacts(figures, calibration, past, weighed, forecasting.result())


async def _read_past(db: AppDatabase, domain: Domain, figures: DomainReport, span: timedelta) -> list[PastFreshness]:
    """Return the freshness over the span before a report, or since registration if that is shorter, and in it."""
    span = min(span, max(figures.at - domain.registered_at, timedelta(0)))
    instants = [figures.at - span + span * n / PAST_INSTANTS for n in range(PAST_INSTANTS)]
    past = await report.read_freshness_history(db, domain, instants=instants, sample_size=PAST_PAGES)
    if figures.freshness is not None and figures.freshness_plain is not None:
        past.append(PastFreshness(figures.at, figures.fetched, figures.freshness, figures.freshness_plain))
    return past


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


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """The requests to one domain and their costs.

    trust: how reliable its validators are.  lists: its sitemaps and feeds.
    """

    report: DomainReport
    hours: tuple[JudgedHour, ...]
    trust: tuple[TrustRow, ...]
    lists: tuple[ListReport, ...]

    @property
    def saved_share(self) -> float | None:
        """Return the share of bytes that were not transferred, because of validators and other savings."""
        total_bytes = self.report.received_bytes + self.report.saved_bytes
        return self.report.saved_bytes / total_bytes if total_bytes else None


async def examine_traffic(
    db: AppDatabase, domain: Domain, *, at: datetime, window: timedelta = WINDOW, max_age: timedelta = MAX_AGE
) -> TrafficFacts | None:
    """Return the requests to a domain and their costs; None if it was removed.

    window: the period of the costs.  max_age: as in `examine_freshness`.
    """
    figures = await report.read_domain_report(db, domain, at=at, window=window, max_age=max_age)
    if figures is None:
        return None
    hours = await judge_hours(db, domain, at=figures.at, window=timedelta(hours=TRAFFIC_HOURS))
    trust = await list_trust_rows(db, domain)
    return TrafficFacts(figures, tuple(hours), tuple(trust), tuple(await report.read_url_lists(db, domain)))


async def list_near_duplicates(
    db: AppDatabase, domain: Domain, *, at: datetime, max_age: timedelta = MAX_AGE
) -> list[NearDuplicateGroup]:
    """Return the largest groups of near duplicates of a domain. max_age: as in `examine_freshness`."""
    return await report.read_largest_groups(db, domain, at=at, max_age=max_age)


@dataclass(frozen=True, slots=True)
class PageGroup:
    """A titled group of pages, most important first. count: the size of the group; None if unknown."""

    title: str
    pages: tuple[PageLine, ...]
    count: int | None


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """All data of one domain, for its page as a file."""

    head: DomainHead
    freshness: FreshnessFacts
    traffic: TrafficFacts
    groups: tuple[PageGroup, ...]
    near_duplicates: tuple[NearDuplicateGroup, ...]


async def examine_domain(
    db: AppDatabase, domain: Domain, *, at: datetime, window: timedelta = WINDOW
) -> DomainFacts | None:
    """Return all data of a domain; None if it was removed. window: the period of history, audits and costs."""
    freshness = await examine_freshness(db, domain, at=at, span=window, window=window)
    traffic = await examine_traffic(db, domain, at=at, window=window)
    if freshness is None or traffic is None:
        return None
    groups = await _list_page_groups(db, domain, freshness.report)
    near_duplicates = tuple(await list_near_duplicates(db, domain, at=at))
    head = await read_domain_head(db, domain, at=at)
    return DomainFacts(replace(head, at=freshness.report.at), freshness, traffic, groups, near_duplicates)


async def _list_page_groups(db: AppDatabase, domain: Domain, counts: DomainReport) -> tuple[PageGroup, ...]:
    """Return the groups of failing, gone, moved and excluded pages, dead links and rendered pages."""
    groups = []
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
        pages = await report.list_top_pages(db, domain, top=MAX_GROUPED + 1, at=counts.at, ranking=ranking)
        total = len(pages) if count is None else count
        if total:
            groups.append(PageGroup(title, tuple(pages[:MAX_GROUPED]), None if total == MAX_GROUPED + 1 else total))
    return tuple(groups)


@asynccontextmanager
async def _open_task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a task group; if a task fails, raise the most relevant exception instead of an exception group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise find_failure(group) from group
