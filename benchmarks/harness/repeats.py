"""Repeats of several things in turn, and the middle of what they gave."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")


def alternating(things: Sequence[T], repeats: int) -> Iterator[T]:
    """Each so many times, turn about, every second round backwards: whatever drifts on the machine hits all alike."""
    for repeat in range(repeats):
        yield from things if repeat % 2 == 0 else reversed(things)


def middle(rows: Sequence[Sequence[float]]) -> list[float]:
    """The median of each column."""
    return [median(column) for column in zip(*rows, strict=True)]
