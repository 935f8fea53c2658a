"""Volatile places: text that differs from fetch to fetch though nothing has happened, such as clocks and counters.

They are learnt from second fetches, seconds after the first (`learn_from_repeat`), from counters that grow exactly with
time, and from stamps of builds (`learn_stamps`). Other differences between looks of different days prove nothing. Uses
page and what is below it.
"""

from crawler.core.noise.alignment import counterparts, gaps
from crawler.core.noise.bounds import newest
from crawler.core.noise.clocks import clock_in, tells_the_day
from crawler.core.noise.mask_audit import hidden_by_mask, wants_test
from crawler.core.noise.noise import MOST_CHARS, NOTHING_VOLATILE, Volatile, trimmed
from crawler.core.noise.path_aliases import learn_aliases
from crawler.core.noise.relative_time import counts_time, learn_elapsed
from crawler.core.noise.repeat_fetch import count_changes, learn_from_repeat
from crawler.core.noise.session_params import Parameter
from crawler.core.noise.stability import CounterStats, PathStats, ShapeStats, StampStats, VolatilityCount
from crawler.core.noise.stamps import is_stamp, learn_stamps
from crawler.core.noise.words import NUMBER, Pattern, Words, numberless, words_of
