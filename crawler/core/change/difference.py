"""What separates two versions of a page, block by block, and the part of it that counts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from crawler.core.change.boilerplate import form_of
from crawler.core.change.mask import NoiseMask
from crawler.core.page import Block, BlockKind, BlockList
from crawler.core.volatile import Volatile, clock_in, counterparts, counts_time, gaps, tells_the_day, words_of

MOST_GUESSED = 8  # places of one kind between two that stayed, of which some came or went: order tells which is which


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates two outlines under a mask.

    replaced: what stood in a place, and what stands there now.  removed, added: what has no counterpart.
    guessed: places of many of one kind of which some came or went, so that which stands for which is a guess.
    """

    replaced: tuple[tuple[Block, Block], ...] = ()
    removed: tuple[Block, ...] = ()
    added: tuple[Block, ...] = ()
    guessed: frozenset[Block] = field(default=frozenset(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.replaced or self.removed or self.added)

    @property
    def places(self) -> tuple[Block, ...]:
        return (*(place for pair in self.replaced for place in pair), *self.removed, *self.added)

    @property
    def parts(self) -> frozenset[BlockKind]:
        return frozenset(place.kind for place in self.places)


SAME = Difference()


def difference(before: BlockList, after: BlockList, volatile: Volatile) -> Difference:
    """All that differs, but for volatile words. Their order counts; where they stand in the tree does not."""
    before, after = volatile.named(before), volatile.named(after)
    replaced: list[tuple[Block, Block]] = []
    removed: list[Block] = []
    added: list[Block] = []
    guessed: set[Block] = set()
    for went, came in gaps(_forms(before, volatile), _forms(after, volatile)):
        old, new = before[went], after[came]
        guessed.update(_guessed(old, new))
        for n, m in counterparts(_kinds(old), _kinds(new)):
            if n is not None and m is not None:
                replaced.append((old[n], new[m]))
            elif n is not None:
                removed.append(old[n])
            elif m is not None:
                added.append(new[m])
    return Difference(tuple(replaced), tuple(removed), tuple(added), frozenset(guessed))


def _guessed(went: BlockList, came: BlockList) -> Iterator[Block]:
    """What stands among many of its kind that are more, or fewer, on the other side."""
    if min(len(went), len(came)) <= MOST_GUESSED:
        return
    were, are = Counter(_kinds(went)), Counter(_kinds(came))
    unsure = {kind for kind, many in were.items() if many != are[kind] and min(many, are[kind]) > MOST_GUESSED}
    yield from (place for place in (*went, *came) if (place.css_path, place.kind) in unsure)


def _kinds(outline: BlockList) -> list[tuple[int, BlockKind]]:
    return [(place.css_path, place.kind) for place in outline]


def _forms(outline: BlockList, volatile: Volatile) -> list[tuple[BlockKind, tuple[str, ...]]]:
    return [(place.kind, volatile.masked(place)) for place in outline]


def significant(found: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> Difference:
    """What of a difference is the page's own: neither volatile, nor the frame's, nor the days of the two looks."""
    replaced: list[tuple[Block, Block]] = []
    removed = [place for place in found.removed if not _went_with_frame(place, mask)]
    added = [place for place in found.added if not _came_with_frame(place, mask)]
    for before, after in found.replaced:
        if _is_turned(before, after, mask) or _tells_the_day(before, after, mask, then=then, now=now):
            continue
        went, came = _went_with_frame(before, mask), _came_with_frame(after, mask)
        if not went and not came:
            replaced.append((before, after))
        elif not went:
            removed.append(before)
        elif not came:
            added.append(after)
    return Difference(tuple(replaced), tuple(removed), tuple(added))


def _form(place: Block, mask: NoiseMask) -> int:
    return form_of(place, mask.volatile.masked(place))


def _went_with_frame(place: Block, mask: NoiseMask) -> bool:
    return mask.volatile.is_noise(place) or mask.boilerplate.has_dropped(_form(place, mask))


def _came_with_frame(place: Block, mask: NoiseMask) -> bool:
    return mask.volatile.is_noise(place) or mask.boilerplate.contains(_form(place, mask))


def _is_turned(before: Block, after: Block, mask: NoiseMask) -> bool:
    """Whether one block of the boilerplate took another's place, or the two stand there by turns."""
    boilerplate, was, now = mask.boilerplate, _form(before, mask), _form(after, mask)
    if boilerplate.contained(was) and (boilerplate.contained(now) or boilerplate.turns_to(now)):
        return True
    return mask.volatile.is_by_turns(before, after)


def _tells_the_day(before: Block, after: Block, mask: NoiseMask, *, then: datetime, now: datetime) -> bool:
    if before.kind is not after.kind or after.kind is BlockKind.LINK:
        return False
    one, other = mask.volatile.both(before, after)
    if before.kind is BlockKind.TEXT and len(one) == len(other):
        clock = clock_in(words_of(before), words_of(after), then=then, now=now)
        one, other = (tuple(word for n, word in enumerate(words) if n not in clock) for words in (one, other))
    if one == other or tells_the_day(one, other, then=then, now=now):
        return True
    # On another day a place says another date beside its volatile words, so that no pattern of its words fits.
    loose = mask.volatile.loosely(before, after)
    if loose is not None and loose[0] != loose[1] and tells_the_day(*loose, then=then, now=now):
        return True
    return counts_time(mask.volatile, before, after, elapsed=now - then)
