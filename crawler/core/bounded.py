"""What is learnt has a bound, and what was learnt last stays."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def newest(known: dict[K, V], most: int) -> dict[K, V]:
    """The same dictionary without its oldest entries, if it has more than `most`."""
    for key in list(known)[: max(len(known) - most, 0)]:
        del known[key]
    return known
