"""What the pages say and draw of a domain: how fresh it is, what to worry about, what more requests would buy."""

from collections.abc import Sequence
from datetime import datetime

from crawler.app.overview import TRAFFIC_HOURS, DomainCard, DomainFacts, Forecast, TrafficHour
from crawler.app.settings import SETTINGS, SettingKind, get_option_name
from crawler.app.status import format_wait
from crawler.format.domain_settings import format_opening, format_rule, format_settings
from crawler.format.lists import format_lists
from crawler.format.trust import format_trust
from crawler.format.values import format_share
from crawler.server.ui.links import UiLinks
from crawler.server.ui.plots import Dot, Line, Plot

HOUR = 3600.0  # seconds
MIN_HIGH = 5.0  # per cent: chances below are nothing to worry about, however a plot could spread them


def describe_domain(facts: DomainFacts) -> dict[str, object]:
    """Return what the page says of a domain, its settings, rules, hours, lists and validators."""
    domain = facts.domain
    return {
        "waits": format_wait(facts.wait, domain, now=facts.at),
        "opening": format_opening(domain, at=facts.at),
        "standings": format_trust(facts.trust),
        "lists": format_lists(facts.lists),
        "settings": [(name, value) for name, value in format_settings(domain.settings) if value],
        "rules": [(rule.pattern, format_rule(rule)) for rule in domain.settings.rules],
    }


def build_freshness_plot(card: DomainCard) -> Plot:
    """Freshness by importance over time, the target, and what audits of the window found, at its end."""
    points = tuple(
        Dot(each.at.timestamp(), percent, tells=f"{each.at.astimezone():%Y-%m-%d %H:%M}: {percent:.1f} % fresh")
        for each in card.past
        if each.freshness is not None
        for percent in [100 * each.freshness]
    )
    lines = [Line("fresh, by importance", points)]
    target = card.report.target_freshness
    if target is not None and points:
        ends = (Dot(points[0].x, 100 * target), Dot(points[-1].x, 100 * target))
        lines.append(Line("target", ends, style="target"))
    audited = card.calibration.audits.found_fresh
    if audited is not None and points:
        dot = Dot(points[-1].x, 100 * audited, tells=f"audits found {100 * audited:.1f} % fresh")
        lines.append(Line("as audits found", (dot,), style="found", joined=False))
    lowest = min((dot.y for line in lines for dot in line.dots), default=0.0)
    return Plot(
        title="Freshness",
        summary=f"from {points[0].y:.1f} to {points[-1].y:.1f} per cent" if points else "no page has been read yet",
        x_label="time (UTC)",
        y_label="fresh, per cent",
        lines=tuple(lines),
        low=max(0.0, 10.0 * int(min(lowest, 89.0) // 10)),
        high=100.0,
        has_times=True,
    )


def build_staleness_plot(facts: DomainFacts, links: UiLinks) -> Plot:
    """Importance against the chance that the copy is out of date; what stands above and to the right matters."""
    dots = tuple(
        Dot(
            page.importance,
            100 * (1 - page.freshness),
            tells=f"{page.url}: importance {page.importance:.2f}, {format_share(1 - page.freshness)} likely stale",
            href=links.page(page.url),
        )
        for page in reversed(facts.weighed_pages)
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
        high=MIN_HIGH if max((dot.y for dot in dots), default=0.0) < MIN_HIGH else None,
    )


def build_budget_plot(forecast: Forecast) -> Plot:
    """Freshness over requests a day, with today's point."""
    points = [(step, step.budget, step.plan.expected.freshness) for step in forecast.steps]
    dots = tuple(
        Dot(budget, 100 * fresh, tells=f"{budget:,.0f} requests a day: {format_share(fresh)} fresh")
        for _, budget, fresh in points
        if budget > 0
    )
    today = tuple(Dot(budget, 100 * fresh, tells="today") for step, budget, fresh in points if step.factor == 1.0)
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


def build_traffic_plot(hours: Sequence[TrafficHour], *, until: datetime) -> Plot:
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
        summary=f"{sum(hour.requests for hour in hours):,} requests in {TRAFFIC_HOURS} hours",
        x_label="time (UTC)",
        y_label="requests an hour",
        lines=(Line("requests", dots, bar=HOUR), Line("errors", errors, style="found", bar=HOUR)),
        low=0.0,
        has_times=True,
        x_range=(until.timestamp() - TRAFFIC_HOURS * HOUR, until.timestamp()),
    )


VALUE_HINTS = {SettingKind.FLAG: "yes or no", SettingKind.TEXTS: "one a line"}
OFFERED_SETTINGS = tuple(  # in the form that takes any of them: each with its title, and how its value is written
    (
        each,
        f"{each.label} ({get_option_name(each)})" if each.label else get_option_name(each),
        VALUE_HINTS.get(each.kind, each.option.partition(" ")[2].lower()),
    )
    for each in SETTINGS
)
