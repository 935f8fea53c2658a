"""A place's text as words: the grain at which one version differs from another."""

import re
from functools import lru_cache

from crawler.core.page import IDEOGRAPHS, Block, BlockKind

Words = tuple[str, ...]

# A number keeps its points, a date its dashes, and a thousand its space: 19.99 is one word, and 1 000 is one as 999 is.
_WORD = re.compile(
    rf"\d{{1,3}}(?: \d{{3}})+(?!\w)|[{IDEOGRAPHS}]"
    rf"|[^\W{IDEOGRAPHS}]+(?:[.,:/'’\-][^\W{IDEOGRAPHS}]+)*|[^\w\s]"  # noqa: RUF001  the apostrophe that people type
)
_STEP = re.compile(r"[^/?&;#]+")  # of a URL: its host, each step of its path, each parameter
_NUMBER = re.compile(r"\d+(?:[., '’]\d{3}(?!\d))*(?:[.,]\d+)?")  # noqa: RUF001
_REMEMBERED = 16_384

NUMBER = "\0"  # in place of a number; no text of a page holds it


@lru_cache(_REMEMBERED)
def words_of(place: Block) -> Words:
    """The words of a place in their order; of a link, the steps of its path and its parameters."""
    pattern = _STEP if place.kind is BlockKind.LINK else _WORD
    return tuple(pattern.findall(place.text))


@lru_cache(_REMEMBERED)
def numberless(word: str) -> str:
    """A word with NUMBER in place of each of its numbers: "394d" and "1,397d" are alike, and so are "0.09" and "12"."""
    return _NUMBER.sub(NUMBER, word)


Pattern = tuple[str, ...]  # the words of a place, with ANY or, of words with another number, what is numberless

ANY = ""

ALIKE = 0.5  # of a place's words have to stay to know it by

ORIGIN_WORDS = 2  # of a link: all of a site's begin with the same


def pattern_of(one: Words, other: Words) -> Pattern:
    """Two wordings as one. As many words on both sides."""
    return tuple(a if a == b else _gap(a, b) for a, b in zip(one, other, strict=True))


def _gap(one: str, other: str) -> str:
    """What stands for two words: where they differ in numbers only, what is about them."""
    alike = numberless(one)
    return alike if alike == numberless(other) else ANY


def agrees(each: str, word: str) -> bool:
    """Whether a word of a pattern stands for this one."""
    return each in (ANY, word) or (NUMBER in each and each == numberless(word))


def gaps_of(pattern: Pattern) -> dict[int, str]:
    """What stands for volatile words, by where they stand."""
    return {n: each for n, each in enumerate(pattern) if each == ANY or NUMBER in each}


def fits(pattern: Pattern, words: Words) -> bool:
    return len(pattern) == len(words) and all(map(agrees, pattern, words))


def is_one_place(pattern: Pattern, part: BlockKind) -> bool:
    """Whether enough of a place stayed to know it by; that there is a number, or a colon, tells nothing.

    A link of two steps of which one differs leads elsewhere.
    """
    if part is BlockKind.LINK:
        own = pattern[ORIGIN_WORDS:]
        return own.count(ANY) < ALIKE * len(own) or not own
    own = tuple(each for each in pattern if each == ANY or any(map(str.isalpha, each)))
    return own.count(ANY) <= ALIKE * len(own)
