"""Solve the plan of each domain: its shadow price, longest interval, expected freshness, and what cannot be had.

Prices are solved in importance across domains, since all may share a budget. They are given in the importance within
the domain, whose mean page has 1, since a claim compares them with that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.constraints import (
    UNLIMITED,
    Constraints,
    DomainLimits,
    constraints_of,
    demand_of,
    looks_within,
    requests_for,
)
from crawler.core.budget.cost import Price
from crawler.core.budget.expected import Expectation, expected_in_one
from crawler.core.budget.find_root import LEAST_PRICE, TINY
from crawler.core.budget.page_arrays import PageArrays, first_looks
from crawler.core.budget.sample import joined
from crawler.core.budget.shadow_price import EVEN, Budget, Shares, Work, shadow_price, shadow_prices
from crawler.core.freshness.gamma import Floats

MOVED_BY = 1.25  # factor by which a price must rise or fall, before pages that wait by the old one are scored again
NEARLY = 0.999  # of a limit, from which on it counts as used to the full


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """The solved plan of one domain.

    price: None for the usual one, where nothing is scarce.  longest_days: the interval that no page exceeds.
    asked: requests a day that a target takes; None without one, or where no number would do.  limit: requests a day
    that may be made, inf where nothing limits them.  requests: a day's, expected at this price.
    expected: of the known pages.  finding: a sentence about what cannot be had, or empty.
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
    """Solve the plans of domains that share the `overall` budget. works, terms: of one domain each, in one order."""
    if not works:
        return []
    if any(each.has_target for each in terms) and min(overall.requests, overall.received_bytes) < math.inf:
        terms = _with_shares_of_overall(works, terms, overall, shares)
    return _solved(works, terms, overall, shares)


def _solved(works: Sequence[Work], terms: Sequence[DomainLimits], overall: Budget, shares: Shares) -> list[DomainPlan]:
    open_works = [work for work, each in zip(works, terms, strict=True) if each.limit > 0]
    everything = joined(open_works, [1.0] * len(open_works))
    constraints = [
        constraints_of(*each, shares, everything=everything, overall=overall) for each in zip(works, terms, strict=True)
    ]
    together = joined([each.work for each in constraints], [each.importance for each in constraints])
    prices = _within_requests(constraints, together, overall, shares)
    prices = _within_bytes(constraints, together, prices, overall, shares)
    return _with_first_looks_cut(
        [_plan(domain, price, shares) for domain, price in zip(constraints, prices, strict=True)], overall
    )


def _with_shares_of_overall(
    works: Sequence[Work], terms: Sequence[DomainLimits], overall: Budget, shares: Shares
) -> list[DomainLimits]:
    """The limits of each domain, with its part of the overall budget where that binds.

    The part is what the domain would get with age targets ignored: an age target has no price at which it gives way,
    so it would take everything.
    """
    asked = [demand_of(*each, shares).requests for each in zip(works, terms, strict=True)]
    ageless = [
        replace(each, oldest_days=None, budget=replace(each.budget, requests=min(each.budget.requests, requests)))
        for each, requests in zip(terms, asked, strict=True)
    ]
    found = _solved(works, ageless, overall, shares)
    looks, received = sum(each.requests for each in found), sum(each.expected.received_bytes for each in found)
    is_free = looks < NEARLY * looks_within(overall.requests)
    if is_free and received < NEARLY * overall.received_bytes:
        return list(terms)
    return [
        replace(each, part=requests_for(plan.requests)) if plan.requests < NEARLY * looks_within(plan.limit) else each
        for each, plan in zip(terms, found, strict=True)
    ]


def _within_requests(
    constraints: Sequence[Constraints], together: Work, overall: Budget, shares: Shares
) -> list[Price]:
    """The price of a request in each domain, with each domain's own budget of bytes held as well.

    together: the work of all domains.
    """
    own = [_own_price(domain, shares) for domain in constraints]
    limits = np.array([domain.looks for domain in constraints])
    for n, (domain, price) in enumerate(zip(constraints, own, strict=True)):
        if price.per_byte > 0:  # requests that its bytes forbid must not be kept free for it in the overall budget
            limits[n] = min(limits[n], requests_at(domain.work, price, limit=domain.looks, shares=shares))
    solved = shadow_prices(together, limits, looks_within(overall.requests), shares=shares)
    return [
        _dearer(domain, price, Price(_at_least_usual(domain, float(mu) / domain.importance, overall)))
        for domain, price, mu in zip(constraints, own, solved, strict=True)
    ]


