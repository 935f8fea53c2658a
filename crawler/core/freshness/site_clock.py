"""The site's clock: days by which the pages of a site have aged together, many in an hour in which all of it changed.

Pages of a site do not change each for itself alone: a statically built one is built anew, an editor works through a
section. A page's rate is told per day of the site's clock, in place of the calendar's (operational time: Feller, "An
Introduction to Probability Theory and Its Applications", volume II, chapter X). So the first few pages found changed
make all others older, each by its own rate, and looks that find nothing make the site's day shorter.

How far the clock went within a span of time is learnt from looks. Its prior is a gamma process, one day a day on
average, of independent spans (Kalbfleisch, "Non-parametric Bayesian analysis of survival time data", 1978): a span of w
days brings Gamma(k w, k) days. Looks at pages of rates l over it, of which changes fell into it, make of that
Gamma(k w + changes, k + sum of l). Where in its gap a change fell is shared out by what the clock says so far (one step
of expectation maximisation a look). The evenness k is learnt, too: each candidate gives every finding a chance, and the
logarithms add up. Where it is large the clock is the calendar.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from crawler.core.freshness.belief import DAY, SHORTEST_GAP_DAYS, Belief
from crawler.core.freshness.gamma import Floats

EVENNESS = (1000.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # per day: the candidates; one over the daily variance
GUESS = (0.92, *(0.01,) * 8)  # prior probability of each: uneven clocks have to show themselves
LOOKS_REMEMBERED = 1000.0  # older ones fade, of what they say of the evenness
SHORTEST_SPAN_DAYS = 1 / 24
SPANS_OF_A_LENGTH = 12  # before two of them become one of twice that length, so that the clock stays short
MOVED_DAYS = 1.0  # by which the clock has leapt ahead, so that pages that wait should be weighed again
LEAST_CHANCE = 1e-9


@dataclass(frozen=True, slots=True)
class SiteClock:
    """The clock of one site. at: the limits of its spans, ascending, one more than there are spans; empty at first.

    ahead: days by which the clock is ahead of the calendar at each limit.  changes: found by looks, of each span.
    rates: of the pages that looks have covered it with, summed.  scores: log likelihoods of EVENNESS, the best one 0.
    weighed: how far it was ahead when all pages that wait were last weighed by it, or less.
    """

    at: tuple[datetime, ...] = ()
    ahead: tuple[float, ...] = ()
    changes: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    scores: tuple[float, ...] = (0.0,) * len(EVENNESS)
    weighed: float = 0.0

    @property
    def has_leapt(self) -> bool:
        """Whether it has run so far ahead since pages were weighed that they should be weighed again."""
        return bool(self.ahead) and self.ahead[-1] - self.weighed >= MOVED_DAYS

    @property
    def evenness(self) -> float:
        """The evenness to expect, per day, as the mean of its logarithm."""
        return float(np.exp(_weights(self.scores) @ np.log(EVENNESS)))

    def ahead_since(self, instant: datetime) -> float:
        """The days by which the clock went faster than the calendar from that instant on; below 0 where slower."""
        if not self.at or instant >= self.at[-1]:
            return 0.0
        n = bisect_right(self.at, instant)
        if n == 0:
            return self.ahead[-1] - self.ahead[0]
        part = (instant - self.at[n - 1]) / (self.at[n] - self.at[n - 1])
        return self.ahead[-1] - self.ahead[n - 1] - part * (self.ahead[n] - self.ahead[n - 1])


NEW_CLOCK = SiteClock()


@dataclass(frozen=True, slots=True)
class LookFinding:
    """What one good look found, for the clock.

    at: of the look.  before: of the good look before it.  believed: of the page before the look.
    changed: whether the page's own text had changed.  untold: the share of its changes that no source of signals tells.
    """

    at: datetime
    before: datetime
    believed: Belief
    changed: bool
    untold: float = 1.0


def clock_after(clock: SiteClock, findings: Sequence[LookFinding]) -> SiteClock:
    """The clock after looks, in the order of time, none of which a signal about the page brought about."""
    if not findings:
        return clock
    clock = _until(clock, max(each.at for each in findings), since=min(each.before for each in findings))
    limits = _days(clock, clock.at)
    length = np.diff(limits)
    changes, rates = np.array(clock.changes), np.array(clock.rates)
    weights = _weights(clock.scores)
    scores = np.array(clock.scores)
    for finding in findings:
        before, at = _days(clock, (finding.before, finding.at))
        share = np.clip((np.minimum(at, limits[1:]) - np.maximum(before, limits[:-1])) / length, 0.0, 1.0)
        earlier = finding.untold * max(limits[0] - before, 0.0)  # before the clock began it was the calendar
        posterior = _posterior(length, changes, rates)
        went = earlier + finding.untold * (posterior @ share)  # by each candidate
        chance = _chance_of_same(finding.believed, went)
        given = np.clip(1 - chance if finding.changed else chance, LEAST_CHANCE, 1.0)
        scores = scores * (1 - 1 / LOOKS_REMEMBERED) + np.log(given)
        spans = finding.untold * share * (weights @ posterior)
        days = max(earlier + float(spans.sum()), SHORTEST_GAP_DAYS)
        found, rate = _found(finding, days)
        changes = changes + found * spans / days
        rates = rates + rate * finding.untold * share
    scores -= scores.max()
    went = _weights(scores) @ _posterior(length, changes, rates)
    ahead = np.concatenate([[0.0], np.cumsum(went - length)])
    return _merged(
        replace(
            clock,
            ahead=tuple(ahead.tolist()),
            changes=tuple(changes.tolist()),
            rates=tuple(rates.tolist()),
            scores=tuple(scores.tolist()),
            weighed=min(clock.weighed, float(ahead[-1])),
        )
    )


def weighed_now(clock: SiteClock) -> SiteClock:
    """The clock once all pages that wait are to be weighed by it as it is."""
    return replace(clock, weighed=clock.ahead[-1] if clock.ahead else 0.0)


def _weights(scores: Sequence[float] | Floats) -> Floats:
    weights = np.log(GUESS) + np.asarray(scores)
    weights = np.exp(weights - weights.max())
    return np.asarray(weights / weights.sum())


def _days(clock: SiteClock, instants: Sequence[datetime]) -> Floats:
    return np.array([(each - clock.at[0]) / DAY for each in instants])


def _posterior(length: Floats, changes: Floats, rates: Floats) -> Floats:
    """The mean days of the clock in each span; a row for each candidate of evenness."""
    even = np.reshape(EVENNESS, (-1, 1))
    return np.asarray((even * length + changes) / (even + rates))


def _chance_of_same(believed: Belief, days: Floats) -> Floats:
    return np.asarray(np.exp(-believed.a * np.log1p(days / believed.b)))


def _found(finding: LookFinding, days: float) -> tuple[float, float]:
    """The changes expected in the gap, which held none or at least one, and the page's rate, both by what was found."""
    a, b = finding.believed.a, finding.believed.b
    same = float(_chance_of_same(finding.believed, np.asarray(days)))
    slower = a / (b + days)
    if not finding.changed:
        return 0.0, slower
    return a / b * days / (1 - same), (a / b - same * slower) / (1 - same)


