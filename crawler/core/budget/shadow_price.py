"""The shadow price that spends a budget: plan computes it, and the value of every look is compared with it.

Source: the Lagrange multiplier of Cho and Garcia-Molina, TODS 2003; with politeness caps that of Kolobov, Peres,
Lubetzky, Horvitz, "Optimal freshness crawl under politeness constraints", SIGIR 2019: a domain whose cap binds has its
own price mu_h = max(mu, price at which it alone uses C_h), and sum_h min(C_h, demand_h(mu)) = R.
Demand is that of pages looked at again whenever today's belief says that it is worth the price.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np

from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.find_root import TINY, TOLERANCE, find_root
from crawler.core.budget.page_arrays import NO_PAGES, PageArrays, compute_visits_per_day, count_first_visits
from crawler.core.freshness.gamma import Floats, Numbers

DISCOVERY_DAYS = 1.0  # within which a backlog of new pages is to be fetched, if the budget allows it
MAX_RATE = 1e15  # "no limit" as a finite number, so that a share of it is a number, too
BLEND_STEPS = 12
FIRST_GUESS = 0.25  # the price that is tried first
LONGEST_INTERVAL_SHARE = 0.05  # of the budget that looks at the longest interval may take, where no page is worth more
FLOOR_VISITS_SHARE = 0.2  # of one day's budget that visits below the price may take
CORRECTION_UP, CORRECTION_DOWN = 1.005, 1.02  # factors of one step
USED_UP_SHARE = 0.98  # of the allowed requests, from which on they count as used up
MAX_CORRECTION = 1000.0  # factor on the price, and its inverse
FALL_PER_DAY = 4.0  # of its logarithm, where no page is worth it

Measure = Callable[[PageArrays], Floats]  # cost of one look at each page: its requests, its bytes, or a blend of both


@dataclass(frozen=True, slots=True)
class Budget:
    """Requests and bytes that may be spent on one day."""

    requests: float
    received_bytes: float = float("inf")


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a budget that discovery and refresh are each guaranteed while they have work. Sum at most 1."""

    discovery: float = 0.3
    refresh: float = 0.3


DEFAULT_SHARES = Shares()


@dataclass(frozen=True, slots=True)
class Workload:
    """Pages that could be fetched.

    fetched: pages to revisit.  unfetched: pages never asked for.  domain_count: number of them.
    """

    fetched: PageArrays
    unfetched: PageArrays = NO_PAGES
    domain_count: int = 1


def solve_shadow_price(work: Workload, budget: Budget, *, shares: Shares = DEFAULT_SHARES) -> ShadowPrice:
    """The price in one domain at which a day's expected requests and bytes keep within the budget and use it.

    budget: without the requests that are no looks (robots.txt, sitemaps, audits, probes).
    Usually one of requests and bytes is scarce, and the other costs nothing. Where both are scarce, both have a price.
    """
    limits = np.array([budget.requests, min(budget.received_bytes, MAX_RATE)])
    shadow_price, used = _solve_blended_price(work, limits, shares, part=0.0)
    if used[1] <= 1 + TOLERANCE:
        return shadow_price
    shadow_price, used = _solve_blended_price(work, limits, shares, part=1.0)
    if used[0] <= 1 + TOLERANCE:
        return shadow_price
    low, high = 0.0, 1.0
    for _ in range(BLEND_STEPS):
        middle = 0.5 * (low + high)
        shadow_price, used = _solve_blended_price(work, limits, shares, part=middle)
        low, high = (middle, high) if used[1] > used[0] else (low, middle)
    return shadow_price


def solve_shadow_prices(work: Workload, limits: Floats, budget: float, *, shares: Shares = DEFAULT_SHARES) -> Floats:
    """The price of a request in each domain, where all share a budget.

    limits: requests a day of each domain: its own budget or what politeness allows, the smaller; inf: no limit.
    A budget of bytes is given as the requests that its own shadow_price would spend.  budget: requests a day of all
    domains together; inf: no limit.  Both come without the requests that are no looks.
    """
    limits, budget = np.minimum(limits, MAX_RATE), min(budget, MAX_RATE)
    own_prices = find_root(
        lambda shadow_price: compute_spending(work, shadow_price, limits, shares=shares),
        limits,
        guess=np.full(work.domain_count, FIRST_GUESS),
    )
    if float(compute_spending(work, own_prices, limits, shares=shares).sum()) <= budget * (1 + TOLERANCE):
        return own_prices

    def compute_shared_requests(shadow_price: Floats) -> Floats:
        visits = _compute_visits(work, np.maximum(shadow_price, own_prices), _get_requests)
        refresh, discovery, backlog = _compute_costs(work, *visits, _get_requests)
        first = np.minimum(discovery, (1 - shares.refresh) * limits).sum()
        return np.atleast_1d(refresh.sum() + _limit_discovery(first, backlog.sum(), np.asarray(budget), shares))

    overall = find_root(compute_shared_requests, np.array([budget]), guess=np.array([FIRST_GUESS]))
    return np.maximum(own_prices, overall)


