"""The limits of one domain's requests: by its budgets, by politeness, and by a target of freshness or age.

A target takes as many requests as it needs in place of a budget; a limit says how long a page may have to wait.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.expected import TargetCost, compute_age_cost, compute_freshness_cost
from crawler.core.budget.find_root import TINY
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.budget.shadow_price import LONGEST_INTERVAL_SHARE, Budget, Shares, Workload, compute_longest_gap

UNLIMITED = Budget(float("inf"))
ROBOTS_PER_DAY = 1.0  # requests that are no looks
AUDIT_SHARE = 0.01  # of a budget, for the audit: the random sample that measures the freshness report
MAX_OVERHEAD = 0.5  # of a budget: a single request a day is not all spent on robots.txt
NEVER_DAYS = 1e6
TARGET_MARGIN = 0.004  # a target of freshness: by the pace of a day visits are late, which costs .0025 (decision 0051)
UNITS = ((1.0, "days"), (1 / 24, "hours"), (1 / 1440, "minutes"), (1 / 86_400, "seconds"))  # in days
MAX_DAYS = 1e6  # an interval that a calendar can still add to a date
MIN_IMPORTANCE = 1e-6  # of a domain beside others; less would make its price a division by nothing


@dataclass(frozen=True, slots=True)
class DomainLimits:
    """The limits and targets of one domain. importance: beside other domains, of which the mean one has 1.

    budget: its user's, of a day.  delay_s: in force.  polite_requests: requests a day that it leaves.
    target_freshness: a target share, above 0 and below 1.  target_age_days: a target for the longest interval.
    default_shadow_price: where nothing is scarce.  max_interval_days: the longest interval, unless the target is
    shorter.  allotted_requests: requests a day that a budget of all domains together leaves this one.  spends_all: the
    whole budget is spent, even if a target asks for less.  is_always_open: the domain has no hours; else all of a day
    is a mean day's.  scales_gaps: the gaps of the domain's revisit policy are scaled until they use the limit.
    """

    importance: float = 1.0
    budget: Budget = UNLIMITED
    delay_s: float = 0.0
    polite_requests: float = float("inf")
    target_freshness: float | None = None
    target_age_days: float | None = None
    default_shadow_price: float = 0.25
    max_interval_days: float = 180.0
    allotted_requests: float = float("inf")
    spends_all: bool = False
    is_always_open: bool = True
    scales_gaps: bool = False

    @property
    def limit(self) -> float:
        """Requests a day that neither the user's budget nor politeness forbids."""
        return min(self.budget.requests, self.polite_requests)

    @property
    def has_target(self) -> bool:
        return self.target_freshness is not None or self.target_age_days is not None


@dataclass(frozen=True, slots=True)
class TargetDemand:
    """The demand of a target.

    requests: a day, inf where no number would do.  reachable_age_days: the age that can be had.

    finding: why the target cannot be met, or empty.
    """

    requests: float
    reachable_age_days: float | None = None
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of requests a day, and its texts. name: as subject of a sentence.  rate: as "n requests a day"."""

    requests: float
    name: str
    rate: str


def compute_visit_limit(limit: float) -> float:
    """The looks that a limit of requests a day leaves beside robots.txt and audits, which are no looks by value."""
    return limit if math.isinf(limit) else limit - min(ROBOTS_PER_DAY + AUDIT_SHARE * limit, MAX_OVERHEAD * limit)


def compute_budget(visits: float) -> float:
    """The budget, in requests a day, that leaves so many for looks."""
    return visits if math.isinf(visits) else float(math.ceil((visits + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE)))


def compute_request_limit(visits: float) -> float:
    """The requests a day, with fractions, that leave so many for looks."""
    return min((visits + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE), visits / (1 - MAX_OVERHEAD))


def find_own_limit(pages: PageArrays, terms: DomainLimits) -> Limit:
    """The tightest limit of a domain with these known pages, of its user's budget and politeness."""
    budget = f"{terms.budget.requests:,.0f}"
    within = "" if terms.is_always_open else " in its hours"
    cap = f"the delay of {terms.delay_s:,.5g} s allows {terms.polite_requests:,.0f}{within}, which"
    limits = (
        Limit(math.inf, "even the least price", ""),
        Limit(terms.budget.requests, f"the budget of {budget}", f"{budget} requests a day"),
        Limit(terms.polite_requests, cap, f"{terms.polite_requests:,.0f} requests a day"),
        _convert_byte_limit(pages, terms.budget.received_bytes, "the budget of"),
    )
    return min(limits, key=lambda limit: limit.requests)


