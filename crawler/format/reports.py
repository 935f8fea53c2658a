"""Figures of reports, plans and audits as people read them, and tables in Markdown."""

from collections.abc import Iterable, Sequence

from crawler.core.freshness.calibration import Agreement
from crawler.format.values import format_share
from crawler.planner.forecast import BudgetSource, ForecastStep
from crawler.planner.plan import PlannedDomain

# Where the budget of a forecast comes from.
BUDGET_SOURCES = {
    BudgetSource.BUDGET: "by its budget",
    BudgetSource.TARGET: "by its target",
    BudgetSource.OVERALL: "of what all domains together may make",
    BudgetSource.PRICE: "as its pages' changes are worth; it has no budget of its own",
}


def format_step(step: ForecastStep) -> str:
    """Return the name of a step of a forecast: how many times today's budget it is, if it is any."""
    return "" if step.factor is None else "today" if step.factor == 1.0 else f"x {step.factor:g}"


def format_agreement(agreement: Agreement) -> tuple[str, str, str]:
    """Return how many looks there were, what was expected of them, and what was found."""
    return f"{agreement.visits:,}", format_share(agreement.expected_fresh), format_share(agreement.found_fresh)


def format_plan(planned: PlannedDomain) -> tuple[str, ...]:
    """Return importance, price, budget, requests a day and freshness; the budget as set, or what a target takes."""
    budget = planned.domain.settings.budget_per_day
    budget = (
        budget if budget is not None or planned.plan.target_requests is None else round(planned.plan.target_requests)
    )
    return (
        f"{planned.importance:.2f}",
        f"{planned.shadow_price.per_request:.3g}",
        "-" if budget is None else f"{budget:,}",
        f"{planned.plan.requests:,.1f}",
        format_share(planned.plan.expected.freshness if planned.fetched else None),
    )


def render_markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, the first column of which holds names and the others numbers."""
    lines = [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
