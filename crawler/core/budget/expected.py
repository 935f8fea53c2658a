"""Expected freshness and age of fetched pages: at a price, for a target, and under each revisit policy.

All numbers follow from the change-rate estimates; nothing is fetched.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.find_root import MIN_PRICE, TOLERANCE, find_root
from crawler.core.budget.page_arrays import PageArrays, compute_ageing_days, compute_gaps
from crawler.core.budget.shadow_price import (
    DEFAULT_SHARES,
    MAX_RATE,
    Shares,
    Workload,
    compute_spending,
    solve_shadow_prices,
)
from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.visit_value import EPSILON, compute_fresh_days

FACTORS = (0.1, 0.2, 0.5, 0.8, 1.0, 1.1, 1.5, 2.0, 5.0, 10.0)  # multiples of the budget in `recrawl plan`

VALUE_POLICY_NAME, SIMILARITY_POLICY_NAME, FIXED_POLICY_PREFIX = "value", "similarity", "fixed"

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)


class Expectation(Struct, frozen=True):
    """The expectation for fetched pages that are revisited regularly.

    shadow_price: the highest of their domains; meaningless if a revisit policy fixes the gaps.
    requests, received_bytes: per day.  freshness: the share of importance whose copy is current, 0 to 1.
    age_days: how long copies have been out of date (0 while current), weighted by importance.
    oldest_days: the longest gap.
    """

    shadow_price: ShadowPrice
    requests: float
    received_bytes: float
    freshness: float
    age_days: float
    oldest_days: float


class TargetCost(Struct, frozen=True):
    """The cost of a target.

    requests: requests per day; if the limits do not allow the target, what it needs without limits, or inf.
    reachable: the best that the limits allow: a freshness, or the oldest age in days.
    """

    requests: float
    is_possible: bool
    reachable: float


def compute_mean_freshness(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """Return the expected share of time in which copies are fresh if pages are visited every `gap` days."""
    return np.asarray(np.minimum(compute_fresh_days(a, b, gap) / np.maximum(gap, EPSILON), 1.0))


def compute_mean_age(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """Return the expected age of copies in days, averaged over gaps of `gap` days.

    The age is 0 while a copy is fresh, else the time since the first missed change. The mean is gap/2 minus the mean of
    the fresh days so far. Gauss-Legendre quadrature over ln(1 + t/b), in which the integrand is smooth (t: days since
    the visit).
    """
    y = np.asarray(gap, dtype=np.float64) / b
    log_y = np.log1p(y)
    v = 0.5 * log_y[..., None] * (_NODES + 1)
    x = (1 - np.asarray(a, dtype=np.float64)[..., None]) * v + EPSILON
    fresh_so_far = 0.5 * log_y * ((v * np.expm1(x) / x * np.exp(v)) @ _NODE_WEIGHTS)
    return np.asarray(np.maximum(b * (y / 2 - fresh_so_far / np.maximum(y, EPSILON)), 0.0))


def compute_expectation(pages: PageArrays, shadow_prices: Floats, *, per_byte: float = 0.0) -> Expectation:
    """Compute the expectation for fetched pages. shadow_prices: per request, in each domain.  per_byte: in all."""
    min_value = shadow_prices[pages.domain] * pages.requests + per_byte * pages.received_bytes
    gap = compute_gaps(pages, min_value)
    weight = pages.importance * pages.stands_for
    total = max(float(weight.sum()), EPSILON)
    freshness = compute_mean_freshness(pages.a, pages.b, compute_ageing_days(pages, min_value, gap))
    return Expectation(
        shadow_price=ShadowPrice(float(shadow_prices.max(initial=0.0)), per_byte),
        requests=float((pages.stands_for * pages.requests / gap).sum()),
        received_bytes=float((pages.stands_for * pages.received_bytes / gap).sum()),
        freshness=float((weight * freshness).sum()) / total,
        age_days=float((weight * compute_mean_age(pages.a, pages.b, gap)).sum()) / total,
        oldest_days=float(gap.max(initial=0.0)),
    )


def compute_domain_expectation(pages: PageArrays, shadow_price: ShadowPrice) -> Expectation:
    """Compute the expectation for fetched pages of one domain at its price."""
    return compute_expectation(pages, np.array([shadow_price.per_request]), per_byte=shadow_price.per_byte)


def compute_freshness_cost(
    work: Workload, target: float, limits: Floats, *, shares: Shares = DEFAULT_SHARES
) -> TargetCost:
    """Compute the budget of all domains together at which a share `target` of importance is expected to be fresh.

    target: above 0 and below 1.  limits: the maximum requests per day of each domain; inf for no limit.
    """
    best = solve_shadow_prices(work, limits, MAX_RATE, shares=shares)
    reachable = compute_expectation(work.fetched, best).freshness
    price = _solve_target_price(work.fetched, target, min_price=best)
    possible = reachable >= target * (1 - TOLERANCE)
    if not possible:
        unlimited = np.full(work.domain_count, MIN_PRICE)
        price = _solve_target_price(work.fetched, target, min_price=unlimited)
        if compute_expectation(work.fetched, price).freshness < target * (1 - TOLERANCE):
            return TargetCost(float("inf"), is_possible=False, reachable=reachable)
    requests = float(compute_spending(work, price, limits, shares=shares).sum())
    return TargetCost(requests, is_possible=possible, reachable=reachable)


def _solve_target_price(pages: PageArrays, target: float, *, min_price: Floats) -> Floats:
    """Solve the shared price at which the target is met, with `min_price` as the lower bound in each domain."""

    def compute_freshness(shadow_price: Floats) -> Floats:
        return np.atleast_1d(compute_expectation(pages, np.maximum(shadow_price, min_price)).freshness)

    return np.maximum(find_root(compute_freshness, np.array([target]), guess=np.array([0.25])), min_price)


def compute_age_cost(work: Workload, oldest_days: float, limits: Floats) -> TargetCost:
    """Compute the budget of all domains together at which each fetched page is visited every `oldest_days`.

    Pages with a rule for their longest interval use that interval instead. Minimum intervals are respected.
    `reachable` of the result is the age of pages without such a rule within the limits.
    """
    fetched = work.fetched
    cost = fetched.stands_for * fetched.requests
    by_rule = np.where(fetched.is_ruled, cost / fetched.max_interval, 0.0)
    others = np.where(fetched.is_ruled, 0.0, cost)
    available = limits - np.bincount(fetched.domain, weights=by_rule, minlength=work.domain_count)
    per_round = np.bincount(fetched.domain, weights=others, minlength=work.domain_count)
    reachable = float((per_round / np.maximum(available, EPSILON)).max(initial=0.0))
    needed = float((by_rule + others / np.maximum(fetched.min_interval, oldest_days)).sum())
    possible = reachable <= oldest_days and bool((available >= 0).all())
    return TargetCost(needed, is_possible=possible, reachable=reachable)


class PolicyForecast(Struct, frozen=True):
    """The expectation for fetched pages under one revisit policy.

    policy: its name, as in `domains set --revisit`.  is_today: whether it is the domain's current policy.
    """

    policy: str
    is_today: bool
    expected: Expectation


def compare_policies(pages: PageArrays, today: Expectation, *, policy: str) -> list[PolicyForecast]:
    """Compare the domain's policy with the other policies at the same number of requests.

    pages: the fetched pages of one domain, at least one, with the bounds of their gaps.
    today: the expectation under the current policy.
    Similarity is modeled in its steady state: the gap of a page is its mean time between changes times a factor, which
    is the same for all pages and results in that number of requests.
    """
    forecasts = [PolicyForecast(policy, is_today=True, expected=today)]
    if policy != VALUE_POLICY_NAME:
        price = find_root(
            lambda prices: np.atleast_1d(compute_expectation(pages, prices).requests),
            np.array([today.requests]),
            guess=np.array([0.25]),
        )
        forecasts.append(PolicyForecast(VALUE_POLICY_NAME, is_today=False, expected=compute_expectation(pages, price)))
    if not policy.startswith(FIXED_POLICY_PREFIX):
        days = _solve_gap_factor(pages, 1.0, today.requests)
        name = f"{FIXED_POLICY_PREFIX} {f'{days:.3g}d' if days >= 1 else f'{24 * days:.3g}h'}"
        forecasts.append(PolicyForecast(name, is_today=False, expected=_forecast_gaps(pages, days)))
    if policy != SIMILARITY_POLICY_NAME:
        similar = _forecast_gaps(pages, pages.b / pages.a * _solve_gap_factor(pages, pages.b / pages.a, today.requests))
        forecasts.append(PolicyForecast(SIMILARITY_POLICY_NAME, is_today=False, expected=similar))
    return forecasts


def _solve_gap_factor(pages: PageArrays, gaps: Numbers, requests: float) -> float:
    """Solve the factor on gaps that results in `requests` per day, or as close as the bounds allow."""
    factors = find_root(
        lambda factor: np.atleast_1d(_forecast_gaps(pages, gaps * factor[0]).requests),
        np.array([requests]),
        guess=np.array([10.0]),
    )
    return float(factors[0])


def _forecast_gaps(pages: PageArrays, days: Numbers) -> Expectation:
    """Compute the expectation if each page is visited every `days` days, within its bounds."""
    gap = np.clip(np.broadcast_to(days, pages.a.shape), pages.min_interval, pages.max_interval)
    return compute_expectation(replace(pages, min_interval=gap, max_interval=gap), np.ones(1))
