"""Dai's experiment on Nutch repeated: pages with a known period, and the period at which each rule revisits them.

In Dai's rule, the SimHash similarity of two versions sets the next period: shorter if they differ, longer if not. The
more visits, the closer the period gets to the page's own, and the fewer visits are redundant. Here it is the product's
own policy, on real SimHashes of generated texts that change in part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Protocol

import numpy as np

from crawler.core.freshness.estimates import (
    DAY,
    DEFAULT_MAGNITUDE,
    PRIOR,
    compute_expected_magnitude,
    convert_bits_to_magnitude,
    learn_changed,
    learn_magnitude,
    learn_unchanged,
)
from crawler.core.freshness.policies import SIMILARITY_POLICY, VisitResult
from crawler.core.freshness.visit_value import compute_due_gap
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import Fingerprint, compute_fingerprint, count_distance_bits
from labs.experiments import optimum
from labs.experiments.worlds.world import Flags, Floats, Ints

PERIODS_DAYS = (2.0, 5.0, 10.0, 20.0, 40.0)
FIRST_PERIOD_DAYS = (
    30.0  # Nutch's default, with which all rules begin; shortened at random, as a crawl spreads its pages
)
MIN_DAYS, MAX_DAYS = 1 / 24, 365.0
WORDS, VOCABULARY = 300, 5000  # of a text, and of the language
MIN_SHARE, MAX_SHARE = 0.05, 0.5  # share of its words that a change replaces
SIMILARITY, FIXED = "similarity", "fixed, equal visits"
AS_MANY, AS_FRESH = "shadow price, equal visits", "shadow price, equal freshness"
URL, START = Url("https://example.com/"), datetime(2026, 1, 1, tzinfo=UTC)
TRIALS, EQUAL = 12, 0.003  # attempts to find the shadow price, until the ratio is 1 within EQUAL
MAX_OFF = 8.0  # factor between the shadow price for known rates and that for learned rates

Waits = tuple[Floats, Floats]  # the next wait and the estimated period, in days


class Timing(StrEnum):
    """When a page of a known period changes."""

    CLOCKWORK = "clockwork"  # exactly once a period
    POISSON = "poisson"  # once a period on average


@dataclass(frozen=True, slots=True)
class Track:
    """The pages of one period under one rule.

    mean_days, median_days: over the pages, of the wait after the 1st, 2nd, ... visit.  held_days: the mean period that
    the rule estimates then: its wait or, for the shadow price, the inverse of the estimated rate.
    redundant: share of the visits of the second half that found nothing new.  fresh: share of the time of the second
    half in which copies were fresh.  visits_per_day: per page, in the second half.
    """

    rule: str
    period_days: float
    mean_days: tuple[float, ...]
    median_days: tuple[float, ...]
    held_days: tuple[float, ...]
    redundant: float
    fresh: float
    visits_per_day: float


@dataclass(frozen=True, slots=True)
class Sum:
    """A rule over all periods, with one page of each. fresh: the mean of their shares."""

    rule: str
    fresh: float
    visits_per_day: float
    redundant_per_day: float


class PeriodRule(Protocol):
    """A rule for the wait until the next visit of each page, by the result of the last one."""

    def after(self, wait: Floats, changes: Ints) -> Waits:
        """Return the next wait and the estimated period. changes: of each page since the last visit."""
        ...


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one experiment: their periods, when they change, and the random seed."""

    period: Floats
    timing: Timing
    seed: int
    visits: int

    @property
    def periods(self) -> list[float]:
        return list(dict.fromkeys(self.period.tolist()))


