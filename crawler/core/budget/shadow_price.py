"""The shadow price that spends a budget. The plan computes it; the value of each visit is compared with it.

Source: the Lagrange multiplier of Cho and Garcia-Molina, TODS 2003. With politeness caps, that of Kolobov, Peres,
Lubetzky, Horvitz, "Optimal freshness crawl under politeness constraints", SIGIR 2019: the price of domain h is the
higher of the shared price mu and the price at which h alone uses its cap C_h. For the shared budget R, mu solves
sum_h min(C_h, demand_h(mu)) = R.
Demand assumes that a page is revisited as soon as the value of a visit, by its current estimate, reaches the price.
"""

from collections.abc import Callable
from functools import partial
from math import exp
from operator import attrgetter

import numpy as np
from msgspec import Struct

from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.find_root import TINY, TOLERANCE, find_root
from crawler.core.budget.page_arrays import NO_PAGES, PageArrays, compute_visits_per_day, count_first_visits
from crawler.core.freshness.gamma import Floats, Numbers

DISCOVERY_DAYS = 1.0  # time in which a backlog of unfetched pages is fetched if the budget allows it
MAX_RATE = 1e15  # a finite "no limit", so that shares of it are numbers
BLEND_STEPS = 12  # of the bisection over the weight of bytes in the price
FIRST_GUESS = 0.25  # of a price
LONGEST_INTERVAL_SHARE = 0.05  # of the budget, to visit all pages at the longest interval
FLOOR_VISITS_SHARE = 0.2  # of a day's budget, at most, for floor visits (core/freshness/selection.py)
CORRECTION_UP, CORRECTION_DOWN = 1.005, 1.02  # factors on the price correction per hour
USED_UP_SHARE = 0.98  # share of the allowed requests from which they count as used up
MAX_CORRECTION = 1000.0  # bound of the correction and of its inverse
FALL_PER_DAY = 4.0  # decrease of ln price for each daily budget of requests that goes to pages below the price

Measure = Callable[[PageArrays], Floats]  # the cost of one visit to each page: requests, bytes, or a blend


class Budget(Struct, frozen=True):
    """Requests and bytes that may be spent per day."""

    requests: float
    received_bytes: float = float("inf")


class Shares(Struct, frozen=True):
    """The guaranteed shares of a budget for discovery and revisits while they have work."""

    discovery: float = 0.3
    refresh: float = 0.3


DEFAULT_SHARES = Shares()


class Workload(Struct, frozen=True):
    """Pages that can be fetched. fetched: pages to revisit.  domain_count: the number of their domains."""

    fetched: PageArrays
    unfetched: PageArrays = NO_PAGES
    domain_count: int = 1


def solve_shadow_price(work: Workload, budget: Budget, *, shares: Shares = DEFAULT_SHARES) -> ShadowPrice:
    """Solve the price in one domain at which the expected requests and bytes per day use up the budget.

    budget: for visits, without other requests such as robots.txt.
    Usually only requests or only bytes are scarce, and the other has price 0. If both are scarce, both have a price.
    """
    limits = np.array([budget.requests, min(budget.received_bytes, MAX_RATE)])
    for part, other in ((0.0, 1), (1.0, 0)):  # if only requests, or only bytes are scarce
        shadow_price, used = _solve_blended_price(work, limits, shares, part=part)
        if used[other] <= 1 + TOLERANCE:
            return shadow_price
    low, high = 0.0, 1.0
    for _ in range(BLEND_STEPS):
        middle = 0.5 * (low + high)
        shadow_price, used = _solve_blended_price(work, limits, shares, part=middle)
        low, high = (middle, high) if used[1] > used[0] else (low, middle)
    return shadow_price


def solve_shadow_prices(work: Workload, limits: Floats, budget: float, *, shares: Shares = DEFAULT_SHARES) -> Floats:
    """Solve the shadow price of a request in each domain if all domains share a budget.

    limits: the maximum requests per day of each domain.  budget: that of all domains together. Both are for visits
    only; inf means no limit.
    """
    limits, budget = np.minimum(limits, MAX_RATE), min(budget, MAX_RATE)
    spend = partial(compute_spending, work, limits=limits, shares=shares)
    own_prices = find_root(spend, limits, guess=np.full(work.domain_count, FIRST_GUESS))
    if float(spend(own_prices).sum()) <= budget * (1 + TOLERANCE):
        return own_prices

    def compute_shared_requests(shadow_price: Floats) -> Floats:
        visits = _compute_visits(work, np.maximum(shadow_price, own_prices), _get_requests)
        refresh, discovery, backlog = _compute_costs(work, *visits, _get_requests)
        first = np.minimum(discovery, (1 - shares.refresh) * limits).sum()
        return np.atleast_1d(refresh.sum() + _limit_discovery(first, backlog.sum(), np.asarray(budget), shares))

    overall = find_root(compute_shared_requests, np.array([budget]), guess=np.array([FIRST_GUESS]))
    return np.maximum(own_prices, overall)


