"""How much is kept of what is known of a domain's volatile places: whole texts, which can be long."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from crawler.core.bounded import newest_within
from crawler.core.volatile import MOST_PATTERNS, Volatile

MOST_CHARS = 1 << 19  # of patterns, of gaps, of names of parameters; of words as pages have them, 80,000


def fitted(volatile: Volatile, *, chars: int = MOST_CHARS) -> Volatile:
    """What is known, without its oldest patterns and gaps where all would take more room than that.

    Of parameters, which have no age, those with the longest names go. What would take more than a quarter of the room
    alone is not kept either. Always: unchanged if it fits.
    """
    patterns = newest_within(volatile.patterns, most=MOST_PATTERNS, chars=chars, length=_length)
    once = newest_within(volatile.once, most=MOST_PATTERNS, chars=chars, length=_length)
    every = {key: (gaps,) for key, gaps in volatile.anywhere.items()}
    gaps = newest_within(every, most=MOST_PATTERNS, chars=chars, length=lambda gaps: _length(gaps.values()))
    names = sorted(volatile.parameters, key=lambda name: (len(name), name))
    short = sum(total <= chars for total in accumulate(len(name) + 1 for name in names))
    if patterns is volatile.patterns and once is volatile.once and gaps is every and short == len(names):
        return volatile
    anywhere = {key: only for key, (only,) in gaps.items()}
    return replace(volatile, patterns=patterns, once=once, anywhere=anywhere, parameters=frozenset(names[:short]))


def _length(words: Iterable[str]) -> int:
    return sum(len(word) + 1 for word in words)
