"""Site activity: how the changes of a site are distributed over days, learned from visits.

Pages of a site do not change independently: the site is rebuilt, or an editor works through a section. A page changes
with the hazard rate x activity. Each page has its own rate; the activity belongs to the site, one number per day with
mean 1. Estimates measure the age of a page in days of activity instead of calendar days.

If a visit finds a change, at least one change fell into its gap; expectation maximization distributes it over the days
of the gap in proportion to their hazard. If a visit finds none, all days of its gap are exposure. So a change found
today may raise the activity of last Tuesday: pages not visited since Tuesday have aged by it, and others have not.
Source: Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977; the prior of
independent days is Kalbfleisch's, "Non-parametric Bayesian analysis of survival time data", 1978.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.gamma import Floats, Numbers

ACTIVITY_WINDOW = timedelta(days=120)  # age of the visits from which activity is learned
PRIOR_CHANGES = 1.0  # weight of the prior activity of 1 on each day, in expected changes
EM_ROUNDS = 6  # of expectation maximization; with twenty, no level differs by more than a few hundredths
MIN_MOVED_DAYS = 1.0  # difference in the age of some page from which due times are computed again
MIN_HAZARD = 1e-9


@dataclass(frozen=True, slots=True)
class SiteActivity:
    """The activity of one site up to when it was last learned; later days count as 1.

    at: the boundaries of its days, ascending; empty at first.  ahead: days by which activity is ahead of the calendar
    at each boundary.
    """

    at: tuple[datetime, ...] = ()
    ahead: tuple[float, ...] = ()

    def get_days_ahead(self, instant: datetime) -> float:
        """Return by how many days activity exceeds the calendar since an instant; negative if it is behind."""
        if not self.at or instant >= self.at[-1]:
            return 0.0
        n = bisect_right(self.at, instant)
        if n == 0:
            return self.ahead[-1] - self.ahead[0]
        part = (instant - self.at[n - 1]) / (self.at[n] - self.at[n - 1])
        return self.ahead[-1] - self.ahead[n - 1] - part * (self.ahead[n] - self.ahead[n - 1])

    def has_moved(self, other: "SiteActivity") -> bool:
        """Whether the age of any page differs by at least MIN_MOVED_DAYS between the two."""
        moves = (self.get_days_ahead(limit) - other.get_days_ahead(limit) for limit in (*self.at, *other.at))
        return any(abs(days) >= MIN_MOVED_DAYS for days in moves)


EVEN_ACTIVITY = SiteActivity()  # the calendar


@dataclass(frozen=True, slots=True)
class VisitFindings:
    """The findings of successful visits: arrays of equal length.

    since, at: the times of the previous visit and of this one, in days since any instant.  changed: whether the visit
    found a significant change.  rate: of the page, per day.  unsignaled_share: the share of its changes that no source
    signals, a number or an array. It is the weight of a finding, because a visit caused by a signal comes soon after
    the change.
    """

    since: Floats
    at: Floats
    changed: NDArray[np.bool_]
    rate: Floats
    unsignaled_share: Numbers = 1.0


def compute_activity_levels(findings: VisitFindings, limits: Floats) -> Floats:
    """Return the activity between consecutive limits (ascending, in days). Its mean is 1, as before the first limit."""
    recent = (findings.at > limits[0]) & (findings.at <= limits[-1]) & (findings.since < findings.at)
    before = np.maximum(limits[0] - findings.since[recent], 0.0)
    changed, rate = findings.changed[recent], findings.rate[recent]
    weight = np.broadcast_to(findings.unsignaled_share, recent.shape)[recent]
    length, numbers = np.diff(limits), np.arange(len(limits), dtype=np.float64)
    since, at = (np.interp(each[recent], limits, numbers) for each in (findings.since, findings.at))
    prior = PRIOR_CHANGES * length
    exposure = length * _spread_weights(since, at, weight * rate, len(length))
    level = np.ones(len(length))
    for _ in range(EM_ROUNDS):
        passed = np.concatenate([[0.0], np.cumsum(level * length)])
        hazard = rate * (before + np.interp(at, numbers, passed) - np.interp(since, numbers, passed))
        per_day = np.where(changed, weight * rate / np.maximum(-np.expm1(-hazard), MIN_HAZARD), 0.0)
        level = (prior + level * length * _spread_weights(since, at, per_day, len(length))) / (prior + exposure)
    return np.asarray(level * length.sum() / (level @ length))


def compute_activity_ahead(findings: VisitFindings, limits: Floats) -> Floats:
    """Return by how many days activity is ahead of the calendar at each limit, counted from the first limit."""
    return np.append(0.0, np.cumsum((compute_activity_levels(findings, limits) - 1.0) * np.diff(limits)))


def _spread_weights(since: Floats, at: Floats, weight: Floats, spans: int) -> Floats:
    """Return the sum of weights in each span of length 1, each weight times the share of the span that it covers."""
    first, last = since.astype(np.intp), at.astype(np.intp)
    steps = np.zeros(spans + 1)
    np.add.at(steps, first, weight)
    np.add.at(steps, last, -weight)
    covered = np.cumsum(steps)
    np.add.at(covered, first, -weight * (since - first))
    np.add.at(covered, last, weight * (at - last))
    return covered[:spans]


def learn_site_activity(
    visits: Sequence[tuple[datetime, datetime, bool, float]], *, at: datetime, unsignaled_share: float = 1.0
) -> SiteActivity:
    """Return the activity of a site up to `at`, per UTC day; without visits it is even.

    visits: the times of the previous visit and of this one, whether it found a change, and the page's rate per day.
    unsignaled_share: see VisitFindings.
    """
    if not visits:
        return SiteActivity((at,), (0.0,))
    since, seen, changed, rate = zip(*visits, strict=True)
    limits = compute_activity_limits(min(since), at)
    before, after, days = (np.array([(each - limits[0]) / DAY for each in times]) for times in (since, seen, limits))
    findings = VisitFindings(before, after, np.array(changed), np.array(rate), unsignaled_share)
    return SiteActivity(tuple(limits), tuple(compute_activity_ahead(findings, days).tolist()))


def compute_activity_limits(first: datetime, at: datetime) -> list[datetime]:
    """Return the boundaries of the days for which activity is learned: UTC midnights and `at`.

    first: the time of the first stored visit.
    """
    begin = max(first, at - ACTIVITY_WINDOW).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    midnights = [begin + n * DAY for n in range(int((at - begin) / DAY) + 1)]
    return [each for each in midnights if each < at] + [at]