def compute_spending(work: Workload, price: Floats, limits: Floats, *, shares: Shares = DEFAULT_SHARES) -> Floats:
    """Return the expected requests per day of each domain at its price per request."""
    visits = _compute_visits(work, price, _get_requests)
    refresh, discovery, backlog = _compute_costs(work, *visits, _get_requests)
    return refresh + _limit_discovery(discovery, backlog, limits, shares)


def compute_longest_gap(pages: Numbers, requests_per_day: Numbers, *, max_interval: Numbers = 180.0) -> Floats:
    """Return the maximum interval between visits to a page, in days, for a domain of `pages` pages.

    It is `max_interval`, or longer if visits to all pages at that interval would use more than LONGEST_INTERVAL_SHARE
    of the budget. With a budget of 0, it is practically infinite.
    """
    return np.asarray(np.maximum(max_interval, pages / np.maximum(LONGEST_INTERVAL_SHARE * requests_per_day, 1e-12)))


def update_price_correction(
    correction: float, *, used: float, allowed: float, waiting: float, hours: float = 1.0
) -> float:
    """Update the factor that corrects the solved price by the requests that were really used.

    correction: the factor so far.  hours: since the last update.  used, allowed: requests per hour.
    waiting: the number of visits that are due but were not granted.
    The factor falls if requests were left over, because those are lost. It rises more slowly, and only if more visits
    wait than fit into the next hour: at a slightly low price, the budget still goes to the best visits.
    """
    if used < USED_UP_SHARE * allowed:
        return float(max(correction / CORRECTION_DOWN**hours, 1 / MAX_CORRECTION))
    return float(min(correction * CORRECTION_UP**hours, MAX_CORRECTION)) if waiting > allowed else correction


def compute_price_decay(days: float) -> float:
    """Return the factor on the price after `days` daily budgets of requests went to pages below the price."""
    return exp(-FALL_PER_DAY * days)


_get_requests, _get_bytes = attrgetter("requests"), attrgetter("received_bytes")


def _compute_visits(work: Workload, shadow_price: Floats, unit: Measure) -> tuple[Floats, Floats]:
    """Return the visits per day at a price per unit: revisits of fetched pages, and first visits of unfetched pages."""
    fetched, new = work.fetched, work.unfetched
    visits = compute_visits_per_day(fetched, shadow_price[fetched.domain] * unit(fetched))
    return visits, count_first_visits(new, shadow_price[new.domain] * unit(new)) / DISCOVERY_DAYS


def _compute_costs(work: Workload, visits: Floats, firsts: Floats, measure: Measure) -> tuple[Floats, Floats, Floats]:
    """Return the cost per day of revisits, of discovery, and of the whole backlog of unfetched pages, by domain."""
    fetched, unfetched = work.fetched, work.unfetched
    return (
        _sum_by_domain(work, fetched, visits * measure(fetched)),
        _sum_by_domain(work, unfetched, firsts * measure(unfetched)),
        _sum_by_domain(work, unfetched, unfetched.stands_for * measure(unfetched) / DISCOVERY_DAYS),
    )


def _sum_by_domain(work: Workload, pages: PageArrays, numbers: Floats) -> Floats:
    return np.bincount(pages.domain, weights=numbers, minlength=work.domain_count).astype(np.float64)


def _limit_discovery(discovery: Floats, backlog: Floats, limits: Floats, shares: Shares) -> Floats:
    """Limit the cost of discovery by the guaranteed shares."""
    min_cost = np.minimum(backlog, shares.discovery * limits)
    return np.clip(discovery, min_cost, np.maximum((1 - shares.refresh) * limits, min_cost))


def _solve_blended_price(work: Workload, limits: Floats, shares: Shares, *, part: float) -> tuple[ShadowPrice, Floats]:
    """Solve the price of one domain; return it and the used share of each limit. limits: requests and bytes per day.

    part: the weight of bytes in the price: 0 if only requests are scarce, 1 if only bytes are.
    """
    fetched = work.fetched
    mean_bytes = float((fetched.received_bytes * fetched.stands_for).sum()) / max(fetched.count, 1.0)
    per_byte = part / max(mean_bytes, 1.0)

    def compute_cost(pages: PageArrays) -> Floats:
        return np.asarray((1 - part) * pages.requests + per_byte * pages.received_bytes)

    def compute_use(shadow_price: Floats) -> Floats:
        visits = _compute_visits(work, shadow_price, compute_cost)
        costs = [_compute_costs(work, *visits, measure) for measure in (_get_requests, _get_bytes)]
        refresh, discovery, backlog = (np.concatenate(parts) for parts in zip(*costs, strict=True))
        return np.asarray((refresh + _limit_discovery(discovery, backlog, limits, shares)) / np.maximum(limits, TINY))

    scarce = slice(0, 1) if part == 0 else slice(1, 2) if part == 1 else slice(0, 2)
    guess = np.array([FIRST_GUESS])
    mu = find_root(lambda price: compute_use(price)[scarce].max(keepdims=True), np.ones(1), guess=guess)
    return ShadowPrice(float(mu[0]) * (1 - part), float(mu[0]) * per_byte), compute_use(mu)
