"""Rules that lengthen a page's interval after each visit without a change, and shorten it after each other visit."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from labs.experiments.policies.policy import Scene, VisitBatch, best
from labs.experiments.worlds.world import Floats, Ints

MINUTE, HOUR = 1 / 1440, 1 / 24  # days
TOLERANCE_BITS = 3.0  # Manku, Jain, Das Sarma, WWW 2007


class Queue(StrEnum):
    """Which of the due pages come first if there are too many."""

    SCORE = "score"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class MultiplyDivide:
    """How an interval follows from the result of a visit.

    step: (interval, visits, days since the last detected change) -> (next interval, correction of the due time), in
    days.
    first, min_interval, max_interval: the first interval and its bounds, in days.  ceiling: maximum wait, in days.
    """

    step: Callable[[Floats, VisitBatch, Floats], tuple[Floats, Floats]]
    first: float
    min_interval: float
    max_interval: float
    ceiling: float = np.inf


class Adaptive:
    """Pages whose interval a rule changes at every visit; only due pages are visited."""

    def __init__(self, scene: Scene, rule: MultiplyDivide, order: Queue) -> None:
        self._scene, self._rule, self._order = scene, rule, order
        self._interval = np.full(scene.size, rule.first)
        self._due = np.full(scene.size, np.inf)
        self._changed_at = np.zeros(scene.size)

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        key = self._scene.importance if self._order is Queue.SCORE else -self._due
        return best(np.where(self._due <= now, key, -np.inf), slots, host=self._scene.host, room=room)

    def learn(self, visits: VisitBatch) -> None:
        page, rule = visits.page, self._rule
        self._changed_at[page] = np.where(visits.changed | visits.first, visits.at, self._changed_at[page])
        interval, earlier = rule.step(self._interval[page], visits, visits.at - self._changed_at[page])
        interval = np.where(visits.first, rule.first, np.clip(interval, rule.min_interval, rule.max_interval))
        self._interval[page] = interval
        wait = np.minimum(np.maximum(interval - np.where(visits.first, 0, earlier), rule.min_interval), rule.ceiling)
        self._due[page] = np.where(visits.gone, np.inf, visits.at + wait)

    def meet(self, pages: Ints, now: float) -> None:
        # The first intervals are spread at random, so that pages do not all become due together.
        spread = np.arange(1, len(pages) + 1) / len(pages) * self._rule.first if now == 0 else np.zeros(len(pages))
        self._due[pages] = now + spread

    def expects(self, now: float) -> Floats | None:  # noqa: ARG002
        return None


def nutch(scene: Scene, order: Queue) -> Adaptive:
    """Return Apache Nutch's AdaptiveFetchSchedule with its default rates: +40%, -20%, sync delta 0.3.

    The interval is 30 days at first, 60 s to 365 d; no page waits longer than 90 days (db.fetch.interval.max). Unlike
    the original, a page that would wait longer is not due at once, again and again.
    """

    def step(interval: Floats, visits: VisitBatch, unchanged_for: Floats) -> tuple[Floats, Floats]:
        grown = interval * np.where(visits.changed, 1 - 0.2, 1 + 0.4)
        # The interval grows to the time since the last detected change, and the due time moves towards that change.
        return np.maximum(grown, unchanged_for), unchanged_for * 0.3

    return Adaptive(
        scene, MultiplyDivide(step, first=30.0, min_interval=MINUTE, max_interval=365.0, ceiling=90.0), order
    )


def stormcrawler(scene: Scene) -> Adaptive:
    """Return StormCrawler's AdaptiveScheduler with its defaults: +50%, -50%; 1 h to 14 d, one day at first."""

    def step(interval: Floats, visits: VisitBatch, _: Floats) -> tuple[Floats, Floats]:
        return interval * np.where(visits.changed, 1 - 0.5, 1 + 0.5), np.zeros(len(interval))

    return Adaptive(scene, MultiplyDivide(step, first=1.0, min_interval=HOUR, max_interval=14.0), Queue.DUE)


def likeness_step(interval: Floats, visits: VisitBatch, _: Floats) -> tuple[Floats, Floats]:
    """Double the interval if the versions are similar; otherwise shorten it by their difference, down to half."""
    unlike = np.minimum(visits.distance_bits / 32, 1.0)
    alike = ~visits.changed | (visits.distance_bits <= TOLERANCE_BITS)
    return interval * np.where(alike, 2.0, 2.0**-unlike), np.zeros(len(interval))


def likeness(scene: Scene) -> Adaptive:
    """Return the rule of Dai's addition to Nutch: the SimHash similarity of two versions sets the period, 1 h to 365 d.

    Steps keep their size, as published. The product's own policy, core's SimilarityPolicy, takes smaller steps with
    every visit, and is measured by `python -m labs dai`.
    """
    return Adaptive(scene, MultiplyDivide(likeness_step, first=30.0, min_interval=HOUR, max_interval=365.0), Queue.DUE)
