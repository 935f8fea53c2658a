"""The freshness and age to expect of known pages: at a price, for a target, and under each revisit policy.

Beliefs say how often pages change; no page is looked at for it.
"""

from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.cost import Price
from crawler.core.budget.find_root import CLOSE, LEAST_PRICE, find_root
from crawler.core.budget.page_arrays import PageArrays, ageing, gaps
from crawler.core.budget.shadow_price import EVEN, MOST_RATE, Shares, Work, shadow_prices, spent
from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.value import NOT_ZERO, fresh_days

FACTORS = (0.1, 0.2, 0.5, 0.8, 1.0, 1.1, 1.5, 2.0, 5.0, 10.0)  # of today's budget, for `recrawl plan`

PRICE, SIMILARITY, FIXED = "price", "similarity", "fixed"

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expectation for known pages that are looked at whenever they are worth a price.

    requests, received_bytes: a day.  freshness: the share of the importance whose copy is as it is on the web, 0 to 1.
    age_days: how long a copy has been out of date, 0 while it is not; by importance.  oldest_days: the longest gap.
    """

    price: Price
    requests: float
    received_bytes: float
    freshness: float
    age_days: float
    oldest_days: float


@dataclass(frozen=True, slots=True)
class TargetCost:
    """The cost of a target. reachable: the best that the limits allow, as freshness or as the oldest age in days.

    requests: a day; where the target is not possible, the number needed without any limit, or inf.
    """

    requests: float
    possible: bool
    reachable: float


def freshness_of(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """The expected share of the time for which copies are fresh, of pages looked at every `gap` days."""
    return np.asarray(np.minimum(fresh_days(a, b, gap) / np.maximum(gap, NOT_ZERO), 1.0))


def age_of(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """The expected age of copies, in days, averaged over gaps of `gap` days: 0 while fresh, else since the first change
    that they miss.

    gap/2 less the mean over the gap of the fresh days so far. By Gauss-Legendre on ln(1 + t/b), where the integrand is
    smooth and no case needs care.
    """
    y = np.asarray(gap, dtype=np.float64) / b
    log_y = np.log1p(y)
    v = 0.5 * log_y[..., None] * (_NODES + 1)
    x = (1 - np.asarray(a, dtype=np.float64)[..., None]) * v + NOT_ZERO
    fresh_so_far = 0.5 * log_y * ((v * np.expm1(x) / x * np.exp(v)) @ _NODE_WEIGHTS)
    return np.asarray(np.maximum(b * (y / 2 - fresh_so_far / np.maximum(y, NOT_ZERO)), 0.0))


def expected_at(pages: PageArrays, prices: Floats, *, per_byte: float = 0.0) -> Expectation:
    """The Expectation for known pages. prices: of a request, by domain.  per_byte: price of a byte."""
    price = prices[pages.domain] * pages.requests + per_byte * pages.received_bytes
    gap = gaps(pages, price)
    weight = pages.importance * pages.stands_for
    total = max(float(weight.sum()), NOT_ZERO)
    return Expectation(
        price=Price(float(prices.max(initial=0.0)), per_byte),
        requests=float((pages.stands_for * pages.requests / gap).sum()),
        received_bytes=float((pages.stands_for * pages.received_bytes / gap).sum()),
        freshness=float((weight * freshness_of(pages.a, pages.b, ageing(pages, price, gap))).sum()) / total,
        age_days=float((weight * age_of(pages.a, pages.b, gap)).sum()) / total,
        oldest_days=float(gap.max(initial=0.0)),
    )


def expected_in_one(pages: PageArrays, price: Price) -> Expectation:
    """The Expectation for known pages of one domain at its price."""
    return expected_at(pages, np.array([price.per_request]), per_byte=price.per_byte)


def cost_of_freshness(work: Work, target: float, limits: Floats, *, shares: Shares = EVEN) -> TargetCost:
    """The budget of all domains together at which a share `target` of the weight is expected to be fresh.

    target: above 0, below 1.  limits: requests a day that politeness leaves each domain; inf where it does not matter.
    """
    best = shadow_prices(work, limits, MOST_RATE, shares=shares)
    reachable = expected_at(work.known, best).freshness
    price = _price_for(work.known, target, least=best)
    possible = reachable >= target * (1 - CLOSE)
    if not possible:
        unlimited = np.full(work.domains, LEAST_PRICE)
        price = _price_for(work.known, target, least=unlimited)
        if expected_at(work.known, price).freshness < target * (1 - CLOSE):
            return TargetCost(float("inf"), possible=False, reachable=reachable)
    return TargetCost(float(spent(work, price, limits, shares=shares).sum()), possible=possible, reachable=reachable)


def _price_for(pages: PageArrays, target: float, *, least: Floats) -> Floats:
    """The one price, or where that is higher the domain's least, at which the target is met."""

    def fresh(price: Floats) -> Floats:
        return np.atleast_1d(expected_at(pages, np.maximum(price, least)).freshness)

    return np.maximum(find_root(fresh, np.array([target]), near=np.array([0.25])), least)


