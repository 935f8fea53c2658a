"""The limits of one domain's requests: by its budgets, by politeness, and by a target of freshness or age.

A target takes as many requests as it needs in place of a budget; a limit says how long a page may have to wait.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.expected import TargetCost, cost_of_age, cost_of_freshness
from crawler.core.budget.find_root import TINY
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.budget.shadow_price import LONGEST_INTERVAL_SHARE, Budget, Shares, Work, longest_gap

UNLIMITED = Budget(float("inf"))
ROBOTS_PER_DAY = 1.0  # requests that are no looks
AUDIT_SHARE = 0.01  # of a budget, for the audit: the random sample that measures the freshness report
MOST_OVERHEAD = 0.5  # of a budget: a single request a day is not all spent on robots.txt
NEVER_DAYS = 1e6
AIM_ABOVE = 0.004  # a target of freshness: by the pace of a day visits are late, which costs .0025 (decision 0051)
UNITS = ((1.0, "days"), (1 / 24, "hours"), (1 / 1440, "minutes"), (1 / 86_400, "seconds"))  # in days
LONGEST_DAYS = 1e6  # an interval that a calendar can still add to a date
LEAST_IMPORTANCE = 1e-6  # of a domain beside others; less would make its price a division by nothing


@dataclass(frozen=True, slots=True)
class DomainLimits:
    """The limits and targets of one domain. importance: beside other domains, of which the mean one has 1.

    budget: its user's, of a day.  delay_s: in force.  cap: requests a day that it leaves.  freshness: a target share,
    above 0 and below 1.  oldest_days: a target for the longest interval.  usual_price: where nothing is scarce.
    most_days: the longest interval, unless the target is shorter.  part: requests a day that a budget of all domains
    together leaves this one.  spends_all: the whole budget is spent, even if a target asks for less.
    is_always_open: the domain has no hours; else all of a day is a mean day's.
    scales_gaps: the gaps of the domain's revisit policy are scaled until they use the limit.
    """

    importance: float = 1.0
    budget: Budget = UNLIMITED
    delay_s: float = 0.0
    cap: float = float("inf")
    freshness: float | None = None
    oldest_days: float | None = None
    usual_price: float = 0.25
    most_days: float = 180.0
    part: float = float("inf")
    spends_all: bool = False
    is_always_open: bool = True
    scales_gaps: bool = False

    @property
    def limit(self) -> float:
        """Requests a day that neither the user's budget nor politeness forbids."""
        return min(self.budget.requests, self.cap)

    @property
    def has_target(self) -> bool:
        return self.freshness is not None or self.oldest_days is not None


@dataclass(frozen=True, slots=True)
class TargetDemand:
    """The demand of a target. requests: a day, inf where no number would do.  oldest_days: the age that can be had.

    finding: why the target cannot be met, or empty.
    """

    requests: float
    oldest_days: float | None = None
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of requests a day, and its texts. name: as subject of a sentence.  rate: as "n requests a day"."""

    requests: float
    name: str
    rate: str


def looks_within(limit: float) -> float:
    """The looks that a limit of requests a day leaves beside robots.txt and audits, which are no looks by value."""
    return limit if math.isinf(limit) else limit - min(ROBOTS_PER_DAY + AUDIT_SHARE * limit, MOST_OVERHEAD * limit)


def budget_for(looks: float) -> float:
    """The budget, in requests a day, that leaves so many for looks."""
    return looks if math.isinf(looks) else float(math.ceil((looks + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE)))


def requests_for(looks: float) -> float:
    """The requests a day, with fractions, that leave so many for looks."""
    return min((looks + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE), looks / (1 - MOST_OVERHEAD))


def own_limit(pages: PageArrays, terms: DomainLimits) -> Limit:
    """The tightest limit of a domain with these known pages, of its user's budget and politeness."""
    budget = f"{terms.budget.requests:,.0f}"
    within = "" if terms.is_always_open else " in its hours"
    cap = f"the delay of {terms.delay_s:,.5g} s allows {terms.cap:,.0f}{within}, which"
    limits = (
        Limit(math.inf, "even the least price", ""),
        Limit(terms.budget.requests, f"the budget of {budget}", f"{budget} requests a day"),
        Limit(terms.cap, cap, f"{terms.cap:,.0f} requests a day"),
        _of_bytes(pages, terms.budget.received_bytes, "the budget of"),
    )
    return min(limits, key=lambda limit: limit.requests)


