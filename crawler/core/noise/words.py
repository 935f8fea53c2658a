"""The words of a block and patterns of words, by which blocks are compared; and helpers that bound learned mappings."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from crawler.core.page.block import Block, BlockKind
from crawler.core.page.text_words import UNSPACED

Words = tuple[str, ...]

# Numbers keep their points, dates their dashes, and thousands their spaces: 19.99 is one word, and so is 1 000.
_WORD = re.compile(
    rf"\d{{1,3}}(?: \d{{3}})+(?!\w)|[{UNSPACED}]"
    rf"|[^\W{UNSPACED}]+(?:[.,:/'’\-][^\W{UNSPACED}]+)*|[^\w\s]"  # noqa: RUF001  the typographic apostrophe
)
_URL_PART = re.compile(r"[^/?&;#]+")  # the scheme, the host, each path segment, each parameter
_NUMBER = re.compile(r"\d+(?:[., '’]\d{3}(?!\d))*(?:[.,]\d+)?")  # noqa: RUF001
_CACHE_SIZE = 16_384

NUMBER = "\0"  # replaces a number; pages never contain it


@lru_cache(_CACHE_SIZE)
def split_words(block: Block) -> Words:
    """Return the words of a block in order; for a link, the parts of its URL."""
    return tuple(get_word_pattern(is_link=block.kind is BlockKind.LINK).findall(block.text))


def get_word_pattern(*, is_link: bool) -> re.Pattern[str]:
    """Return the expression that finds the words of a block."""
    return _URL_PART if is_link else _WORD


@lru_cache(_CACHE_SIZE)
def mask_numbers(word: str) -> str:
    """Replace each number in a word by NUMBER: "394d" and "1,397d" become equal, and so do "0.09" and "12"."""
    return _NUMBER.sub(NUMBER, word)


def select_numbers(words: Iterable[str]) -> Words:
    """Return the words that contain a number."""
    return tuple(word for word in words if NUMBER in mask_numbers(word))


WordPattern = tuple[str, ...]  # a block's words, with a gap for each volatile one: ANY, or a word that contains NUMBER

ANY = ""

MIN_COMMON_SHARE = 0.5  # share of equal words from which on two texts are versions of the same block

ORIGIN_WORDS = 2  # scheme and host of a link, equal in all internal links


def build_pattern(one: Words, other: Words) -> WordPattern:
    """Return the pattern of two texts with the same number of words: equal words stay, others become gaps."""
    pairs = zip(one, other, strict=True)
    return tuple(a if a == b else mask_numbers(a) if mask_numbers(a) == mask_numbers(b) else ANY for a, b in pairs)


def matches_word(each: str, word: str) -> bool:
    """Return whether an entry of a pattern matches this word."""
    return each in (ANY, word) or (NUMBER in each and each == mask_numbers(word))


def list_gaps(pattern: WordPattern) -> dict[int, str]:
    """Return the gaps of a pattern, by position."""
    return {n: each for n, each in enumerate(pattern) if each == ANY or NUMBER in each}


def matches_words(pattern: WordPattern, words: Words) -> bool:
    return len(pattern) == len(words) and all(map(matches_word, pattern, words))


def is_same_block(pattern: WordPattern, kind: BlockKind) -> bool:
    """Return whether two texts have enough words in common to be versions of the same block.

    pattern: the pattern of both (`build_pattern`). Words that differ only in a number count as equal; in a text, words
    without a letter do not count. Of a link, more than half of the words after the host must be equal.
    """
    if kind is BlockKind.LINK:
        compared = pattern[ORIGIN_WORDS:]
        return compared.count(ANY) < MIN_COMMON_SHARE * len(compared) or not compared
    compared = tuple(each for each in pattern if each == ANY or any(map(str.isalpha, each)))
    return compared.count(ANY) <= MIN_COMMON_SHARE * len(compared)


K = TypeVar("K")
V = TypeVar("V")

# When a mapping is cut, values longer than max_chars divided by this are dropped; they would displace all others.
MAX_SHARE_DIVISOR = 4


def keep_newest(entries: dict[K, V], max_entries: int) -> dict[K, V]:
    """Return the newest max_entries entries of a mapping, or the mapping itself if it fits. Oldest keys come first."""
    if len(entries) <= max_entries:
        return entries
    newest_entries = dict(entries)  # copying all and deleting a few is seven times faster than copying entry by entry
    for key in islice(entries, len(entries) - max_entries):
        del newest_entries[key]
    return newest_entries


def keep_newest_within(
    entries: Mapping[K, tuple[V, ...]], *, max_values: int, max_chars: int, length: Callable[[V], int]
) -> Mapping[K, tuple[V, ...]]:
    """Return the newest values of a mapping within max_values and max_chars, or the mapping itself if it fits.

    The last key is the newest, and so is the last value of each key. See also MAX_SHARE_DIVISOR.
    length: returns the number of characters of a value.
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
