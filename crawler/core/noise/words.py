"""The words of a block and patterns of words, the grain at which versions are compared; and how many are remembered."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from crawler.core.page.fingerprint import IDEOGRAPHS
from crawler.core.page.outline import Block, BlockKind

Words = tuple[str, ...]

# A number keeps its points, a date its dashes, and a thousand its space: 19.99 is one word, and 1 000 is one as 999 is.
_WORD = re.compile(
    rf"\d{{1,3}}(?: \d{{3}})+(?!\w)|[{IDEOGRAPHS}]"
    rf"|[^\W{IDEOGRAPHS}]+(?:[.,:/'’\-][^\W{IDEOGRAPHS}]+)*|[^\w\s]"  # noqa: RUF001  the apostrophe that people type
)
_STEP = re.compile(r"[^/?&;#]+")  # of a URL: its host, each step of its path, each parameter
_NUMBER = re.compile(r"\d+(?:[., '’]\d{3}(?!\d))*(?:[.,]\d+)?")  # noqa: RUF001
_REMEMBERED = 16_384

NUMBER = "\0"  # stands for a number; no text of a page holds it


@lru_cache(_REMEMBERED)
def words_of(block: Block) -> Words:
    """The words of a block in their order; of a link, the steps of its path and its parameters."""
    pattern = _STEP if block.kind is BlockKind.LINK else _WORD
    return tuple(pattern.findall(block.text))


@lru_cache(_REMEMBERED)
def numberless(word: str) -> str:
    """A word with NUMBER in place of each of its numbers: "394d" and "1,397d" are alike, and so are "0.09" and "12"."""
    return _NUMBER.sub(NUMBER, word)


def numbers_of(words: Iterable[str]) -> Words:
    """The words that have a digit: a price that goes up and down is a change each time."""
    return tuple(word for word in words if NUMBER in numberless(word))


Pattern = tuple[str, ...]  # the words of a block, with a gap for volatile ones: ANY, or the word with NUMBER in it

ANY = ""

ALIKE = 0.5  # share of words in common, from which on two wordings are taken for one block

ORIGIN_WORDS = 2  # scheme and host of a link, equal in all links of a site


def pattern_of(one: Words, other: Words) -> Pattern:
    """The pattern of two wordings with as many words: equal words stay, others become gaps."""
    return tuple(a if a == b else _gap(a, b) for a, b in zip(one, other, strict=True))


def _gap(one: str, other: str) -> str:
    """The gap that stands for two words: with NUMBER in it where they differ in numbers only, else ANY."""
    alike = numberless(one)
    return alike if alike == numberless(other) else ANY


def agrees(each: str, word: str) -> bool:
    """Whether an entry of a pattern stands for this word."""
    return each in (ANY, word) or (NUMBER in each and each == numberless(word))


def gaps_of(pattern: Pattern) -> dict[int, str]:
    """The gaps of a pattern, by position."""
    return {n: each for n, each in enumerate(pattern) if each == ANY or NUMBER in each}


def fits(pattern: Pattern, words: Words) -> bool:
    return len(pattern) == len(words) and all(map(agrees, pattern, words))


def is_same_block(pattern: Pattern, kind: BlockKind) -> bool:
    """Whether enough words of a block stayed for both wordings to be one block. Numbers and signs do not count.

    kind: of the block; a link of two steps of which one differs leads elsewhere.
    """
    if kind is BlockKind.LINK:
        own = pattern[ORIGIN_WORDS:]
        return own.count(ANY) < ALIKE * len(own) or not own
    own = tuple(each for each in pattern if each == ANY or any(map(str.isalpha, each)))
    return own.count(ANY) <= ALIKE * len(own)


K = TypeVar("K")
V = TypeVar("V")

MOST_SHARE = 4  # a value that alone takes more than a quarter of the room is not kept: it would push out all others


def newest(known: dict[K, V], most: int) -> dict[K, V]:
    """The newest entries of a mapping, at most `most`; the mapping itself if it has no more. Keys are oldest first."""
    if len(known) <= most:
        return known
    kept = dict(known)  # a copy that loses a few entries is seven times faster than one made entry by entry
    for key in islice(known, len(known) - most):
        del kept[key]
    return kept


def newest_within(
    known: Mapping[K, tuple[V, ...]], *, most: int, chars: int, length: Callable[[V], int]
) -> Mapping[K, tuple[V, ...]]:
    """The newest values of a mapping, at most `most` and `chars` characters; the mapping itself if it fits.

    The last key is the newest, and so is the last value of each key.  length: of a value, in characters.
    """
    every = [(key, value, length(value)) for key, values in known.items() for value in values]
    if len(every) <= most and sum(size for *_, size in every) <= chars:
        return known
    kept: dict[K, list[V]] = {}
    left = chars
    for key, value, size in reversed(every):
        if size > chars // MOST_SHARE:
            continue
        left, most = left - size, most - 1
        if left < 0 or most < 0:
            break
        kept.setdefault(key, []).append(value)
    return {key: tuple(reversed(values)) for key, values in reversed(kept.items())}
