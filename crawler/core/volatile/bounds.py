"""What is learnt has a bound, and what was learnt last stays."""

from collections.abc import Callable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_SHARE = 4  # what alone would take more than a quarter of the room is not kept: it would push out all else


def newest(known: dict[K, V], most: int) -> dict[K, V]:
    """The same dictionary without its oldest entries, if it has more than `most`."""
    for key in list(known)[: max(len(known) - most, 0)]:
        del known[key]
    return known


def newest_within(
    known: Mapping[K, tuple[V, ...]], *, most: int, chars: int, length: Callable[[V], int]
) -> Mapping[K, tuple[V, ...]]:
    """The same without its oldest values, if there are more than `most` of them or they take more room than `chars`.

    The last key is the newest, and so is the last value of each.  length: of a value, in characters.
    """
    every = [(key, value, length(value)) for key, values in known.items() for value in values]
    if len(every) <= most and sum(size for *_, size in every) <= chars:
        return known
    kept: dict[K, list[V]] = {}
    left = chars
    for key, value, size in reversed(every):
        if size > chars // MOST_SHARE:
            continue
        left, most = left - size, most - 1
        if left < 0 or most < 0:
            break
        kept.setdefault(key, []).append(value)
    return {key: tuple(reversed(values)) for key, values in reversed(kept.items())}
