"""What target, budgets and politeness leave one domain: how many requests a day, and how long a page may wait."""

import math
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.find_root import TINY
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.budget.shadow_price import FLOOR_SHARE, Budget, Shares, Work, longest_gap
from crawler.core.budget.target import (
    Asked,
    DomainLimits,
    Limit,
    asked_of,
    left_by,
    overhead,
    own_limit,
    shared_limit,
)

LONGEST_DAYS = 1e6  # an interval that a calendar can still add to a date

LEAST_IMPORTANCE = 1e-6  # of a domain beside others; less would make its price a division by nothing


@dataclass(frozen=True, slots=True)
class Constraints:
    """A domain on its way to a price. work: within its longest interval.  limit: requests a day, asked: see Tariff."""

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
    """What the target, the budgets and politeness leave the domain: its limit and its longest interval.

    everything: in all domains that share the `overall` budget: it, too, has to bear the longest interval and the rules.
    """
    most = terms.oldest_days or terms.most_days
    asked = asked_in(work, terms, shares)
    own, together = own_limit(work.known, terms), shared_limit(everything.known, overall)
    late, slow = max(_late(work, own, shares), _late(everything, together, shares), key=lambda found: found[0])
    limit = terms.limit if terms.spends_all else min(terms.limit, asked.requests)
    if terms.oldest_days:  # which would outbid the others at any price
        limit = min(limit, terms.part)
    if limit < own.requests:
        own = Limit(limit, own.name, f"the {limit:,.0f} requests a day of its target")
    longest, rate = max(_longest(work, own, most), _longest(everything, together, most))
    longest = min(longest, asked.oldest_days or longest, LONGEST_DAYS)
    findings = [asked.finding]
    if limit > 0 and late > 1 and work.known.is_ruled.any():
        findings.append(f"Pages wait {late:,.3g} times as long as rules say: {slow} are too few for them")
    if limit > 0 and longest > most and not asked.finding:
        findings.append(f"A page may wait {longest:,.0f} days, not {most:,.0f}: at {rate} it has to")
    # What no number of requests can reach is no reason to make as many as one can.
    takes = asked.requests if math.isfinite(asked.requests) else None
    return Constraints(
        terms, _lasting(work, longest, late=late), takes, limit, longest, ". ".join(filter(None, findings))
    )


def _longest(work: Work, limit: Limit, most: float) -> tuple[float, str]:
    """The longest interval that a limit bears for pages of which no rule says any, and the limit."""
    count = float(work.known.stands_for[~work.known.is_ruled].sum())
    return float(longest_gap(count, limit.requests, most=most)), limit.rate


def _late(work: Work, limit: Limit, shares: Shares) -> tuple[float, str]:
    """How many times as long as rules say their pages have to wait, 1 where they need not, and by which limit."""
    pages = work.known
    asked = float((pages.stands_for * pages.requests / pages.most)[pages.is_ruled].sum())
    left = limit.looks * left_by(work, shares) * (1 - FLOOR_SHARE)
    return max(asked / max(left, TINY), 1.0), limit.rate


def asked_in(work: Work, terms: DomainLimits, shares: Shares) -> Asked:
    """What the domain's target takes, all that there is where it has none."""
    if not terms.has_target or not len(work.known.a):
        return Asked(math.inf)
    return asked_of(_lasting(work, terms.oldest_days or terms.most_days), terms, shares)


def _lasting(work: Work, most_days: float, *, late: float = 1.0) -> Work:
    """The same work, with this longest interval where no rule says another.

    late: how many times as long as a rule says its pages have to wait.
    """

    def within(pages: PageArrays) -> PageArrays:
        ruled = np.minimum(late * pages.most, LONGEST_DAYS)
        return replace(pages, most=np.where(pages.is_ruled, ruled, np.maximum(pages.least, most_days)))

    return replace(work, known=within(work.known), new=within(work.new))
