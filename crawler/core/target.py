"""What holds for the requests of one domain, and what a target that stands in place of a budget takes of them."""

import math
from dataclasses import dataclass, field

import numpy as np

from crawler.core.budget import Budget, Shares, Work
from crawler.core.outlook import Need, need_for_age, need_for_freshness

UNLIMITED = Budget(float("inf"))
ROBOTS_PER_DAY = 1.0  # requests that are no looks
AUDIT_SHARE = 0.01  # of a budget, for the random sample that tells how true the freshness report is
MOST_OVERHEAD = 0.5  # of a budget: a single request a day is not all spent on robots.txt


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for one domain. importance: beside other domains, of which the mean one has 1.

    budget: its user's, of a day.  delay_s: in force.  cap: requests a day that it leaves.  freshness: a target share,
    above 0 and below 1.  oldest_days: a target for the longest interval.  usual: the price where nothing is scarce.
    most_days: the longest interval, unless the target is shorter.
    """

    importance: float = 1.0
    budget: Budget = field(default=UNLIMITED)
    delay_s: float = 0.0
    cap: float = float("inf")
    freshness: float | None = None
    oldest_days: float | None = None
    usual: float = 0.25
    most_days: float = 180.0

    @property
    def limit(self) -> float:
        """Requests a day that neither the user's budget nor politeness forbids."""
        return min(self.budget.requests, self.cap)

    @property
    def has_target(self) -> bool:
        return self.freshness is not None or self.oldest_days is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a target takes. requests: a day, inf where no number would do.  oldest_days: the age that can be had.

    finding: why the target cannot be met, or empty.
    """

    requests: float
    oldest_days: float | None = None
    finding: str = ""


def overhead(limit: float) -> float:
    """Requests a day that are no looks by value: robots.txt, audits. limit: of all requests a day."""
    return 0.0 if math.isinf(limit) else min(ROBOTS_PER_DAY + AUDIT_SHARE * limit, MOST_OVERHEAD * limit)


def budget_for(looks: float) -> float:
    """The budget, in requests a day, that leaves so many for looks."""
    return looks if math.isinf(looks) else float(math.ceil((looks + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE)))


def asked_of(work: Work, terms: Terms, shares: Shares) -> Asked:
    """The requests a day that the domain's target takes. work: of this domain alone, with known pages."""
    limits = np.array([terms.limit - overhead(terms.limit)])
    if terms.freshness is not None:
        need = need_for_freshness(work, terms.freshness, limits, shares=shares)
        target, reached = f"{100 * terms.freshness:.3g} % fresh", f"gives {100 * need.reachable:.1f} %"
    else:
        assert terms.oldest_days is not None
        need = need_for_age(work, terms.oldest_days, limits * _left_by(work, shares))
        need = Need(need.requests / _left_by(work, shares), possible=need.possible, reachable=need.reachable)
        target = f"No page older than {terms.oldest_days:.3g} days"
        reached = f"reaches every page once in {need.reachable:,.3g} days"
    requests = budget_for(need.requests)
    oldest = None if terms.oldest_days is None else max(terms.oldest_days, need.reachable)
    if need.possible:
        return Asked(requests, oldest)
    takes = "is out of reach" if math.isinf(requests) else f"needs {requests:,.0f} requests a day"
    return Asked(requests, oldest, f"{target} {takes}; {_what_limits(terms)} {reached}")


def _left_by(work: Work, shares: Shares) -> float:
    """The part of all requests that discovery leaves to known pages, while it has work."""
    return 1 - shares.discovery if len(work.new.a) else 1.0


def _what_limits(terms: Terms) -> str:
    if terms.cap < terms.budget.requests:
        return f"the delay of {terms.delay_s:,.5g} s allows {terms.cap:,.0f}, which"
    return f"the budget of {terms.budget.requests:,.0f}" if math.isfinite(terms.limit) else "even the least price"
