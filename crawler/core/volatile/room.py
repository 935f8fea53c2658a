"""How much is kept of what is known of a domain's volatile places: whole texts, which can be long."""

from collections.abc import Iterable
from dataclasses import replace

from crawler.core.volatile.bounds import newest_within
from crawler.core.volatile.volatile import MOST_PATTERNS, Volatile

MOST_CHARS = 1 << 19  # of patterns and of gaps; of words as pages have them, 80,000


def fitted(volatile: Volatile, *, chars: int = MOST_CHARS) -> Volatile:
    """What is known, without its oldest patterns and gaps where all would take more room than that.

    What would take more than a quarter of the room alone is not kept either. Always: unchanged if it fits.
    """
    patterns = newest_within(volatile.patterns, most=MOST_PATTERNS, chars=chars, length=_length)
    once = newest_within(volatile.once, most=MOST_PATTERNS, chars=chars, length=_length)
    every = {key: (gaps,) for key, gaps in volatile.anywhere.items()}
    gaps = newest_within(every, most=MOST_PATTERNS, chars=chars, length=lambda gaps: _length(gaps.values()))
    if patterns is volatile.patterns and once is volatile.once and gaps is every:
        return volatile
    anywhere = {key: only for key, (only,) in gaps.items()}
    return replace(volatile, patterns=patterns, once=once, anywhere=anywhere)


def _length(words: Iterable[str]) -> int:
    return sum(len(word) + 1 for word in words)
