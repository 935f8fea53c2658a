"""Numbers that count the time: they have grown by exactly the hours, days or weeks that passed, and never otherwise.

A number that grows by one from look to look proves little: so do prices, and issues. Where it grew by more, by another
number each time or on several pages, or by one on many, and each time by what had passed, it is held to be a clock; and
then no gap is left in what the place says: a look's number is forgiven if the time foretells it, and no other.
"""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from crawler.core.http import PageKey
from crawler.core.page import Block, number_of
from crawler.core.volatile.bounds import newest
from crawler.core.volatile.stability import CounterStats
from crawler.core.volatile.volatile import MOST_PATHS, Volatile
from crawler.core.volatile.words import pattern_of

FOUND_COUNTING = 3  # times that a place has counted the time exactly, before it is believed to do so
ENOUGH_GROWTHS = 2  # that differ from each other, and are more than 1
ENOUGH_PAGES = 4  # that grew by more than 1: pages that are looked at together all grow by the same
MANY_PAGES = 8  # that grew by 1
MOST_MISSED = 10
MOST_DOUBLED = 3  # times that many pages are doubled for a disagreement
UNITS_S = (1, 60, 3600, 86400, 7 * 86400, 30.44 * 86400, 365.25 * 86400)  # in which pages say how long ago it was


def learn_elapsed(volatile: Volatile, before: Block, after: Block, *, page: PageKey, elapsed: timedelta) -> Volatile:
    """What a place of a page teaches that differs from what it was `elapsed` ago: whether it counts the time.

    A disagreement ends the belief. What is said anew may count from then on, but each time twice as much is asked.
    """
    grown = _grown(volatile, before, after)
    if grown is None:
        return volatile
    told = volatile.counters.get(grown.key, CounterStats())
    units = grown.units(elapsed) & (told.units or _ALL_UNITS)
    if units:
        told = replace(told, times=told.times + 1, units=units)
        if grown.by == 1:
            told = replace(told, ones=tuple(dict.fromkeys((*told.ones, page)))[: MANY_PAGES << MOST_DOUBLED])
        else:
            growths, pages = (*sorted(told.growths - {grown.by}), grown.by), (*told.pages, page)
            growths, pages = growths[-ENOUGH_GROWTHS:], tuple(dict.fromkeys(pages))[:ENOUGH_PAGES]
            told = replace(told, growths=frozenset(growths), pages=pages)
    else:
        told = CounterStats(missed=min(told.missed + 1, MOST_MISSED))
    return replace(volatile, counters=newest({**volatile.counters, grown.key: told}, MOST_PATHS))


def counts_time(volatile: Volatile, before: Block, after: Block, *, elapsed: timedelta) -> bool:
    """Whether all that differs is a number that counts the time, and has grown by as much as passed."""
    grown = _grown(volatile, before, after)
    told = volatile.counters.get(grown.key) if grown is not None else None
    if grown is None or told is None or not grown.units(elapsed) & told.units:
        return False
    many = MANY_PAGES << min(told.missed, MOST_DOUBLED)
    is_clock = len(told.growths) >= ENOUGH_GROWTHS or len(told.pages) >= ENOUGH_PAGES or len(told.ones) >= many
    return is_clock and told.times >= FOUND_COUNTING << told.missed


@dataclass(frozen=True, slots=True)
class _Grown:
    """A place of which only one number differs, and perhaps its unit. key: of all numbers that stand so."""

    key: int
    by: int

    def units(self, elapsed: timedelta) -> frozenset[int]:
        """Of which units it grew by as many as have passed."""
        passed_s = elapsed.total_seconds()
        return frozenset(
            n
            for n, unit in enumerate(UNITS_S)
            if self.by >= 1 and unit <= passed_s * 2 and abs(self.by * unit - passed_s) < unit
        )


def _grown(volatile: Volatile, before: Block, after: Block) -> _Grown | None:
    one, other = volatile.both(before, after)
    if before.css_path != after.css_path or len(one) != len(other):
        return None
    differing = [n for n in range(len(one)) if one[n] != other[n]]
    numbers = [(n, *grown) for n in differing if (grown := _numbers(one[n], other[n])) is not None]
    if len(numbers) != 1 or len(differing) > 2:
        return None
    ((at, was, now),) = numbers
    pattern = pattern_of(one, other)
    # By what stands beside it, since the words before it, a name perhaps, are others on other pages.
    beside = one[at + 1] if at + 1 < len(one) else one[at - 1] if at else ""
    return _Grown(number_of(f"{before.css_path} {pattern[at]} {beside}"), now - was)


_ALL_UNITS = frozenset(range(len(UNITS_S)))
_NUMBER = re.compile(r"(\D*)(\d{1,9}|\d{1,3}(?:[., ']\d{3}){1,2})(\D*)")


def _numbers(one: str, other: str) -> tuple[int, int] | None:
    """The numbers in two words that are alike but for them: 394 and 397 in "394d" and "397d"."""
    before, after = _NUMBER.fullmatch(one), _NUMBER.fullmatch(other)
    if before is None or after is None or (before[1], before[3]) != (after[1], after[3]):
        return None
    return _integer(before[2]), _integer(after[2])


def _integer(written: str) -> int:
    return int("".join(filter(str.isdecimal, written)))
