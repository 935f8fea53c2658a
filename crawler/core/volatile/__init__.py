"""Volatile places: text that differs from fetch to fetch though nothing has happened, such as clocks and counters.

They are learnt from second fetches, seconds after the first (`learn_from_repeat`), from counters that grow exactly with
time, and from stamps of builds (`learn_stamps`). Other differences between looks of different days prove nothing. Uses
page and what is below it.
"""

from crawler.core.volatile.alignment import counterparts, gaps
from crawler.core.volatile.bounds import newest
from crawler.core.volatile.clocks import clock_in, tells_the_day
from crawler.core.volatile.mask_audit import hidden_by_mask, wants_test
from crawler.core.volatile.path_aliases import learn_aliases
from crawler.core.volatile.relative_time import counts_time, learn_elapsed
from crawler.core.volatile.repeat_fetch import count_changes, learn_from_repeat
from crawler.core.volatile.session_params import Parameter
from crawler.core.volatile.stability import CounterStats, PathStats, ShapeStats, StampStats, VolatilityCount
from crawler.core.volatile.stamps import is_stamp, learn_stamps
from crawler.core.volatile.volatile import MOST_CHARS, NOTHING_VOLATILE, Volatile, trimmed
from crawler.core.volatile.words import NUMBER, Pattern, Words, numberless, words_of

__all__ = [
    "MOST_CHARS",
    "NOTHING_VOLATILE",
    "NUMBER",
    "CounterStats",
    "Parameter",
    "PathStats",
    "Pattern",
    "ShapeStats",
    "StampStats",
    "Volatile",
    "VolatilityCount",
    "Words",
    "clock_in",
    "count_changes",
    "counterparts",
    "counts_time",
    "gaps",
    "hidden_by_mask",
    "is_stamp",
    "learn_aliases",
    "learn_elapsed",
    "learn_from_repeat",
    "learn_stamps",
    "newest",
    "numberless",
    "tells_the_day",
    "trimmed",
    "wants_test",
    "words_of",
]
