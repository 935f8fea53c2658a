"""The traffic of a domain by the hour, and whether an hour of it is far from what is usual there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

BASELINE_PERIOD = timedelta(days=14)  # over which the usual is what is usual
ENOUGH_HOURS = 24  # with looks, before anything is called usual
ENOUGH_VISITS = 10  # of an hour, to tell its latency; a median of fewer is anything
MIN_ERRORS = 5
MAX_CHANCE = 1e-4  # that an hour with the usual share of errors has so many: once in a year of hours
MIN_FACTOR = 2.0  # a share or a latency that is less than twice the usual one bothers nobody
MIN_DEVIATIONS = 5.0  # of the logarithm of the latency, in scaled median deviations; daily cycles stay below three
DEVIATION_FLOOR = 0.05  # of it: five per cent up and down are no news, however even the server was
SCALE = 1.4826  # from the median deviation to the standard deviation of a normal distribution


@dataclass(frozen=True, slots=True)
class TrafficHour:
    """The looks of one hour. hour: when it began (UTC).  errors: looks without an answer, or with 429 or 5xx.

    requests, received_bytes: of the looks; robots.txt and logins are not among them.
    latency_ms: the median of the answers; None without any.
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
    """Why an hour's traffic is off, a sentence of figures; empty where it is not, or nothing is usual yet.

    before: the hours of LOOKED_BACK with looks in them. Errors are off when so many would come by chance less than once
    in 10,000 hours (binomial tail), their share is twice the usual, and no hour before had such a share. Latency is
    off when it is twice the usual and five deviations from it.
    """
    usual = [each for each in before if each.visits]
    if len(usual) < ENOUGH_HOURS or not hour.visits:
        return ""
    sentences = filter(None, (_describe_errors(hour, usual), _describe_latency(hour, usual)))
    return "; ".join(sentences)


def _describe_errors(hour: TrafficHour, usual: Sequence[TrafficHour]) -> str:
    visits, errors = sum(each.visits for each in usual), sum(each.errors for each in usual)
    share = (errors + 0.5) / (visits + 1)  # that none was seen does not mean that none can be
    worst = max((each.error_share for each in usual if each.visits >= ENOUGH_VISITS), default=0.0)
    is_off = (
        hour.errors >= MIN_ERRORS
        and hour.error_share >= MIN_FACTOR * share
        and hour.error_share > worst
        and compute_binomial_tail(hour.visits, hour.errors, share) < MAX_CHANCE
    )
    if not is_off:
        return ""
    return f"{hour.errors} of {hour.visits} looks failed, where {100 * share:.2g} % is usual"


def _describe_latency(hour: TrafficHour, usual: Sequence[TrafficHour]) -> str:
    logs = [math.log(max(each.latency_ms, 1.0)) for each in usual if each.latency_ms is not None]
    if len(logs) < ENOUGH_HOURS or hour.visits < ENOUGH_VISITS or hour.latency_ms is None:
        return ""
    middle = median(logs)
    deviation = max(SCALE * median(abs(each - middle) for each in logs), DEVIATION_FLOOR)
    apart = math.log(max(hour.latency_ms, 1.0)) - middle
    if apart < math.log(MIN_FACTOR) or apart < MIN_DEVIATIONS * deviation:
        return ""
    return f"answers took {hour.latency_ms:,.0f} ms, where {math.exp(middle):,.0f} ms is usual"


def compute_binomial_tail(visits: int, errors: int, share: float) -> float:
    """The chance of so many errors or more in so many looks. share: of errors, above 0 and below 1."""
    log_share, log_rest = math.log(share), math.log1p(-share)
    logs = (
        log_choose(visits, n) + n * log_share + (visits - n) * log_rest  # of just n
        for n in range(errors, visits + 1)
    )
    return min(math.fsum(map(math.exp, logs)), 1.0)


def log_choose(total: int, chosen: int) -> float:
    """The logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