def cost_of_age(work: Work, oldest_days: float, limits: Floats) -> TargetCost:
    """The budget of all domains together at which no known page goes unseen for longer than `oldest_days`.

    Pages with a rule for their longest interval go unseen for that long. None is looked at before its least interval.
    reachable: the age that the pages without such a rule get within the limits.
    """
    known = work.known
    cost = known.stands_for * known.requests
    by_rule = np.where(known.is_ruled, cost / known.most, 0.0)
    others = np.where(known.is_ruled, 0.0, cost)
    left = limits - np.bincount(known.domain, weights=by_rule, minlength=work.domains)
    per_round = np.bincount(known.domain, weights=others, minlength=work.domains)
    reachable = float((per_round / np.maximum(left, NOT_ZERO)).max(initial=0.0))
    needed = float((by_rule + others / np.maximum(known.least, oldest_days)).sum())
    possible = reachable <= oldest_days and bool((left >= 0).all())
    return TargetCost(needed, possible=possible, reachable=reachable)


@dataclass(frozen=True, slots=True)
class PolicyForecast:
    """The expectation for known pages under one revisit policy, named as `domains set --revisit` takes it.

    is_today: the domain's own policy, at the price in force.
    """

    policy: str
    is_today: bool
    expected: Expectation


def compare_policies(free: PageArrays, today: Expectation, *, policy: str) -> list[PolicyForecast]:
    """The domain's policy, and the others beside it, each at as many requests.

    free: the known pages of one domain, not empty, with the bounds of their gaps.  today: what the policy makes expect.
    Similarity is taken to have settled: visits of a page are a multiple of its mean time between changes apart, the
    same for all pages, as a budget scales its periods.
    """
    found = [PolicyForecast(policy, is_today=True, expected=today)]
    if policy != PRICE:
        found.append(_by_price(free, today.requests))
    if not policy.startswith(FIXED):
        found.append(_fixed(free, today.requests))
    if policy != SIMILARITY:
        similar = _bound(free, free.b / free.a * _scale(free, free.b / free.a, today.requests))
        found.append(PolicyForecast(SIMILARITY, is_today=False, expected=similar))
    return found


def _by_price(free: PageArrays, requests: float) -> PolicyForecast:
    """The price at which so many requests a day are expected, or as near to them as the bounds allow."""

    def asked(price: Floats) -> Floats:
        return np.atleast_1d(expected_at(free, price).requests)

    price = find_root(asked, np.array([requests]), near=np.array([0.25]))
    return PolicyForecast(PRICE, is_today=False, expected=expected_at(free, price))


def _fixed(free: PageArrays, requests: float) -> PolicyForecast:
    """One span for all pages, at as many requests."""
    days = _scale(free, 1.0, requests)
    span = f"{days:.3g}d" if days >= 1 else f"{24 * days:.3g}h"
    return PolicyForecast(f"{FIXED} {span}", is_today=False, expected=_bound(free, days))


def _scale(free: PageArrays, gaps: Numbers, requests: float) -> float:
    """The factor on gaps by which so many requests a day are made, or as near to them as the bounds allow."""

    def asked(factor: Floats) -> Floats:
        return np.atleast_1d(_bound(free, gaps * factor[0]).requests)

    return float(find_root(asked, np.array([requests]), near=np.array([10.0]))[0])


def _bound(free: PageArrays, days: Numbers) -> Expectation:
    """The expectation where each page is looked at after so many days, within its bounds."""
    gap = np.clip(np.broadcast_to(days, free.a.shape), free.least, free.most)
    return expected_at(replace(free, least=gap, most=gap), np.ones(1))
