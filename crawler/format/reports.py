"""Formatting of the figures of plans, forecasts and audits, and Markdown tables."""

from collections.abc import Iterable, Sequence

from crawler.core.freshness.calibration import Agreement
from crawler.format.values import format_share
from crawler.planner.forecast import BudgetSource, ForecastStep
from crawler.planner.plan import PlannedDomain

# Where the budget of a forecast comes from.
BUDGET_SOURCES = {
    BudgetSource.BUDGET: "its own budget",
    BudgetSource.TARGET: "needed for its target",
    BudgetSource.OVERALL: "its share of the shared budget",
    BudgetSource.PRICE: "no budget is set: a page is visited when the value of a visit reaches the minimum",
}


def format_step(step: ForecastStep) -> str:
    """Return the label of a forecast step: today's budget or a multiple of it, such as x 2; empty for other budgets."""
    return "" if step.factor is None else "today" if step.factor == 1.0 else f"x {step.factor:g}"


def format_agreement(agreement: Agreement) -> tuple[str, str, str]:
    """Return the number of visits, the expected fresh share and the fresh share that was found."""
    return f"{agreement.visits:,}", format_share(agreement.expected_fresh), format_share(agreement.found_fresh)


def format_plan(planned: PlannedDomain) -> tuple[str, ...]:
    """Return importance, shadow price, budget (as set, or as a target needs), requests per day and freshness."""
    plan, budget = planned.plan, planned.domain.settings.budget_per_day
    if budget is None and plan.target_requests is not None:
        budget = round(plan.target_requests)
    price, shown_budget = f"{planned.shadow_price.per_request:.3g}", "-" if budget is None else f"{budget:,}"
    freshness = format_share(plan.expected.freshness if planned.fetched else None)
    return f"{planned.importance:.2f}", price, shown_budget, f"{plan.requests:,.1f}", freshness


def render_markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, with names in the first column and numbers in the others."""
    lines = [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
