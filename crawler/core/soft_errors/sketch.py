"""Texts that are known again though a few of their words differ, and what became of a page's own text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from crawler.core.change import NoiseMask, form_of
from crawler.core.http import PageKey, Url
from crawler.core.page import Block, BlockKind, BlockList
from crawler.core.volatile import words_of

MOST_WORDS = 256  # of one text, to know it again: the smallest of its hashes (Broder, 1997)
FEW_WORDS = 4  # in which two sayings of one text may differ: a name, a code, the address that was asked for
SAME_SHARE = 0.9  # of the words of both, otherwise
MOST_KEPT = 0.25  # of a page's own text, when all of it went

_LAST_HASH = (1 << 32) - 1

TextSketch = frozenset[int]  # of a text: hashes of its words; empty for what says nothing
NOTHING: TextSketch = frozenset()


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """What became of a page's own text, without what frames it, since its last Snapshot.

    before, after: words.  kept: the share of the text before that is still there.  added: of the text now, that is new.
    """

    before: int
    after: int
    kept: float
    added: float

    @property
    def is_complete(self) -> bool:
        """Whether next to nothing of what the page said is left."""
        return self.before > 0 and self.kept < MOST_KEPT


def alike(one: TextSketch, other: TextSketch, *, beside: TextSketch = NOTHING) -> bool:
    """Whether two texts are one, but for a few words. What says nothing is like nothing.

    beside: words that count on neither side.
    """
    if not one or not other:
        return False
    known_up_to = min(_end(one), _end(other))
    either = {word for word in (one | other) - beside if word <= known_up_to}
    common = len(either & one & other)
    different = len(either) - common
    return common > 0 and different <= min(common, max(FEW_WORDS, (1 - SAME_SHARE) * len(either)))


def _end(sketch: TextSketch) -> int:
    """Up to which hash a sketch holds all the words of its text."""
    return max(sketch) if len(sketch) >= MOST_WORDS else _LAST_HASH


def sketch(places: Iterable[Block]) -> TextSketch:
    """The words of some places. Those with a digit in them are left out: instants and numbers of incidents."""
    return _smallest({_hash(word) for place in places for word in _plain(place)})


def sketch_of_url(url: Url) -> TextSketch:
    """The words that a page may repeat of the address that it was asked for."""
    return _smallest({_hash(word) for word in re.findall(r"\w+|[^\w\s]", url.casefold())})


def sketch_of_target(key: PageKey) -> TextSketch:
    """Where a redirect leads, in place of a text."""
    return frozenset({crc32(key)})


def own_text(outline: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The places of a page that are its own text, and not the frame of the site."""
    return tuple(place for place in _texts(outline, mask) if not _is_frame(place, mask))


def boilerplate_text(outline: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The others."""
    return tuple(place for place in _texts(outline, mask) if _is_frame(place, mask))


def replacement_of(before: Sequence[Block], after: Sequence[Block]) -> TextReplacement:
    """What became of a page's own places. Pairs of words are compared: single ones are in any text of a language."""
    one, other = _pairs(before), _pairs(after)
    common = (one & other).total()
    return TextReplacement(
        before=sum(len(words_of(place)) for place in before),
        after=sum(len(words_of(place)) for place in after),
        kept=common / one.total() if one else 1.0,
        added=1 - common / other.total() if other else 0.0,
    )


def _texts(outline: BlockList, mask: NoiseMask) -> Iterable[Block]:
    return (place for place in mask.volatile.named(outline) if place.kind is BlockKind.TEXT)


def _is_frame(place: Block, mask: NoiseMask) -> bool:
    return mask.boilerplate.contains(form_of(place, mask.volatile.masked(place)))


def _pairs(places: Iterable[Block]) -> Counter[tuple[str, str]]:
    return Counter(pair for place in places for pair in pairwise(("", *words_of(place))))


def _plain(place: Block) -> Iterable[str]:
    return (word.casefold() for word in words_of(place) if word.isalpha() or not any(map(str.isdigit, word)))


def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _smallest(hashes: set[int]) -> TextSketch:
    return frozenset(sorted(hashes)[:MOST_WORDS])
