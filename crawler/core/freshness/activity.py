"""Activity: how often a domain changes these days, compared with its pages' beliefs.

Two sums decay alike: looks that found a change, and the chances that were given for that. Their ratio m, drawn toward
1 by the weight of a few looks, is the factor of the domain's change rate; a belief (a, b) is then valued as (a, b / m).
The factor counts in values and due times only, and is never learnt into a page.
"""

from dataclasses import dataclass

import numpy as np

from crawler.core.freshness.gamma import Floats, Numbers

DECAY_DAYS = 7.0  # a week-old look counts 1/e
HELD = 3.0  # changes added to both sums, so that a domain of few looks stays near its usual activity
LEAST_FACTOR, MOST_FACTOR = 0.25, 16.0


@dataclass(frozen=True, slots=True)
class Activity:
    """Decayed sums of the changes found and of those expected, by looks of one domain."""

    seen: float = 0.0
    expected: float = 0.0

    @property
    def factor(self) -> float:
        """The factor of the domain's change rate now over its usual one."""
        return float(factors(self.seen, self.expected))


def factors(seen: Numbers, expected: Numbers) -> Floats:
    """The factor m of each domain: (seen + 3)/(expected + 3), within [0.25, 16]."""
    return np.asarray(np.clip((seen + HELD) / (expected + HELD), LEAST_FACTOR, MOST_FACTOR))


def decayed(sums: Numbers, days: Numbers) -> Floats:
    """The sums, decayed by `days`."""
    return np.asarray(sums * np.exp(-np.maximum(days, 0.0) / DECAY_DAYS))


def after(activity: Activity, *, days: float, found: float, expected: float) -> Activity:
    """The activity after a batch of looks that found "changed" or "same".

    days: since the last batch.  found: how many found a change.  expected: the sum of the chances given for it.
    """
    return Activity(
        seen=float(decayed(activity.seen, days)) + found, expected=float(decayed(activity.expected, days)) + expected
    )
