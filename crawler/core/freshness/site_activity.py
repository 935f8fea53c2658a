"""Site activity: how the changes of a site are distributed over days, learned from visits.

Pages of a site do not change independently: the site is rebuilt, or an editor works through a section. A page changes
with the hazard rate x activity. Each page has its own rate; the activity belongs to the site, one number per day with
mean 1. Estimates measure the age of a page in days of activity instead of calendar days.

The gap of a visit is the time since the previous visit. If a visit finds a change, at least one change fell into its
gap; expectation maximization distributes it over the days of the gap in proportion to their hazard. If a visit finds
none, there was no change on any day of its gap. So a change found today may raise the activity of last Tuesday: then
pages not visited since Tuesday have aged by more days, and others have not.
Source: Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977; the prior of
independent days is Kalbfleisch's, "Non-parametric Bayesian analysis of survival time data", 1978.
"""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.gamma import Floats, Numbers

ACTIVITY_WINDOW = timedelta(days=120)  # maximum age of the visits from which activity is learned
PRIOR_CHANGES = 1.0  # weight of the prior activity of 1 on each day, in expected changes
EM_ROUNDS = 6  # of expectation maximization; with twenty, no level differs by more than a few hundredths
MIN_MOVED_DAYS = 1.0  # due times are recomputed if the activity age of any page moves by at least this much
MIN_HAZARD = 1e-9


class SiteActivity(Struct, frozen=True):
    """The activity of one site up to when it was last learned; later days count as 1.

    at: the boundaries of its days, ascending; empty at first.  ahead: at each boundary, the cumulative activity minus
    the days elapsed since the first one.
    """

    at: tuple[datetime, ...] = ()
    ahead: tuple[float, ...] = ()

    def get_days_ahead(self, instant: datetime) -> float:
        """Return the activity since an instant minus the days elapsed since then."""
        if not self.at or instant >= self.at[-1]:
            return 0.0
        n = bisect_right(self.at, instant)
        if n == 0:
            return self.ahead[-1] - self.ahead[0]
        part = (instant - self.at[n - 1]) / (self.at[n] - self.at[n - 1])
        return self.ahead[-1] - self.ahead[n - 1] - part * (self.ahead[n] - self.ahead[n - 1])

    def has_moved(self, other: "SiteActivity") -> bool:
        """Return whether the age of any page differs by at least MIN_MOVED_DAYS between the two activities."""
        return any(
            abs(self.get_days_ahead(boundary) - other.get_days_ahead(boundary)) >= MIN_MOVED_DAYS
            for boundary in (*self.at, *other.at)
        )


EVEN_ACTIVITY = SiteActivity()  # activity 1 on all days


class VisitFindings(Struct, frozen=True):
    """The findings of successful visits: arrays of equal length.

    since, at: the times of the previous visit and of this one, in days since a common origin.  changed: whether the
    visit found a significant change.  rate: of the page, per day.  unsignaled_share: the share of its changes that no
    source signals, a number or an array. Findings are weighted by it, because a visit caused by a signal comes soon
    after the change and would bias the activity.
    """

    since: Floats
    at: Floats
    changed: NDArray[np.bool_]
    rate: Floats
    unsignaled_share: Numbers = 1.0


def compute_activity_levels(findings: VisitFindings, boundaries: Floats) -> Floats:
    """Return the activity between consecutive boundaries (ascending, in days), with mean 1.

    Before the first boundary, activity counts as 1.
    """
    recent = (findings.at > boundaries[0]) & (findings.at <= boundaries[-1]) & (findings.since < findings.at)
    before = np.maximum(boundaries[0] - findings.since[recent], 0.0)
    changed, rate = findings.changed[recent], findings.rate[recent]
    weight = np.broadcast_to(findings.unsignaled_share, recent.shape)[recent]
    length, numbers = np.diff(boundaries), np.arange(len(boundaries), dtype=np.float64)
    since, at = (np.interp(each[recent], boundaries, numbers) for each in (findings.since, findings.at))
    prior = PRIOR_CHANGES * length
    exposure = length * _spread_weights(since, at, weight * rate, len(length))
    level = np.ones(len(length))
    for _ in range(EM_ROUNDS):
        passed = np.concatenate([[0.0], np.cumsum(level * length)])
        hazard = rate * (before + np.interp(at, numbers, passed) - np.interp(since, numbers, passed))
        per_day = np.where(changed, weight * rate / np.maximum(-np.expm1(-hazard), MIN_HAZARD), 0.0)
        level = (prior + level * length * _spread_weights(since, at, per_day, len(length))) / (prior + exposure)
    return np.asarray(level * length.sum() / (level @ length))


def compute_activity_ahead(findings: VisitFindings, boundaries: Floats) -> Floats:
    """Return cumulative activity minus elapsed days at each boundary, counted from the first one."""
    return np.append(0.0, np.cumsum((compute_activity_levels(findings, boundaries) - 1.0) * np.diff(boundaries)))


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
    boundaries = compute_activity_limits(min(since), at)
    before, after, days = (
        np.array([(each - boundaries[0]) / DAY for each in times]) for times in (since, seen, boundaries)
    )
    findings = VisitFindings(before, after, np.array(changed), np.array(rate), unsignaled_share)
    return SiteActivity(tuple(boundaries), tuple(compute_activity_ahead(findings, days).tolist()))


def compute_activity_limits(first: datetime, at: datetime) -> list[datetime]:
    """Return the boundaries of the days for which activity is learned: UTC midnights and `at`.

    first: the time of the first stored visit.
    """
    begin = max(first, at - ACTIVITY_WINDOW).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    midnights = [begin + n * DAY for n in range(int((at - begin) / DAY) + 1)]
    return [each for each in midnights if each < at] + [at]
