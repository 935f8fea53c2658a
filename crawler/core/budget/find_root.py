"""Find where falling curves reach target values, for example the price at which demand meets a budget."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats

MIN_PRICE, MAX_PRICE = 1e-9, 1e12  # the price if nothing is scarce, and if there is nothing to spend
TOLERANCE = 1e-4  # relative, of the target and of the price
MAX_TRIALS = 80
TINY, HUGE = 1e-300, 1e300


def find_root(curve: Callable[[Floats], Floats], target: Floats, *, guess: Floats) -> Floats:
    """Return the prices at which `curve` reaches `target`, element by element, limited to [MIN_PRICE, MAX_PRICE].

    curve: a non-increasing function of the prices with values of 0 or more; each value depends only on its own price.
    guess: the first trial.
    Method: false position (Illinois) on logarithms, where demand is almost a straight line; it takes about six trials.
    Every fourth trial bisects the bracket, so the search also converges at the step of a discontinuous curve.
    """
    goal = np.log(np.clip(target, TINY, HUGE))
    x = np.log(np.clip(guess, MIN_PRICE, MAX_PRICE))
    end, zero, no = np.full(x.shape, np.inf), np.zeros(x.shape), np.zeros(x.shape, dtype=np.bool_)
    search = _Search(x, -end, end, zero, zero, no, no)
    for trial in range(MAX_TRIALS):
        excess = np.log(np.clip(curve(np.exp(search.x)), TINY, HUGE)) - goal
        search.narrow_brackets(excess)
        if search.done.all():
            break
        search.choose_next_trial(stride=0.2 * 2.0**trial, is_halved=trial % 4 == 3)
    return np.asarray(np.exp(search.x))


class _Search(Struct):
    """Brackets around the roots, in ln price.

    x: the current trial.  over, under: ln(curve / target) at `low` and at `high`, possibly halved (Illinois).
    was_over: whether the last trial was above the target.
    """

    x: Floats
    low: Floats
    high: Floats
    over: Floats
    under: Floats
    was_over: NDArray[np.bool_]
    done: NDArray[np.bool_]

    def narrow_brackets(self, excess: Floats) -> None:
        """Update the brackets with the result of one trial, and mark finished elements in `done`."""
        is_over = excess > 0
        self.done = self.done | (np.abs(excess) < TOLERANCE)
        self.done |= np.where(is_over, self.x >= np.log(MAX_PRICE), self.x <= np.log(MIN_PRICE))
        # Illinois: halve the excess of an end that is retained twice, otherwise it can be retained forever.
        stays = np.where(is_over == self.was_over, 0.5, 1.0)
        self.over = np.where(is_over, excess, stays * self.over)
        self.under = np.where(is_over, stays * self.under, excess)
        self.was_over = is_over
        self.low = np.where(is_over, self.x, self.low)
        self.high = np.where(is_over, self.high, self.x)
        self.done |= self.high - self.low < TOLERANCE

    def choose_next_trial(self, *, stride: float, is_halved: bool) -> None:
        """Choose the next trial: outward while one end is unbounded, else within the bracket."""
        closed = np.isfinite(self.low) & np.isfinite(self.high)
        part = 0.5 if is_halved else np.clip(self.over / np.maximum(self.over - self.under, TINY), 0.01, 0.99)
        inward = np.where(closed, self.low, 0.0) + part * np.where(closed, self.high, 0.0)
        inward -= part * np.where(closed, self.low, 0.0)
        outward = self.x + np.where(np.isfinite(self.low), stride, -stride)
        x = np.clip(np.where(closed, inward, outward), np.log(MIN_PRICE), np.log(MAX_PRICE))
        self.x = np.where(self.done, self.x, x)
