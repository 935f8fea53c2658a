"""Dai's experiment on Nutch drawn again: pages of known period, and the period at which each rule comes back to them.

Her rule: the SimHash likeness of two versions sets the next period, shorter where they differ and longer where not; the
more collections, the closer the period comes to the page's own, and the fewer fetches are redundant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

import numpy as np

from crawler.core.freshness import PRIOR, due_gap, learn_changed, learn_same
from crawler.lab import optimum
from crawler.lab.worlds.world import Flags, Floats

PERIODS_DAYS = (2.0, 5.0, 10.0, 20.0, 40.0)
FIRST_PERIOD_DAYS = 30.0  # Nutch's default, with which both rules begin
LEAST_DAYS, MOST_DAYS = 1 / 24, 365.0
DIFFERENCE = 0.55  # of two versions' SimHash, as a share of 32 bits: the mean over pages of the laboratory's worlds
LIKENESS, AS_MANY, AS_FRESH = "likeness", "ours, as many looks", "ours, as fresh"


class Timing(StrEnum):
    """When a page of a known period changes."""

    CLOCKWORK = "clockwork"  # exactly once a period
    POISSON = "poisson"  # once a period on average


@dataclass(frozen=True, slots=True)
class Track:
    """What became of the pages of one period under one rule.

    revisit_days: the wait after the 1st, 2nd, ... look.  held_days: the period that the rule holds true then: for the
    likeness rule that is its wait, for ours one over the believed rate.  Both are medians over the pages.
    redundant: share of the looks of the second half that found nothing new.  fresh: share of time, there.
    looks_per_day: of a page, there.
    """

    rule: str
    period_days: float
    revisit_days: tuple[float, ...]
    held_days: tuple[float, ...]
    redundant: float
    fresh: float
    looks_per_day: float


@dataclass(frozen=True, slots=True)
class Sum:
    """A rule over all periods, a page of each. fresh: the mean of their shares."""

    rule: str
    fresh: float
    looks_per_day: float
    redundant_per_day: float


class PeriodRule(Protocol):
    """How long to wait for the next look at each page, by what the last one found."""

    def after(self, wait: Floats, changed: Flags) -> tuple[Floats, Floats]:
        """The next wait and the period held true, in days."""
        ...


def dai(
    *, timing: Timing, seed: int, pages: int = 300, looks: int = 60, periods: Sequence[float] = PERIODS_DAYS
) -> list[Track]:
    """The likeness rule; ours at the price that sends about as many looks; and at that which keeps about as fresh.

    pages: of each period.  No rule knows a period; ours begins with the product's prior.  The prices are those that the
    formulas for known Poisson rates give.
    """
    period = np.repeat(periods, pages)
    live = partial(_live, period=period, timing=timing, seed=seed, looks=looks, periods=periods)
    hers = live(LIKENESS, Likeness())
    rate, even = 1 / np.array(periods), np.ones(len(periods))
    as_many = optimum.price_of(rate, even, sum(track.looks_per_day for track in hers))
    as_fresh = _price_as_fresh(rate, float(np.mean([track.fresh for track in hers])))
    return (
        hers + live(AS_MANY, OursOnOnePage(len(period), as_many)) + live(AS_FRESH, OursOnOnePage(len(period), as_fresh))
    )


def sums(tracks: Sequence[Track]) -> list[Sum]:
    """Each rule over all periods, in the order of the tracks."""
    by_rule = {
        rule: [track for track in tracks if track.rule == rule] for rule in dict.fromkeys(t.rule for t in tracks)
    }
    return [
        Sum(
            rule=rule,
            fresh=float(np.mean([track.fresh for track in own])),
            looks_per_day=sum(track.looks_per_day for track in own),
            redundant_per_day=sum(track.looks_per_day * track.redundant for track in own),
        )
        for rule, own in by_rule.items()
    ]


class Likeness:
    """Twice as long where nothing changed; where something did, shorter by how much, at most by half."""

    def after(self, wait: Floats, changed: Flags) -> tuple[Floats, Floats]:
        wait = np.clip(wait * np.where(changed, 2.0**-DIFFERENCE, 2.0), LEAST_DAYS, MOST_DAYS)
        return wait, wait


class OursOnOnePage:
    """Beliefs of pages of equal importance, and the wait that is worth the price."""

    def __init__(self, pages: int, paid: float) -> None:
        self._a, self._b = np.full(pages, PRIOR.a), np.full(pages, PRIOR.b)
        self._price = paid

    def after(self, wait: Floats, changed: Flags) -> tuple[Floats, Floats]:
        same, found = learn_same(self._a, self._b, wait), learn_changed(self._a, self._b, wait)
        self._a, self._b = np.where(changed, found[0], same[0]), np.where(changed, found[1], same[1])
        gap = due_gap(self._a, self._b, 1.0, self._price, least=LEAST_DAYS, most=MOST_DAYS)
        return gap, self._b / self._a


def _price_as_fresh(rate: Floats, fresh: float) -> float:
    """The price at which pages of known rates are fresh for this share of the time, on average."""
    low, high = 1e-9, 1e9
    for _ in range(80):
        middle = float(np.sqrt(low * high))
        looks = optimum.frequencies(rate, np.ones(len(rate)), middle)
        low, high = (middle, high) if optimum.freshness(rate, looks).mean() > fresh else (low, middle)
    return low


def _live(
    name: str, rule: PeriodRule, *, period: Floats, timing: Timing, seed: int, looks: int, periods: Sequence[float]
) -> list[Track]:
    """So many looks at every page, each at its own pace."""
    rng = np.random.default_rng(seed)
    now, wait = np.zeros(len(period)), np.full(len(period), FIRST_PERIOD_DAYS)
    due = period * (rng.random(len(period)) if timing is Timing.CLOCKWORK else rng.exponential(1.0, len(period)))
    waits, held, found, fresh, elapsed = [], [], [], [], []
    for _ in range(looks):
        then = now + wait
        changed = due <= then
        fresh.append(np.minimum(due, then) - now)
        elapsed.append(wait)
        found.append(changed)
        missed = np.floor((then - due) / period) + 1
        again = due + period * missed if timing is Timing.CLOCKWORK else then + rng.exponential(1.0, len(due)) * period
        due = np.where(changed, again, due)
        wait, holds = rule.after(wait, changed)
        waits.append(wait)
        held.append(holds)
        now = then
    half = looks // 2
    return [
        Track(
            rule=name,
            period_days=each,
            revisit_days=tuple(float(np.median(row[period == each])) for row in waits),
            held_days=tuple(float(np.median(row[period == each])) for row in held),
            redundant=float(1 - np.mean([row[period == each] for row in found[half:]])),
            fresh=_sum(fresh[half:], period == each) / _sum(elapsed[half:], period == each),
            looks_per_day=(looks - half) * int((period == each).sum()) / _sum(elapsed[half:], period == each),
        )
        for each in periods
    ]


def _sum(rows: Sequence[Floats], chosen: Flags) -> float:
    return float(np.sum([row[chosen].sum() for row in rows]))
