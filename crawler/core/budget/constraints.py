"""Limits on the requests of one domain: from its budgets, from politeness, and from a freshness or age target.

A target uses only as many requests as it needs. Limits also determine how long a page may wait.
"""

import math
from operator import itemgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.expected import TargetCost, compute_age_cost, compute_freshness_cost
from crawler.core.budget.find_root import TINY
from crawler.core.budget.page_arrays import PageArrays
from crawler.core.budget.shadow_price import LONGEST_INTERVAL_SHARE, Budget, Shares, Workload, compute_longest_gap

UNLIMITED = Budget(float("inf"))
ROBOTS_PER_DAY = 1.0  # requests for robots.txt
AUDIT_SHARE = 0.01  # of a budget, for the audit: the random sample that measures the freshness report
MAX_OVERHEAD = 0.5  # of a budget, for robots.txt and the audit: a budget of one request a day is not all spent on them
NEVER_DAYS = 1e6  # an age that counts as never reached
TARGET_MARGIN = 0.004  # added to a freshness target: pacing delays visits, which costs 0.0025 (decision 0051)
UNITS = ((1.0, "days"), (1 / 24, "hours"), (1 / 1440, "minutes"), (1 / 86_400, "seconds"))  # in days
MAX_DAYS = 1e6  # an interval that can still be added to a datetime
MIN_IMPORTANCE = 1e-6  # of a domain; avoids a division by 0 in its price


class DomainLimits(Struct, frozen=True):
    """The limits and targets of one domain.

    importance: relative to other domains.  budget: the daily budget that the user set.
    delay_s: the delay in force.  polite_requests: requests per day that the delay allows.
    target_freshness: the expected freshness to reach, above 0 and below 1.  target_age_days: the longest interval to
    reach.  default_shadow_price: the price if nothing is scarce.  max_interval_days: the longest interval without a
    target_age_days.  allotted_requests: the domain's part of the budget of all domains, in requests per day.
    spends_all: spend the whole budget even if a target needs less.  is_always_open: the domain has no hours; with
    hours, daily numbers are those of a mean day.  scales_gaps: shorten the gaps that the revisit policy fixes until
    revisits use what the limit leaves for them.
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
        """Return the requests per day that both the user's budget and politeness allow."""
        return min(self.budget.requests, self.polite_requests)

    @property
    def has_target(self) -> bool:
        return self.target_freshness is not None or self.target_age_days is not None


class TargetDemand(Struct, frozen=True):
    """The demand of a target.

    requests: requests per day; inf without a target or fetched pages, or if no number meets it.  reachable_age_days:
    for an age target, the shortest maximum interval that the limits allow; never below the target.  finding: why the
    target cannot be met, or empty.
    """

    requests: float
    reachable_age_days: float | None = None
    finding: str = ""


class Limit(Struct, frozen=True):
    """A limit in requests per day. name: the subject of a sentence.  rate: a text such as "10 requests a day"."""

    requests: float
    name: str
    rate: str


def compute_visit_limit(limit: float) -> float:
    """Return the requests per day that a limit leaves for visits, after robots.txt and audits."""
    return limit if math.isinf(limit) else limit - min(ROBOTS_PER_DAY + AUDIT_SHARE * limit, MAX_OVERHEAD * limit)


def compute_budget(visits: float) -> float:
    """Return a budget, in whole requests per day, that leaves at least `visits` requests for visits."""
    return visits if math.isinf(visits) else float(math.ceil((visits + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE)))


def compute_request_limit(visits: float) -> float:
    """Return the inverse of compute_visit_limit: the request limit, not rounded, that leaves `visits`."""
    return min((visits + ROBOTS_PER_DAY) / (1 - AUDIT_SHARE), visits / (1 - MAX_OVERHEAD))


def find_own_limit(pages: PageArrays, domain_limits: DomainLimits) -> Limit:
    """Return the tightest limit from the user's budget and politeness. pages: the fetched pages of the domain."""
    budget = f"{domain_limits.budget.requests:,.0f}"
    within = "" if domain_limits.is_always_open else " in its hours"
    cap = f"the delay of {domain_limits.delay_s:,.5g} s allows {domain_limits.polite_requests:,.0f}{within}, which"
    limits = (
        Limit(math.inf, "even an unlimited budget", ""),
        Limit(domain_limits.budget.requests, f"the budget of {budget}", f"{budget} requests a day"),
        Limit(domain_limits.polite_requests, cap, f"{domain_limits.polite_requests:,.0f} requests a day"),
        _convert_byte_limit(pages, domain_limits.budget.received_bytes, "the budget of"),
    )
    return min(limits, key=lambda limit: limit.requests)