def find_shared_limit(pages: PageArrays, overall: Budget) -> Limit:
    """The tightest limit by the budget of all domains together. pages: known pages of all domains."""
    requests = f"all domains' {overall.requests:,.0f} requests a day"
    return min(
        Limit(overall.requests, requests, requests),
        _convert_byte_limit(pages, overall.received_bytes, "all domains'"),
        key=lambda limit: limit.requests,
    )


def _convert_byte_limit(pages: PageArrays, received_bytes: float, owner: str) -> Limit:
    """A limit of bytes as a limit of requests, by the mean look at these pages."""
    requests = float((pages.stands_for * pages.requests).sum())
    received = float((pages.stands_for * pages.received_bytes).sum())
    request_limit = received_bytes * requests / received if received else math.inf
    rate = f"{received_bytes:,.0f} bytes a day"
    return Limit(request_limit, f"{owner} {rate}", rate if owner == "the budget of" else f"{owner} {rate}")


def compute_target_demand(work: Workload, terms: DomainLimits, shares: Shares) -> TargetDemand:
    """The requests a day that the domain's target takes. work: of this domain alone, with known pages."""
    limit = find_own_limit(work.fetched, terms)
    if terms.allotted_requests < limit.requests:
        limit = Limit(
            terms.allotted_requests, f"its part of all domains' budget, {terms.allotted_requests:,.0f} a day,", ""
        )
    limits = np.array([compute_visit_limit(limit.requests)])
    if terms.target_freshness is not None:
        aim = terms.target_freshness + min(TARGET_MARGIN, (1 - terms.target_freshness) / 8)
        need = compute_freshness_cost(work, aim, limits, shares=shares)
        if not need.is_possible:
            need = compute_freshness_cost(work, terms.target_freshness, limits, shares=shares)
        target = f"{100 * terms.target_freshness:.3g} % fresh"
        return TargetDemand(
            compute_budget(need.requests),
            None,
            _describe_shortfall(target, need, limit, f"gives {100 * need.reachable:.1f} %"),
        )
    assert terms.target_age_days is not None
    part = compute_refresh_share(work, shares)
    need = compute_age_cost(work, terms.target_age_days, limits * part)
    need = TargetCost(need.requests / part, is_possible=need.is_possible, reachable=need.reachable)
    target = f"No page older than {format_days(terms.target_age_days)}"
    reached_text = (
        f"reaches every page once in {format_days(need.reachable)}" if need.reachable < NEVER_DAYS else "has none left"
    )
    finding = _describe_shortfall(target, need, limit, reached_text)
    fetched = work.fetched
    longest_min_interval = float(
        np.where(fetched.is_ruled, fetched.max_interval, fetched.min_interval).max(initial=0.0)
    )
    if longest_min_interval > terms.target_age_days and not finding:
        wait = format_days(longest_min_interval)
        finding = f"{target} is out of reach; a least interval or a rule leaves a page for {wait}"
    min_interval = float(fetched.min_interval.min(initial=math.inf, where=~fetched.is_ruled))
    oldest = max(terms.target_age_days, need.reachable, min_interval if math.isfinite(min_interval) else 0.0)
    return TargetDemand(compute_budget(need.requests), oldest, finding)


def _describe_shortfall(target: str, need: TargetCost, limit: Limit, reached_text: str) -> str:
    if need.is_possible:
        return ""
    requests = compute_budget(need.requests)
    takes = "is out of reach" if math.isinf(requests) else f"needs {requests:,.0f} requests a day"
    return f"{target} {takes}; {limit.name} {reached_text}"


def compute_refresh_share(work: Workload, shares: Shares) -> float:
    """The share of requests that discovery leaves to known pages while it has work."""
    return 1 - shares.discovery if len(work.unfetched.a) else 1.0


