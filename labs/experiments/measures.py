"""The measured quantities: how long copies were fresh and how old they were, as exact integrals over a time window."""

from dataclasses import dataclass

import numpy as np

from labs.experiments.worlds.world import Floats, Ints, World

DECILES = 10


@dataclass(frozen=True, slots=True)
class CalibrationTable:
    """Expected and true freshness, 0 to 1.

    expected, true: over all pages, weighted by importance.  by_decile: the same pairs for each tenth of the pages, the
    least important first.
    """

    expected: float
    true: float
    by_decile: tuple[tuple[float, float], ...]

    @property
    def error(self) -> float:
        return abs(self.expected - self.true)

    @property
    def worst_decile_error(self) -> float:
        return max(abs(expected - true) for expected, true in self.by_decile)


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of a policy in a world, in the measured window: the second half of the time by default.

    freshness: share of time in which an existing page's copy was current, weighted by importance; plain: unweighted.
    divergence: mean share of the text by which a page's copy differs from it, weighted by importance.
    age_days: mean age of the copies, 0 while fresh, weighted by importance.
    requests: in the window.  wasted: those that found nothing new.  granted: those that the ledger would have allowed.
    over_days: days on which more was sent than the ledger allows; always 0.
    """

    freshness: float
    plain: float
    divergence: float
    age_days: float
    requests: int
    wasted: int
    granted: float
    over_days: int
    calibration: CalibrationTable | None


class Copies:
    """The copies of a world's pages: since when each is stale, and what was measured of them."""

    def __init__(self, world: World, *, window: float) -> None:
        """Begin with unfetched pages. window: the day on which measuring begins."""
        self._world, self._window = world, window
        self._seen = world.born.copy()  # the last visit, or the birth
        self._stale = world.born.copy()  # when the copy became stale: an unfetched page has none
        self._fresh_days = np.zeros(world.size)
        self._age_days2 = np.zeros(world.size)
        self._differing_days = np.zeros(world.size)
        self._copied = world.born.copy()  # when the copy was made
        self._expected = np.zeros(world.size)
        self._true = np.zeros(world.size)
        self._moments = np.zeros(world.size)

    def refresh(self, pages: Ints, at: Floats) -> None:
        """Update the copies of existing pages."""
        self.close(pages, at)
        self._stale[pages] = self._world.next_change(pages, at)
        self._copied[pages] = at

    def close(self, pages: Ints, at: Floats | float) -> None:
        """Count the time until now; the copy of a page that is gone no longer counts."""
        end = np.minimum(at, self._world.died[pages])
        begin = np.maximum(self._seen[pages], self._window)
        stale = np.minimum(self._stale[pages], end)
        self._fresh_days[pages] += np.maximum(stale - begin, 0)
        since = np.maximum(stale, begin)
        self._age_days2[pages] += np.where(end > since, ((end - stale) ** 2 - (since - stale) ** 2) / 2, 0)
        self._differing_days[pages] += self._differed(pages, begin, end)
        self._seen[pages] = np.maximum(at, self._seen[pages])

    def _differed(self, pages: Ints, begin: Floats, end: Floats) -> Floats:
        """Return the integral from `begin` to `end` of the share by which each copy differs.

        The nth missed change adds e (1 - e)^(n - 1), where e is the share that each of them replaces; or nothing after
        the first, if all of them replace the same part.
        """
        world = self._world
        first = np.searchsorted(world.keys, pages * world.stride + self._copied[pages], side="right")
        many = np.maximum(np.searchsorted(world.keys, pages * world.stride + end, side="right") - first, 0)
        row = np.repeat(np.arange(len(pages)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        at = world.keys[first[row] + nth] - pages[row] * world.stride
        edit = world.edit[pages[row]]
        lasts = np.maximum(end[row] - np.maximum(at, begin[row]), 0.0)
        added = edit * (1 - edit) ** nth if world.adds_up else edit * (nth == 0)
        return np.bincount(row, weights=added * lasts, minlength=len(pages)).astype(np.float64)

    def compare(self, expected: Floats, now: float) -> None:
        """Compare expected with true freshness at one more moment."""
        alive = (self._world.born <= now) & (self._world.died > now)
        self._expected += np.where(alive, expected, 0)
        self._true += alive & (now < self._stale)
        self._moments += alive

    def lived_days(self) -> Floats:
        """Return how long each page existed within the window."""
        world = self._world
        return np.asarray(np.maximum(np.minimum(world.died, world.days) - np.maximum(world.born, self._window), 0))

    def freshness(self, weight: Floats) -> float:
        """Return the share of time in which copies were fresh."""
        return float((weight * self._fresh_days).sum() / (weight * self.lived_days()).sum())

    def divergence(self, weight: Floats) -> float:
        """Return the mean share by which copies differed."""
        return float((weight * self._differing_days).sum() / (weight * self.lived_days()).sum())

    def age_days(self, weight: Floats) -> float:
        return float((weight * self._age_days2).sum() / (weight * self.lived_days()).sum())

    def calibration(self) -> CalibrationTable:
        """Return the comparisons, over all pages and by tenths of importance."""
        weight = self._world.importance
        tenths = np.array_split(np.argsort(weight, kind="stable"), DECILES)
        pairs = [self._means(rows, weight) for rows in tenths]
        expected, true = self._means(np.arange(len(weight)), weight)
        return CalibrationTable(expected=expected, true=true, by_decile=tuple(pairs))

    def _means(self, rows: Ints, weight: Floats) -> tuple[float, float]:
        total = max(float((weight[rows] * self._moments[rows]).sum()), 1e-12)
        expected, true = ((weight[rows] * sums[rows]).sum() / total for sums in (self._expected, self._true))
        return float(expected), float(true)
