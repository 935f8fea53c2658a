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

from crawler.core.budget.cost import Price
from crawler.core.budget.find_root import CLOSE, TINY, find_root
from crawler.core.budget.page_arrays import NOBODY, PageArrays, first_looks, looks_per_day
from crawler.core.freshness.gamma import Floats, Numbers

DISCOVERY_DAYS = 1.0  # within which a backlog of new pages is to be fetched, if the budget allows it
MOST_RATE = 1e15  # "no limit" as a finite number, so that a share of it is a number, too
BLEND_STEPS = 12
NEAR = 0.25  # the price that is tried first
LONGEST_INTERVAL_SHARE = 0.05  # of the budget that looks at the longest interval may take, where no page is worth more
FLOOR_VISITS_SHARE = 0.2  # of one day's budget that visits below the price may take
CORRECTION_UP, CORRECTION_DOWN = 1.005, 1.02  # factors of one step
USED_UP = 0.98  # of the allowed requests, from which on they count as used up
MOST_CORRECTION = 1000.0  # factor on the price, and its inverse
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


EVEN = Shares()


@dataclass(frozen=True, slots=True)
class Work:
    """Pages that could be fetched. known: pages to revisit.  new: pages never asked for.  domains: number of them."""

    known: PageArrays
    new: PageArrays = NOBODY
    domains: int = 1


def shadow_price(work: Work, budget: Budget, *, shares: Shares = EVEN) -> Price:
    """The price in one domain at which a day's expected requests and bytes keep within the budget and use it.

    budget: without the requests that are no looks (robots.txt, sitemaps, audits, probes).
    Usually one of requests and bytes is scarce, and the other costs nothing. Where both are scarce, both have a price.
    """
    limits = np.array([budget.requests, min(budget.received_bytes, MOST_RATE)])
    price, used = _blended(work, limits, shares, part=0.0)
    if used[1] <= 1 + CLOSE:
        return price
    price, used = _blended(work, limits, shares, part=1.0)
    if used[0] <= 1 + CLOSE:
        return price
    low, high = 0.0, 1.0
    for _ in range(BLEND_STEPS):
        middle = 0.5 * (low + high)
        price, used = _blended(work, limits, shares, part=middle)
        low, high = (middle, high) if used[1] > used[0] else (low, middle)
    return price


def shadow_prices(work: Work, limits: Floats, budget: float, *, shares: Shares = EVEN) -> Floats:
    """The price of a request in each domain, where all share a budget.

    limits: requests a day of each domain: its own budget or what politeness allows, the smaller; inf: no limit.
    A budget of bytes is given as the requests that its own shadow_price would spend.  budget: requests a day of all
    domains together; inf: no limit.  Both come without the requests that are no looks.
    """
    limits, budget = np.minimum(limits, MOST_RATE), min(budget, MOST_RATE)
    own = find_root(lambda price: spent(work, price, limits, shares=shares), limits, near=np.full(work.domains, NEAR))
    if float(spent(work, own, limits, shares=shares).sum()) <= budget * (1 + CLOSE):
        return own

    def together(price: Floats) -> Floats:
        looks = _looks_wanted(work, np.maximum(price, own), _requests)
        refresh, discovery, backlog = _cost_by_purpose(work, *looks, _requests)
        first = np.minimum(discovery, (1 - shares.refresh) * limits).sum()
        return np.atleast_1d(refresh.sum() + _within_shares(first, backlog.sum(), np.asarray(budget), shares))

    overall = find_root(together, np.array([budget]), near=np.array([NEAR]))
    return np.maximum(own, overall)


def spent(work: Work, price: Floats, limits: Floats, *, shares: Shares = EVEN) -> Floats:
    """Requests that each domain is expected to make on one day at its price of a request."""
    refresh, discovery, backlog = _cost_by_purpose(work, *_looks_wanted(work, price, _requests), _requests)
    return refresh + _within_shares(discovery, backlog, limits, shares)


