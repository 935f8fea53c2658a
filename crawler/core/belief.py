"""What we believe about how often a page changes: a Gamma over its Poisson rate, learnt from yes-or-no looks."""

import math
from dataclasses import dataclass
from datetime import timedelta

DAY = timedelta(days=1)
SHORTEST_GAP_DAYS = 1e-6  # under a tenth of a second a gap teaches nothing, and divisions stay finite
LARGEST_SHAPE = 1e6  # beyond it a belief is a point, and differences of moments drown in rounding


@dataclass(frozen=True, slots=True)
class Belief:
    """Gamma(a, b) over a page's change rate per day: mean a/b. a is a count, b is in days; both above 0."""

    a: float
    b: float

    @property
    def rate_per_day(self) -> float:
        return self.a / self.b


# A page of which nothing is known: about one change in three weeks, give or take an order of magnitude.
PRIOR = Belief(a=0.5, b=10.0)


def same(belief: Belief, *, gap: timedelta) -> Belief:
    """The belief after a look that found no change since the last good look, `gap` ago. Exact."""
    return Belief(belief.a, belief.b + max(gap / DAY, 0.0))


def changed(belief: Belief, *, gap: timedelta) -> Belief:
    """The belief after a look that found at least one change within `gap`.

    The posterior is not a Gamma; the result has its exact mean and variance. After a very short gap it is (a + 1, b);
    after a very long one the belief as it was, since "changed at last" teaches nothing.
    """
    days = gap / DAY
    if days <= SHORTEST_GAP_DAYS:
        return Belief(belief.a + 1, belief.b)
    a, b = belief.a, belief.b
    log_r = -math.log1p(days / b)  # r = b / (b + t)
    none = -math.expm1(a * log_r)  # 1 - r^a: the chance of this very finding
    mean = (a / b) * (-math.expm1((a + 1) * log_r) / none)
    square = (a / b) * ((a + 1) / b) * (-math.expm1((a + 2) * log_r) / none)
    variance = square - mean * mean
    if not variance > 0 or mean * mean / variance > LARGEST_SHAPE:
        return belief
    return Belief(mean * mean / variance, mean / variance)


def changed_at(belief: Belief, *, age: timedelta) -> Belief:
    """The belief after a change whose instant an honest Last-Modified tells: `age` before the look. Exact."""
    return Belief(belief.a + 1, belief.b + max(age / DAY, 0.0))


def fresh_now(belief: Belief, *, unseen: timedelta) -> float:
    """The chance that a page last seen `unseen` ago has not changed since: E[exp(-rate t)]."""
    return math.exp(-belief.a * math.log1p(max(unseen / DAY, 0.0) / belief.b))


def change_expected(belief: Belief, *, gap: timedelta) -> float:
    """The chance that a look after `gap` finds a change; compared with what looks find, this is calibration."""
    return -math.expm1(-belief.a * math.log1p(max(gap / DAY, 0.0) / belief.b))
