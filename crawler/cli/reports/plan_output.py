"""recrawl plan: prices for all domains, or what one of them may expect of more and of fewer requests."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import isfinite

from crawler.app import reports
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import pick_fields, print_json, print_listing, remark, say, show_facts, show_table
from crawler.cli.plot import Chart, Series, show_plots
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.reports import BUDGET_SOURCES, format_plan, format_step
from crawler.format.values import format_count, format_share, format_span, format_when
from crawler.json_lines import get_field_values

COLUMNS = ("importance", "pages", "price", "budget", "requests a day", "fresh", "age")
POLICIES = ("known pages looked at again by", "requests a day", "fresh", "age")
STEPS = ("", "budget", "price", "requests a day", "fresh", "age", "longest wait")


def show_plans(*, only: str | None, at: datetime | None, as_json: bool) -> None:
    planned = run_on_database(lambda db, _: reports.plan_budgets(db, only=only or None, at=at))
    rows = (dict(zip(("domain", *COLUMNS), _format_plan_row(each), strict=True)) for each in planned)
    document = {"domains": [_describe_plan(each) for each in planned]}
    if print_listing(document, rows, right=COLUMNS, empty=NO_DOMAIN, as_json=as_json):
        for each in planned:
            if each.plan.finding:
                remark(f"{each.domain.authority}: {each.plan.finding}")
        say("")
        say("By these prices pages are due from now on, as after each hourly plan; recrawl plan DOMAIN only tells")


def _describe_plan(planned: reports.PlannedDomain) -> dict[str, object]:
    domain_plan = planned.plan
    return {
        "domain": planned.domain.authority,
        "importance": planned.importance,
        "fetched": round(planned.fetched),
        "price_request": planned.shadow_price.per_request,
        "price_byte": planned.shadow_price.per_byte,
        "price_correction": planned.price_correction,
        "is_usual_price": domain_plan.shadow_price is None,
        "budget_per_day": planned.domain.settings.budget_per_day,
        "target_requests_per_day": domain_plan.target_requests,
        "requests_per_day": domain_plan.requests,
        "longest_days": domain_plan.longest_days,
        "freshness": domain_plan.expected.freshness if planned.fetched else None,
        "age_days": domain_plan.expected.age_days if planned.fetched else None,
        "finding": domain_plan.finding,
    }


def _format_plan_row(planned: reports.PlannedDomain) -> tuple[str, ...]:
    importance, *others = format_plan(planned)
    return (
        planned.domain.authority,
        importance,
        f"{planned.fetched:,.0f}",
        *others,
        format_span(timedelta(days=planned.plan.expected.age_days)) if planned.fetched else "-",
    )


def show_forecast(text: str, *, at: datetime | None, as_json: bool) -> int:
    domain, forecast = run_on_database(lambda db, _: reports.forecast_domain(db, text, at=at))
    name = domain.authority
    if forecast is None:
        if as_json:
            print_json({"domain": name, "fetched": 0, "steps": []})
        else:
            say(f"{name} has no pages yet that could become stale: recrawl crawl {name}")
        return PROBLEM
    if as_json:
        print_json(_describe_forecast(forecast))
    else:
        _show_facts(forecast)
    return DONE


def _describe_forecast(forecast: reports.Forecast) -> dict[str, object]:
    return get_field_values(forecast) | {
        "domain": forecast.domain.authority,
        "fetched": round(forecast.fetched),
        "unfetched": round(forecast.unfetched),
        "price": forecast.shadow_price_in_force,
        "finding": forecast.current_plan.finding,
        "has_budget": forecast.source is not reports.BudgetSource.PRICE,
        "cap": forecast.cap if isfinite(forecast.cap) else None,
        "overall": forecast.overall if isfinite(forecast.overall) else None,
        "points_for_tenth": forecast.points_for_tenth,
        "steps": [_describe_step(step) for step in forecast.steps],
        "policies": [
            pick_fields(each, "policy", "is_today")
            | {"requests_per_day": each.expected.requests}
            | pick_fields(each.expected, "freshness", "age_days")
            for each in forecast.policies
        ],
    }


def _describe_step(step: reports.ForecastStep) -> dict[str, object]:
    expected = step.plan.expected
    return {
        "budget_per_day": step.budget,
        "requests_per_day": step.plan.requests,
        "price_request": expected.shadow_price.per_request,
        "price_byte": expected.shadow_price.per_byte,
        "longest_days": step.plan.longest_days,
        **pick_fields(step, "factor", "is_allowed"),
        **pick_fields(expected, "freshness", "age_days"),
    }


def _show_facts(forecast: reports.Forecast) -> None:
    unfetched = f", and {format_count(round(forecast.unfetched), 'page')} never fetched" if forecast.unfetched else ""
    revisit = forecast.domain.settings.revisit
    show_facts(
        [
            ("Domain", forecast.domain.authority),
            ("Pages", f"{forecast.fetched:,.0f} known{unfetched}"),
            ("Price", _format_shadow_price(forecast)),
            ("Budget a day", f"{forecast.budget:,.0f} {_format_budget_source(forecast)}"),
            ("Hours", _format_hours(forecast)),
            ("Rests", "nothing is sent now; this is what would hold otherwise" if forecast.is_suspended else ""),
            ("Looked at again", "" if revisit == "value" else f"by policy: {revisit}"),
            ("Finding", forecast.current_plan.finding),
        ]
    )
    remark("Fresh and age are averages over time at each budget, of known pages; recrawl report says how it is now.")
    say("")
    show_table(STEPS, [_format_step_row(step) for step in forecast.steps], right=STEPS[1:])
    say("")
    if forecast.points_for_tenth is not None:
        say(f"10 % more requests buys {forecast.points_for_tenth:.1f} points")
    fresh = {step.factor: step.plan.expected.freshness for step in forecast.steps}
    if {1.0, 2.0} <= fresh.keys():
        say(f"Twice as many would make it {format_share(fresh[2.0])} fresh, after {format_share(fresh[1.0])} today")
    if forecast.plain_freshness is not None and forecast.equal_freshness is not None:
        mix = forecast.domain.settings.importance_mix
        plain, equal = format_share(forecast.plain_freshness), format_share(forecast.equal_freshness)
        say(f"Importance mix {mix:g}: {plain} of the pages fresh, all alike; equal weights (mix 0) give {equal}")
    if any(step.budget > forecast.cap for step in forecast.steps):
        say(f"* more than politeness allows ({forecast.cap:,.0f} a day), which is what to expect then")
    elif not all(step.is_allowed for step in forecast.steps):
        say(f"* more than all domains together may make ({forecast.overall:,.0f} a day)")
    if forecast.policies:
        say("")
        show_table(POLICIES, [_format_policy_row(each) for each in forecast.policies], right=POLICIES[1:])
    show_plots([("plan", _make_chart(forecast))])


def _format_hours(forecast: reports.Forecast) -> str:
    """The domain's hours, and how much of the week from now on they are. All that is said of a day is a mean day's."""
    hours = forecast.domain.hours
    if hours.is_always:
        return ""
    week = reports.list_week_spans(hours, forecast.at)
    length = sum((span.length for day in week for span in day), timedelta(0))
    days = f"on {sum(map(bool, week))} of 7 days (UTC)"
    return (
        f"{forecast.domain.settings.hours}; open for {format_span(length)} of the week, {days}; "
        f"figures are of a mean day"
    )


def _format_shadow_price(forecast: reports.Forecast) -> str:
    """The price in force, its source, and today's. Nothing where no request is made: none would be worth it."""
    if not forecast.budget:
        return ""
    planned, today = (
        _format_price_figures(forecast.shadow_price),
        _format_price_figures(forecast.current_plan.expected.shadow_price),
    )
    when = format_when(forecast.planned_at, now=forecast.at) if forecast.planned_at else ""
    return (
        f"{_format_price_figures(forecast.shadow_price_in_force)}, "
        + (f"as planned {when}" if when else "the usual one: it was never planned")
        + (
            f", times {forecast.price_correction:.3g} by what the day has taken"
            if forecast.price_correction != 1
            else ""
        )
        + (f"; by what is known since it would be {today}" if today != planned else "")
    )


