"""Solve the plan of each domain: its shadow price, longest interval, expected freshness, and unreachable targets.

Prices are solved in units of importance across domains, because all may share a budget. They are returned in units of
importance within the domain, whose mean page has 1, because a claim compares page values in these units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

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
from crawler.core.freshness.gamma import Floats

MOVED_FACTOR = 1.25  # a price must rise or fall by this factor before due times are computed again
NEARLY_FULL = 0.999  # share of a limit from which it counts as used up


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """The solved plan of one domain.

    shadow_price: None means the default price: nothing is scarce.  longest_days: no page waits longer than this.
    target_requests: requests per day that the target needs; None without a target or if no number meets it.
    limit: the maximum number of requests per day; inf without a limit.  requests: the expected requests per day.
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
    terms: Sequence[DomainLimits],
    *,
    overall: Budget = UNLIMITED,
    shares: Shares = DEFAULT_SHARES,
) -> list[DomainPlan]:
    """Solve the plans of domains that share the `overall` budget. works, terms: one entry per domain, same order."""
    if not works:
        return []
    if any(each.has_target for each in terms) and min(overall.requests, overall.received_bytes) < math.inf:
        terms = _allot_overall_budget(works, terms, overall, shares)
    return _solve(works, terms, overall, shares)


def _solve(
    works: Sequence[Workload], terms: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainPlan]:
    open_works = [work for work, each in zip(works, terms, strict=True) if each.limit > 0]
    everything = join_workloads(open_works, [1.0] * len(open_works))
    constraints = [
        compute_constraints(*each, shares, everything=everything, overall=overall)
        for each in zip(works, terms, strict=True)
    ]
    together = join_workloads([each.work for each in constraints], [each.importance for each in constraints])
    shadow_prices = _solve_request_prices(constraints, together, overall, shares)
    shadow_prices = _solve_byte_prices(constraints, together, shadow_prices, overall, shares)
    return _limit_first_visits(
        [
            _build_plan(domain, shadow_price, shares)
            for domain, shadow_price in zip(constraints, shadow_prices, strict=True)
        ],
        overall,
    )


def _allot_overall_budget(
    works: Sequence[Workload], terms: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainLimits]:
    """Set each domain's part of the overall budget if that budget binds.

    The part is what the domain gets if age targets are ignored: an age target does not yield at any price, so it would
    take everything.
    """
    demands = [compute_demand(*each, shares).requests for each in zip(works, terms, strict=True)]
    ageless = [
        replace(each, target_age_days=None, budget=replace(each.budget, requests=min(each.budget.requests, requests)))
        for each, requests in zip(terms, demands, strict=True)
    ]
    plans = _solve(works, ageless, overall, shares)
    visits, received = sum(each.requests for each in plans), sum(each.expected.received_bytes for each in plans)
    is_free = visits < NEARLY_FULL * compute_visit_limit(overall.requests)
    if is_free and received < NEARLY_FULL * overall.received_bytes:
        return list(terms)
    return [
        replace(each, allotted_requests=compute_request_limit(plan.requests))
        if plan.requests < NEARLY_FULL * compute_visit_limit(plan.limit)
        else each
        for each, plan in zip(terms, plans, strict=True)
    ]


def _solve_request_prices(
    constraints: Sequence[Constraints], together: Workload, overall: Budget, shares: Shares
) -> list[ShadowPrice]:
    """Solve the shadow price of a request in each domain, within each domain's own byte budget.

    together: the pages of all domains.
    """
    own_prices = [_solve_own_price(domain, shares) for domain in constraints]
    limits = np.array([domain.visit_limit for domain in constraints])
    for n, (domain, shadow_price) in enumerate(zip(constraints, own_prices, strict=True)):
        # The overall budget must not reserve requests that the domain's byte budget does not allow.
        if shadow_price.per_byte > 0:
            limits[n] = min(
                limits[n], compute_requests(domain.work, shadow_price, limit=domain.visit_limit, shares=shares)
            )
    solved = solve_shadow_prices(together, limits, compute_visit_limit(overall.requests), shares=shares)
    return [
        _choose_higher_price(
            domain, shadow_price, ShadowPrice(_raise_to_default(domain, float(mu) / domain.importance, overall))
        )
        for domain, shadow_price, mu in zip(constraints, own_prices, solved, strict=True)
    ]


def _solve_own_price(domain: Constraints, shares: Shares) -> ShadowPrice:
    """Solve the price at which the domain stays within its own byte budget; MIN_PRICE without one."""
    if math.isinf(domain.terms.budget.received_bytes) or not len(domain.work.fetched.a):
        return ShadowPrice(MIN_PRICE)
    return solve_shadow_price(
        domain.work, Budget(domain.visit_limit, domain.terms.budget.received_bytes), shares=shares
    )


def _raise_to_default(domain: Constraints, shadow_price: float, overall: Budget) -> float:
    """Raise the price to the default if no budget or target applies. With a budget, a low price spends all of it."""
    has_budget = domain.target_requests is not None or math.isfinite(
        min(domain.terms.budget.requests, overall.requests)
    )
    return shadow_price if has_budget else max(shadow_price, domain.terms.default_shadow_price)


