"""The constraints of one domain by target, budgets and politeness: requests a day, and how long a page may wait."""

import math
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.find_root import TINY
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.budget.shadow_price import LONGEST_INTERVAL_SHARE, Budget, Shares, Work, longest_gap
from crawler.core.budget.target import (
    DomainLimits,
    Limit,
    TargetDemand,
    left_by,
    overhead,
    own_limit,
    shared_limit,
    target_demand,
)

LONGEST_DAYS = 1e6  # an interval that a calendar can still add to a date

LEAST_IMPORTANCE = 1e-6  # of a domain beside others; less would make its price a division by nothing


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints under which a domain's price is solved. work: its pages, within the longest interval.

    limit: requests a day.  asked, longest_days, finding: see DomainPlan.
    """

    terms: DomainLimits
    work: Work
    asked: float | None
    limit: float
    longest_days: float
    finding: str

    @property
    def looks(self) -> float:
        """Requests a day that the limit leaves for looks."""
        return self.limit - overhead(self.limit)

    @property
    def importance(self) -> float:
        return max(self.terms.importance, LEAST_IMPORTANCE)


def constraints_of(
    work: Work, terms: DomainLimits, shares: Shares, *, everything: Work, overall: Budget
) -> Constraints:
    """The limits of one domain: requests a day (least of target, budget, politeness) and longest interval in days.

    everything: work of all domains under the `overall` budget; the interval must be affordable for them as well.
    """
    most = terms.oldest_days or terms.most_days
    asked = demand_of(work, terms, shares)
    own, together = own_limit(work.known, terms), shared_limit(everything.known, overall)
    late, slow = max(_late(work, own, shares), _late(everything, together, shares), key=lambda found: found[0])
    limit = terms.limit if terms.spends_all else min(terms.limit, asked.requests)
    if terms.oldest_days:  # an age target would outbid the other domains at any price
        limit = min(limit, terms.part)
    if limit < own.requests:
        own = Limit(limit, own.name, f"the {limit:,.0f} requests a day of its target")
    longest, rate = max(_longest(work, own, most), _longest(everything, together, most))
    longest = min(longest, asked.oldest_days or longest, LONGEST_DAYS)
    findings = [asked.finding]
    if limit > 0 and late > 1 and work.known.is_ruled.any():
        findings.append(f"Pages wait {late:,.3g} times as long as rules or the policy say: {slow} are too few for them")
    if limit > 0 and longest > most and not asked.finding:
        findings.append(f"A page may wait {longest:,.0f} days, not {most:,.0f}: at {rate} it has to")
    # A target that no number of requests can reach is no reason to make as many requests as possible.
    takes = asked.requests if math.isfinite(asked.requests) else None
    return Constraints(
        terms,
        _with_longest(_scaled(work, own, shares) if terms.scales_gaps else work, longest, late=late),
        takes,
        limit,
        longest,
        ". ".join(filter(None, findings)),
    )


def _longest(work: Work, limit: Limit, most: float) -> tuple[float, str]:
    """The longest interval that a limit affords for pages without a rule, in days, and the limit's rate."""
    count = float(work.known.stands_for[~work.known.is_ruled].sum())
    return float(longest_gap(count, limit.requests, most=most)), limit.rate


def _late(work: Work, limit: Limit, shares: Shares) -> tuple[float, str]:
    """The factor by which pages have to wait longer than rules say, 1 or more, and the limit that causes it."""
    left = limit.looks * left_by(work, shares) * (1 - LONGEST_INTERVAL_SHARE)
    return max(_asked_by_rules(work.known) / max(left, TINY), 1.0), limit.rate


def _asked_by_rules(pages: PageArrays) -> float:
    """The requests a day that rules, or another policy than the price, ask for."""
    return float((pages.stands_for * pages.requests / pages.most)[pages.is_ruled].sum())


def _scaled(work: Work, limit: Limit, shares: Shares) -> Work:
    """The work, with the gaps of a policy shortened until the known pages use what the limit leaves them.

    Gaps that are too short for the limit are stretched by `_late`.
    """
    asked = _asked_by_rules(work.known)
    factor = min(asked / max(limit.looks * left_by(work, shares), TINY), 1.0)
    known = work.known
    return replace(work, known=replace(known, least=known.least * factor, most=known.most * factor))


def demand_of(work: Work, terms: DomainLimits, shares: Shares) -> TargetDemand:
    """The requests a day that the domain's target takes; inf without a target."""
    if not terms.has_target or not len(work.known.a):
        return TargetDemand(math.inf)
    return target_demand(_with_longest(work, terms.oldest_days or terms.most_days), terms, shares)


def _with_longest(work: Work, most_days: float, *, late: float = 1.0) -> Work:
    """The work, with a longest interval of most_days for pages without a rule.

    late: factor by which pages with a rule have to wait longer than it says.
    """

    def within(pages: PageArrays) -> PageArrays:
        ruled = np.minimum(late * pages.most, LONGEST_DAYS)
        return replace(pages, most=np.where(pages.is_ruled, ruled, np.maximum(pages.least, most_days)))

    return replace(work, known=within(work.known), new=within(work.new))