def _until(clock: SiteClock, at: datetime, *, since: datetime) -> SiteClock:
    """The clock with its last span up to `at`: that one goes on as long as it is short, or a new one begins."""
    if not clock.at:
        return replace(clock, at=(since, at), ahead=(0.0, 0.0), changes=(0.0,), rates=(0.0,))
    if at <= clock.at[-1]:
        return clock
    begin, end = clock.at[-2:]
    if (end - begin) / DAY < SHORTEST_SPAN_DAYS:  # what was looked at so far covers a part of it only
        part = (end - begin) / (at - begin)
        return replace(clock, at=(*clock.at[:-1], at), rates=(*clock.rates[:-1], clock.rates[-1] * part))
    return replace(
        clock,
        at=(*clock.at, at),
        ahead=(*clock.ahead, clock.ahead[-1]),
        changes=(*clock.changes, 0.0),
        rates=(*clock.rates, 0.0),
    )


def _merged(clock: SiteClock) -> SiteClock:
    """The clock with old spans of about one length made into longer ones, where there are more than a few of them."""
    at, ahead, changes, rates = list(clock.at), list(clock.ahead), list(clock.changes), list(clock.rates)
    known: dict[int, int] = {}
    for n in range(len(changes) - 1, 0, -1):
        length, before = (at[n + 1] - at[n]) / DAY, (at[n] - at[n - 1]) / DAY
        level = _level(length)
        known[level] = known.get(level, 0) + 1
        if known[level] > SPANS_OF_A_LENGTH and _level(before) <= level:
            rates[n - 1] = (rates[n - 1] * before + rates[n] * length) / (before + length)
            changes[n - 1] += changes[n]
            del at[n], ahead[n], changes[n], rates[n]
            known[level] -= 1
    return replace(clock, at=tuple(at), ahead=tuple(ahead), changes=tuple(changes), rates=tuple(rates))


def _level(days: float) -> int:
    return int(np.floor(np.log2(max(days / SHORTEST_SPAN_DAYS, 1.0)) + 1e-9))