def _solve_byte_prices(
    constraints: Sequence[Constraints],
    together: Workload,
    shadow_prices: Sequence[ShadowPrice],
    overall: Budget,
    shares: Shares,
) -> list[ShadowPrice]:
    """Return the prices, with prices per byte if all domains together would otherwise receive too many bytes."""
    received = np.array(
        [_compute_bytes(c, shadow_price, shares) for c, shadow_price in zip(constraints, shadow_prices, strict=True)]
    )
    if float(received.sum()) <= overall.received_bytes:
        return list(shadow_prices)
    weighed = replace(
        together, fetched=_use_bytes_as_requests(together.fetched), unfetched=_use_bytes_as_requests(together.unfetched)
    )
    solved: Floats = solve_shadow_prices(weighed, received, overall.received_bytes, shares=shares)
    return [
        _choose_higher_price(domain, shadow_price, ShadowPrice(MIN_PRICE, float(mu) / domain.importance))
        for domain, shadow_price, mu in zip(constraints, shadow_prices, solved, strict=True)
    ]


def _use_bytes_as_requests(pages: PageArrays) -> PageArrays:
    """Return the pages with bytes as requests, so that the request solver can price bytes."""
    return replace(pages, requests=pages.received_bytes)


def _compute_bytes(domain: Constraints, shadow_price: ShadowPrice, shares: Shares) -> float:
    """Return the bytes that a domain is expected to receive per day."""
    requests = compute_requests(domain.work, shadow_price, limit=domain.visit_limit, shares=shares)
    expected = compute_domain_expectation(domain.work.fetched, shadow_price)
    unfetched = domain.work.unfetched
    bytes_per_request = float((unfetched.stands_for * unfetched.received_bytes).sum()) / max(
        float((unfetched.stands_for * unfetched.requests).sum()), 1.0
    )
    return expected.received_bytes + max(requests - expected.requests, 0.0) * bytes_per_request


def _choose_higher_price(domain: Constraints, first: ShadowPrice, second: ShadowPrice) -> ShadowPrice:
    """Return the price at which a mean visit costs more. It satisfies the limits of both."""
    return (
        first
        if _compute_mean_value(first, domain.work.fetched) > _compute_mean_value(second, domain.work.fetched)
        else second
    )


def _compute_mean_value(shadow_price: ShadowPrice, pages: PageArrays) -> float:
    count = max(pages.count, 1.0)
    requests = float((pages.stands_for * pages.requests).sum()) / count
    return (
        shadow_price.per_request * requests
        + shadow_price.per_byte * float((pages.stands_for * pages.received_bytes).sum()) / count
    )


def has_price_moved(before: ShadowPrice, after: ShadowPrice, pages: PageArrays) -> bool:
    """Whether the price of a mean visit rose or fell by more than MOVED_FACTOR."""
    value_before, value_after = (
        max(_compute_mean_value(shadow_price, pages), MIN_PRICE) for shadow_price in (before, after)
    )
    return max(value_before / value_after, value_after / value_before) > MOVED_FACTOR


def compute_requests(
    work: Workload, shadow_price: ShadowPrice, *, limit: float = math.inf, shares: Shares = DEFAULT_SHARES
) -> float:
    """Return the expected requests per day for visits: revisits, and first visits within the limit."""
    revisit_requests = compute_domain_expectation(work.fetched, shadow_price).requests
    unfetched = work.unfetched
    first_visits = count_first_visits(
        unfetched, shadow_price.per_request * unfetched.requests + shadow_price.per_byte * unfetched.received_bytes
    )
    return revisit_requests + min(float((first_visits * unfetched.requests).sum()), (1 - shares.refresh) * limit)


def _build_plan(domain: Constraints, shadow_price: ShadowPrice, shares: Shares) -> DomainPlan:
    default_price = ShadowPrice(domain.terms.default_shadow_price)
    is_usual = shadow_price == default_price or not len(domain.work.fetched.a)
    shadow_price = (
        default_price if is_usual else ShadowPrice(max(shadow_price.per_request, MIN_PRICE), shadow_price.per_byte)
    )
    return DomainPlan(
        shadow_price=None if is_usual else shadow_price,
        longest_days=domain.longest_days,
        target_requests=domain.target_requests,
        limit=domain.limit,
        requests=min(
            compute_requests(domain.work, shadow_price, limit=domain.visit_limit, shares=shares), domain.visit_limit
        ),
        expected=compute_domain_expectation(domain.work.fetched, shadow_price),
        finding=domain.finding,
    )


def _limit_first_visits(plans: list[DomainPlan], overall: Budget) -> list[DomainPlan]:
    """Reduce first visits to the requests that the overall budget leaves after revisits."""
    revisits = sum(min(each.expected.requests, each.requests) for each in plans)
    first_visits = sum(each.requests for each in plans) - revisits
    part = (compute_visit_limit(overall.requests) - revisits) / max(first_visits, TINY)
    if part >= 1:
        return plans
    return [
        replace(each, requests=each.requests - (1 - max(part, 0.0)) * max(each.requests - each.expected.requests, 0.0))
        for each in plans
    ]
