"""The value of knowledge: exact Bayes with the true prior from the first day; only each page's rate is unknown.

No crawler has that prior, so this is not a competitor. Its distance to the optimum is what visits within the budget
cannot reveal. The distance of `ours` to this policy is what a better prior could gain. The policy is approximate: rates
are discretized (RATES), and no visit is made only to learn. With few pages of very unequal importance, `ours` may be
better.
"""

import numpy as np

from labs.experiments.policies.policy import Scene, VisitBatch, best
from labs.experiments.worlds.world import Flags, Floats, Ints, World

RATES = 48  # equally likely rates that replace all rates of the world
HORIZON_DAYS = 180.0  # the value of a first copy is the fresh time within this period


class Informed:
    """Greedy by the value averaged over the exact posterior, without Last-Modified and URL templates."""

    def __init__(self, scene: Scene, world: World) -> None:
        self._scene = scene
        self._rates = np.quantile(world.segments.rate, (np.arange(RATES) + 0.5) / RATES)
        # How often a page's rate is redrawn; 0 for never.
        lived = np.minimum(world.died, world.days) - world.born
        self._redraws_per_day = float((len(world.segments.page) - world.size) / lived.sum())
        self._chance = np.full((scene.size, RATES), 1 / RATES)
        self._since = np.zeros(scene.size)  # the last visit
        self._fetched, self._known = np.zeros(scene.size, bool), np.zeros(scene.size, bool)
        first = -np.expm1(-self._rates * HORIZON_DAYS) / self._rates
        self._first_value = float(first.mean())

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        known = np.flatnonzero(self._known)
        score = np.full(self._scene.size, -np.inf)
        score[known] = self._scene.importance[known] * np.where(
            self._fetched[known], self._values(known, now), self._first_value
        )
        return best(score, slots, host=self._scene.host, room=room)

    def _values(self, pages: Ints, now: float) -> Floats:
        """Return (1 - (1 + x) e^-x) / rate, with x = rate * days since the last visit, averaged over the posterior."""
        x = np.minimum(np.outer(now - self._since[pages], self._rates), 700.0)
        grown = 1 - (1 + x) * np.exp(-x)
        return np.asarray(np.einsum("pr,pr,r->p", self._chance[pages], grown, 1 / self._rates))

    def learn(self, visits: VisitBatch) -> None:
        again = ~visits.first & ~visits.gone
        page, gap = visits.page[again], visits.gap[again]
        self._chance[page] = self._learn(self._chance[page], gap, visits.changed[again])
        self._since[visits.page], self._fetched[visits.page] = visits.at, True
        self._known[visits.page[visits.gone]] = False

    def _learn(self, chance: Floats, gap: Floats, changed: Flags) -> Floats:
        """Return the posterior over today's rates. At most one redraw per gap is considered, in its middle."""
        fresh = np.exp(-np.outer(gap, self._rates))
        half = np.exp(-np.outer(gap / 2, self._rates))
        redrawn = -np.expm1(-self._redraws_per_day * gap)[:, None]
        same = (1 - redrawn) * chance * fresh
        same += redrawn * (chance * half).sum(axis=1, keepdims=True) * half / RATES
        before = (1 - redrawn) * chance + redrawn / RATES
        after = np.where(changed[:, None], before - same, same)
        after = np.maximum(after, 1e-300)
        return np.asarray(after / after.sum(axis=1, keepdims=True))

    def meet(self, pages: Ints, now: float) -> None:
        self._known[pages] = True
        if now == 0:
            self._fetched[pages] = True

    def expects(self, now: float) -> Floats | None:
        fresh = np.exp(-np.outer(now - self._since, self._rates))
        return np.asarray(self._fetched * np.einsum("pr,pr->p", self._chance, fresh))