def dai(
    *, timing: Timing, seed: int, pages: int = 100, visits: int = 60, periods: Sequence[float] = PERIODS_DAYS
) -> list[Track]:
    """Run similarity, a fixed period, and shadow prices with about equal visits and with equal freshness.

    pages: for each period.  No rule knows a period; the shadow price begins with the product's prior.
    """
    world = Pages(np.repeat(periods, pages), timing, seed, visits)
    similar = _live(SIMILARITY, Similarity(len(world.period), seed), world)
    many, fresh = sum(track.visits_per_day for track in similar), float(np.mean([track.fresh for track in similar]))
    rate, even = 1 / np.array(periods), np.ones(len(periods))

    def at_price(name: str) -> Callable[[float], list[Track]]:
        return lambda price: _live(name, PriceRule(len(world.period), price), world)

    def as_many(tracks: list[Track]) -> float:
        return sum(track.visits_per_day for track in tracks) / many

    return [
        *similar,
        *_live(FIXED, Fixed(len(periods) / many), world),
        *_solve_price(at_price(AS_MANY), as_many, near=optimum.price_of(rate, even, many)),
        *_solve_price(
            at_price(AS_FRESH),
            lambda tracks: float(np.mean([track.fresh for track in tracks])) / fresh,
            near=_price_as_fresh(rate, fresh),
        ),
    ]


def sums(tracks: Sequence[Track]) -> list[Sum]:
    """Return each rule over all periods, in the order of the tracks."""
    by_rule = {
        rule: [track for track in tracks if track.rule == rule] for rule in dict.fromkeys(t.rule for t in tracks)
    }
    return [
        Sum(
            rule=rule,
            fresh=float(np.mean([track.fresh for track in own])),
            visits_per_day=sum(track.visits_per_day for track in own),
            redundant_per_day=sum(track.visits_per_day * track.redundant for track in own),
        )
        for rule, own in by_rule.items()
    ]


class Texts:
    """Generated texts, one for each page; every change replaces a random share of the words."""

    def __init__(self, pages: int, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 1])
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        self._words = np.array(["".join(word) for word in self._rng.choice(letters, (VOCABULARY, 7))])
        self._texts = self._rng.integers(0, VOCABULARY, (pages, WORDS))
        self._prints = [self._print_of(page) for page in range(pages)]

    def distance_after(self, page: int, changes: int) -> int:
        """Return the bits by which the page's SimHash differs from that of the last visit, after this many changes."""
        for _ in range(changes):
            replaced = self._rng.random(WORDS) < self._rng.uniform(MIN_SHARE, MAX_SHARE)
            self._texts[page, replaced] = self._rng.integers(0, VOCABULARY, int(replaced.sum()))
        before, self._prints[page] = self._prints[page], self._print_of(page)
        return count_distance_bits(before, self._prints[page])

    def _print_of(self, page: int) -> Fingerprint:
        found = compute_fingerprint(" ".join(self._words[self._texts[page]].tolist()))
        assert found is not None  # a text has words
        return found


class Similarity:
    """The product's policy, page by page; magnitudes of changes are learned as in the product."""

    def __init__(self, pages: int, seed: int) -> None:
        self._texts = Texts(pages, seed)
        self._total, self._changes = np.zeros(pages), np.zeros(pages)
        self._visits = 1

    def after(self, wait: Floats, changes: Ints) -> Waits:
        self._visits += 1
        bits = np.array(
            [self._texts.distance_after(page, many) if many else 0 for page, many in enumerate(changes.tolist())]
        )
        changed = changes > 0
        total, many = learn_magnitude(self._total, self._changes, convert_bits_to_magnitude(np.maximum(bits, 1)))
        self._total, self._changes = np.where(changed, total, self._total), np.where(changed, many, self._changes)
        usual = compute_expected_magnitude(self._total, self._changes, DEFAULT_MAGNITUDE)
        columns = zip(wait.tolist(), changed.tolist(), bits.tolist(), usual.tolist(), strict=True)
        period = np.array([self._after(*column) for column in columns])
        return period, period

    def _after(self, wait: float, changed: bool, bits: int, usual: float) -> float:  # noqa: FBT001  a column
        waited = timedelta(days=wait)
        result = VisitResult(
            url=URL,
            at=START,
            waited=waited,
            planned=waited,
            changed=changed,
            distance_bits=bits if changed else None,
            usual_magnitude=usual,
            visits=self._visits,
            rate_estimate=PRIOR,
            importance=1.0,
            shadow_price=1.0,
            min_interval=timedelta(days=MIN_DAYS),
            max_interval=timedelta(days=MAX_DAYS),
        )
        return float(
            min(max(SIMILARITY_POLICY.choose_interval(result), result.min_interval), result.max_interval) / DAY
        )


