"""What plan says of each domain: a price, the longest interval, what to expect of both, and what cannot be had.

Prices are solved in importance across domains, since all may share a budget, and given in that of the domain itself,
whose mean page has 1, since there they are compared with.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.constraints import Constraints, asked_in, constraints_of
from crawler.core.budget.cost import Price
from crawler.core.budget.expected import Expectation, expected_at
from crawler.core.budget.find_root import LEAST_PRICE, TINY
from crawler.core.budget.page_arrays import PageArrays, first_looks
from crawler.core.budget.sample import joined
from crawler.core.budget.shadow_price import EVEN, Budget, Shares, Work, shadow_price, shadow_prices
from crawler.core.budget.target import (
    UNLIMITED,
    DomainLimits,
    overhead,
    part_for,
)
from crawler.core.freshness import Floats

MOVED_BY = 1.25  # times: so much dearer or cheaper, and pages that wait by the old price are scored again
NEARLY = 0.999  # of a limit: it is used to the full


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """What plan says of one domain.

    price: None for the usual one, where nothing is scarce.  longest_days: the interval that no page exceeds.
    asked: requests a day that a target takes; None without one, or where no number would do.  limit: requests a day
    that may be made, inf where nothing limits them.  requests: a day's, expected at this price.
    outlook: of the known pages.  finding: a sentence about what cannot be had, or empty.
    """

    price: Price | None
    longest_days: float
    asked: float | None
    limit: float
    requests: float
    expected: Expectation
    finding: str = ""


def solve_plans(
    works: Sequence[Work], terms: Sequence[DomainLimits], *, overall: Budget = UNLIMITED, shares: Shares = EVEN
) -> list[DomainPlan]:
    """What holds in each of these domains, which share the `overall` budget. works: of one domain each."""
    if not works:
        return []
    if any(each.has_target for each in terms) and min(overall.requests, overall.received_bytes) < math.inf:
        terms = _parted(works, terms, overall, shares)
    return _solved(works, terms, overall, shares)


def _solved(works: Sequence[Work], terms: Sequence[DomainLimits], overall: Budget, shares: Shares) -> list[DomainPlan]:
    open_works = [work for work, each in zip(works, terms, strict=True) if each.limit > 0]
    everything = joined(open_works, [1.0] * len(open_works))
    cases = [
        constraints_of(*each, shares, everything=everything, overall=overall) for each in zip(works, terms, strict=True)
    ]
    prices = _within_requests(cases, overall, shares)
    prices = _within_bytes(cases, prices, overall, shares)
    return _sharing([_plan(case, price, shares) for case, price in zip(cases, prices, strict=True)], overall)


def _parted(
    works: Sequence[Work], terms: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainLimits]:
    """The same terms, each with the part of the overall budget that its prices leave it where it binds.

    Targets of age are not among what decides about that: they would take all of it, at any price.
    """
    asked = [asked_in(*each, shares).requests for each in zip(works, terms, strict=True)]
    ageless = [
        replace(each, oldest_days=None, budget=replace(each.budget, requests=min(each.budget.requests, requests)))
        for each, requests in zip(terms, asked, strict=True)
    ]
    found = _solved(works, ageless, overall, shares)
    looks, received = sum(each.requests for each in found), sum(each.expected.received_bytes for each in found)
    is_free = looks < NEARLY * (overall.requests - overhead(overall.requests))
    if is_free and received < NEARLY * overall.received_bytes:
        return list(terms)
    return [
        replace(each, part=part_for(one.requests))
        if one.requests < NEARLY * (one.limit - overhead(one.limit))
        else each
        for each, one in zip(terms, found, strict=True)
    ]


def _within_requests(cases: Sequence[Constraints], overall: Budget, shares: Shares) -> list[Price]:
    """The price in each domain, a domain's own budget of bytes held, too."""
    own = [_own_price(case, shares) for case in cases]
    limits = np.array([case.looks for case in cases])
    for n, (case, price) in enumerate(zip(cases, own, strict=True)):
        if price.per_byte > 0:  # so that what bytes forbid is not kept free for it in the overall budget
            limits[n] = min(limits[n], requests_at(case.work, price, limit=case.looks, shares=shares))
    work = joined([case.work for case in cases], [case.importance for case in cases])
    solved = shadow_prices(work, limits, overall.requests - overhead(overall.requests), shares=shares)
    return [
        _dearer(case, price, Price(_at_least_usual(case, float(mu) / case.importance, overall)))
        for case, price, mu in zip(cases, own, solved, strict=True)
    ]


