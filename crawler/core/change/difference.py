"""The difference between two versions of a page, block by block: its significant part, and its size."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change.edits import Sides, edit_key
from crawler.core.change.mask import NoiseMask
from crawler.core.noise.alignment import counterparts, gaps
from crawler.core.noise.dates import clock_in, is_stamp, tells_the_day
from crawler.core.noise.noise import Volatile
from crawler.core.noise.relative_time import counts_time
from crawler.core.noise.words import words_of
from crawler.core.page.fingerprint import distance_bits, fingerprint_of
from crawler.core.page.outline import Block, BlockKind, BlockList

MOST_GUESSED = 8  # blocks of one path in a gap of which some came or went; up to so many, order tells which is which


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two lists of blocks under a mask.

    replaced: pairs of a block and the one in its place now.  removed, added: blocks without a counterpart.
    guessed: blocks among many of one path of which some came or went, so that their pairing is a guess.
    pages: both lists, as they were compared.
    """

    replaced: tuple[tuple[Block, Block], ...] = ()
    removed: tuple[Block, ...] = ()
    added: tuple[Block, ...] = ()
    guessed: frozenset[Block] = field(default=frozenset(), compare=False)
    pages: tuple[BlockList, BlockList] = field(default=((), ()), compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.replaced or self.removed or self.added)

    @property
    def sides(self) -> Iterator[Sides]:
        """Each change as the block that was and the one that is, either None."""
        yield from self.replaced
        yield from ((block, None) for block in self.removed)
        yield from ((None, block) for block in self.added)

    @property
    def went(self) -> list[Block]:
        """The blocks that were, of those that differ."""
        return [*(was for was, _ in self.replaced), *self.removed]

    @property
    def came(self) -> list[Block]:
        """The blocks that are, of those that differ."""
        return [*(now for _, now in self.replaced), *self.added]

    def only(self, is_kept: Callable[[Block | None, Block | None], bool]) -> "Difference":
        """The part of the difference whose sides, before and after, pass a test."""
        return replace(
            self,
            replaced=tuple(pair for pair in self.replaced if is_kept(*pair)),
            removed=tuple(block for block in self.removed if is_kept(block, None)),
            added=tuple(block for block in self.added if is_kept(None, block)),
        )

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*(block for pair in self.replaced for block in pair), *self.removed, *self.added)

    @property
    def kinds(self) -> frozenset[BlockKind]:
        return frozenset(block.kind for block in self.blocks)


SAME = Difference()


def difference(before: BlockList, after: BlockList, volatile: Volatile) -> Difference:
    """All blocks that differ, but for volatile words. Their order counts; their path in the tree does not."""
    before, after = volatile.named(before), volatile.named(after)
    replaced: list[tuple[Block, Block]] = []
    removed: list[Block] = []
    added: list[Block] = []
    guessed: set[Block] = set()
    for old_range, new_range in gaps(block_forms(before, volatile), block_forms(after, volatile)):
        old, new = before[old_range], after[new_range]
        guessed.update(_guessed(old, new))
        for n, m in counterparts(_paths_and_kinds(old), _paths_and_kinds(new)):
            if n is not None and m is not None:
                replaced.append((old[n], new[m]))
            elif n is not None:
                removed.append(old[n])
            elif m is not None:
                added.append(new[m])
    return Difference(tuple(replaced), tuple(removed), tuple(added), frozenset(guessed), (before, after))


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
    if mask.template_edits:
        found = found.only(lambda was, now: not _is_known_edit((was, now), mask))
    replaced: list[tuple[Block, Block]] = []
    removed = [block for block in found.removed if not _went_with_boilerplate(block, mask)]
    added = [block for block in found.added if not mask.is_noise(block)]
    for before, after in found.replaced:
        if _is_turned(before, after, mask) or block_tells_the_day(before, after, mask, then=then, now=now):
            continue
        went, came = _went_with_boilerplate(before, mask), mask.is_noise(after)
        if not went and not came:
            replaced.append((before, after))
        elif not went:
            removed.append(before)
        elif not came:
            added.append(after)
    return Difference(tuple(replaced), tuple(removed), tuple(added))


def _is_known_edit(sides: Sides, mask: NoiseMask) -> bool:
    """Whether a change is an edit of the site's template that is known already."""
    edit = mask.template_edits.get(edit_key(sides, mask.volatile))
    return edit is not None and edit.is_known


def _went_with_boilerplate(block: Block, mask: NoiseMask) -> bool:
    return mask.volatile.is_noise(block) or mask.boilerplate.has_dropped(mask.form_of(block))


def _is_turned(before: Block, after: Block, mask: NoiseMask) -> bool:
    """Whether one boilerplate block took another's place, or the two stand there by turns."""
    boilerplate, was, now = mask.boilerplate, mask.form_of(before), mask.form_of(after)
    if boilerplate.contained(was) and (boilerplate.contained(now) or boilerplate.turns_to(now)):
        return True
    return mask.volatile.is_by_turns(before, after)


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


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two versions are apart. bits: of 64 that differ, None where the page has no text of its own.

    blocks: share of the page's own blocks, then and now, that differ: 0 to 1.
    """

    bits: int | None = None
    blocks: float = 0.0


NO_DISTANCE = Distance(0)


def distance_between(after: BlockList, found: Difference, own: Difference, mask: NoiseMask) -> Distance:
    """The distance of two versions that differ by `found`, of which `own` is the page's own doing.

    after: the blocks of the new version.  Out of both texts are boilerplate, volatile places, and what differs without
    being the page's own: so two versions that only noise tells apart have distance 0, whatever their bodies say.
    """
    if own == SAME:
        return NO_DISTANCE
    kept = _kept(mask.volatile.named(after), found, mask)
    one, other = (fingerprint_of(_text([*kept, *changed], mask)) for changed in (own.went, own.came))
    bits = None if one is None and other is None else 32
    if one is not None and other is not None:
        bits = distance_bits(one, other)
    differing = len(own.went) + len(own.came)
    return Distance(bits, differing / (differing + 2 * len(kept)))


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
