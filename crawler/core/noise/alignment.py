"""Align two sequences, and the paths of a page before and after its site was restyled.

State is learnt by path, and a path is made of class names. A restyled site has new paths on most of a page at once;
then each is an alias of the old path of the block that stood there.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from crawler.core.noise.words import newest
from crawler.core.page.outline import Block, BlockKind, BlockList

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
    # Entries that only one side has do not matter for the order.
    left, right = ([n for n in range(start, len(side) - end) if side[n] in both] for side in (one, other))
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


PathAliases = Mapping[int, int]  # the path under which a block is stored, by its path now

MOST_ALIASES = 4096
MOSTLY = 0.5  # of a page's paths must be new, and of its texts unchanged, for a restyled page


def with_aliases(blocks: BlockList, aliases: PathAliases) -> BlockList:
    """The blocks of a page under the paths at which they are stored."""
    if not aliases:
        return blocks
    stored = ((block, aliases.get(block.css_path, block.css_path)) for block in blocks)
    return tuple(block if path == block.css_path else replace(block, css_path=path) for block, path in stored)


def learn_aliases(aliases: PathAliases, before: BlockList, after: BlockList, *, met: Collection[int]) -> PathAliases:
    """The aliases after a look. met: all paths known of the domain; none of them becomes an alias of another."""
    were, are = ({block.css_path for block in blocks} for blocks in (before, after))
    if len(were & are) > (1 - MOSTLY) * len(were):
        return aliases
    aligned = list(_aligned(before, after))
    texts = sum(block.kind is BlockKind.TEXT for block in before)
    if sum(old.kind is BlockKind.TEXT and old.text == new.text for old, new in aligned) < MOSTLY * texts:
        return aliases
    still = {aliases.get(path, path) for path in are}
    votes = Counter(
        (new.css_path, aliases.get(old.css_path, old.css_path))
        for old, new in aligned
        if new.css_path not in aliases and new.css_path not in met
    )
    by_votes = sorted(votes, key=votes.__getitem__)  # so that the last one, with the most, stays
    return newest({**aliases, **{new: old for new, old in by_votes if old not in still}}, MOST_ALIASES)


def _aligned(before: BlockList, after: BlockList) -> Iterator[tuple[Block, Block]]:
    """Pairs of a block and the one in its place now: with equal texts and, between these, in equal elements."""
    old_keys, new_keys = ([(block.kind, block.tag_path, block.text) for block in blocks] for blocks in (before, after))
    end = slice(len(old_keys), None), slice(len(new_keys), None)
    i = j = 0
    for went, came in (*gaps(old_keys, new_keys), end):
        yield from zip(before[i : went.start], after[j : came.start], strict=True)
        lost, new = before[went], after[came]
        for n, m in counterparts(*([(block.kind, block.tag_path) for block in side] for side in (lost, new))):
            if n is not None and m is not None:
                yield lost[n], new[m]
        i, j = went.stop, came.stop
