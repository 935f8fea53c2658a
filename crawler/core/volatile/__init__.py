"""What differs from fetch to fetch though nothing has happened: clocks, counters, tokens, advertisements.

It is learnt from two fetches seconds apart (`learn_pair`), and by counters that grow exactly with time. Differences
between looks of different days prove nothing. Uses page and what is below it.
"""

from crawler.core.volatile.alignment import counterparts, gaps
from crawler.core.volatile.bounds import newest
from crawler.core.volatile.dates import clock_in, tells_the_day
from crawler.core.volatile.mask_audit import hidden, wants_test
from crawler.core.volatile.path_aliases import learn_names
from crawler.core.volatile.relative_time import counts_time, learn_elapsed
from crawler.core.volatile.repeat_fetch import learn_changes, learn_pair
from crawler.core.volatile.session_params import Parameter
from crawler.core.volatile.stability import Count, Proof, Steadiness, Trial
from crawler.core.volatile.volatile import MOST_CHARS, NOTHING_VOLATILE, Volatile, fitted
from crawler.core.volatile.words import NUMBER, Pattern, Words, numberless, words_of

__all__ = [
    "MOST_CHARS",
    "NOTHING_VOLATILE",
    "NUMBER",
    "Count",
    "Parameter",
    "Pattern",
    "Proof",
    "Steadiness",
    "Trial",
    "Volatile",
    "Words",
    "clock_in",
    "counterparts",
    "counts_time",
    "fitted",
    "gaps",
    "hidden",
    "learn_changes",
    "learn_elapsed",
    "learn_names",
    "learn_pair",
    "newest",
    "numberless",
    "tells_the_day",
    "wants_test",
    "words_of",
]
