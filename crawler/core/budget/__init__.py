"""Which price spends a budget: the shadow price of a request, by domain and over all of them.

`tariffs` solves the prices of all domains from a sample of their pages; `ledger` is the arithmetic of one day's
budget, and stands nowhere else. Uses freshness and what is below it.
"""

from crawler.core.budget.cost import BY_TIME, Cost, Costs, Kind, Price, is_head_cheaper, learnt
from crawler.core.budget.domain_prices import Tariff, has_moved, requests_at, tariffs
from crawler.core.budget.expected import FACTORS, Outlook
from crawler.core.budget.ledger import (
    NO_SHARED_LIMIT,
    Ledger,
    SharedBudget,
    debited,
    floor_left,
    grantable,
    receivable,
    today,
)
from crawler.core.budget.page_arrays import NOBODY, SAMPLE, SAMPLE_PER_DOMAIN, Pages, pages_of, sampled
from crawler.core.budget.sample import ASKED, SAYS_NOTHING, Census, census_of, refitted, work_in
from crawler.core.budget.shadow_price import (
    FLOOR_SHARE,
    MOST_FLOOR_SHARE,
    Budget,
    Shares,
    Work,
    longest_gap,
    price_of,
    prices_of,
    trim_after,
)
from crawler.core.budget.target import AUDIT_SHARE, UNLIMITED, Terms, budget_for, part_for

__all__ = [
    "ASKED",
    "AUDIT_SHARE",
    "BY_TIME",
    "FACTORS",
    "FLOOR_SHARE",
    "MOST_FLOOR_SHARE",
    "NOBODY",
    "NO_SHARED_LIMIT",
    "SAMPLE",
    "SAMPLE_PER_DOMAIN",
    "SAYS_NOTHING",
    "UNLIMITED",
    "Budget",
    "Census",
    "Cost",
    "Costs",
    "Kind",
    "Ledger",
    "Outlook",
    "Pages",
    "Price",
    "SharedBudget",
    "Shares",
    "Tariff",
    "Terms",
    "Work",
    "budget_for",
    "census_of",
    "debited",
    "floor_left",
    "grantable",
    "has_moved",
    "is_head_cheaper",
    "learnt",
    "longest_gap",
    "pages_of",
    "part_for",
    "price_of",
    "prices_of",
    "receivable",
    "refitted",
    "requests_at",
    "sampled",
    "tariffs",
    "today",
    "trim_after",
    "work_in",
]
