"""The difference between two versions of a page, block by block, with its significant part and its size."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change.mask import NoiseMask
from crawler.core.noise.alignment import find_gaps, pair_equal
from crawler.core.noise.dates import differs_only_in_date, find_clock_words, is_stamp_change
from crawler.core.noise.noise import VolatileContent
from crawler.core.noise.relative_time import is_relative_time_change
from crawler.core.noise.words import split_words
from crawler.core.page.block import Block, BlockKind, BlockList, BlockPair
from crawler.core.page.fingerprint import compute_fingerprint, count_distance_bits

# If both versions have more blocks of one path than this between two equal blocks, and not equally many, then pairing
# them is a guess.
MAX_PAIRED_BY_ORDER = 8


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two lists of blocks under a noise mask.

    sides: each change as a pair of the old and the new block. Replaced blocks come first, then removed ones (with None
    as the new block), then added ones (with None as the old block).
    guessed: blocks whose pairing is a guess, because some of many blocks with the same path were added or removed.
    block_lists: both lists, with their stored paths (see `VolatileContent.aliases`).
    """

    sides: tuple[BlockPair, ...] = ()
    guessed: frozenset[Block] = field(default=frozenset(), compare=False)
    block_lists: tuple[BlockList, BlockList] = field(default=((), ()), compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.sides)

    @property
    def replaced(self) -> list[tuple[Block, Block]]:
        """Return the pairs of an old block and the block that replaced it."""
        return [(was, now) for was, now in self.sides if was is not None and now is not None]

    @property
    def old_blocks(self) -> list[Block]:
        """Return the differing blocks of the old version."""
        return [was for was, _ in self.sides if was is not None]

    @property
    def new_blocks(self) -> list[Block]:
        """Return the differing blocks of the new version."""
        return [now for _, now in self.sides if now is not None]

    def filter_pairs(self, passes: Callable[[Block | None, Block | None], bool]) -> "Difference":
        """Return the part of the difference whose pairs pass a test."""
        return replace(self, sides=tuple(sides for sides in self.sides if passes(*sides)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for pair in self.sides for block in pair if block is not None)

    @property
    def single_changes(self) -> "list[Difference]":
        """Return each change as a difference with a single pair."""
        return [Difference((pair,)) for pair in self.sides]

    @property
    def kinds(self) -> frozenset[BlockKind]:
        return frozenset(block.kind for block in self.blocks)


NO_DIFFERENCE = Difference()


def compute_difference(before: BlockList, after: BlockList, volatile: VolatileContent) -> Difference:
    """Return all blocks that differ in more than volatile words.

    A block that moved to another position in the order differs; one that only moved to another path does not.
    """
    before, after = volatile.apply_aliases(before), volatile.apply_aliases(after)
    pairs: list[BlockPair] = []
    guessed: set[Block] = set()
    for old_range, new_range in find_gaps(compute_block_forms(before, volatile), compute_block_forms(after, volatile)):
        old, new = before[old_range], after[new_range]
        guessed.update(_find_guessed_blocks(old, new))
        positions = pair_equal(_list_paths_and_kinds(old), _list_paths_and_kinds(new))
        pairs += ((None if n is None else old[n], None if m is None else new[m]) for n, m in positions)
    return Difference(_sort_pairs(pairs), frozenset(guessed), (before, after))


def _sort_pairs(pairs: Iterable[BlockPair]) -> tuple[BlockPair, ...]:
    """Sort the pairs: replaced blocks, then removed ones, then added ones."""
    return tuple(sorted(pairs, key=lambda pair: (pair[0] is None, pair[1] is None)))


def _find_guessed_blocks(old: BlockList, new: BlockList) -> Iterator[Block]:
    """Yield the blocks whose pairing is a guess; see MAX_PAIRED_BY_ORDER.

    old, new: the blocks between two equal blocks of both versions.
    """
    if min(len(old), len(new)) <= MAX_PAIRED_BY_ORDER:
        return
    old_counts, new_counts = Counter(_list_paths_and_kinds(old)), Counter(_list_paths_and_kinds(new))
    pairs = ((key, n, new_counts[key]) for key, n in old_counts.items())
    unsure = {key for key, n, m in pairs if n != m and min(n, m) > MAX_PAIRED_BY_ORDER}
    yield from (block for block in (*old, *new) if (block.css_path, block.kind) in unsure)


def _list_paths_and_kinds(page: BlockList) -> list[tuple[int, BlockKind]]:
    return [(block.css_path, block.kind) for block in page]


def compute_block_forms(page: BlockList, volatile: VolatileContent) -> list[tuple[BlockKind, tuple[str, ...]]]:
    """Return what is compared of each block: its kind and its words without the volatile ones."""
    return [(block.kind, volatile.mask_words(block)) for block in page]


def select_significant(diff: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> Difference:
    """Return the part of a difference that is the page's own.

    Left out are volatile content, boilerplate, edits of the site, and dates and times that follow from the visits.
    then, now: when the old and the new version were fetched.
    """
    significant_pairs: list[BlockPair] = []
    for before, after in sorted(diff.sides, key=all):  # pairs last: one that loses a block then follows single blocks
        edit = mask.template_edits.get(mask.compute_edit_key((before, after))) if mask.template_edits else None
        if edit is not None and edit.is_confirmed:
            continue
        if before and after and _is_insignificant(before, after, mask, then=then, now=now):
            continue
        new_block = None if after is None or mask.is_noise(after) else after
        old_block = before
        if before and (mask.volatile.is_noise(before) or mask.boilerplate.has_dropped(mask.compute_form(before))):
            old_block = None
        if old_block or new_block:
            significant_pairs.append((old_block, new_block))
    return Difference(_sort_pairs(significant_pairs))


def _is_insignificant(before: Block, after: Block, mask: NoiseMask, *, then: datetime, now: datetime) -> bool:
    """Return whether a pair is an edit of boilerplate, is known to alternate, or differs only in a date or time."""
    boilerplate, old, new = mask.boilerplate, mask.compute_form(before), mask.compute_form(after)
    if boilerplate.was_boilerplate(old) and (boilerplate.was_boilerplate(new) or boilerplate.is_rotating_text(new)):
        return True
    return mask.volatile.is_alternation(before, after) or differs_only_in_time(before, after, mask, then=then, now=now)


def differs_only_in_time(before: Block, after: Block, mask: NoiseMask, *, then: datetime, now: datetime) -> bool:
    """Return whether two blocks differ only in the date or time of the visits, a build stamp or an elapsed time."""
    if before.kind is not after.kind or after.kind is BlockKind.LINK:
        return False
    one, other = mask.volatile.mask_pair(before, after)
    if before.kind is BlockKind.TEXT and len(one) == len(other):
        clock = find_clock_words(split_words(before), split_words(after), then=then, now=now)
        one, other = (tuple(word for n, word in enumerate(words) if n not in clock) for words in (one, other))
    if one == other or differs_only_in_date(one, other, then=then, now=now):
        return True
    # A date among the volatile words differs each day, so that no known pattern of the words matches as a whole.
    loose = mask.volatile.mask_pair_loosely(before, after)
    if loose is not None and loose[0] != loose[1] and differs_only_in_date(*loose, then=then, now=now):
        return True
    is_stamp = is_stamp_change(mask.volatile, before, after, then=then, now=now)
    return is_stamp or is_relative_time_change(mask.volatile, before, after, elapsed=now - then)


TEXT_KINDS = frozenset({BlockKind.TEXT, BlockKind.TITLE})


def measure_distance(diff: Difference, significant_diff: Difference, mask: NoiseMask) -> tuple[int | None, float]:
    """Return how far two versions are apart: in bits, and as a share of the page's own blocks.

    diff: the whole difference.  significant_diff: its significant part.
    The first value is the number of differing fingerprint bits, 0 to 64, or None if neither version has its own text.
    The second is the share of the page's own blocks, in both versions, that differ, 0 to 1.
    Boilerplate, volatile content and insignificant differences are left out of both texts. Two versions that differ
    only in noise therefore have distance 0.
    """
    if not significant_diff:
        return 0, 0.0
    common = _list_common_blocks(diff.block_lists[1], diff, mask)
    old, new = significant_diff.old_blocks, significant_diff.new_blocks
    one, other = (compute_fingerprint(_join_words([*common, *changed], mask)) for changed in (old, new))
    bits = None if one is None and other is None else 32  # the distance of unrelated texts
    if one is not None and other is not None:
        bits = count_distance_bits(one, other)
    differing = len(old) + len(new)
    return bits, differing / (differing + 2 * len(common))


def _list_common_blocks(after: BlockList, diff: Difference, mask: NoiseMask) -> list[Block]:
    """Return the page's own blocks that are in both versions."""
    new_counts = Counter(diff.new_blocks)
    common_blocks = []
    for block in after:
        if new_counts[block]:
            new_counts[block] -= 1
        elif block.text and not mask.is_noise(block):
            common_blocks.append(block)
    return common_blocks


def _join_words(blocks: list[Block], mask: NoiseMask) -> str:
    """Join the words of text blocks, without the volatile ones."""
    words = (mask.volatile.mask_words(block) for block in blocks if block.kind in TEXT_KINDS)
    return "\n".join(map(" ".join, words))