def shared_limit(pages: PageArrays, overall: Budget) -> Limit:
    """The tightest limit by the budget of all domains together. pages: known pages of all domains."""
    requests = f"all domains' {overall.requests:,.0f} requests a day"
    return min(
        Limit(overall.requests, requests, requests),
        _of_bytes(pages, overall.received_bytes, "all domains'"),
        key=lambda limit: limit.requests,
    )


def _of_bytes(pages: PageArrays, received_bytes: float, whose: str) -> Limit:
    """A limit of bytes as a limit of requests, by the mean look at these pages."""
    requests = float((pages.stands_for * pages.requests).sum())
    received = float((pages.stands_for * pages.received_bytes).sum())
    asked = received_bytes * requests / received if received else math.inf
    rate = f"{received_bytes:,.0f} bytes a day"
    return Limit(asked, f"{whose} {rate}", rate if whose == "the budget of" else f"{whose} {rate}")


def target_demand(work: Work, terms: DomainLimits, shares: Shares) -> TargetDemand:
    """The requests a day that the domain's target takes. work: of this domain alone, with known pages."""
    limit = own_limit(work.known, terms)
    if terms.part < limit.requests:
        limit = Limit(terms.part, f"its part of all domains' budget, {terms.part:,.0f} a day,", "")
    limits = np.array([looks_within(limit.requests)])
    if terms.freshness is not None:
        aim = terms.freshness + min(AIM_ABOVE, (1 - terms.freshness) / 8)
        need = cost_of_freshness(work, aim, limits, shares=shares)
        if not need.possible:
            need = cost_of_freshness(work, terms.freshness, limits, shares=shares)
        target = f"{100 * terms.freshness:.3g} % fresh"
        return TargetDemand(
            budget_for(need.requests), None, _finding(target, need, limit, f"gives {100 * need.reachable:.1f} %")
        )
    assert terms.oldest_days is not None
    part = left_by(work, shares)
    need = cost_of_age(work, terms.oldest_days, limits * part)
    need = TargetCost(need.requests / part, possible=need.possible, reachable=need.reachable)
    target = f"No page older than {span_of(terms.oldest_days)}"
    reached = (
        f"reaches every page once in {span_of(need.reachable)}" if need.reachable < NEVER_DAYS else "has none left"
    )
    finding = _finding(target, need, limit, reached)
    known = work.known
    kept = float(np.where(known.is_ruled, known.most, known.least).max(initial=0.0))
    if kept > terms.oldest_days and not finding:
        finding = f"{target} is out of reach; a least interval or a rule leaves a page for {span_of(kept)}"
    least = float(known.least.min(initial=math.inf, where=~known.is_ruled))
    oldest = max(terms.oldest_days, need.reachable, least if math.isfinite(least) else 0.0)
    return TargetDemand(budget_for(need.requests), oldest, finding)


def _finding(target: str, need: TargetCost, limit: Limit, reached: str) -> str:
    if need.possible:
        return ""
    requests = budget_for(need.requests)
    takes = "is out of reach" if math.isinf(requests) else f"needs {requests:,.0f} requests a day"
    return f"{target} {takes}; {limit.name} {reached}"


def left_by(work: Work, shares: Shares) -> float:
    """The share of requests that discovery leaves to known pages while it has work."""
    return 1 - shares.discovery if len(work.new.a) else 1.0


def span_of(days: float) -> str:
    """A number of days as text, in the unit that a person would use."""
    size, unit = next(((size, unit) for size, unit in UNITS if days >= size), UNITS[-1])
    number = days / size
    return f"{number:,.3g} {unit if number != 1 else unit[:-1]}" if number < 1e3 else f"{number:,.0f} {unit}"


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
        return looks_within(self.limit)

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
    left = looks_within(limit.requests) * left_by(work, shares) * (1 - LONGEST_INTERVAL_SHARE)
    return max(_asked_by_rules(work.known) / max(left, TINY), 1.0), limit.rate


def _asked_by_rules(pages: PageArrays) -> float:
    """The requests a day that rules, or another policy than the price, ask for."""
    return float((pages.stands_for * pages.requests / pages.most)[pages.is_ruled].sum())


def _scaled(work: Work, limit: Limit, shares: Shares) -> Work:
    """The work, with the gaps of a policy shortened until the known pages use what the limit leaves them.

    Gaps that are too short for the limit are stretched by `_late`.
    """
    asked = _asked_by_rules(work.known)
    factor = min(asked / max(looks_within(limit.requests) * left_by(work, shares), TINY), 1.0)
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
