"""Which price spends a budget: the shadow price of a request, by domain and over all of them.

`tariffs` solves the prices of all domains from a sample of their pages; `ledger` is the arithmetic of one day's
budget, and stands nowhere else. Uses freshness and what is below it.
"""

from crawler.core.budget.cost import BY_TIME, Cost, Costs, Price, RequestKind, is_head_cheaper, learnt
from crawler.core.budget.domain_prices import DomainPlan, has_moved, requests_at, solve_plans
from crawler.core.budget.expected import FACTORS, Expectation
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
from crawler.core.budget.page_arrays import NOBODY, SAMPLE, SAMPLE_PER_DOMAIN, PageArrays, page_arrays, sampled
from crawler.core.budget.sample import ASKED, SAYS_NOTHING, PageSample, refitted, sample_of, work_in
from crawler.core.budget.shadow_price import (
    FLOOR_SHARE,
    MOST_FLOOR_SHARE,
    Budget,
    Shares,
    Work,
    longest_gap,
    price_correction,
    shadow_price,
    shadow_prices,
)
from crawler.core.budget.target import AUDIT_SHARE, UNLIMITED, DomainLimits, budget_for, part_for

__all__ = [
    "ASKED",
    "AUDIT_SHARE",
    "BY_TIME",
    "FACTORS",
    "FLOOR_SHARE",
    "MOST_FLOOR_SHARE",
    "NOBODY",
    "NO_REFUND",
    "NO_SHARED_LIMIT",
    "SAMPLE",
    "SAMPLE_PER_DOMAIN",
    "SAYS_NOTHING",
    "UNLIMITED",
    "Budget",
    "Cost",
    "Costs",
    "DomainLimits",
    "DomainPlan",
    "Expectation",
    "Ledger",
    "PageArrays",
    "PageSample",
    "Price",
    "Refund",
    "RequestKind",
    "SharedBudget",
    "Shares",
    "Work",
    "budget_for",
    "debited",
    "floor_left",
    "grantable",
    "has_moved",
    "is_head_cheaper",
    "learnt",
    "longest_gap",
    "page_arrays",
    "part_for",
    "price_correction",
    "receivable",
    "refitted",
    "requests_at",
    "sample_of",
    "sampled",
    "settled",
    "shadow_price",
    "shadow_prices",
    "solve_plans",
    "today",
    "work_in",
]
