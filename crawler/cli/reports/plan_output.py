"""recrawl plan: prices for all domains, or what one of them may expect of more and of fewer requests."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import isfinite

from crawler.app import reports
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import pick, print_found, print_json, remark, say, show, show_facts
from crawler.cli.plot import Chart, Series, show_plots
from crawler.cli.session import DONE, PROBLEM, with_database
from crawler.format.reports import BUDGET_SOURCES, format_plan, format_step
from crawler.format.values import format_count, format_share, format_span, format_when
from crawler.json_lines import values_of

COLUMNS = ("importance", "pages", "price", "budget", "requests a day", "fresh", "age")
POLICIES = ("known pages looked at again by", "requests a day", "fresh", "age")
STEPS = ("", "budget", "price", "requests a day", "fresh", "age", "longest wait")


def plan(*, only: str | None, at: datetime | None, as_json: bool) -> None:
    planned = with_database(lambda db, _: reports.plan(db, only=only or None, at=at))
    rows = (dict(zip(("domain", *COLUMNS), _row(each), strict=True)) for each in planned)
    document = {"domains": [_document(each) for each in planned]}
    if print_found(document, rows, right=COLUMNS, empty=NO_DOMAIN, as_json=as_json):
        for each in planned:
            if each.plan.finding:
                remark(f"{each.domain.authority}: {each.plan.finding}")
        say("")
        say("By these prices pages are due from now on, as after each hourly plan; recrawl plan DOMAIN only tells")


def _document(planned: reports.Planned) -> dict[str, object]:
    tariff = planned.plan
    return {
        "domain": planned.domain.authority,
        "importance": planned.importance,
        "known": round(planned.known),
        "price_request": planned.price.per_request,
        "price_byte": planned.price.per_byte,
        "price_correction": planned.price_correction,
        "is_usual_price": tariff.price is None,
        "budget_per_day": planned.domain.settings.budget_per_day,
        "asked_per_day": tariff.asked,
        "requests_per_day": tariff.requests,
        "longest_days": tariff.longest_days,
        "freshness": tariff.expected.freshness if planned.known else None,
        "age_days": tariff.expected.age_days if planned.known else None,
        "finding": tariff.finding,
    }


def _row(planned: reports.Planned) -> tuple[str, ...]:
    importance, *others = format_plan(planned)
    return (
        planned.domain.authority,
        importance,
        f"{planned.known:,.0f}",
        *others,
        format_span(timedelta(days=planned.plan.expected.age_days)) if planned.known else "-",
    )


def plan_one(text: str, *, at: datetime | None, as_json: bool) -> int:
    domain, found = with_database(lambda db, _: reports.forecast_domain(db, text, at=at))
    name = domain.authority
    if found is None:
        if as_json:
            print_json({"domain": name, "known": 0, "steps": []})
        else:
            say(f"{name} has no pages yet that could become stale: recrawl crawl {name}")
        return PROBLEM
    if as_json:
        print_json(_forecast_document(found))
    else:
        _show(found)
    return DONE


def _forecast_document(found: reports.Forecast) -> dict[str, object]:
    return values_of(found) | {
        "domain": found.domain.authority,
        "known": round(found.known),
        "new": round(found.new),
        "price": found.price_in_force,
        "finding": found.now.finding,
        "has_budget": found.source is not reports.BudgetSource.PRICE,
        "cap": found.cap if isfinite(found.cap) else None,
        "overall": found.overall if isfinite(found.overall) else None,
        "points_for_tenth": found.points_for_tenth,
        "steps": [_step_document(step) for step in found.steps],
        "policies": [
            pick(each, "policy", "is_today")
            | {"requests_per_day": each.expected.requests}
            | pick(each.expected, "freshness", "age_days")
            for each in found.policies
        ],
    }


def _step_document(step: reports.ForecastStep) -> dict[str, object]:
    expected = step.plan.expected
    return {
        "budget_per_day": step.budget,
        "requests_per_day": step.plan.requests,
        "price_request": expected.price.per_request,
        "price_byte": expected.price.per_byte,
        "longest_days": step.plan.longest_days,
        **pick(step, "factor", "is_allowed"),
        **pick(expected, "freshness", "age_days"),
    }


def _show(found: reports.Forecast) -> None:
    new = f", and {format_count(round(found.new), 'page')} never fetched" if found.new else ""
    revisit = found.domain.settings.revisit
    show_facts(
        [
            ("Domain", found.domain.authority),
            ("Pages", f"{found.known:,.0f} known{new}"),
            ("Price", _shown_price(found)),
            ("Budget a day", f"{found.budget:,.0f} {_shown_source(found)}"),
            ("Hours", _shown_hours(found)),
            ("Rests", "nothing is sent now; this is what would hold otherwise" if found.rests else ""),
            ("Looked at again", "" if revisit == "price" else f"by policy: {revisit}"),
            ("Finding", found.now.finding),
        ]
    )
    remark("Fresh and age are averages over time at each budget, of known pages; recrawl report says how it is now.")
    say("")
    show(STEPS, [_step_row(step) for step in found.steps], right=STEPS[1:])
    say("")
    if found.points_for_tenth is not None:
        say(f"10 % more requests buys {found.points_for_tenth:.1f} points")
    fresh = {step.factor: step.plan.expected.freshness for step in found.steps}
    if {1.0, 2.0} <= fresh.keys():
        say(f"Twice as many would make it {format_share(fresh[2.0])} fresh, after {format_share(fresh[1.0])} today")
    if found.plain_freshness is not None and found.equal_freshness is not None:
        mix = found.domain.settings.importance_mix
        plain, equal = format_share(found.plain_freshness), format_share(found.equal_freshness)
        say(f"Importance mix {mix:g}: {plain} of the pages fresh, all alike; equal weights (mix 0) give {equal}")
    if any(step.budget > found.cap for step in found.steps):
        say(f"* more than politeness allows ({found.cap:,.0f} a day), which is what to expect then")
    elif not all(step.is_allowed for step in found.steps):
        say(f"* more than all domains together may make ({found.overall:,.0f} a day)")
    if found.policies:
        say("")
        show(POLICIES, [_policy_row(each) for each in found.policies], right=POLICIES[1:])
    show_plots([("plan", _chart(found))])


def _shown_hours(found: reports.Forecast) -> str:
    """The domain's hours, and how much of the week from now on they are. All that is said of a day is a mean day's."""
    hours = found.domain.hours
    if hours.is_always:
        return ""
    week = reports.week_from(hours, found.at)
    length = sum((span.length for day in week for span in day), timedelta(0))
    days = f"on {sum(map(bool, week))} of 7 days (UTC)"
    return (
        f"{found.domain.settings.hours}; open for {format_span(length)} of the week, {days}; figures are of a mean day"
    )


def _shown_price(found: reports.Forecast) -> str:
    """The price in force, its source, and today's. Nothing where no request is made: none would be worth it."""
    if not found.budget:
        return ""
    planned, today = _in_figures(found.price), _in_figures(found.now.expected.price)
    when = format_when(found.planned_at, now=found.at) if found.planned_at else ""
    return (
        f"{_in_figures(found.price_in_force)}, "
        + (f"as planned {when}" if when else "the usual one: it was never planned")
        + (f", times {found.price_correction:.3g} by what the day has taken" if found.price_correction != 1 else "")
        + (f"; by what is known since it would be {today}" if today != planned else "")
    )