def _format_price_figures(shadow_price: reports.ShadowPrice) -> str:
    per_byte = f", {shadow_price.per_byte:.3g} a byte" if shadow_price.per_byte else ""
    return f"{shadow_price.per_request:.3g} importance x days a request{per_byte}"


def _format_budget_source(forecast: reports.Forecast) -> str:
    if forecast.source is reports.BudgetSource.PRICE:
        return "for what the price costs now; it has no budget of its own"
    is_sent = forecast.budget or forecast.source is reports.BudgetSource.TARGET
    return f"{BUDGET_SOURCES[forecast.source]}{'' if is_sent else ': nothing is sent'}"


def _format_step_row(step: reports.ForecastStep) -> tuple[str, ...]:
    expected = step.plan.expected
    return (
        format_step(step),
        f"{step.budget:,.1f}{'' if step.is_allowed else ' *'}",
        f"{expected.shadow_price.per_request:.3g}",
        f"{step.plan.requests:,.1f}",
        format_share(expected.freshness),
        format_span(timedelta(days=expected.age_days)),
        format_span(timedelta(days=step.plan.longest_days)),
    )


def _format_policy_row(policy_forecast: reports.PolicyForecast) -> tuple[str, ...]:
    expected = policy_forecast.expected
    return (
        f"{policy_forecast.policy}, in force" if policy_forecast.is_today else policy_forecast.policy,
        f"{expected.requests:,.1f}",
        format_share(expected.freshness),
        format_span(timedelta(days=expected.age_days)),
    )


def _make_chart(forecast: reports.Forecast) -> Chart:
    """Freshness over requests, today's point first, since of two that meet the first one is seen."""

    def list_points(steps: Sequence[reports.ForecastStep]) -> tuple[tuple[float, float], ...]:
        return tuple((step.budget, 100 * step.plan.expected.freshness) for step in steps)

    today = [step for step in forecast.steps if step.factor == 1.0]
    label = "a tenth to ten times as many" if today else "what some would buy"
    series = (*([Series("today", list_points(today))] if today else []), Series(label, list_points(forecast.steps)))
    title = f"What requests buy: {forecast.domain.authority}"
    return Chart(title, "budget a day", "fresh, per cent", series, is_log_x=True)
