"""Order repeats of several things, and compute medians."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")


def alternating(things: Sequence[T], repeats: int) -> Iterator[T]:
    """Yield each thing `repeats` times, reversing every second round, to spread a drift of the machine evenly."""
    for repeat in range(repeats):
        yield from things if repeat % 2 == 0 else reversed(things)


def middle(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each column."""
    return [median(column) for column in zip(*rows, strict=True)]
