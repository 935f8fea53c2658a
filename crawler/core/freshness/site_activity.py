"""Site activity: how much of a site's changing fell on each day, learned from what visits found.

Pages of a site do not change each for itself: it is built anew, an editor works through a section. A page changes with
the hazard rate x activity. The rate is its own; the activity is the site's, one number a day with mean 1. All that is
believed of a page counts its age in days of activity, in place of days of the calendar.

A visit that found a change says that at least one fell into its gap, and expectation maximization shares it among the
days of the gap in proportion to their hazard. A visit that found none is exposure of all its days. So a change found
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

ACTIVITY_WINDOW = timedelta(days=120)  # of visits that activity is learned from
PRIOR_CHANGES = 1.0  # weight of "the activity is 1" on each day, in expected changes
EM_ROUNDS = 6  # of expectation maximization; twenty change no level by more than a few hundredths
MIN_MOVED_DAYS = 1.0  # of age that another activity gives to some page, so that pages that wait should be scored again
MIN_HAZARD = 1e-9


@dataclass(frozen=True, slots=True)
class SiteActivity:
    """The activity of one site until it was last learned; afterwards a day counts as one.

    at: limits of its days, ascending; empty at first.  ahead: days by which activity is ahead of the calendar at each.
    """

    at: tuple[datetime, ...] = ()
    ahead: tuple[float, ...] = ()

    def get_days_ahead(self, instant: datetime) -> float:
        """Return the days by which activity went ahead of the calendar from that instant on; below 0 for less."""
        if not self.at or instant >= self.at[-1]:
            return 0.0
        n = bisect_right(self.at, instant)
        if n == 0:
            return self.ahead[-1] - self.ahead[0]
        part = (instant - self.at[n - 1]) / (self.at[n] - self.at[n - 1])
        return self.ahead[-1] - self.ahead[n - 1] - part * (self.ahead[n] - self.ahead[n - 1])

    def has_moved(self, other: "SiteActivity") -> bool:
        """Whether some page has aged by MIN_MOVED_DAYS more or less by the other one."""
        return any(
            abs(self.get_days_ahead(limit) - other.get_days_ahead(limit)) >= MIN_MOVED_DAYS
            for limit in (*self.at, *other.at)
        )


EVEN_ACTIVITY = SiteActivity()  # the calendar


@dataclass(frozen=True, slots=True)
class VisitFindings:
    """What good visits found: arrays of equal length.

    since, at: days of the visit before, and of this one, from any instant on.  changed: whether its own text had.
    rate: of the page, per day.  unsignaled_share: the share of its changes that no source of signals tells, a number or
    an array; a finding counts for so much, since a visit that a signal brings about comes soon after the change.
    """

    since: Floats
    at: Floats
    changed: NDArray[np.bool_]
    rate: Floats
    unsignaled_share: Numbers = 1.0


def compute_activity_levels(findings: VisitFindings, limits: Floats) -> Floats:
    """Return the activity between each two of the ascending limits, in days; its mean is 1, as it is before them."""
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
    """Return the days by which activity is ahead of the calendar at each of the limits, since the first."""
    return np.append(0.0, np.cumsum((compute_activity_levels(findings, limits) - 1.0) * np.diff(limits)))


def _spread_weights(since: Floats, at: Floats, weight: Floats, spans: int) -> Floats:
    """Return for each span of length 1 the sum of the weights, each times the part of the span that it covers."""
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
    """Return the activity of a site up to `at`, by midnights (UTC); without visits that of the calendar.

    visits: the time of the visit before and of this one, whether it found a change, and the page's rate per day.
    unsignaled_share: see Findings.
    """
    if not visits:
        return SiteActivity((at,), (0.0,))
    since, seen, changed, rate = zip(*visits, strict=True)
    limits = compute_activity_limits(min(since), at)
    before, after, days = (np.array([(each - limits[0]) / DAY for each in times]) for times in (since, seen, limits))
    findings = VisitFindings(before, after, np.array(changed), np.array(rate), unsignaled_share)
    return SiteActivity(tuple(limits), tuple(compute_activity_ahead(findings, days).tolist()))


def compute_activity_limits(first: datetime, at: datetime) -> list[datetime]:
    """Return the limits of the days for which activity is learned: midnights (UTC) and `at`.

    first: when the first of the visits that are remembered was made.
    """
    begin = max(first, at - ACTIVITY_WINDOW).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    midnights = [begin + n * DAY for n in range(int((at - begin) / DAY) + 1)]
    return [each for each in midnights if each < at] + [at]
