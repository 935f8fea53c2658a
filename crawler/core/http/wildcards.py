"""Patterns with an asterisk, filed so that of tens of thousands only the few are tried that may fit a path."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import numpy as np

from crawler.core.http.expressions import AnyOf

LONG_PATH = 300  # characters; from here on numpy reads a path faster than a search that sees it for the first time
AT_ONCE = 512  # characters of a long path that are read before it is seen whether that is too many
CODES = {2: "H", 4: "I"}  # of Struct
SHORT = 2  # characters of a run that most paths have one of, where there are more than FEW
FEW = 16  # runs that most paths have none of, however short they are
# How many more paths have so many given characters somewhere, or at their end, than have four.
RUN_WEIGHTS = {1: 5000, 2: 30, 4: 1}
END_WEIGHTS = {1: 20, 2: 2}
START_WEIGHT = 2

_Numbers = dict[str, list[int]]
Rank = tuple[int, bool]  # of a rule: the length of its pattern, then whether it allows


class Wildcard(NamedTuple):
    """A pattern with an asterisk: how it begins, what follows in this order, and how it ends ("": as it likes).

    least: characters that it takes.  longest: of its pieces.
    """

    rank: Rank
    start: str
    pieces: tuple[str, ...]
    end: str
    least: int
    longest: int


def wildcard_of(text: str, rank: Rank, *, ends: bool) -> Wildcard:
    """The wildcard that a pattern is. ends: a path must end with it."""
    start, *pieces = (piece.replace("%2A", "*") for piece in text.split("*"))
    end = pieces.pop() if ends else ""
    between = tuple(filter(None, pieces))
    least = len(start) + sum(map(len, between)) + len(end)
    return Wildcard(rank, start, between, end, least, max(map(len, between), default=0))


class FiledWildcards:
    """The numbers of wildcards, each under one thing that a path must have: how it begins, how it ends, what is in it.

    Runs of four characters are looked for all at once: there may be tens of thousands.
    """

    def __init__(self, rules: list[Wildcard]) -> None:
        starts: _Numbers = {}
        ends: _Numbers = {}
        runs: _Numbers = {}
        self._always: list[int] = []
        for number, rule in enumerate(rules):
            least, place, best = 0, None, ""
            for filed, key, weight in _keys(rule, starts, ends, runs):
                cost = weight * (1 + len(filed.get(key, ())))
                if place is None or cost < least:
                    least, place, best = cost, filed, key
                    if cost == 1:
                        break
            if place is None:
                self._always.append(number)
            else:
                place.setdefault(best, []).append(number)
        self._starts, self._ends = _by_size(starts), _by_size(ends)
        self._runs = [_Runs(numbers, size, rules) for size, numbers in _by_size(runs)]

    def numbers_for(self, path: str, most: int) -> list[int] | None:
        """The wildcards that may fit the path, in order; None where it takes more than `most` steps to find them."""
        found = list(self._always)
        for size, numbers in self._starts:
            found += numbers.get(path[:size], ())
        for size, numbers in self._ends:
            found += numbers.get(path[-size:], ())
        read = path.encode("ascii", "replace")
        for runs in self._runs:
            runs.add_to(found, read, most)
            if len(found) > most:
                return None
        return sorted(found)


class _Runs:
    """The numbers of wildcards, each under a run of one, two or four characters, those that take fewest first."""

    def __init__(self, numbers: _Numbers, size: int, rules: list[Wildcard]) -> None:
        self._size = size
        self._numbers: dict[int, list[int]] = {}
        self._least: dict[int, list[int]] = {}  # characters that each of these takes
        for run, each in numbers.items():
            code, by_least = int.from_bytes(run.encode(), "little"), sorted((rules[n].least, n) for n in each)
            self._numbers[code] = [number for _, number in by_least]
            self._least[code] = [least for least, _ in by_least]
        self._all = frozenset(self._numbers)
        self._any_of = AnyOf(numbers) if size > SHORT or len(numbers) <= FEW else None  # most paths have none
        self._table = np.zeros(1 << 16, dtype=np.bool_)
        places = np.array(list(self._numbers), dtype=np.uint32)
        self._table[places if size < 4 else _hashed(places)] = True

    def add_to(self, found: list[int], path: bytes, most: int) -> None:
        """Add the wildcards of all runs that stand in the path, as long as these are no more than `most`."""
        if self._size > 1 and len(path) >= LONG_PATH:
            runs: Iterable[int] = self._read_by_table(path)
        elif self._any_of is None or self._any_of.is_in(path):
            runs = self._read_each(path)
        else:
            return
        for run in runs:
            found += self._numbers[run][: bisect_right(self._least[run], len(path))]
            if len(found) > most:
                return

    def _read_each(self, path: bytes) -> Iterable[int]:
        if self._size == 1:
            return self._all.intersection(path)
        parts, unpack = _windows(self._size, len(path))
        return self._all.intersection(unpack(b"".join([path[part] for part in parts])))

    def _read_by_table(self, path: bytes) -> Iterator[int]:
        for at in range(0, len(path) - self._size + 1, AT_ONCE):
            part = path[at : at + AT_ONCE + self._size - 1]
            windows = np.ndarray((len(part) - self._size + 1,), f"<u{self._size}", part, strides=(1,))
            places = windows if self._size == 2 else _hashed(windows)
            yield from self._numbers.keys() & windows[self._table[places]].tolist()


@lru_cache(2 * LONG_PATH)
def _windows(size: int, chars: int) -> tuple[tuple[slice, ...], Callable[[bytes], tuple[int, ...]]]:
    """How all runs of this size are read in a path of so many characters: its parts one after the other, at once."""
    counts = {at: (chars - at) // size for at in range(min(size, chars - size + 1))}
    parts = tuple(slice(at, at + count * size) for at, count in counts.items())
    return parts, Struct(f"<{sum(counts.values())}{CODES[size]}").unpack


def _hashed(runs: "np.ndarray[tuple[int], np.dtype[np.uint32]]") -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    return (runs * np.uint32(2654435769)) >> np.uint32(16)  # Fibonacci hashing


def _by_size(filed: _Numbers) -> list[tuple[int, _Numbers]]:
    sizes: dict[int, _Numbers] = {}
    for key, numbers in filed.items():
        sizes.setdefault(len(key), {})[key] = numbers
    return sorted(sizes.items())


def _keys(rule: Wildcard, starts: _Numbers, ends: _Numbers, runs: _Numbers) -> Iterator[tuple[_Numbers, str, int]]:
    """Under what a rule may be filed: how a path must begin, how it must end, what must stand in it.

    With where it is filed, and its weight.
    """
    start, pieces, end = rule.start, rule.pieces, rule.end
    if end:
        size = _power(end)
        yield ends, end[-size:], END_WEIGHTS.get(size, 1)
    if len(start) > 1:
        yield starts, start[: _power(start)], START_WEIGHT
    longest = max(pieces, key=len, default="")
    for piece in (longest, pieces[-1]) if pieces else ():
        size = min(_power(piece), 4)
        last = len(piece) - size
        for at in (last, 0, last // 2)[: last + 1]:
            yield runs, piece[at : at + size], RUN_WEIGHTS[size]


def _power(text: str) -> int:
    """The greatest power of two that is no more than the length of the text, and at most 16."""
    return min(1 << len(text).bit_length() - 1, 16)
