"""Chance that belongs to a seed and a name, and what is drawn from it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from statistics import NormalDist
from typing import TypeVar

# Changes per day of an edited page: half are edited less than every ten days, one in twenty more than once a day.
MEDIAN_RATE = 0.1
SPREAD_OF_RATES = 1.4  # standard deviation of the logarithm
LEAST_RATE, MOST_RATE = 0.004, 6.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Story:
    """From when to when things happen, and whose chance decides."""

    seed: int
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        return (self.end - self.start) / timedelta(days=1)

    def instant(self, fraction: float) -> datetime:
        """A whole second after the start and before the end, since HTTP dates have no fractions."""
        return self.start + timedelta(seconds=max(1, math.floor(fraction * self.days * 86_400)))

    def ago(self, days: float) -> datetime:
        """A whole second before the start."""
        return self.start - timedelta(seconds=math.ceil(days * 86_400))

    def chance(self, *names: str) -> Random:
        return chance(self.seed, *names)


def chance(seed: int, *names: str) -> Random:
    """The chance that belongs to these names and to nothing else: what is drawn elsewhere does not disturb it."""
    return Random("\n".join((str(seed), *names)))


def shuffled(odds: Random, items: Iterable[T]) -> list[T]:
    mixed = list(items)
    odds.shuffle(mixed)
    return mixed


def share_out(number: int, weights: Mapping[T, float]) -> list[T]:
    """Items, as many as asked for, each as often as its weight says, but at least once where there is room."""
    total = sum(weights.values())
    exact = {item: number * weight / total for item, weight in weights.items()}
    shares = {item: max(1, math.floor(share)) for item, share in exact.items()}
    by_need = sorted(weights, key=lambda item: exact[item] - shares[item], reverse=True)
    items = [item for item in by_need for _ in range(shares[item])]
    # Too few: those that lack most get one more. Too many, because each got one: the most
    # frequent give, then the least wanted.
    items += [by_need[n % len(by_need)] for n in range(number - len(items))]
    while len(items) > number:
        items.remove(max(weights, key=lambda item: (items.count(item), -weights[item])))
    return items


def log_normal_rates(number: int) -> list[float]:
    """Rates per day at evenly spaced quantiles, so that every seed has the same spread of them."""
    normal = NormalDist(math.log(MEDIAN_RATE), SPREAD_OF_RATES)
    exact = (math.exp(normal.inv_cdf((n + 0.5) / number)) for n in range(number))
    return [min(MOST_RATE, max(LEAST_RATE, rate)) for rate in exact]
