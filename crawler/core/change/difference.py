"""The difference between two versions of a page, block by block: its significant part, and its size."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change.mask import NoiseMask
from crawler.core.noise.alignment import counterparts, gaps
from crawler.core.noise.dates import clock_in, is_stamp, tells_the_day
from crawler.core.noise.noise import Volatile
from crawler.core.noise.relative_time import counts_time
from crawler.core.noise.words import words_of
from crawler.core.page.fingerprint import distance_bits, fingerprint_of
from crawler.core.page.outline import Block, BlockKind, BlockList, Sides

MOST_GUESSED = 8  # blocks of one path in a gap of which some came or went; up to so many, order tells which is which


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two lists of blocks under a mask.

    sides: each change as the block that was and the one in its place now. First come replaced blocks, then removed ones
    (None is in their place), then added ones (which take the place of None).
    guessed: blocks among many of one path of which some came or went, so that their pairing is a guess.
    pages: both lists, as they were compared.
    """

    sides: tuple[Sides, ...] = ()
    guessed: frozenset[Block] = field(default=frozenset(), compare=False)
    pages: tuple[BlockList, BlockList] = field(default=((), ()), compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.sides)

    @property
    def replaced(self) -> list[tuple[Block, Block]]:
        """Pairs of a block and the one in its place now."""
        return [(was, now) for was, now in self.sides if was is not None and now is not None]

    @property
    def went(self) -> list[Block]:
        """The blocks that were, of those that differ."""
        return [was for was, _ in self.sides if was is not None]

    @property
    def came(self) -> list[Block]:
        """The blocks that are, of those that differ."""
        return [now for _, now in self.sides if now is not None]

    def only(self, is_kept: Callable[[Block | None, Block | None], bool]) -> "Difference":
        """The part of the difference whose sides, before and after, pass a test."""
        return replace(self, sides=tuple(sides for sides in self.sides if is_kept(*sides)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for sides in self.sides for block in sides if block is not None)

    @property
    def apart(self) -> "list[Difference]":
        """Each change as a difference of its own."""
        return [Difference((sides,)) for sides in self.sides]

    @property
    def kinds(self) -> frozenset[BlockKind]:
        return frozenset(block.kind for block in self.blocks)


SAME = Difference()


def difference(before: BlockList, after: BlockList, volatile: Volatile) -> Difference:
    """All blocks that differ, but for volatile words. Their order counts; their path in the tree does not."""
    before, after = volatile.named(before), volatile.named(after)
    found: list[Sides] = []
    guessed: set[Block] = set()
    for old_range, new_range in gaps(block_forms(before, volatile), block_forms(after, volatile)):
        old, new = before[old_range], after[new_range]
        guessed.update(_guessed(old, new))
        for n, m in counterparts(_paths_and_kinds(old), _paths_and_kinds(new)):
            found.append((None if n is None else old[n], None if m is None else new[m]))
    return Difference(_in_order(found), frozenset(guessed), (before, after))


def _in_order(found: Iterable[Sides]) -> tuple[Sides, ...]:
    """Replaced blocks, then removed ones, then added ones."""
    return tuple(sorted(found, key=lambda sides: (sides[0] is None, sides[1] is None)))


def _guessed(old: BlockList, new: BlockList) -> Iterator[Block]:
    """The blocks of a gap that stand among many of one path, more or fewer of them on the other side."""
    if min(len(old), len(new)) <= MOST_GUESSED:
        return
    were, are = Counter(_paths_and_kinds(old)), Counter(_paths_and_kinds(new))
    unsure = {kind for kind, many in were.items() if many != are[kind] and min(many, are[kind]) > MOST_GUESSED}
    yield from (block for block in (*old, *new) if (block.css_path, block.kind) in unsure)


def _paths_and_kinds(page: BlockList) -> list[tuple[int, BlockKind]]:
    return [(block.css_path, block.kind) for block in page]


def block_forms(page: BlockList, volatile: Volatile) -> list[tuple[BlockKind, tuple[str, ...]]]:
    return [(block.kind, volatile.masked(block)) for block in page]


def significant(found: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> Difference:
    """The part of a difference that is the page's own: not volatile, not the template's, and no date of a look."""
    left: list[Sides] = []
    for before, after in sorted(found.sides, key=all):  # a replaced block of which only one side counts comes last
        edit = mask.template_edits.get(mask.edit_key((before, after))) if mask.template_edits else None
        if edit is not None and edit.is_known:
            continue
        if before and after and _is_no_news(before, after, mask, then=then, now=now):
            continue
        went = None if before is None or _went_with_boilerplate(before, mask) else before
        came = None if after is None or mask.is_noise(after) else after
        if went or came:
            left.append((went, came))
    return Difference(_in_order(left))


def _went_with_boilerplate(block: Block, mask: NoiseMask) -> bool:
    return mask.volatile.is_noise(block) or mask.boilerplate.has_dropped(mask.form_of(block))


def _is_no_news(before: Block, after: Block, mask: NoiseMask, *, then: datetime, now: datetime) -> bool:
    """Whether one boilerplate block took another's place, the two stand there by turns, or each says its day."""
    boilerplate, old, new = mask.boilerplate, mask.form_of(before), mask.form_of(after)
    if boilerplate.contained(old) and (boilerplate.contained(new) or boilerplate.turns_to(new)):
        return True
    return mask.volatile.is_by_turns(before, after) or block_tells_the_day(before, after, mask, then=then, now=now)


def block_tells_the_day(before: Block, after: Block, mask: NoiseMask, *, then: datetime, now: datetime) -> bool:
    if before.kind is not after.kind or after.kind is BlockKind.LINK:
        return False
    one, other = mask.volatile.both(before, after)
    if before.kind is BlockKind.TEXT and len(one) == len(other):
        clock = clock_in(words_of(before), words_of(after), then=then, now=now)
        one, other = (tuple(word for n, word in enumerate(words) if n not in clock) for words in (one, other))
    if one == other or tells_the_day(one, other, then=then, now=now):
        return True
    # On another day a block has another date beside its volatile words, so that no pattern of its words fits.
    loose = mask.volatile.loosely(before, after)
    if loose is not None and loose[0] != loose[1] and tells_the_day(*loose, then=then, now=now):
        return True
    return is_stamp(mask.volatile, before, after, then=then, now=now) or counts_time(
        mask.volatile, before, after, elapsed=now - then
    )


TEXTS = frozenset({BlockKind.TEXT, BlockKind.TITLE})


def distance_between(found: Difference, own: Difference, mask: NoiseMask) -> tuple[int | None, float]:
    """Return how far two versions are apart that differ by `found`, of which `own` is the page's own doing.

    The distance is given as bits of 64 that differ, None where the page has no text of its own, and as the share of the
    page's own blocks, then and now, that differ, 0 to 1.
    Out of both texts are boilerplate, volatile places, and what differs without being the page's own: so two versions
    that only noise tells apart have distance 0, whatever their bodies say.
    """
    if not own:
        return 0, 0.0
    kept = _kept(found.pages[1], found, mask)
    one, other = (fingerprint_of(_text([*kept, *changed], mask)) for changed in (own.went, own.came))
    bits = None if one is None and other is None else 32
    if one is not None and other is not None:
        bits = distance_bits(one, other)
    differing = len(own.went) + len(own.came)
    return bits, differing / (differing + 2 * len(kept))


def _kept(after: BlockList, found: Difference, mask: NoiseMask) -> list[Block]:
    """The page's own blocks that stand in both versions."""
    came = Counter(found.came)
    kept = []
    for block in after:
        if came[block]:
            came[block] -= 1
        elif block.text and not mask.is_noise(block):
            kept.append(block)
    return kept


def _text(blocks: list[Block], mask: NoiseMask) -> str:
    """The words of text blocks, with a gap for each volatile one."""
    words = (mask.volatile.masked(block) for block in blocks if block.kind in TEXTS)
    return "\n".join(map(" ".join, words))
