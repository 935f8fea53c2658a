"""Calibration: whether the predicted probabilities of a change agree with the changes that visits found."""

from collections.abc import Sequence
from math import sqrt

from msgspec import Struct

MAX_DEVIATIONS = 3.0  # standard deviations
MAX_DIFFERENCE_SHARE = 0.03  # of the visits; a smaller difference does not matter, even if it is significant

MIN_VARIANCE = 1e-9  # if all predicted probabilities are 0 or 1, any other outcome deviates


class Agreement(Struct, frozen=True):
    """Predicted and found changes over a number of visits (`visits`).

    expected: the sum of the predicted probabilities.  found: the number of changes.
    variance: the variance of `found` if the predictions are right and visits are independent: the sum of p (1 - p).
    """

    visits: int = 0
    expected: float = 0.0
    found: int = 0
    variance: float = 0.0

    @property
    def expected_fresh(self) -> float | None:
        """Return the predicted share of copies that were fresh when they were visited."""
        return 1 - self.expected / self.visits if self.visits else None

    @property
    def found_fresh(self) -> float | None:
        """Return the share of copies that were fresh when they were visited."""
        return 1 - self.found / self.visits if self.visits else None

    @property
    def deviations(self) -> float:
        """Return by how many standard deviations the changes exceed the prediction."""
        return (self.found - self.expected) / sqrt(max(self.variance, MIN_VARIANCE))

    @property
    def is_off(self) -> bool:
        """Return whether the difference is significant and large enough to matter."""
        beyond = abs(self.found - self.expected) > MAX_DIFFERENCE_SHARE * self.visits
        return beyond and abs(self.deviations) > MAX_DEVIATIONS


def pool_agreements(agreements: Sequence[Agreement]) -> Agreement:
    """Add up several agreements."""
    return Agreement(
        visits=sum(each.visits for each in agreements),
        expected=sum(each.expected for each in agreements),
        found=sum(each.found for each in agreements),
        variance=sum(each.variance for each in agreements),
    )