def _own_price(case: Constraints, shares: Shares) -> Price:
    """The price at which the domain keeps within its own budget of bytes; the least where it has none."""
    if math.isinf(case.terms.budget.received_bytes) or not len(case.work.known.a):
        return Price(LEAST_PRICE)
    return shadow_price(case.work, Budget(case.looks, case.terms.budget.received_bytes), shares=shares)


def _at_least_usual(case: Constraints, price: float, overall: Budget) -> float:
    """A budget is there to be spent; without any, a request must be worth the usual price."""
    has_budget = case.asked is not None or math.isfinite(min(case.terms.budget.requests, overall.requests))
    return price if has_budget else max(price, case.terms.usual_price)


def _within_bytes(
    cases: Sequence[Constraints], prices: Sequence[Price], overall: Budget, shares: Shares
) -> list[Price]:
    """The same prices, or where all domains together would receive too much, those of a byte."""
    work = joined([case.work for case in cases], [case.importance for case in cases])
    weighed = replace(work, known=_by_bytes(work.known), new=_by_bytes(work.new))
    received = np.array([_bytes_at(c, price, shares) for c, price in zip(cases, prices, strict=True)])
    if float(received.sum()) <= overall.received_bytes:
        return list(prices)
    solved: Floats = shadow_prices(weighed, received, overall.received_bytes, shares=shares)
    return [
        _dearer(case, price, Price(LEAST_PRICE, float(mu) / case.importance))
        for case, price, mu in zip(cases, prices, solved, strict=True)
    ]


def _by_bytes(pages: PageArrays) -> PageArrays:
    """The same pages, of which a look costs as many requests as it receives bytes."""
    return replace(pages, requests=pages.received_bytes)


def _bytes_at(case: Constraints, price: Price, shares: Shares) -> float:
    """Bytes that the domain is expected to receive on one day."""
    requests = requests_at(case.work, price, limit=case.looks, shares=shares)
    known = expected_at(case.work.known, np.array([price.per_request]), per_byte=price.per_byte)
    new = case.work.new
    of_new = float((new.stands_for * new.received_bytes).sum()) / max(float((new.stands_for * new.requests).sum()), 1.0)
    return known.received_bytes + max(requests - known.requests, 0.0) * of_new


def _dearer(case: Constraints, one: Price, other: Price) -> Price:
    """The price by which a mean look costs more: what it leaves undone keeps within the other's limit, too."""
    return one if _of_mean_look(one, case.work.known) > _of_mean_look(other, case.work.known) else other


def _of_mean_look(price: Price, pages: PageArrays) -> float:
    count = max(pages.count, 1.0)
    requests = float((pages.stands_for * pages.requests).sum()) / count
    return (
        price.per_request * requests + price.per_byte * float((pages.stands_for * pages.received_bytes).sum()) / count
    )


def has_moved(before: Price, after: Price, pages: PageArrays) -> bool:
    """Whether what a mean look must be worth went up or down by more than a quarter."""
    was, is_now = (max(_of_mean_look(price, pages), LEAST_PRICE) for price in (before, after))
    return max(was / is_now, is_now / was) > MOVED_BY


def requests_at(work: Work, price: Price, *, limit: float = math.inf, shares: Shares = EVEN) -> float:
    """Requests for looks that one domain is expected to make on one day: again, and first ones as its limit lets it."""
    known = expected_at(work.known, np.array([price.per_request]), per_byte=price.per_byte).requests
    new = work.new
    first = first_looks(new, price.per_request * new.requests + price.per_byte * new.received_bytes)
    return known + min(float((first * new.requests).sum()), (1 - shares.refresh) * limit)


def _plan(case: Constraints, price: Price, shares: Shares) -> DomainPlan:
    usual = Price(case.terms.usual_price)
    is_usual = price == usual or not len(case.work.known.a)
    price = usual if is_usual else Price(max(price.per_request, LEAST_PRICE), price.per_byte)
    return DomainPlan(
        price=None if is_usual else price,
        longest_days=case.longest_days,
        asked=case.asked,
        limit=case.limit,
        requests=min(requests_at(case.work, price, limit=case.looks, shares=shares), case.looks),
        expected=expected_at(case.work.known, np.array([price.per_request]), per_byte=price.per_byte),
        finding=case.finding,
    )


def _sharing(found: list[DomainPlan], overall: Budget) -> list[DomainPlan]:
    """First looks wait for tomorrow where all domains together have no request left for them today."""
    again = sum(min(each.expected.requests, each.requests) for each in found)
    first = sum(each.requests for each in found) - again
    part = (overall.requests - overhead(overall.requests) - again) / max(first, TINY)
    if part >= 1:
        return found
    return [
        replace(each, requests=each.requests - (1 - max(part, 0.0)) * max(each.requests - each.expected.requests, 0.0))
        for each in found
    ]
