"""Calibration: whether the chances that were given for changes agree with the changes that looks found."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

MAX_DEVIATIONS = 3.0
MAX_DIFFERENCE_SHARE = 0.03  # of the looks; a smaller difference does not matter, however significant it is

MIN_VARIANCE = 1e-9  # the variance of chances that are all 0 or 1: any other outcome is off


@dataclass(frozen=True, slots=True)
class Agreement:
    """Looks that found "changed" or "unchanged". expected: the sum of the chances given for a change.  found: changes.

    variance: of the changes found, if the chances are right and the looks independent: the sum of p (1 - p).
    """

    visits: int = 0
    expected: float = 0.0
    found: int = 0
    variance: float = 0.0

    @property
    def expected_fresh(self) -> float | None:
        """The share of the copies that should still have been fresh when they were looked at."""
        return 1 - self.expected / self.visits if self.visits else None

    @property
    def found_fresh(self) -> float | None:
        """The share of the copies that was still fresh when they were looked at."""
        return 1 - self.found / self.visits if self.visits else None

    @property
    def deviations(self) -> float:
        """The number of standard deviations by which more had changed than expected."""
        return (self.found - self.expected) / sqrt(max(self.variance, MIN_VARIANCE))

    @property
    def is_off(self) -> bool:
        """Whether the difference is too large for chance, and large enough to matter."""
        beyond = abs(self.found - self.expected) > MAX_DIFFERENCE_SHARE * self.visits
        return beyond and abs(self.deviations) > MAX_DEVIATIONS


def pool_agreements(agreements: Sequence[Agreement]) -> Agreement:
    """The looks of several Agreements as one."""
    return Agreement(
        visits=sum(each.visits for each in agreements),
        expected=sum(each.expected for each in agreements),
        found=sum(each.found for each in agreements),
        variance=sum(each.variance for each in agreements),
    )