def find_shared_limit(pages: PageArrays, overall: Budget) -> Limit:
    """Return the tightest limit from the shared budget. pages: the fetched pages of all domains."""
    requests = f"the shared {overall.requests:,.0f} requests a day"
    return min(
        Limit(overall.requests, requests, requests),
        _convert_byte_limit(pages, overall.received_bytes, "the shared"),
        key=lambda limit: limit.requests,
    )


def _convert_byte_limit(pages: PageArrays, received_bytes: float, owner: str) -> Limit:
    """Convert a byte limit to a request limit, by the mean cost of a visit to these pages."""
    requests = float((pages.stands_for * pages.requests).sum())
    received = float((pages.stands_for * pages.received_bytes).sum())
    request_limit = received_bytes * requests / received if received else math.inf
    rate = f"{received_bytes:,.0f} bytes a day"
    return Limit(request_limit, f"{owner} {rate}", rate if owner == "the budget of" else f"{owner} {rate}")


def compute_target_demand(work: Workload, domain_limits: DomainLimits, shares: Shares) -> TargetDemand:
    """Compute the requests per day that a target needs. work: the pages of this domain; some must be fetched."""
    limit = find_own_limit(work.fetched, domain_limits)
    if domain_limits.allotted_requests < limit.requests:
        name = f"its part of the shared budget, {domain_limits.allotted_requests:,.0f} a day,"
        limit = Limit(domain_limits.allotted_requests, name, "")
    limits = np.array([compute_visit_limit(limit.requests)])
    if domain_limits.target_freshness is not None:
        aim = domain_limits.target_freshness + min(TARGET_MARGIN, (1 - domain_limits.target_freshness) / 8)
        need = compute_freshness_cost(work, aim, limits, shares=shares)
        if not need.is_possible:
            need = compute_freshness_cost(work, domain_limits.target_freshness, limits, shares=shares)
        target = f"A freshness of {100 * domain_limits.target_freshness:.3g}%"
        return TargetDemand(
            compute_budget(need.requests),
            None,
            _describe_shortfall(target, need, limit, f"gives {100 * need.reachable:.1f}%"),
        )
    assert domain_limits.target_age_days is not None
    part = compute_refresh_share(work, shares)
    need = compute_age_cost(work, domain_limits.target_age_days, limits * part)
    need = TargetCost(need.requests / part, is_possible=need.is_possible, reachable=need.reachable)
    target = f"A maximum age of {format_days(domain_limits.target_age_days)}"
    is_reachable = need.reachable < NEVER_DAYS
    text = f"allows one visit to each page in {format_days(need.reachable)}" if is_reachable else "leaves no requests"
    finding = _describe_shortfall(target, need, limit, text)
    fetched = work.fetched
    longest_wait = float(np.where(fetched.is_ruled, fetched.max_interval, fetched.min_interval).max(initial=0.0))
    if longest_wait > domain_limits.target_age_days and not finding:
        wait = format_days(longest_wait)
        finding = f"{target} is out of reach; a minimum interval or a rule keeps a page from being visited for {wait}"
    min_interval = float(fetched.min_interval.min(initial=math.inf, where=~fetched.is_ruled))
    oldest = max(domain_limits.target_age_days, need.reachable, min_interval if math.isfinite(min_interval) else 0.0)
    return TargetDemand(compute_budget(need.requests), oldest, finding)


def _describe_shortfall(target: str, need: TargetCost, limit: Limit, reached_text: str) -> str:
    if need.is_possible:
        return ""
    requests = compute_budget(need.requests)
    takes = "is out of reach" if math.isinf(requests) else f"needs {requests:,.0f} requests a day"
    return f"{target} {takes}; {limit.name} {reached_text}"


def compute_refresh_share(work: Workload, shares: Shares) -> float:
    """Return the share of requests that discovery leaves for revisits; 1 without unfetched pages."""
    return 1 - shares.discovery if len(work.unfetched.a) else 1.0


def format_days(days: float) -> str:
    """Format a number of days in a readable unit."""
    size, unit = next(((size, unit) for size, unit in UNITS if days >= size), UNITS[-1])
    number = days / size
    return f"{number:,.3g} {unit if number != 1 else unit[:-1]}" if number < 1e3 else f"{number:,.0f} {unit}"


class Constraints(Struct, frozen=True):
    """The constraints under which a domain's price is solved.

    work: its pages, with the intervals that the limits allow.  limit: requests per day.
    target_requests, longest_days, finding: see DomainPlan.
    """

    domain_limits: DomainLimits
    work: Workload
    target_requests: float | None
    limit: float
    longest_days: float
    finding: str

    @property
    def visit_limit(self) -> float:
        """Return the requests per day that the limit leaves for visits."""
        return compute_visit_limit(self.limit)

    @property
    def importance(self) -> float:
        return max(self.domain_limits.importance, MIN_IMPORTANCE)