def format_days(days: float) -> str:
    """A number of days as text, in the unit that a person would use."""
    size, unit = next(((size, unit) for size, unit in UNITS if days >= size), UNITS[-1])
    number = days / size
    return f"{number:,.3g} {unit if number != 1 else unit[:-1]}" if number < 1e3 else f"{number:,.0f} {unit}"


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints under which a domain's price is solved. work: its pages, within the longest interval.

    limit: requests a day.  target_requests, longest_days, finding: see DomainPlan.
    """

    terms: DomainLimits
    work: Workload
    target_requests: float | None
    limit: float
    longest_days: float
    finding: str

    @property
    def visit_limit(self) -> float:
        """Requests a day that the limit leaves for looks."""
        return compute_visit_limit(self.limit)

    @property
    def importance(self) -> float:
        return max(self.terms.importance, MIN_IMPORTANCE)


def compute_constraints(
    work: Workload, terms: DomainLimits, shares: Shares, *, everything: Workload, overall: Budget
) -> Constraints:
    """The limits of one domain: requests a day (least of target, budget, politeness) and longest interval in days.

    everything: work of all domains under the `overall` budget; the interval must be affordable for them as well.
    """
    max_interval_days = terms.target_age_days or terms.max_interval_days
    demand = compute_demand(work, terms, shares)
    own, together = find_own_limit(work.fetched, terms), find_shared_limit(everything.fetched, overall)
    delay_factor, slowest_rate = max(
        _compute_delay_factor(work, own, shares),
        _compute_delay_factor(everything, together, shares),
        key=lambda result: result[0],
    )
    limit = terms.limit if terms.spends_all else min(terms.limit, demand.requests)
    if terms.target_age_days:  # an age target would outbid the other domains at any price
        limit = min(limit, terms.allotted_requests)
    if limit < own.requests:
        own = Limit(limit, own.name, f"the {limit:,.0f} requests a day of its target")
    longest, rate = max(
        _compute_longest_interval(work, own, max_interval_days),
        _compute_longest_interval(everything, together, max_interval_days),
    )
    longest = min(longest, demand.reachable_age_days or longest, MAX_DAYS)
    findings = [demand.finding]
    if limit > 0 and delay_factor > 1 and work.fetched.is_ruled.any():
        findings.append(
            f"Pages wait {delay_factor:,.3g} times as long as rules or the policy say: "
            f"{slowest_rate} are too few for them"
        )
    if limit > 0 and longest > max_interval_days and not demand.finding:
        findings.append(f"A page may wait {longest:,.0f} days, not {max_interval_days:,.0f}: at {rate} it has to")
    # A target that no number of requests can reach is no reason to make as many requests as possible.
    takes = demand.requests if math.isfinite(demand.requests) else None
    return Constraints(
        terms,
        _limit_intervals(
            _scale_gaps(work, own, shares) if terms.scales_gaps else work, longest, delay_factor=delay_factor
        ),
        takes,
        limit,
        longest,
        ". ".join(filter(None, findings)),
    )


def _compute_longest_interval(work: Workload, limit: Limit, max_interval_days: float) -> tuple[float, str]:
    """The longest interval that a limit affords for pages without a rule, in days, and the limit's rate."""
    count = float(work.fetched.stands_for[~work.fetched.is_ruled].sum())
    return float(compute_longest_gap(count, limit.requests, max_interval=max_interval_days)), limit.rate


def _compute_delay_factor(work: Workload, limit: Limit, shares: Shares) -> tuple[float, str]:
    """The factor by which pages have to wait longer than rules say, 1 or more, and the limit that causes it."""
    available = compute_visit_limit(limit.requests) * compute_refresh_share(work, shares) * (1 - LONGEST_INTERVAL_SHARE)
    return max(_sum_rule_requests(work.fetched) / max(available, TINY), 1.0), limit.rate


def _sum_rule_requests(pages: PageArrays) -> float:
    """The requests a day that rules, or another policy than the price, ask for."""
    return float((pages.stands_for * pages.requests / pages.max_interval)[pages.is_ruled].sum())


def _scale_gaps(work: Workload, limit: Limit, shares: Shares) -> Workload:
    """The work, with the gaps of a policy shortened until the known pages use what the limit leaves them.

    Gaps that are too short for the limit are stretched by `_compute_delay_factor`.
    """
    rule_requests = _sum_rule_requests(work.fetched)
    factor = min(
        rule_requests / max(compute_visit_limit(limit.requests) * compute_refresh_share(work, shares), TINY), 1.0
    )
    fetched = work.fetched
    return replace(
        work,
        fetched=replace(
            fetched, min_interval=fetched.min_interval * factor, max_interval=fetched.max_interval * factor
        ),
    )


def compute_demand(work: Workload, terms: DomainLimits, shares: Shares) -> TargetDemand:
    """The requests a day that the domain's target takes; inf without a target."""
    if not terms.has_target or not len(work.fetched.a):
        return TargetDemand(math.inf)
    return compute_target_demand(
        _limit_intervals(work, terms.target_age_days or terms.max_interval_days), terms, shares
    )


def _limit_intervals(work: Workload, max_interval_days: float, *, delay_factor: float = 1.0) -> Workload:
    """The work, with a longest interval of most_days for pages without a rule.

    delay_factor: factor by which pages with a rule have to wait longer than it says.
    """

    def limit_pages(pages: PageArrays) -> PageArrays:
        ruled = np.minimum(delay_factor * pages.max_interval, MAX_DAYS)
        return replace(
            pages, max_interval=np.where(pages.is_ruled, ruled, np.maximum(pages.min_interval, max_interval_days))
        )

    return replace(work, fetched=limit_pages(work.fetched), unfetched=limit_pages(work.unfetched))
