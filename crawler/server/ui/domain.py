"""The page of one domain: how fresh, what to worry about, what more requests would buy, what failed, how true it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.app.settings import option_name
from crawler.app.status import domain_wait
from crawler.core.domain import Domain
from crawler.core.domain_settings import SETTINGS
from crawler.core.http import TrafficHour
from crawler.core.setting import Kind
from crawler.core.visit import CountedAs
from crawler.format.hours import format_opening
from crawler.format.lists import format_lists
from crawler.format.rules import format_rule
from crawler.format.settings import format_settings
from crawler.format.trust import format_trust
from crawler.format.values import format_share, format_span
from crawler.planner import BudgetSource, Forecast, ForecastStep, JudgedHour, forecast, judged_hours
from crawler.server.at_once import at_once
from crawler.server.ui.home import DomainCard
from crawler.server.ui.links import Addresses
from crawler.server.ui.plots import Dot, Line, Plot
from crawler.settings import settings
from crawler.store import learned, report
from crawler.store.database import Database
from crawler.store.report import KEPT_FOR, Alike, PageLine

MOST_WEIGHED = 300  # pages in the plot of what to worry about, the most important ones
FORECAST_PAGES = 2000  # of the domain, by chance: freshness to 0.8 points, in a tenth of the time and memory of a plan
WORRIES = 10  # of them in the table
HOURS = 48  # of traffic
HOUR = 3600.0  # seconds
LEAST_HIGH = 5.0  # per cent: chances below are nothing to worry about, however a plot could spread them
MOST_GROUPED = 20  # pages of a group: failing, gone and the like


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
    """What the page of one domain shows.

    waits: why it is not being crawled now, as the end of a sentence; empty if nothing holds it up.
    """

    card: DomainCard
    waits: str
    opening: str
    worries: tuple[Worry, ...]
    weighed: tuple[PageLine, ...]
    forecast: Forecast | None
    groups: tuple[PageGroup, ...]
    alike: tuple[Alike, ...]
    hours: tuple[JudgedHour, ...]
    standings: str
    lists: str
    settings: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]

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


async def domain_facts(
    db: Database, card: DomainCard, *, kept_for: timedelta = KEPT_FOR, most_planned: int | None = None
) -> DomainFacts:
    """All about the domain of a card, at the instant of its report.

    kept_for: as in report.domain_report.  most_planned: no forecast that is worked out with more domains than that.
    """
    domain, now = card.domain, card.report.at
    async with at_once() as tasks:  # several connections, since each waits for the database
        weighing = tasks.create_task(report.pages(db, domain, top=MOST_WEIGHED, at=now, kept_for=kept_for))
        forecasting = tasks.create_task(
            forecast(db, domain, at=now, settings=settings(), sample=FORECAST_PAGES, most_domains=most_planned)
        )
        grouping = tasks.create_task(_groups(db, domain, card, kept_for=kept_for))
        comparing = tasks.create_task(report.usual_alike(db, domain, at=now, kept_for=kept_for))
        judging = tasks.create_task(judged_hours(db, domain, at=now, last=timedelta(hours=HOURS)))
    weighed = tuple(weighing.result())
    return DomainFacts(
        card=card,
        waits=await domain_wait(db, domain, settings(), at=now),
        opening=format_opening(domain, at=now),
        worries=worries_of(weighed),
        weighed=weighed,
        forecast=forecasting.result(),
        groups=grouping.result(),
        alike=tuple(comparing.result()),
        hours=tuple(judging.result()),
        standings=format_trust(await learned.trust_rows(db, domain)),
        lists=format_lists(await report.lists_of(db, domain)),
        settings=tuple((name, value) for name, value in format_settings(domain.settings) if value),
        rules=tuple(map(format_rule, domain.settings.rules)),
    )


async def _groups(db: Database, domain: Domain, card: DomainCard, *, kept_for: timedelta) -> tuple[PageGroup, ...]:
    """The pages that fail, are gone, have moved or may not be fetched, and those that need a browser."""

    async def found(**which: Any) -> tuple[PageLine, ...]:
        return tuple(
            await report.pages(db, domain, top=MOST_GROUPED + 1, at=card.report.at, kept_for=kept_for, **which)
        )

    groups = [PageGroup("Failing", failing := await found(failing=True), len(failing))]
    for title, state, count in (
        ("Gone", CountedAs.GONE, card.report.gone),
        ("Dead links", CountedAs.DEAD_LINK, card.report.dead_links),
        ("Moved", CountedAs.MOVED, card.report.moved),
        ("May not be fetched", CountedAs.REFUSED, card.report.refused),
    ):
        groups += [PageGroup(title, await found(state=state), count)] if count else []
    groups.append(PageGroup("Rendered in a browser", rendered := await found(rendered=True), len(rendered)))
    return tuple(
        replace(group, pages=group.pages[:MOST_GROUPED], count=None if group.count == MOST_GROUPED + 1 else group.count)
        for group in groups
        if group.count
    )


def worries_of(pages: Sequence[PageLine]) -> tuple[Worry, ...]:
    """The pages by the importance that is probably out of date: importance times the chance that the copy is stale."""
    known = [page for page in pages if page.importance is not None and page.freshness is not None]
    whole = sum(page.importance or 0.0 for page in known) or 1.0
    found = [
        Worry(page, 1 - page.freshness, page.importance * (1 - page.freshness) / whole)
        for page in known
        if page.importance is not None and page.freshness is not None
    ]
    return tuple(sorted(found, key=lambda worry: -worry.share)[:WORRIES])


def worry_plot(facts: DomainFacts, links: Addresses) -> Plot:
    """Importance against the chance that the copy is out of date; what stands above and to the right matters."""
    dots = tuple(
        Dot(
            page.importance,
            100 * (1 - page.freshness),
            tells=f"{page.url}: importance {page.importance:.2f}, {format_share(1 - page.freshness)} likely stale",
            href=links.page(page.url),
        )
        for page in reversed(facts.weighed)
        if page.importance is not None and page.freshness is not None and page.importance > 0
    )
    return Plot(
        title="What to worry about",
        summary=f"{len(dots)} pages by importance and by the chance that the copy is out of date",
        x_label="importance; the mean page has 1",
        y_label="chance that the copy is stale, per cent",
        lines=(Line("pages", dots, style="dots", joined=False),),
        log_x=True,
        low=0.0,
        high=LEAST_HIGH if max((dot.y for dot in dots), default=0.0) < LEAST_HIGH else None,
    )


def budget_plot(found: Forecast) -> Plot:
    """Freshness over requests a day, with today's point."""
    dots = tuple(
        Dot(
            step.budget,
            100 * step.plan.expected.freshness,
            tells=f"{step.budget:,.0f} requests a day: {format_share(step.plan.expected.freshness)} fresh",
        )
        for step in found.steps
        if step.budget > 0
    )
    today = tuple(
        Dot(step.budget, 100 * step.plan.expected.freshness, tells="today")
        for step in found.steps
        if step.factor == 1.0
    )
    return Plot(
        title="What requests buy",
        summary=", ".join(dot.tells for dot in dots),
        x_label="requests a day",
        y_label="fresh, per cent",
        lines=(Line("by budget", dots), Line("today", today, style="today", joined=False)),
        log_x=True,
        low=max(0.0, 10.0 * int(min((dot.y for dot in dots), default=0.0) // 10)),
        high=100.0,
    )


def traffic_plot(hours: Sequence[TrafficHour], *, until: datetime) -> Plot:
    """Requests by the hour, with hours of many errors marked."""
    dots = tuple(
        Dot(hour.hour.timestamp(), hour.requests, tells=f"{hour.hour:%H:%M}: {hour.requests:,} requests")
        for hour in hours
    )
    errors = tuple(
        Dot(hour.hour.timestamp(), hour.errors, tells=f"{hour.hour:%H:%M}: {hour.errors:,} errors")
        for hour in hours
        if hour.errors
    )
    return Plot(
        title="Traffic",
        summary=f"{sum(hour.requests for hour in hours):,} requests in {HOURS} hours",
        x_label="time (UTC)",
        y_label="requests an hour",
        lines=(Line("requests", dots, bar=HOUR), Line("errors", errors, style="found", bar=HOUR)),
        low=0.0,
        times=True,
        x_range=(until.timestamp() - HOURS * HOUR, until.timestamp()),
    )


@dataclass(frozen=True, slots=True)
class OfferedSetting:
    """A setting in the form that takes any of them. typed: how its value is written."""

    name: str
    title: str
    typed: str
    help: str


TYPED_AS = {Kind.FLAG: "yes or no", Kind.TEXTS: "one a line"}
OFFERED_SETTINGS = tuple(
    OfferedSetting(
        name=each.name,
        title=f"{each.label} ({option_name(each)})" if each.label else option_name(each),
        typed=TYPED_AS.get(each.kind, each.option.partition(" ")[2].lower()),
        help=each.help,
    )
    for each in SETTINGS
)
SOURCES = {
    BudgetSource.BUDGET: "by its budget",
    BudgetSource.TARGET: "by its target",
    BudgetSource.OVERALL: "of what all domains together may make",
    BudgetSource.PRICE: "as its pages' changes are worth; it has no budget of its own",
}


def step_rows(found: Forecast) -> list[tuple[str, ForecastStep, str, str]]:
    """The steps of a forecast with their names, ages and longest waits."""
    return [
        (
            "" if step.factor is None else "today" if step.factor == 1.0 else f"x {step.factor:g}",
            step,
            format_span(timedelta(days=step.plan.expected.age_days)),
            format_span(timedelta(days=step.plan.longest_days)),
        )
        for step in found.steps
    ]