def compute_constraints(
    work: Workload, domain_limits: DomainLimits, shares: Shares, *, everything: Workload, overall: Budget
) -> Constraints:
    """Compute the request limit of a domain and the longest interval of its pages.

    everything: the pages of all domains, which share the `overall` budget. If the budget of this domain or the overall
    budget cannot afford the longest interval for all pages, the interval is longer.
    """
    max_days = domain_limits.target_age_days or domain_limits.max_interval_days
    demand = compute_demand(work, domain_limits, shares)
    own, together = find_own_limit(work.fetched, domain_limits), find_shared_limit(everything.fetched, overall)
    delays = _compute_delay_factor(work, own, shares), _compute_delay_factor(everything, together, shares)
    delay_factor, slowest_rate = max(delays, key=itemgetter(0))
    limit = domain_limits.limit if domain_limits.spends_all else min(domain_limits.limit, demand.requests)
    if domain_limits.target_age_days:  # otherwise an age target outbids the other domains at any price
        limit = min(limit, domain_limits.allotted_requests)
    if limit < own.requests:
        own = Limit(limit, own.name, f"the {limit:,.0f} requests a day of its target")
    longest, rate = max(_compute_longest_interval(*each, max_days) for each in ((work, own), (everything, together)))
    longest = min(longest, demand.reachable_age_days or longest, MAX_DAYS)
    findings = [demand.finding]
    if limit > 0 and delay_factor > 1 and work.fetched.is_ruled.any():
        factor = f"{delay_factor:,.3g} times as long as rules or the policy require"
        findings.append(f"Pages wait {factor}, because {slowest_rate} are too few")
    if limit > 0 and longest > max_days and not demand.finding:
        findings.append(f"A page may wait {longest:,.0f} days, not {max_days:,.0f}, because {rate} are too few")
    # None if no number of requests can reach the target.
    target_requests = demand.requests if math.isfinite(demand.requests) else None
    scaled = _scale_gaps(work, own, shares) if domain_limits.scales_gaps else work
    limited = _limit_intervals(scaled, longest, delay_factor=delay_factor)
    return Constraints(domain_limits, limited, target_requests, limit, longest, ". ".join(filter(None, findings)))


def _compute_longest_interval(work: Workload, limit: Limit, max_interval_days: float) -> tuple[float, str]:
    """Return the longest interval, in days, that a limit affords for pages without a rule, and the text of its rate."""
    count = float(work.fetched.stands_for[~work.fetched.is_ruled].sum())
    return float(compute_longest_gap(count, limit.requests, max_interval=max_interval_days)), limit.rate


def _compute_delay_factor(work: Workload, limit: Limit, shares: Shares) -> tuple[float, str]:
    """Return the factor by which a limit lengthens the intervals of rules, 1 or more, and the text of its rate."""
    available = compute_visit_limit(limit.requests) * compute_refresh_share(work, shares) * (1 - LONGEST_INTERVAL_SHARE)
    return max(_sum_rule_requests(work.fetched) / max(available, TINY), 1.0), limit.rate


def _sum_rule_requests(pages: PageArrays) -> float:
    """Return the requests per day that rules, or a revisit policy that fixes gaps, require."""
    return float((pages.stands_for * pages.requests / pages.max_interval)[pages.is_ruled].sum())


def _scale_gaps(work: Workload, limit: Limit, shares: Shares) -> Workload:
    """Shorten the gaps of a policy until revisits use what the limit leaves for them.

    Gaps that are too short for the limit are lengthened elsewhere (`_compute_delay_factor`).
    """
    pages = work.fetched
    available = compute_visit_limit(limit.requests) * compute_refresh_share(work, shares)
    factor = min(_sum_rule_requests(pages) / max(available, TINY), 1.0)
    scaled = replace(pages, min_interval=pages.min_interval * factor, max_interval=pages.max_interval * factor)
    return replace(work, fetched=scaled)


def compute_demand(work: Workload, domain_limits: DomainLimits, shares: Shares) -> TargetDemand:
    """Compute the requests per day that the domain's target needs; inf without a target or fetched pages."""
    if not domain_limits.has_target or not len(work.fetched.a):
        return TargetDemand(math.inf)
    limited = _limit_intervals(work, domain_limits.target_age_days or domain_limits.max_interval_days)
    return compute_target_demand(limited, domain_limits, shares)


def _limit_intervals(work: Workload, max_days: float, *, delay_factor: float = 1.0) -> Workload:
    """Set the longest interval of pages without a rule, and multiply that of pages with a rule by `delay_factor`."""

    def limit_pages(pages: PageArrays) -> PageArrays:
        ruled = np.minimum(delay_factor * pages.max_interval, MAX_DAYS)
        return replace(pages, max_interval=np.where(pages.is_ruled, ruled, np.maximum(pages.min_interval, max_days)))

    return replace(work, fetched=limit_pages(work.fetched), unfetched=limit_pages(work.unfetched))