def longest_gap(pages: Numbers, requests_per_day: Numbers, *, most: Numbers = 180.0) -> Floats:
    """The longest interval, in days, that a budget can promise to `pages` pages: the floor under every page.

    At most LONGEST_INTERVAL_SHARE of the budget goes into it when no page is worth its price. A result above `most`
    means that `most` cannot be kept, which plan reports. Without a budget the interval is next to endless.
    """
    return np.asarray(np.maximum(most, pages / np.maximum(LONGEST_INTERVAL_SHARE * requests_per_day, 1e-12)))


def price_correction(correction: float, *, used: float, allowed: float, waiting: float, hours: float = 1.0) -> float:
    """The factor on the solved price after another hour, or several; corrects it by the requests that were really used.

    correction: the factor so far.  hours: since then, a step for each.  used, allowed: requests an hour.
    waiting: looks that are due and could not be granted. The factor falls at once when requests were left over, since
    those are lost. It rises slowly, and only when more looks wait than the next hour can take: a price that is a little
    low still spends the budget on the best looks.
    """
    if used < USED_UP * allowed:
        return float(max(correction / CORRECTION_DOWN**hours, 1 / MOST_CORRECTION))
    return float(min(correction * CORRECTION_UP**hours, MOST_CORRECTION)) if waiting > allowed else correction


def falling_price(days: float) -> float:
    """Return the factor on the price after so many days' requests went to pages that are not worth it."""
    return exp(-FALL_PER_DAY * days)


def _requests(pages: PageArrays) -> Floats:
    return pages.requests


def _bytes(pages: PageArrays) -> Floats:
    return pages.received_bytes


def _looks_wanted(work: Work, price: Floats, unit: Measure) -> tuple[Floats, Floats]:
    """Looks a day that are worth a price of one unit: revisits of each known page, first looks at each new page."""
    known, new = work.known, work.new
    return (
        looks_per_day(known, price[known.domain] * unit(known)),
        first_looks(new, price[new.domain] * unit(new)) / DISCOVERY_DAYS,
    )


def _cost_by_purpose(work: Work, looks: Floats, first: Floats, amount: Measure) -> tuple[Floats, Floats, Floats]:
    """The cost a day of refresh, of discovery, and of the whole backlog of new pages; by domain."""
    known, new = work.known, work.new
    return (
        _by_domain(work, known, looks * amount(known)),
        _by_domain(work, new, first * amount(new)),
        _by_domain(work, new, new.stands_for * amount(new) / DISCOVERY_DAYS),
    )


def _by_domain(work: Work, pages: PageArrays, numbers: Floats) -> Floats:
    return np.bincount(pages.domain, weights=numbers, minlength=work.domains).astype(np.float64)


def _within_shares(discovery: Floats, backlog: Floats, limits: Floats, shares: Shares) -> Floats:
    """The cost of discovery, held within the shares guaranteed to it and to refresh."""
    least = np.minimum(backlog, shares.discovery * limits)
    return np.clip(discovery, least, np.maximum((1 - shares.refresh) * limits, least))


def _blended(work: Work, limits: Floats, shares: Shares, *, part: float) -> tuple[Price, Floats]:
    """The price of one domain, and how much of each limit it uses. limits: of requests and of bytes.

    part: 0 where only requests are scarce, 1 where only bytes are, between where both are, by the part of bytes.
    """
    known = work.known
    mean_bytes = float((known.received_bytes * known.stands_for).sum()) / max(known.count, 1.0)
    per_byte = part / max(mean_bytes, 1.0)

    def unit(pages: PageArrays) -> Floats:
        return np.asarray((1 - part) * pages.requests + per_byte * pages.received_bytes)

    def used(price: Floats) -> Floats:
        looks = _looks_wanted(work, price, unit)
        costs = [_cost_by_purpose(work, *looks, amount) for amount in (_requests, _bytes)]
        refresh, discovery, backlog = (np.concatenate(parts) for parts in zip(*costs, strict=True))
        return np.asarray((refresh + _within_shares(discovery, backlog, limits, shares)) / np.maximum(limits, TINY))

    scarce = slice(0, 1) if part == 0 else slice(1, 2) if part == 1 else slice(0, 2)
    mu = find_root(lambda price: used(price)[scarce].max(keepdims=True), np.ones(1), near=np.array([NEAR]))
    return Price(float(mu[0]) * (1 - part), float(mu[0]) * per_byte), used(mu)
