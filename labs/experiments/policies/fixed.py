"""Rules that never learn: all pages equal, by importance, or by true rate, each at even intervals."""

import numpy as np

from labs.experiments.policies.policy import Scene, VisitBatch, best
from labs.experiments.worlds.world import Floats, Ints


class Even:
    """Pages at even intervals of their own length, the most overdue first; never idle.

    weight: relative number of visits; 0 for never.
    """

    def __init__(self, scene: Scene, weight: Floats) -> None:
        self._scene, self._weight = scene, weight
        self._known = np.zeros(scene.size, bool)
        self._since = np.zeros(scene.size)

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        # Elapsed shares of the interval. A budget would only scale intervals of 1/weight, so it need not be known.
        score = np.where(self._known, (now - self._since) * self._weight, -np.inf)
        return best(score, slots, host=self._scene.host, room=room)

    def learn(self, visits: VisitBatch) -> None:
        self._since[visits.page] = visits.at
        self._known[visits.page[visits.gone]] = False

    def meet(self, pages: Ints, now: float) -> None:
        self._known[pages] = True
        # New pages come first; the first copies are spread, as if they had been visited before.
        even = np.arange(1, len(pages) + 1) / len(pages) if now == 0 else np.full(len(pages), 1e6)
        self._since[pages] = now - even / np.maximum(self._weight[pages], 1e-12)

    def expects(self, now: float) -> Floats | None:  # noqa: ARG002
        return None


def uniform(scene: Scene) -> Even:
    """Visit all pages in turn (round robin)."""
    return Even(scene, np.ones(scene.size))


def by_importance(scene: Scene) -> Even:
    """Visit a page that is twice as important twice as often: the strongest of the simple rules."""
    return Even(scene, scene.importance)


def by_rate(scene: Scene, true_rates: Floats) -> Even:
    """Visit a page of twice the true rate twice as often."""
    return Even(scene, true_rates)
