"""Sketches of texts, equal but for a few words (Broder, 1997), and the share of a page's own text that was replaced."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from crawler.core.change.boilerplate import form_of
from crawler.core.change.mask import NoiseMask
from crawler.core.http import PageKey, Url
from crawler.core.noise.words import words_of
from crawler.core.page import Block, BlockKind, BlockList

MOST_WORDS = 256  # hashes kept of one text, the smallest ones (Broder, 1997)
FEW_WORDS = 4  # by which two copies of one text may differ: a name, a code, the address that was asked for
SAME_SHARE = 0.9  # of the words of both texts together, where that allows more than FEW_WORDS to differ
LEAST_FRAME = 2  # blocks of boilerplate, to tell a page of the site by them,
KEPT_FRAME = 0.8  # and the share of them that is still there
NUMBERS_SHARE = 0.5  # of a text's words, above which it is made of numbers and codes, and they count,
MIN_NUMBERS = 20  # if it has so many: a short notice may consist of an incident's number and its time
MOST_KEPT = 0.25  # of a page's own text, where all of it counts as gone

_LAST_HASH = (1 << 32) - 1

TextSketch = frozenset[int]  # hashes of the words of a text; empty for a text without words
NOTHING: TextSketch = frozenset()


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """How much of a page's own text, without boilerplate, was replaced since its last Snapshot.

    before, after: number of words then and now.  kept: share of the text before that is still there, 0 to 1.
    added: share of the text now that is new, 0 to 1.
    """

    before: int
    after: int
    kept: float
    added: float

    @property
    def is_complete(self) -> bool:
        """Whether next to nothing of the page's own text is left."""
        return self.before > 0 and self.kept < MOST_KEPT


def alike(first: TextSketch, second: TextSketch, *, ignored: TextSketch = NOTHING) -> bool:
    """Whether two texts are one, but for a few words. A text without words is like none.

    ignored: words that count on neither side.
    """
    if not first or not second:
        return False
    known_up_to = min(_end(first), _end(second))
    either = {word for word in (first | second) - ignored if word <= known_up_to}
    common = len(either & first & second)
    different = len(either) - common
    return common > 0 and different <= min(common, max(FEW_WORDS, (1 - SAME_SHARE) * len(either)))


def _end(sketch: TextSketch) -> int:
    """The largest hash up to which a sketch holds all the words of its text."""
    return max(sketch) if len(sketch) >= MOST_WORDS else _LAST_HASH


def sketch(blocks: Iterable[Block], *, is_seed: bool = False) -> TextSketch:
    """Return the words of some blocks as a sketch.

    Words with a digit are left out, as they are times and incident numbers. Where a text is made of them (a price list,
    a timetable, results) they are kept: without them all such pages would be one text. Not so of a seed: its page is
    compared with what stands in place of others, and may list their numbers.
    """
    words = [word.casefold() for block in blocks for word in words_of(block)]
    with_digits = {word for word in words if has_digit(word)}
    others = {word for word in words if word not in with_digits}
    is_made_of_numbers = len(with_digits) >= max(MIN_NUMBERS, NUMBERS_SHARE * len(with_digits | others))
    keeps_numbers = is_made_of_numbers and not is_seed
    return _smallest({_hash(word) for word in (with_digits | others if keeps_numbers else others)})


def differs_in_numbers_only(before: Sequence[Block], after: Sequence[Block]) -> bool:
    """Return whether two texts are one, but for a few words, when all words with a digit are left out."""
    return alike(sketch(before, is_seed=True), sketch(after, is_seed=True))


def has_digit(word: str) -> bool:
    """Return whether a word holds a digit."""
    return not word.isalpha() and any(map(str.isdigit, word))


def sketch_of_url(url: Url) -> TextSketch:
    """The words of a URL, which its page may repeat ("/x was not found")."""
    return _smallest({_hash(word) for word in re.findall(r"\w+|[^\w\s]", url.casefold())})


def sketch_of_target(key: PageKey) -> TextSketch:
    """The target of a redirect as a sketch, compared in place of a text."""
    return frozenset({crc32(key)})


def own_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that are its own, not the site's boilerplate."""
    return tuple(block for block in _texts(page, mask) if not _is_boilerplate(block, mask))


def boilerplate_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that belong to the site's boilerplate; the complement of `own_text`."""
    return tuple(block for block in _texts(page, mask) if _is_boilerplate(block, mask))


def keeps_frame(before: BlockList, after: BlockList, mask: NoiseMask) -> bool:
    """Whether the site's boilerplate is on a page as it was; False where too little of it is known.

    Who answers in place of a page seldom has its menus and its footer.
    """
    was, now = ({_form(block, mask) for block in boilerplate_text(page, mask)} for page in (before, after))
    return len(was) >= LEAST_FRAME and len(was & now) >= KEPT_FRAME * len(was)


def replacement_of(before: Sequence[Block], after: Sequence[Block]) -> TextReplacement:
    """How much of a page's own blocks was replaced.

    Pairs of words are compared, since single words are common to all texts of a language.
    """
    old_pairs, new_pairs = _pairs(before), _pairs(after)
    common = (old_pairs & new_pairs).total()
    return TextReplacement(
        before=sum(len(words_of(block)) for block in before),
        after=sum(len(words_of(block)) for block in after),
        kept=common / old_pairs.total() if old_pairs else 1.0,
        added=1 - common / new_pairs.total() if new_pairs else 0.0,
    )


def _texts(page: BlockList, mask: NoiseMask) -> Iterable[Block]:
    return (block for block in mask.volatile.named(page) if block.kind is BlockKind.TEXT)


def _is_boilerplate(block: Block, mask: NoiseMask) -> bool:
    return mask.boilerplate.contains(_form(block, mask))


def _form(block: Block, mask: NoiseMask) -> int:
    return form_of(block, mask.volatile.masked(block))


def _pairs(blocks: Iterable[Block]) -> Counter[tuple[str, str]]:
    return Counter(pair for block in blocks for pair in pairwise(("", *words_of(block))))


def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _smallest(hashes: set[int]) -> TextSketch:
    return frozenset(sorted(hashes)[:MOST_WORDS])
