"""Size limits of learned state: the newest entries stay."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_SHARE = 4  # a value that alone takes more than a quarter of the room is not kept: it would push out all others


def newest(known: dict[K, V], most: int) -> dict[K, V]:
    """The newest entries of a mapping, at most `most`; the mapping itself if it has no more. Keys are oldest first."""
    if len(known) <= most:
        return known
    kept = dict(known)  # a copy that loses a few entries is seven times faster than one made entry by entry
    for key in islice(known, len(known) - most):
        del kept[key]
    return kept


def newest_within(
    known: Mapping[K, tuple[V, ...]], *, most: int, chars: int, length: Callable[[V], int]
) -> Mapping[K, tuple[V, ...]]:
    """The newest values of a mapping, at most `most` and `chars` characters; the mapping itself if it fits.

    The last key is the newest, and so is the last value of each key.  length: of a value, in characters.
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
