"""Alignment of two sequences, and of the paths of a page before and after its site was restyled.

The noise mask is stored by path, and a path consists of tags and class names. If a site is restyled, most paths of a
page change at once. Each new path then becomes an alias of the old path of the same block.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from crawler.core.noise.words import keep_newest
from crawler.core.page.block import Block, BlockKind, BlockList

STEP = 128  # one row of the table in this many is stored; backtracking computes the others again


def find_gaps(one: Sequence[Hashable], other: Sequence[Hashable]) -> Iterator[tuple[slice, slice]]:
    """Yield the ranges between the entries that two sequences have in common (their longest common subsequence).

    One of the two ranges may be empty.
    """
    i = j = 0
    for n, m in (*match_sequences(one, other), (len(one), len(other))):
        if n > i or m > j:
            yield slice(i, n), slice(j, m)
        i, j = n + 1, m + 1


def pair_equal(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    """Yield positions that pair each entry with the next equal one of the other sequence, or with None."""
    positions: dict[Hashable, deque[int]] = defaultdict(deque)
    for m, each in enumerate(new):
        positions[each].append(m)
    start = 0
    for n, each in enumerate(old):
        equal_positions = positions[each]
        while equal_positions and equal_positions[0] < start:
            equal_positions.popleft()
        if not equal_positions:
            yield n, None
            continue
        yield from ((None, m) for m in range(start, equal_positions[0]))
        yield n, equal_positions[0]
        start = equal_positions[0] + 1
    yield from ((None, m) for m in range(start, len(new)))


def match_sequences(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest common subsequence, as positions in both sequences.

    Time and memory do not depend on repetitions: 20,000 entries on both sides take a third of a second and 40 MB.
    """
    start, end = _count_common_ends(one, other)
    both = set(one[start : len(one) - end]) & set(other[start : len(other) - end])
    # Entries on one side only do not affect the order.
    left, right = ([n for n in range(start, len(side) - end) if side[n] in both] for side in (one, other))
    common = _find_longest_common([one[n] for n in left], [other[m] for m in right])
    ends = ((len(one) - n, len(other) - n) for n in range(end, 0, -1))
    return [*((n, n) for n in range(start)), *((left[n], right[m]) for n, m in common), *ends]


def _count_common_ends(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[int, int]:
    """Return the number of equal entries at the start, and of the remaining ones at the end."""
    shorter = min(len(one), len(other))
    start = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - start) if one[-1 - n] != other[-1 - n]), shorter - start)
    return start, end


def _find_longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest common subsequence, as positions in both sequences.

    Each row of the table is one long integer. A bit is 0 if its entry of `other` makes the subsequence longer.
    Source: Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004.
    """
    bits_by_entry: dict[Hashable, int] = {}
    for m, each in enumerate(other):
        bits_by_entry[each] = bits_by_entry.get(each, 0) | 1 << m
    stored_rows = [(1 << len(other)) - 1]
    for n in range(0, len(one), STEP):
        *_, last = _compute_rows(stored_rows[-1], one[n : n + STEP], bits_by_entry, len(other))
        stored_rows.append(last)
    pairs: list[tuple[int, int]] = []
    m = len(other)
    for n in reversed(range(0, len(one), STEP)):
        first = stored_rows[n // STEP]
        rows = [first, *_compute_rows(first, one[n : n + STEP], bits_by_entry, len(other))]
        at = len(rows) - 1
        while at and m:
            if rows[at] >> (m - 1) & 1:
                m -= 1
                continue
            at -= 1
            if rows[at] >> (m - 1) & 1:
                m -= 1
                pairs.append((n + at, m))
    return pairs[::-1]


def _compute_rows(row: int, one: Sequence[Hashable], bits_by_entry: dict[Hashable, int], width: int) -> Iterator[int]:
    full = (1 << width) - 1
    for each in one:
        matched_bits = row & bits_by_entry[each]
        row = ((row + matched_bits) | (row - matched_bits)) & full
        yield row


PathAliases = Mapping[int, int]  # from a block's current path to the path under which it is stored

MAX_ALIASES = 4096
RESTYLED_SHARE = 0.5  # a page is restyled if this share of its paths is new, and this share of its texts unchanged


def replace_paths(blocks: BlockList, aliases: PathAliases) -> BlockList:
    """Return the blocks of a page with the paths under which they are stored."""
    if not aliases:
        return blocks
    stored = ((block, aliases.get(block.css_path, block.css_path)) for block in blocks)
    return tuple(block if path == block.css_path else replace(block, css_path=path) for block, path in stored)


def learn_aliases(
    aliases: PathAliases, before: BlockList, after: BlockList, *, known_paths: Collection[int]
) -> PathAliases:
    """Return the aliases after a visit.

    before, after: the blocks of two versions of a page.
    known_paths: all known paths of the domain, none of which becomes an alias.
    """
    old_paths, new_paths = ({block.css_path for block in blocks} for blocks in (before, after))
    if len(old_paths & new_paths) > (1 - RESTYLED_SHARE) * len(old_paths):
        return aliases
    aligned = list(_align_blocks(before, after))
    texts = sum(block.kind is BlockKind.TEXT for block in before)
    if sum(old.kind is BlockKind.TEXT and old.text == new.text for old, new in aligned) < RESTYLED_SHARE * texts:
        return aliases
    current_paths = {aliases.get(path, path) for path in new_paths}
    votes = Counter(
        (new.css_path, aliases.get(old.css_path, old.css_path))
        for old, new in aligned
        if new.css_path not in aliases and new.css_path not in known_paths
    )
    by_votes = sorted(votes, key=votes.__getitem__)  # the alias with the most votes comes last and wins
    return keep_newest({**aliases, **{new: old for new, old in by_votes if old not in current_paths}}, MAX_ALIASES)


def _align_blocks(before: BlockList, after: BlockList) -> Iterator[tuple[Block, Block]]:
    """Yield pairs of an old and a new block with equal tag paths: those with equal texts and, in between, others."""
    old_keys, new_keys = ([(block.kind, block.tag_path, block.text) for block in blocks] for blocks in (before, after))
    end = slice(len(old_keys), None), slice(len(new_keys), None)
    i = j = 0
    for old_range, new_range in (*find_gaps(old_keys, new_keys), end):
        yield from zip(before[i : old_range.start], after[j : new_range.start], strict=True)
        old, new = before[old_range], after[new_range]
        for n, m in pair_equal(*([(block.kind, block.tag_path) for block in side] for side in (old, new))):
            if n is not None and m is not None:
                yield old[n], new[m]
        i, j = old_range.stop, new_range.stop