def compute_spending(
    work: Workload, shadow_price: Floats, limits: Floats, *, shares: Shares = DEFAULT_SHARES
) -> Floats:
    """Requests that each domain is expected to make on one day at its price of a request."""
    refresh, discovery, backlog = _compute_costs(
        work, *_compute_visits(work, shadow_price, _get_requests), _get_requests
    )
    return refresh + _limit_discovery(discovery, backlog, limits, shares)


def compute_longest_gap(pages: Numbers, requests_per_day: Numbers, *, max_interval: Numbers = 180.0) -> Floats:
    """The longest interval, in days, that a budget can promise to `pages` pages: the floor under every page.

    At most LONGEST_INTERVAL_SHARE of the budget goes into it when no page is worth its price. A result above
    `max_interval` means that `max_interval` cannot be kept, which plan reports. Without a budget the interval is next
    to endless.
    """
    return np.asarray(np.maximum(max_interval, pages / np.maximum(LONGEST_INTERVAL_SHARE * requests_per_day, 1e-12)))


def update_price_correction(
    correction: float, *, used: float, allowed: float, waiting: float, hours: float = 1.0
) -> float:
    """The factor on the solved price after another hour, or several; corrects it by the requests that were really used.

    correction: the factor so far.  hours: since then, a step for each.  used, allowed: requests an hour.
    waiting: looks that are due and could not be granted. The factor falls at once when requests were left over, since
    those are lost. It rises slowly, and only when more looks wait than the next hour can take: a price that is a little
    low still spends the budget on the best looks.
    """
    if used < USED_UP_SHARE * allowed:
        return float(max(correction / CORRECTION_DOWN**hours, 1 / MAX_CORRECTION))
    return float(min(correction * CORRECTION_UP**hours, MAX_CORRECTION)) if waiting > allowed else correction


def compute_price_decay(days: float) -> float:
    """Return the factor on the price after so many days' requests went to pages that are not worth it."""
    return exp(-FALL_PER_DAY * days)


def _get_requests(pages: PageArrays) -> Floats:
    return pages.requests


def _get_bytes(pages: PageArrays) -> Floats:
    return pages.received_bytes


def _compute_visits(work: Workload, shadow_price: Floats, unit: Measure) -> tuple[Floats, Floats]:
    """Looks a day that are worth a price of one unit: revisits of each known page, first looks at each new page."""
    fetched, unfetched = work.fetched, work.unfetched
    return (
        compute_visits_per_day(fetched, shadow_price[fetched.domain] * unit(fetched)),
        count_first_visits(unfetched, shadow_price[unfetched.domain] * unit(unfetched)) / DISCOVERY_DAYS,
    )


def _compute_costs(
    work: Workload, visits: Floats, first_visits: Floats, measure: Measure
) -> tuple[Floats, Floats, Floats]:
    """The cost a day of refresh, of discovery, and of the whole backlog of new pages; by domain."""
    fetched, unfetched = work.fetched, work.unfetched
    return (
        _sum_by_domain(work, fetched, visits * measure(fetched)),
        _sum_by_domain(work, unfetched, first_visits * measure(unfetched)),
        _sum_by_domain(work, unfetched, unfetched.stands_for * measure(unfetched) / DISCOVERY_DAYS),
    )


def _sum_by_domain(work: Workload, pages: PageArrays, numbers: Floats) -> Floats:
    return np.bincount(pages.domain, weights=numbers, minlength=work.domain_count).astype(np.float64)


def _limit_discovery(discovery: Floats, backlog: Floats, limits: Floats, shares: Shares) -> Floats:
    """The cost of discovery, held within the shares guaranteed to it and to refresh."""
    min_cost = np.minimum(backlog, shares.discovery * limits)
    return np.clip(discovery, min_cost, np.maximum((1 - shares.refresh) * limits, min_cost))


def _solve_blended_price(work: Workload, limits: Floats, shares: Shares, *, part: float) -> tuple[ShadowPrice, Floats]:
    """The price of one domain, and how much of each limit it uses. limits: of requests and of bytes.

    part: 0 where only requests are scarce, 1 where only bytes are, between where both are, by the part of bytes.
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
    mu = find_root(
        lambda shadow_price: compute_use(shadow_price)[scarce].max(keepdims=True),
        np.ones(1),
        guess=np.array([FIRST_GUESS]),
    )
    return ShadowPrice(float(mu[0]) * (1 - part), float(mu[0]) * per_byte), compute_use(mu)
