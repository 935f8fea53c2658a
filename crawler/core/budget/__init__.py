"""The shadow price of a request: the price at which a budget is spent, by domain and over all domains.

`solve_plans` solves the prices of all domains from a sample of their pages; `ledger` is the arithmetic of one day's
budget, `hours` that of calendar windows. Uses freshness and what is below it.
"""

from crawler.core.budget.constraints import AUDIT_SHARE, UNLIMITED, DomainLimits, budget_for, requests_for
from crawler.core.budget.cost import BY_TIME, Cost, Costs, Price, RequestKind, is_head_cheaper, learnt
from crawler.core.budget.domain_prices import DomainPlan, has_moved, requests_at, solve_plans
from crawler.core.budget.expected import FACTORS, Expectation, PolicyForecast, compare_policies, expected_in_one
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
    next_grant,
    receivable,
    settled,
    today,
)
from crawler.core.budget.page_arrays import (
    NOBODY,
    SAMPLE,
    SAMPLE_PER_DOMAIN,
    PageArrays,
    page_arrays,
)
from crawler.core.budget.refitted import Refitted, refitted
from crawler.core.budget.sample import NO_RULE, REQUEST_KINDS, PageSample, amounts_in, sample_of, work_in
from crawler.core.budget.shadow_price import (
    FLOOR_VISITS_SHARE,
    LONGEST_INTERVAL_SHARE,
    MOST_CORRECTION,
    Budget,
    Shares,
    Work,
    falling_price,
    longest_gap,
    price_correction,
    shadow_price,
    shadow_prices,
)