class Fixed:
    """A fixed period for all pages."""

    def __init__(self, days: float) -> None:
        self._days = days

    def after(self, wait: Floats, changes: Ints) -> Waits:  # noqa: ARG002  independent of the result
        days = np.full(len(wait), self._days)
        return days, days


class PriceRule:
    """Estimates for pages of equal importance, and waits until the value of a visit reaches the shadow price."""

    def __init__(self, pages: int, price: float) -> None:
        self._a, self._b = np.full(pages, PRIOR.a), np.full(pages, PRIOR.b)
        self._price = price

    def after(self, wait: Floats, changes: Ints) -> Waits:
        same, found = learn_unchanged(self._a, self._b, wait), learn_changed(self._a, self._b, wait)
        self._a, self._b = np.where(changes > 0, found[0], same[0]), np.where(changes > 0, found[1], same[1])
        gap = compute_due_gap(self._a, self._b, 1.0, self._price, min_interval=MIN_DAYS, max_interval=MAX_DAYS)
        return gap, self._b / self._a


def _solve_price(
    at: Callable[[float], list[Track]], ratio: Callable[[list[Track]], float], *, near: float
) -> list[Track]:
    """Return the tracks at the shadow price at which a decreasing ratio is 1. near: the first guess."""
    price, low, high = near, near / MAX_OFF, near * MAX_OFF
    found = at(price)
    for _ in range(TRIALS):
        if abs(ratio(found) - 1) < EQUAL:
            break
        low, high = (price, high) if ratio(found) > 1 else (low, price)
        price = float(np.sqrt(low * high))
        found = at(price)
    return found


def _price_as_fresh(rate: Floats, fresh: float) -> float:
    """Return the shadow price at which pages of known rates are fresh for this share of the time, on average."""
    low, high = 1e-9, 1e9
    for _ in range(80):
        middle = float(np.sqrt(low * high))
        visits = optimum.frequencies(rate, np.ones(len(rate)), middle)
        low, high = (middle, high) if optimum.freshness(rate, visits).mean() > fresh else (low, middle)
    return low


def _live(name: str, rule: PeriodRule, world: Pages) -> list[Track]:
    """Visit every page `visits` times, each at its own pace."""
    rng = np.random.default_rng(world.seed)
    period, count = world.period, len(world.period)
    now, wait = np.zeros(count), FIRST_PERIOD_DAYS * (1 - rng.random(count))
    is_clockwork = world.timing is Timing.CLOCKWORK
    due = period * (rng.random(count) if is_clockwork else rng.exponential(1.0, count))
    waits, held, found, fresh, elapsed = [], [], [], [], []
    for _ in range(world.visits):
        then = now + wait
        changed = due <= then
        fresh.append(np.minimum(due, then) - now)
        elapsed.append(wait)
        found.append(changed)
        more = np.floor((then - due) / period) if is_clockwork else rng.poisson(np.maximum(then - due, 0.0) / period)
        again = due + period * (more + 1) if is_clockwork else then + rng.exponential(1.0, count) * period
        due = np.where(changed, again, due)
        wait, holds = rule.after(wait, np.where(changed, more + 1, 0).astype(np.int64))
        waits.append(wait)
        held.append(holds)
        now = then
    return [_track(name, each, period == each, (waits, held, found, fresh, elapsed)) for each in world.periods]


def _track(
    name: str,
    period: float,
    own: Flags,
    rows: tuple[list[Floats], list[Floats], list[Flags], list[Floats], list[Floats]],
) -> Track:
    waits, held, found, fresh, elapsed = rows
    half = len(waits) // 2
    days = _sum(elapsed[half:], own)
    return Track(
        rule=name,
        period_days=period,
        mean_days=tuple(float(row[own].mean()) for row in waits),
        median_days=tuple(float(np.median(row[own])) for row in waits),
        held_days=tuple(float(row[own].mean()) for row in held),
        redundant=float(1 - np.mean([row[own] for row in found[half:]])),
        fresh=_sum(fresh[half:], own) / days,
        visits_per_day=(len(waits) - half) * int(own.sum()) / days,
    )


def _sum(rows: Sequence[Floats], chosen: Flags) -> float:
    return float(np.sum([row[chosen].sum() for row in rows]))
