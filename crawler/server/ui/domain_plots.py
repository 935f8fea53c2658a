"""The plots about a domain: freshness, likely stale pages, freshness by budget, traffic, and the values of a page."""

from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.app.overview import TRAFFIC_HOURS, Forecast, FreshnessFacts, TrafficHour
from crawler.app.page_values import ValueSeries
from crawler.format.reasons import format_reading
from crawler.format.values import format_share
from crawler.server.ui.links import UiLinks
from crawler.server.ui.plots import Dot, Line, Plot

HOUR = 3600.0  # seconds
MIN_HIGH = 5.0  # percent; the axis of staleness reaches at least this value, so that small probabilities look small


def build_freshness_plot(facts: FreshnessFacts) -> Plot:
    """Plot freshness over time with the target; a dot at the end shows the freshness that recent audits found."""
    points = tuple(
        Dot(each.at.timestamp(), percent, label=f"{each.at.astimezone(UTC):%Y-%m-%d %H:%M}: {percent:.1f}% fresh")
        for each in facts.past
        if each.freshness is not None
        for percent in [100 * each.freshness]
    )
    lines = [Line("estimated freshness", points)]
    target = facts.report.target_freshness
    if target is not None and points:
        ends = (Dot(points[0].x, 100 * target), Dot(points[-1].x, 100 * target))
        lines.append(Line("target", ends, style="target"))
    audited = facts.calibration.audits.found_fresh
    if audited is not None and points:
        dot = Dot(points[-1].x, 100 * audited, label=f"audits found {100 * audited:.1f}% fresh")
        lines.append(Line("freshness found by audits", (dot,), style="found", joined=False))
    lowest = min((dot.y for line in lines for dot in line.dots), default=0.0)
    return Plot(
        title="Freshness",
        summary=f"from {points[0].y:.1f} to {points[-1].y:.1f} percent" if points else "no page has been fetched yet",
        x_label="time (UTC)",
        y_label="freshness (%)",
        lines=tuple(lines),
        low=max(0.0, 10.0 * int(min(lowest, 89.0) // 10)),
        high=100.0,
        has_times=True,
    )


def build_staleness_plot(facts: FreshnessFacts, links: UiLinks) -> Plot:
    """Plot the probability that a page is stale over its importance; the pages at the top right matter most."""
    dots = tuple(
        Dot(
            page.importance,
            100 * (1 - page.freshness),
            label=f"{page.url}: importance {page.importance:.2f}, staleness {format_share(1 - page.freshness)}",
            href=links.page(page.url),
        )
        for page in reversed(facts.weighed_pages)
        if page.importance is not None and page.freshness is not None and page.importance > 0
    )
    return Plot(
        title="Likely stale pages",
        summary=f"{len(dots)} pages by importance and probability of being stale",
        x_label="importance (mean page: 1)",
        y_label="probability that the copy is stale (%)",
        lines=(Line("pages", dots, style="dots", joined=False),),
        log_x=True,
        low=0.0,
        high=MIN_HIGH if max((dot.y for dot in dots), default=0.0) < MIN_HIGH else None,
    )


def build_budget_plot(forecast: Forecast) -> Plot:
    """Plot expected freshness over the budget, with today's budget marked."""
    points = [(step, step.budget, step.plan.expected.freshness) for step in forecast.steps]
    dots = tuple(
        Dot(budget, 100 * fresh, label=f"{budget:,.0f} requests per day: {format_share(fresh)} fresh")
        for _, budget, fresh in points
        if budget > 0
    )
    today = tuple(Dot(budget, 100 * fresh, label="today") for step, budget, fresh in points if step.factor == 1.0)
    return Plot(
        title="Freshness by budget",
        summary=", ".join(dot.label for dot in dots),
        x_label="requests per day",
        y_label="expected freshness (%)",
        lines=(Line("by budget", dots), Line("today", today, style="today", joined=False)),
        log_x=True,
        low=max(0.0, 10.0 * int(min((dot.y for dot in dots), default=0.0) // 10)),
        high=100.0,
    )


def build_traffic_plot(hours: Sequence[TrafficHour], *, until: datetime) -> Plot:
    """Plot requests and errors per hour."""

    def build_dot(at: datetime, count: int, what: str) -> Dot:
        return Dot(at.timestamp(), count, label=f"{at:%H:%M}: {count:,} {what}")

    dots = tuple(build_dot(each.hour, each.requests, "requests") for each in hours)
    errors = tuple(build_dot(each.hour, each.errors, "errors") for each in hours if each.errors)
    return Plot(
        title="Traffic",
        summary=f"{sum(hour.requests for hour in hours):,} requests in {TRAFFIC_HOURS} hours",
        x_label="time (UTC)",
        y_label="requests per hour",
        lines=(Line("requests", dots, bar=HOUR), Line("errors", errors, style="found", bar=HOUR)),
        low=0.0,
        has_times=True,
        x_range=(until.timestamp() - TRAFFIC_HOURS * HOUR, until.timestamp()),
    )


def build_value_plot(series: ValueSeries, *, until: datetime) -> Plot:
    """Plot a value over time: it is the same until the next reading, and the line ends where it has no number."""
    lines: list[list[Dot]] = [[]]
    for reading in series.readings:
        at, number = reading.at.timestamp(), reading.number
        if number is not None:
            words = format_reading(number, reading.unit, "")
            lines[-1].append(Dot(at, number, label=f"{reading.at.astimezone(UTC):%Y-%m-%d %H:%M}: {words}"))
        elif lines[-1]:
            lines[-1].append(Dot(at, lines[-1][-1].y))
            lines.append([])
    if lines[-1]:
        lines[-1].append(Dot(until.timestamp(), lines[-1][-1].y))
    last = series.last
    numbers = [dot.y for dots in lines for dot in dots]
    lowest, highest = min(numbers, default=0.0), max(numbers, default=0.0)
    return Plot(
        title=series.name,
        summary=f"last {format_reading(last.number, last.unit, last.finding)}",
        x_label="time (UTC)",
        y_label=f"{series.name} ({last.unit})" if last.unit else series.name,
        lines=tuple(Line(series.name, tuple(dots), stepped=True) for dots in lines if dots),
        low=max(lowest - (highest - lowest) / 2, 0.0) if lowest >= 0 and highest > lowest else None,
        has_times=True,
    )
