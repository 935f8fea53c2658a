"""Random generators that depend on a seed and a name, and what is drawn from them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from statistics import NormalDist
from typing import TypeVar

# Changes per day of an edited page: half of the pages are edited less than every ten days, 5% more than once a day.
MEDIAN_RATE = 0.1
SPREAD_OF_RATES = 1.4  # standard deviation of the logarithm
MIN_RATE, MAX_RATE = 0.004, 6.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Story:
    """The time span in which the site changes, with the random seed."""

    seed: int
    start: datetime
    end: datetime

    @property
    def days(self) -> float:
        return (self.end - self.start) / timedelta(days=1)

    def instant(self, fraction: float) -> datetime:
        """Return an instant after the start and before the end in whole seconds, since HTTP dates have no fractions."""
        return self.start + timedelta(seconds=max(1, math.floor(fraction * self.days * 86_400)))

    def ago(self, days: float) -> datetime:
        """Return an instant before the start in whole seconds."""
        return self.start - timedelta(seconds=math.ceil(days * 86_400))

    def chance(self, *names: str) -> Random:
        return chance(self.seed, *names)


def chance(seed: int, *names: str) -> Random:
    """Return a generator that depends only on the seed and these names, not on other draws."""
    return Random("\n".join((str(seed), *names)))


def shuffled(odds: Random, items: Iterable[T]) -> list[T]:
    mixed = list(items)
    odds.shuffle(mixed)
    return mixed


def share_out(number: int, weights: Mapping[T, float]) -> list[T]:
    """Return `number` items, each in proportion to its weight, but at least once if possible."""
    total = sum(weights.values())
    exact = {item: number * weight / total for item, weight in weights.items()}
    shares = {item: max(1, math.floor(share)) for item, share in exact.items()}
    by_need = sorted(weights, key=lambda item: exact[item] - shares[item], reverse=True)
    items = [item for item in by_need for _ in range(shares[item])]
    # Too few: those furthest below their share get one more. Too many, because each got one: the most
    # frequent items lose one, then those with the lowest weight.
    items += [by_need[n % len(by_need)] for n in range(number - len(items))]
    while len(items) > number:
        items.remove(max(weights, key=lambda item: (items.count(item), -weights[item])))
    return items


def log_normal_rates(number: int) -> list[float]:
    """Return rates per day at evenly spaced quantiles, so that every seed has the same distribution of rates."""
    normal = NormalDist(math.log(MEDIAN_RATE), SPREAD_OF_RATES)
    exact = (math.exp(normal.inv_cdf((n + 0.5) / number)) for n in range(number))
    return [min(MAX_RATE, max(MIN_RATE, rate)) for rate in exact]
