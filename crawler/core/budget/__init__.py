"""The shadow price of a request: the price at which a budget is spent, by domain and over all domains.

`solve_plans` solves the prices of all domains from a sample of their pages; `ledger` is the arithmetic of one day's
budget, `hours` that of calendar windows. Uses freshness and what is below it.
"""

from crawler.core.budget.cost import BY_TIME, Cost, Costs, Price, RequestKind, is_head_cheaper, learnt
from crawler.core.budget.domain_prices import DomainPlan, has_moved, requests_at, solve_plans
from crawler.core.budget.expected import FACTORS, Expectation
from crawler.core.budget.hours import (
    ALWAYS,
    Hours,
    closing,
    day_share,
    open_spans,
    opening,
    parse_hours,
    speed_at,
    week_from,
)
from crawler.core.budget.ledger import (
    NO_REFUND,
    NO_SHARED_LIMIT,
    Ledger,
    Refund,
    SharedBudget,
    debited,
    floor_left,
    grantable,
    receivable,
    settled,
    today,
)
from crawler.core.budget.page_arrays import (
    NOBODY,
    SAMPLE,
    SAMPLE_PER_DOMAIN,
    PageArrays,
    heard_columns,
    page_arrays,
    sampled,
)
from crawler.core.budget.policies_compared import PolicyForecast, compare_policies
from crawler.core.budget.refitted import Refitted, refitted
from crawler.core.budget.sample import NO_RULE, REQUEST_KINDS, PageSample, amounts_in, sample_of, work_in
from crawler.core.budget.shadow_price import (
    FLOOR_VISITS_SHARE,
    LONGEST_INTERVAL_SHARE,
    Budget,
    Shares,
    Work,
    longest_gap,
    price_correction,
    shadow_price,
    shadow_prices,
)
from crawler.core.budget.target import AUDIT_SHARE, UNLIMITED, DomainLimits, budget_for, requests_for

__all__ = [
    "ALWAYS",
    "AUDIT_SHARE",
    "BY_TIME",
    "FACTORS",
    "FLOOR_VISITS_SHARE",
    "LONGEST_INTERVAL_SHARE",
    "NOBODY",
    "NO_REFUND",
    "NO_RULE",
    "NO_SHARED_LIMIT",
    "REQUEST_KINDS",
    "SAMPLE",
    "SAMPLE_PER_DOMAIN",
    "UNLIMITED",
    "Budget",
    "Cost",
    "Costs",
    "DomainLimits",
    "DomainPlan",
    "Expectation",
    "Hours",
    "Ledger",
    "PageArrays",
    "PageSample",
    "PolicyForecast",
    "Price",
    "Refitted",
    "Refund",
    "RequestKind",
    "SharedBudget",
    "Shares",
    "Work",
    "amounts_in",
    "budget_for",
    "closing",
    "compare_policies",
    "day_share",
    "debited",
    "floor_left",
    "grantable",
    "has_moved",
    "heard_columns",
    "is_head_cheaper",
    "learnt",
    "longest_gap",
    "open_spans",
    "opening",
    "page_arrays",
    "parse_hours",
    "price_correction",
    "receivable",
    "refitted",
    "requests_at",
    "requests_for",
    "sample_of",
    "sampled",
    "settled",
    "shadow_price",
    "shadow_prices",
    "solve_plans",
    "speed_at",
    "today",
    "week_from",
    "work_in",
]
