"""A place's text as words: the grain at which one version differs from another."""

import re
from functools import lru_cache

from crawler.core.page.fingerprint import IDEOGRAPHS
from crawler.core.page.outline import Part, Place

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
def words_of(place: Place) -> Words:
    """The words of a place in their order; of a link, the steps of its path and its parameters."""
    pattern = _STEP if place.part is Part.LINK else _WORD
    return tuple(pattern.findall(place.text))


@lru_cache(_REMEMBERED)
def numberless(word: str) -> str:
    """A word with NUMBER in place of each of its numbers: "394d" and "1,397d" are alike, and so are "0.09" and "12"."""
    return _NUMBER.sub(NUMBER, word)
