"""The optimum as a policy: it knows every page's true rate and always takes the page with the highest value."""

import numpy as np

from labs.experiments.optimum import known_value
from labs.experiments.policies.policy import Scene, VisitBatch, best
from labs.experiments.worlds.world import Floats, Ints, World

HORIZON_DAYS = 180.0  # the value of a first copy is the fresh time within this period


class Clairvoyant:
    """Greedy by the value at the true rate: reaches the analytic optimum if rates are constant, and follows changes."""

    def __init__(self, scene: Scene, world: World) -> None:
        self._scene, self._world = scene, world
        self._rates, self._rates_day = world.rates_at(0.0), 0
        self._since = np.zeros(scene.size)  # the last visit
        self._fetched = np.zeros(scene.size, bool)
        self._known = np.zeros(scene.size, bool)

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        if int(now) > self._rates_day:
            self._rates, self._rates_day = self._world.rates_at(now), int(now)
        score = known_value(self._rates, self._scene.importance, now - self._since)
        if not self._fetched.all():
            rates = np.maximum(self._rates, 1e-12)
            first = -np.expm1(-rates * HORIZON_DAYS) / rates * self._scene.importance
            score = np.where(self._fetched, score, first)
        return best(np.where(self._known, score, -np.inf), slots, host=self._scene.host, room=room)

    def learn(self, visits: VisitBatch) -> None:
        self._since[visits.page], self._fetched[visits.page] = visits.at, True
        self._known[visits.page[visits.gone]] = False

    def meet(self, pages: Ints, now: float) -> None:
        self._known[pages] = True
        if now == 0:
            self._fetched[pages] = True

    def expects(self, now: float) -> Floats | None:
        return self._fetched * np.exp(-self._rates * (now - self._since))
