"""Solve the plan of each domain: its shadow price, longest interval, expected freshness, and what it cannot reach.

Prices are solved in units of importance across domains, because all may share a budget. They are returned in units of
importance within the domain, whose mean page has 1, because pages are selected by values in these units.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.constraints import (
    UNLIMITED,
    Constraints,
    DomainLimits,
    compute_constraints,
    compute_demand,
    compute_request_limit,
    compute_visit_limit,
)
from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.expected import Expectation, compute_domain_expectation
from crawler.core.budget.find_root import MIN_PRICE, TINY
from crawler.core.budget.page_arrays import PageArrays, count_first_visits
from crawler.core.budget.sample import join_workloads
from crawler.core.budget.shadow_price import (
    DEFAULT_SHARES,
    Budget,
    Shares,
    Workload,
    solve_shadow_price,
    solve_shadow_prices,
)

MOVED_FACTOR = 1.25  # a price must rise or fall by this factor before due times are computed again
NEARLY_FULL = 0.999  # share of a limit from which it counts as used up


class DomainPlan(Struct, frozen=True):
    """The solved plan of one domain.

    shadow_price: None means the default price, because nothing is scarce or no page is fetched.  longest_days: the
    longest interval of pages without a rule.  target_requests: requests per day that the target needs; None without a
    target or fetched pages, or if no number meets it.
    limit: the maximum number of requests per day; inf without a limit.  requests: those expected per day, for visits.
    expected: the expectation for fetched pages.  finding: sentences about what cannot be reached, or empty.
    """

    shadow_price: ShadowPrice | None
    longest_days: float
    target_requests: float | None
    limit: float
    requests: float
    expected: Expectation
    finding: str = ""


def solve_plans(
    works: Sequence[Workload],
    domain_limits: Sequence[DomainLimits],
    *,
    overall: Budget = UNLIMITED,
    shares: Shares = DEFAULT_SHARES,
) -> list[DomainPlan]:
    """Solve the plans of domains that share the `overall` budget.

    works, domain_limits: one entry per domain, in the same order.
    """
    if not works:
        return []
    if any(each.has_target for each in domain_limits) and min(overall.requests, overall.received_bytes) < math.inf:
        domain_limits = _allot_overall_budget(works, domain_limits, overall, shares)
    return _solve(works, domain_limits, overall, shares)


def _solve(
    works: Sequence[Workload], domain_limits: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainPlan]:
    open_works = [work for work, each in zip(works, domain_limits, strict=True) if each.limit > 0]
    everything = join_workloads(open_works, [1.0] * len(open_works))
    constrain = partial(compute_constraints, shares=shares, everything=everything, overall=overall)
    constraints = list(map(constrain, works, domain_limits))
    together = join_workloads([each.work for each in constraints], [each.importance for each in constraints])
    prices = _solve_request_prices(constraints, together, overall, shares)
    prices = _solve_byte_prices(constraints, together, prices, overall, shares)
    plans = [_build_plan(domain, price, shares) for domain, price in zip(constraints, prices, strict=True)]
    return _limit_first_visits(plans, overall)


def _allot_overall_budget(
    works: Sequence[Workload], domain_limits: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainLimits]:
    """Set the parts of the overall budget, if it binds, of the domains that it limits.

    A part is what the domain gets if age targets are ignored: an age target does not yield at any price, so it would
    take everything.
    """
    demands = [compute_demand(*each, shares).requests for each in zip(works, domain_limits, strict=True)]
    ageless = [
        replace(each, target_age_days=None, budget=replace(each.budget, requests=min(each.budget.requests, requests)))
        for each, requests in zip(domain_limits, demands, strict=True)
    ]
    plans = _solve(works, ageless, overall, shares)
    visits, received = sum(each.requests for each in plans), sum(each.expected.received_bytes for each in plans)
    is_free = visits < NEARLY_FULL * compute_visit_limit(overall.requests)
    if is_free and received < NEARLY_FULL * overall.received_bytes:
        return list(domain_limits)
    is_bound = [plan.requests < NEARLY_FULL * compute_visit_limit(plan.limit) for plan in plans]
    return [
        replace(each, allotted_requests=compute_request_limit(plan.requests)) if bound else each
        for each, plan, bound in zip(domain_limits, plans, is_bound, strict=True)
    ]


def _solve_request_prices(
    constraints: Sequence[Constraints], together: Workload, overall: Budget, shares: Shares
) -> list[ShadowPrice]:
    """Solve the shadow price of a request in each domain, within each domain's own byte budget.

    together: the pages of all domains.
    """
    own_prices = [_solve_own_price(domain, shares) for domain in constraints]
    limits = np.array([domain.visit_limit for domain in constraints])
    for n, (domain, price) in enumerate(zip(constraints, own_prices, strict=True)):
        # The overall budget must not reserve requests that the domain's byte budget does not allow.
        if price.per_byte > 0:
            limits[n] = min(limits[n], compute_requests(domain.work, price, limit=domain.visit_limit, shares=shares))
    solved = solve_shadow_prices(together, limits, compute_visit_limit(overall.requests), shares=shares)
    return [
        _choose_higher_price(domain, price, _raise_to_default(domain, float(mu) / domain.importance, overall))
        for domain, price, mu in zip(constraints, own_prices, solved, strict=True)
    ]


def _solve_own_price(domain: Constraints, shares: Shares) -> ShadowPrice:
    """Solve the price at which a domain stays within its budgets; MIN_PRICE without byte budget or fetched pages."""
    max_bytes = domain.domain_limits.budget.received_bytes
    if math.isinf(max_bytes) or not len(domain.work.fetched.a):
        return ShadowPrice(MIN_PRICE)
    return solve_shadow_price(domain.work, Budget(domain.visit_limit, max_bytes), shares=shares)


def _raise_to_default(domain: Constraints, price: float, overall: Budget) -> ShadowPrice:
    """Raise the price to the default if no budget of requests and no target applies.

    With a budget of requests, a low price spends all of it.
    """
    limit = min(domain.domain_limits.budget.requests, overall.requests)
    has_budget = domain.target_requests is not None or math.isfinite(limit)
    return ShadowPrice(price if has_budget else max(price, domain.domain_limits.default_shadow_price))


def _solve_byte_prices(
    constraints: Sequence[Constraints],
    together: Workload,
    prices: Sequence[ShadowPrice],
    overall: Budget,
    shares: Shares,
) -> list[ShadowPrice]:
    """Return the prices. If all domains together would receive too many bytes, some get a price per byte instead."""
    received = np.array([_compute_bytes(*each, shares) for each in zip(constraints, prices, strict=True)])
    if float(received.sum()) <= overall.received_bytes:
        return list(prices)
    # Bytes as requests, so that the request solver can price them.
    fetched = replace(together.fetched, requests=together.fetched.received_bytes)
    unfetched = replace(together.unfetched, requests=together.unfetched.received_bytes)
    weighed = replace(together, fetched=fetched, unfetched=unfetched)
    solved = solve_shadow_prices(weighed, received, overall.received_bytes, shares=shares)
    return [
        _choose_higher_price(domain, price, ShadowPrice(MIN_PRICE, float(mu) / domain.importance))
        for domain, price, mu in zip(constraints, prices, solved, strict=True)
    ]


def _compute_bytes(domain: Constraints, price: ShadowPrice, shares: Shares) -> float:
    """Return the bytes that a domain is expected to receive per day."""
    requests = compute_requests(domain.work, price, limit=domain.visit_limit, shares=shares)
    expected = compute_domain_expectation(domain.work.fetched, price)
    new = domain.work.unfetched
    new_bytes, new_requests = (float((new.stands_for * each).sum()) for each in (new.received_bytes, new.requests))
    bytes_per_request = new_bytes / max(new_requests, 1.0)
    return expected.received_bytes + max(requests - expected.requests, 0.0) * bytes_per_request


def _choose_higher_price(domain: Constraints, first: ShadowPrice, second: ShadowPrice) -> ShadowPrice:
    """Return the price at which a mean visit costs more, which satisfies the limits of both prices."""
    pages = domain.work.fetched
    return first if _compute_mean_price(first, pages) > _compute_mean_price(second, pages) else second


def _compute_mean_price(price: ShadowPrice, pages: PageArrays) -> float:
    """Return the mean over these pages of the minimum value of a visit."""
    count = max(pages.count, 1.0)
    requests, received = (float((pages.stands_for * n).sum()) / count for n in (pages.requests, pages.received_bytes))
    return price.per_request * requests + price.per_byte * received


def has_price_moved(before: ShadowPrice, after: ShadowPrice, pages: PageArrays) -> bool:
    """Return whether the price of a mean visit rose or fell by more than MOVED_FACTOR."""
    old, new = (max(_compute_mean_price(price, pages), MIN_PRICE) for price in (before, after))
    return max(old / new, new / old) > MOVED_FACTOR


def compute_requests(
    work: Workload, shadow_price: ShadowPrice, *, limit: float = math.inf, shares: Shares = DEFAULT_SHARES
) -> float:
    """Return the expected requests per day for visits: revisits, and first visits within their share of the limit."""
    revisit_requests = compute_domain_expectation(work.fetched, shadow_price).requests
    unfetched = work.unfetched
    value = shadow_price.per_request * unfetched.requests + shadow_price.per_byte * unfetched.received_bytes
    first_requests = float((count_first_visits(unfetched, value) * unfetched.requests).sum())
    return revisit_requests + min(first_requests, (1 - shares.refresh) * limit)


def _build_plan(domain: Constraints, price: ShadowPrice, shares: Shares) -> DomainPlan:
    default_price = ShadowPrice(domain.domain_limits.default_shadow_price)
    is_default = price == default_price or not len(domain.work.fetched.a)
    price = default_price if is_default else ShadowPrice(max(price.per_request, MIN_PRICE), price.per_byte)
    requests = compute_requests(domain.work, price, limit=domain.visit_limit, shares=shares)
    return DomainPlan(
        shadow_price=None if is_default else price,
        longest_days=domain.longest_days,
        target_requests=domain.target_requests,
        limit=domain.limit,
        requests=min(requests, domain.visit_limit),
        expected=compute_domain_expectation(domain.work.fetched, price),
        finding=domain.finding,
    )


def _limit_first_visits(plans: list[DomainPlan], overall: Budget) -> list[DomainPlan]:
    """Reduce first visits to the requests that the overall budget leaves after revisits."""
    revisits = sum(min(each.expected.requests, each.requests) for each in plans)
    first_visits = sum(each.requests for each in plans) - revisits
    part = (compute_visit_limit(overall.requests) - revisits) / max(first_visits, TINY)
    if part >= 1:
        return plans
    surplus = [(1 - max(part, 0.0)) * max(each.requests - each.expected.requests, 0.0) for each in plans]
    return [replace(each, requests=each.requests - less) for each, less in zip(plans, surplus, strict=True)]
