"""The hourly traffic of a domain, and whether an hour is an anomaly."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

from msgspec import Struct

BASELINE_PERIOD = timedelta(days=14)
ENOUGH_HOURS = 24  # hours with visits in a usable baseline
ENOUGH_VISITS = 10  # visits in an hour with a usable median latency; in an earlier hour, with a usable error share
MIN_ERRORS = 5  # in an anomaly
MAX_CHANCE = 1e-4  # probability of this many errors at the usual error share: expected in one hour a year
MIN_FACTOR = 2.0  # an error share or latency of less than twice the usual one does not matter
MIN_DEVIATIONS = 5.0  # of ln latency, in scaled median deviations; daily cycles stay below three
DEVIATION_FLOOR = 0.05  # of ln latency: variations of 5% do not matter even for a very steady server
SCALE = 1.4826  # from the median deviation to the standard deviation of a normal distribution


class TrafficHour(Struct, frozen=True):
    """The visits of one hour. hour: its start (UTC).  errors: visits without a response, or with 429 or 5xx.

    requests, received_bytes: those of the visits, without robots.txt and logins.
    latency_ms: the median response time; None without responses.
    """

    hour: datetime
    visits: int
    requests: int
    received_bytes: int
    errors: int
    latency_ms: float | None

    @property
    def error_share(self) -> float:
        return self.errors / self.visits if self.visits else 0.0


def describe_anomaly(hour: TrafficHour, before: Sequence[TrafficHour]) -> str:
    """Return why the traffic of an hour is an anomaly, in a sentence; empty if it is not, or without enough baseline.

    before: the hours with visits in the BASELINE_PERIOD before it.
    At least MIN_ERRORS errors are an anomaly if the probability of so many is below MAX_CHANCE (binomial tail), their
    share is at least twice the usual one, and no earlier hour with ENOUGH_VISITS had such a share. Latency in an hour
    with ENOUGH_VISITS is an anomaly if it is at least twice and MIN_DEVIATIONS deviations above the usual one.
    """
    usual = [each for each in before if each.visits]
    if len(usual) < ENOUGH_HOURS or not hour.visits:
        return ""
    return "; ".join(filter(None, (_describe_errors(hour, usual), _describe_latency(hour, usual))))


def _describe_errors(hour: TrafficHour, usual: Sequence[TrafficHour]) -> str:
    visits, errors = sum(each.visits for each in usual), sum(each.errors for each in usual)
    share = (errors + 0.5) / (visits + 1)  # above 0 even if there were no errors so far
    worst = max((each.error_share for each in usual if each.visits >= ENOUGH_VISITS), default=0.0)
    is_high = hour.errors >= MIN_ERRORS and hour.error_share >= MIN_FACTOR * share and hour.error_share > worst
    if not is_high or compute_binomial_tail(hour.visits, hour.errors, share) >= MAX_CHANCE:
        return ""
    return f"{hour.errors} of {hour.visits} visits failed; {100 * share:.2g}% is usual"


def _describe_latency(hour: TrafficHour, usual: Sequence[TrafficHour]) -> str:
    logs = [math.log(max(each.latency_ms, 1.0)) for each in usual if each.latency_ms is not None]
    if len(logs) < ENOUGH_HOURS or hour.visits < ENOUGH_VISITS or hour.latency_ms is None:
        return ""
    middle = median(logs)
    deviation = max(SCALE * median(abs(each - middle) for each in logs), DEVIATION_FLOOR)
    apart = math.log(max(hour.latency_ms, 1.0)) - middle
    if apart < math.log(MIN_FACTOR) or apart < MIN_DEVIATIONS * deviation:
        return ""
    return f"responses took {hour.latency_ms:,.0f} ms; {math.exp(middle):,.0f} ms is usual"


def compute_binomial_tail(visits: int, errors: int, share: float) -> float:
    """Return the probability of at least `errors` errors in `visits` visits. share: the usual share, in (0, 1)."""
    log_share, log_rest = math.log(share), math.log1p(-share)

    def compute_chance(n: int) -> float:
        return math.exp(log_choose(visits, n) + n * log_share + (visits - n) * log_rest)

    return min(math.fsum(map(compute_chance, range(errors, visits + 1))), 1.0)


def log_choose(total: int, chosen: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