def _in_figures(price: reports.Price) -> str:
    per_byte = f", {price.per_byte:.3g} a byte" if price.per_byte else ""
    return f"{price.per_request:.3g} importance x days a request{per_byte}"


def _shown_source(found: reports.Forecast) -> str:
    if found.source is reports.BudgetSource.PRICE:
        return "for what the price costs now; it has no budget of its own"
    is_sent = found.budget or found.source is reports.BudgetSource.TARGET
    return f"{BUDGET_SOURCES[found.source]}{'' if is_sent else ': nothing is sent'}"


def _step_row(step: reports.ForecastStep) -> tuple[str, ...]:
    outlook = step.plan.expected
    return (
        format_step(step),
        f"{step.budget:,.1f}{'' if step.is_allowed else ' *'}",
        f"{outlook.price.per_request:.3g}",
        f"{step.plan.requests:,.1f}",
        format_share(outlook.freshness),
        format_span(timedelta(days=outlook.age_days)),
        format_span(timedelta(days=step.plan.longest_days)),
    )


def _policy_row(found: reports.PolicyForecast) -> tuple[str, ...]:
    outlook = found.expected
    return (
        f"{found.policy}, in force" if found.is_today else found.policy,
        f"{outlook.requests:,.1f}",
        format_share(outlook.freshness),
        format_span(timedelta(days=outlook.age_days)),
    )


def _chart(found: reports.Forecast) -> Chart:
    """Freshness over requests, today's point first, since of two that meet the first one is seen."""

    def points(steps: Sequence[reports.ForecastStep]) -> tuple[tuple[float, float], ...]:
        return tuple((step.budget, 100 * step.plan.expected.freshness) for step in steps)

    today = [step for step in found.steps if step.factor == 1.0]
    label = "a tenth to ten times as many" if today else "what some would buy"
    series = (*([Series("today", points(today))] if today else []), Series(label, points(found.steps)))
    title = f"What requests buy: {found.domain.authority}"
    return Chart(title, "budget a day", "fresh, per cent", series, log_x=True)
