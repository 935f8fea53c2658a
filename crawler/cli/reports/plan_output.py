"""Output of recrawl plan: the plans of all domains, or the forecast of one domain at several budgets."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import isfinite

from crawler.app import reports
from crawler.cli.options import NO_DOMAIN
from crawler.cli.output import print_json, print_listing, remark, say, show_facts, show_table
from crawler.cli.plot import Chart, Series, show_plots
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.reports import BUDGET_SOURCES, format_plan, format_step
from crawler.format.values import format_share, format_span, format_when
from crawler.json_lines import get_field_values, pick_fields

COLUMNS = ("importance", "pages", "min value", "budget", "requests/day", "fresh", "age")
POLICY_COLUMNS = ("revisit policy", "requests/day", "fresh", "age")
STEP_COLUMNS = ("", "budget", "min value", "requests/day", "fresh", "age", "longest interval")


def show_plans(*, only: str | None, at: datetime | None, as_json: bool) -> None:
    planned = run_on_database(lambda db, _: reports.plan_budgets(db, only=only or None, at=at))
    rows = (dict(zip(("domain", *COLUMNS), _format_plan_row(each), strict=True)) for each in planned)
    document = {"domains": [_describe_plan(each) for each in planned]}
    if print_listing(document, rows, right=COLUMNS, empty=NO_DOMAIN, as_json=as_json):
        for each in planned:
            if each.plan.finding:
                remark(f"{each.domain.authority}: {each.plan.finding}")
        say("")
        say("The due times now follow these minimum values of a visit. The local stack plans every hour.")


def _describe_plan(planned: reports.PlannedDomain) -> dict[str, object]:
    domain_plan = planned.plan
    return {
        "domain": planned.domain.authority,
        "importance": planned.importance,
        "fetched": round(planned.fetched),
        "shadow_price_per_request": planned.shadow_price.per_request,
        "shadow_price_per_byte": planned.shadow_price.per_byte,
        "shadow_price_correction": planned.price_correction,
        "is_default_shadow_price": domain_plan.shadow_price is None,
        "budget_per_day": planned.domain.settings.budget_per_day,
        "target_requests_per_day": domain_plan.target_requests,
        "requests_per_day": domain_plan.requests,
        "longest_interval_days": domain_plan.longest_days,
        "freshness": domain_plan.expected.freshness if planned.fetched else None,
        "age_days": domain_plan.expected.age_days if planned.fetched else None,
        "finding": domain_plan.finding,
    }


def _format_plan_row(planned: reports.PlannedDomain) -> tuple[str, ...]:
    importance, *others = format_plan(planned)
    age = format_span(timedelta(days=planned.plan.expected.age_days)) if planned.fetched else "-"
    return (planned.domain.authority, importance, f"{planned.fetched:,.0f}", *others, age)


def show_forecast(text: str, *, at: datetime | None, as_json: bool) -> int:
    domain, forecast = run_on_database(lambda db, _: reports.forecast_domain(db, text, at=at))
    name = domain.authority
    if forecast is None:
        if as_json:
            print_json({"domain": name, "fetched": 0, "steps": []})
        else:
            say(f"{name} has no fetched pages yet: recrawl crawl {name}")
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
        "shadow_price_in_force": forecast.shadow_price_in_force,
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
        "shadow_price_per_request": expected.shadow_price.per_request,
        "shadow_price_per_byte": expected.shadow_price.per_byte,
        "longest_interval_days": step.plan.longest_days,
        **pick_fields(step, "factor", "is_allowed"),
        **pick_fields(expected, "freshness", "age_days"),
    }


def _show_facts(forecast: reports.Forecast) -> None:
    unfetched = f", {forecast.unfetched:,.0f} unfetched" if forecast.unfetched else ""
    revisit = forecast.domain.settings.revisit
    show_facts(
        [
            ("Domain", forecast.domain.authority),
            ("Pages", f"{forecast.fetched:,.0f} fetched{unfetched}"),
            ("Min value of a visit", _format_shadow_price(forecast)),
            ("Budget per day", f"{forecast.budget:,.0f} {_format_budget_source(forecast)}"),
            ("Crawl hours", _format_hours(forecast)),
            ("Suspended", "no requests are sent now; the forecast ignores this" if forecast.is_suspended else ""),
            ("Revisit policy", "" if revisit == "value" else revisit),
            ("Finding", forecast.current_plan.finding),
        ]
    )
    remark("Fresh and age are long-term averages of fetched pages at each budget; recrawl report shows the present.")
    say("")
    show_table(STEP_COLUMNS, map(_format_step_row, forecast.steps), right=STEP_COLUMNS[1:])
    say("")
    if forecast.points_for_tenth is not None:
        say(f"10% more requests would raise freshness by {forecast.points_for_tenth:.1f} percentage points")
    fresh = {step.factor: step.plan.expected.freshness for step in forecast.steps}
    if {1.0, 2.0} <= fresh.keys():
        say(f"Twice the budget would give a freshness of {format_share(fresh[2.0])}; today {format_share(fresh[1.0])}")
    if forecast.plain_freshness is not None and forecast.equal_freshness is not None:
        mix = forecast.domain.settings.importance_mix
        plain, equal = format_share(forecast.plain_freshness), format_share(forecast.equal_freshness)
        say(f"With --importance-mix {mix:g}, {plain} of the pages are fresh; with 0 (equal weights): {equal}")
    if any(step.budget > forecast.cap for step in forecast.steps):
        say(f"* Politeness limits requests to {forecast.cap:,.0f} per day; the figures are for that limit")
    elif not all(step.is_allowed for step in forecast.steps):
        say(f"* Exceeds the shared budget of all domains ({forecast.overall:,.0f} per day)")
    if forecast.policies:
        say("")
        show_table(POLICY_COLUMNS, [_format_policy_row(each) for each in forecast.policies], right=POLICY_COLUMNS[1:])
    show_plots([("plan", _make_chart(forecast))])


def _format_hours(forecast: reports.Forecast) -> str:
    """Describe the crawl hours, and how much of the next week they are open. Empty if they are always open."""
    hours = forecast.domain.hours
    if hours.is_always:
        return ""
    week = reports.list_week_spans(hours, forecast.at)
    length = sum((span.length for day in week for span in day), timedelta(0))
    days = f"on {sum(map(bool, week))} of 7 days (UTC)"
    open_hours = f"{forecast.domain.settings.hours}; open for {format_span(length)} of the week"
    return f"{open_hours}, {days}; figures are averages per day"


def _format_shadow_price(forecast: reports.Forecast) -> str:
    """Describe the current minimum value of a visit, its source, and that of a new plan. Empty for a budget of 0."""
    if not forecast.budget:
        return ""
    planned = _format_price_figures(forecast.shadow_price)
    replanned = _format_price_figures(forecast.current_plan.expected.shadow_price)
    when = "the default: it was never planned"
    if forecast.planned_at:
        when = f"planned {format_when(forecast.planned_at, now=forecast.at)}"
    if forecast.price_correction != 1:
        when += f", corrected by a factor of {forecast.price_correction:.3g} for today's requests"
    new = f"; a new plan would set {replanned}" if replanned != planned else ""
    return f"{_format_price_figures(forecast.shadow_price_in_force)}, {when}{new}"


def _format_price_figures(shadow_price: reports.ShadowPrice) -> str:
    per_byte = f", {shadow_price.per_byte:.3g} per byte" if shadow_price.per_byte else ""
    return f"{shadow_price.per_request:.3g} importance x days per request{per_byte}"


def _format_budget_source(forecast: reports.Forecast) -> str:
    if forecast.source is reports.BudgetSource.PRICE:
        return "(expected requests at this minimum value; no budget is set)"
    is_sent = forecast.budget or forecast.source is reports.BudgetSource.TARGET
    return f"({BUDGET_SOURCES[forecast.source]}{'' if is_sent else '; no requests are sent'})"


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
        f"{policy_forecast.policy} (current)" if policy_forecast.is_today else policy_forecast.policy,
        f"{expected.requests:,.1f}",
        format_share(expected.freshness),
        format_span(timedelta(days=expected.age_days)),
    )


def _make_chart(forecast: reports.Forecast) -> Chart:
    """Plot freshness over the budget. Today's point comes first, because the first of overlapping points is visible."""

    def list_points(steps: Sequence[reports.ForecastStep]) -> tuple[tuple[float, float], ...]:
        return tuple((step.budget, 100 * step.plan.expected.freshness) for step in steps)

    today = [step for step in forecast.steps if step.factor == 1.0]
    label = "0.1 to 10 times today's budget" if today else "other budgets"
    series = (*([Series("today", list_points(today))] if today else []), Series(label, list_points(forecast.steps)))
    title = f"Freshness by budget: {forecast.domain.authority}"
    return Chart(title, "budget per day", "fresh, percent", series, is_log_x=True)
