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
_CACHE_SIZE = 16_384

NUMBER = "\0"  # stands for a number; no text of a page holds it


@lru_cache(_CACHE_SIZE)
def split_words(block: Block) -> Words:
    """The words of a block in their order; of a link, the steps of its path and its parameters."""
    pattern = _STEP if block.kind is BlockKind.LINK else _WORD
    return tuple(pattern.findall(block.text))


@lru_cache(_CACHE_SIZE)
def mask_numbers(word: str) -> str:
    """A word with NUMBER in place of each of its numbers: "394d" and "1,397d" are alike, and so are "0.09" and "12"."""
    return _NUMBER.sub(NUMBER, word)


def select_numbers(words: Iterable[str]) -> Words:
    """The words that have a digit: a price that goes up and down is a change each time."""
    return tuple(word for word in words if NUMBER in mask_numbers(word))


WordPattern = tuple[str, ...]  # the words of a block, with a gap for volatile ones: ANY, or the word with NUMBER in it

ANY = ""

MIN_COMMON_SHARE = 0.5  # share of words in common, from which on two wordings are taken for one block

ORIGIN_WORDS = 2  # scheme and host of a link, equal in all links of a site


def build_pattern(one: Words, other: Words) -> WordPattern:
    """The pattern of two wordings with as many words: equal words stay, others become gaps."""
    return tuple(a if a == b else _build_gap(a, b) for a, b in zip(one, other, strict=True))


def _build_gap(one: str, other: str) -> str:
    """The gap that stands for two words: with NUMBER in it where they differ in numbers only, else ANY."""
    masked = mask_numbers(one)
    return masked if masked == mask_numbers(other) else ANY


def matches_word(each: str, word: str) -> bool:
    """Whether an entry of a pattern stands for this word."""
    return each in (ANY, word) or (NUMBER in each and each == mask_numbers(word))


def list_gaps(pattern: WordPattern) -> dict[int, str]:
    """The gaps of a pattern, by position."""
    return {n: each for n, each in enumerate(pattern) if each == ANY or NUMBER in each}


def matches_words(pattern: WordPattern, words: Words) -> bool:
    return len(pattern) == len(words) and all(map(matches_word, pattern, words))


def is_same_block(pattern: WordPattern, kind: BlockKind) -> bool:
    """Whether enough words of a block stayed for both wordings to be one block. Numbers and signs do not count.

    kind: of the block; a link of two steps of which one differs leads elsewhere.
    """
    if kind is BlockKind.LINK:
        compared = pattern[ORIGIN_WORDS:]
        return compared.count(ANY) < MIN_COMMON_SHARE * len(compared) or not compared
    compared = tuple(each for each in pattern if each == ANY or any(map(str.isalpha, each)))
    return compared.count(ANY) <= MIN_COMMON_SHARE * len(compared)


K = TypeVar("K")
V = TypeVar("V")

MAX_SHARE_DIVISOR = (
    4  # a value that alone takes more than a quarter of the room is not kept: it would push out all others
)


def keep_newest(entries: dict[K, V], max_entries: int) -> dict[K, V]:
    """The newest entries of a mapping, at most `most`; the mapping itself if it has no more. Keys are oldest first."""
    if len(entries) <= max_entries:
        return entries
    newest_entries = dict(entries)  # a copy that loses a few entries is seven times faster than one made entry by entry
    for key in islice(entries, len(entries) - max_entries):
        del newest_entries[key]
    return newest_entries


def keep_newest_within(
    entries: Mapping[K, tuple[V, ...]], *, max_values: int, max_chars: int, length: Callable[[V], int]
) -> Mapping[K, tuple[V, ...]]:
    """The newest values of a mapping, at most `most` and `chars` characters; the mapping itself if it fits.

    The last key is the newest, and so is the last value of each key.  length: of a value, in characters.
    """
    sized_values = [(key, value, length(value)) for key, values in entries.items() for value in values]
    if len(sized_values) <= max_values and sum(size for *_, size in sized_values) <= max_chars:
        return entries
    newest_values: dict[K, list[V]] = {}
    chars_left = max_chars
    for key, value, size in reversed(sized_values):
        if size > max_chars // MAX_SHARE_DIVISOR:
            continue
        chars_left, max_values = chars_left - size, max_values - 1
        if chars_left < 0 or max_values < 0:
            break
        newest_values.setdefault(key, []).append(value)
    return {key: tuple(reversed(values)) for key, values in reversed(newest_values.items())}