def _own_price(domain: Constraints, shares: Shares) -> Price:
    """The price at which the domain keeps within its own budget of bytes; LEAST_PRICE without such a budget."""
    if math.isinf(domain.terms.budget.received_bytes) or not len(domain.work.known.a):
        return Price(LEAST_PRICE)
    return shadow_price(domain.work, Budget(domain.looks, domain.terms.budget.received_bytes), shares=shares)


def _at_least_usual(domain: Constraints, price: float, overall: Budget) -> float:
    """The price, raised to the usual one where no budget or target applies. A budget is there to be spent."""
    has_budget = domain.asked is not None or math.isfinite(min(domain.terms.budget.requests, overall.requests))
    return price if has_budget else max(price, domain.terms.usual_price)


def _within_bytes(
    constraints: Sequence[Constraints], together: Work, prices: Sequence[Price], overall: Budget, shares: Shares
) -> list[Price]:
    """The prices as they are, or prices of a byte where all domains together would receive too many bytes."""
    received = np.array([_bytes_at(c, price, shares) for c, price in zip(constraints, prices, strict=True)])
    if float(received.sum()) <= overall.received_bytes:
        return list(prices)
    weighed = replace(together, known=_costing_bytes(together.known), new=_costing_bytes(together.new))
    solved: Floats = shadow_prices(weighed, received, overall.received_bytes, shares=shares)
    return [
        _dearer(domain, price, Price(LEAST_PRICE, float(mu) / domain.importance))
        for domain, price, mu in zip(constraints, prices, solved, strict=True)
    ]


def _costing_bytes(pages: PageArrays) -> PageArrays:
    """Pages whose look costs as many requests as it receives bytes, so that bytes can be priced as requests are."""
    return replace(pages, requests=pages.received_bytes)


def _bytes_at(domain: Constraints, price: Price, shares: Shares) -> float:
    """Bytes that a domain is expected to receive on one day."""
    requests = requests_at(domain.work, price, limit=domain.looks, shares=shares)
    known = expected_in_one(domain.work.known, price)
    new = domain.work.new
    of_new = float((new.stands_for * new.received_bytes).sum()) / max(float((new.stands_for * new.requests).sum()), 1.0)
    return known.received_bytes + max(requests - known.requests, 0.0) * of_new


def _dearer(domain: Constraints, first: Price, second: Price) -> Price:
    """The one of two prices by which a mean look costs more; it keeps within the limits of both."""
    return first if _mean_look_price(first, domain.work.known) > _mean_look_price(second, domain.work.known) else second


def _mean_look_price(price: Price, pages: PageArrays) -> float:
    count = max(pages.count, 1.0)
    requests = float((pages.stands_for * pages.requests).sum()) / count
    return (
        price.per_request * requests + price.per_byte * float((pages.stands_for * pages.received_bytes).sum()) / count
    )


def has_moved(before: Price, after: Price, pages: PageArrays) -> bool:
    """Whether the price of a mean look went up or down by more than a quarter (MOVED_BY)."""
    was, is_now = (max(_mean_look_price(price, pages), LEAST_PRICE) for price in (before, after))
    return max(was / is_now, is_now / was) > MOVED_BY


def requests_at(work: Work, price: Price, *, limit: float = math.inf, shares: Shares = EVEN) -> float:
    """Requests for looks that a domain is expected to make on one day: revisits, and first looks within its limit."""
    known = expected_in_one(work.known, price).requests
    new = work.new
    first = first_looks(new, price.per_request * new.requests + price.per_byte * new.received_bytes)
    return known + min(float((first * new.requests).sum()), (1 - shares.refresh) * limit)


def _plan(domain: Constraints, price: Price, shares: Shares) -> DomainPlan:
    usual = Price(domain.terms.usual_price)
    is_usual = price == usual or not len(domain.work.known.a)
    price = usual if is_usual else Price(max(price.per_request, LEAST_PRICE), price.per_byte)
    return DomainPlan(
        price=None if is_usual else price,
        longest_days=domain.longest_days,
        asked=domain.asked,
        limit=domain.limit,
        requests=min(requests_at(domain.work, price, limit=domain.looks, shares=shares), domain.looks),
        expected=expected_in_one(domain.work.known, price),
        finding=domain.finding,
    )


def _with_first_looks_cut(found: list[DomainPlan], overall: Budget) -> list[DomainPlan]:
    """The plans, with first looks cut to the requests that all domains together have left for them."""
    revisits = sum(min(each.expected.requests, each.requests) for each in found)
    first = sum(each.requests for each in found) - revisits
    part = (looks_within(overall.requests) - revisits) / max(first, TINY)
    if part >= 1:
        return found
    return [
        replace(each, requests=each.requests - (1 - max(part, 0.0)) * max(each.requests - each.expected.requests, 0.0))
        for each in found
    ]
