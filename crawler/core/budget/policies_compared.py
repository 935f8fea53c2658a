"""What a domain's revisit policies would make of its known pages: requests, freshness and age, beside each other.

Beliefs say how often pages change; no page is looked at for it. All are compared at as many requests a day.
"""

from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.expected import Expectation, expected_at
from crawler.core.budget.find_root import find_root
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.freshness import Floats, Numbers

PRICE, SIMILARITY, FIXED = "price", "similarity", "fixed"


@dataclass(frozen=True, slots=True)
class PolicyForecast:
    """The expectation for known pages under one policy, named as `domains set --revisit` takes it.

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
