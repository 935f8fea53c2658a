"""Relative times ("3 days ago"): numbers that grow by exactly the hours, days or weeks that passed.

A number that grows by one from look to look proves little: prices do so, too. It is held to be a clock where it grew
by more, on several pages or by different amounts, or by one on many pages, and each time by the time that had passed.
No gap is left in its place: only the number that the time foretells is ignored.
"""

import re
from dataclasses import replace
from datetime import timedelta

from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import MOST_PATHS, Volatile
from crawler.core.noise.stability import CounterStats
from crawler.core.noise.words import newest, pattern_of
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block

FOUND_COUNTING = 3  # times that a number has counted the time exactly, before it is believed to do so
ENOUGH_GROWTHS = 2  # that differ from each other, and are more than 1
ENOUGH_PAGES = 4  # that grew by more than 1: pages that are looked at together all grow by the same
MANY_PAGES = 8  # that grew by 1
MOST_MISSED = 10
MOST_DOUBLED = 3  # times that many pages are doubled for a disagreement
UNITS_S = (1, 60, 3600, 86400, 7 * 86400, 30.44 * 86400, 365.25 * 86400)  # in which pages say how long ago it was


def learn_elapsed(volatile: Volatile, before: Block, after: Block, *, page: PageKey, elapsed: timedelta) -> Volatile:
    """The volatile places after a block differed from its text `elapsed` ago: does its number count the time?

    A disagreement ends the belief. The number may count again from then on, but each time needs twice as much proof.
    """
    grown = _grown(volatile, before, after)
    if grown is None:
        return volatile
    key, by = grown
    stats = volatile.counters.get(key, CounterStats())
    units = units_passed(by, elapsed) & (stats.units or _ALL_UNITS)
    if units:
        stats = replace(stats, times=stats.times + 1, units=units)
        if by == 1:
            stats = replace(stats, ones=tuple(dict.fromkeys((*stats.ones, page)))[: MANY_PAGES << MOST_DOUBLED])
        else:
            growths, pages = (*sorted(stats.growths - {by}), by), (*stats.pages, page)
            growths, pages = growths[-ENOUGH_GROWTHS:], tuple(dict.fromkeys(pages))[:ENOUGH_PAGES]
            stats = replace(stats, growths=frozenset(growths), pages=pages)
    else:
        stats = CounterStats(missed=min(stats.missed + 1, MOST_MISSED))
    return replace(volatile, counters=newest({**volatile.counters, key: stats}, MOST_PATHS))


def counts_time(volatile: Volatile, before: Block, after: Block, *, elapsed: timedelta) -> bool:
    """Whether all that differs is a number that counts the time, and has grown by as much as passed."""
    grown = _grown(volatile, before, after)
    if grown is None:
        return False
    key, by = grown
    stats = volatile.counters.get(key, CounterStats())
    if not units_passed(by, elapsed) & stats.units:
        return False
    many = MANY_PAGES << min(stats.missed, MOST_DOUBLED)
    is_clock = len(stats.growths) >= ENOUGH_GROWTHS or len(stats.pages) >= ENOUGH_PAGES or len(stats.ones) >= many
    return is_clock and stats.times >= FOUND_COUNTING << stats.missed


def units_passed(by: int, elapsed: timedelta) -> frozenset[int]:
    """The units, by index into UNITS_S, of which so many have passed, to the unit."""
    passed_s = elapsed.total_seconds()
    near = (n for n, unit_s in enumerate(UNITS_S) if unit_s <= passed_s * 2 and abs(by * unit_s - passed_s) < unit_s)
    return frozenset(near) if by >= 1 else frozenset()


def _grown(volatile: Volatile, before: Block, after: Block) -> tuple[int, int] | None:
    """A hash of the path and context of the one number that differs, and its growth; perhaps its unit differs, too."""
    old, new = volatile.both(before, after)
    if before.css_path != after.css_path or len(old) != len(new):
        return None
    differing = [n for n in range(len(old)) if old[n] != new[n]]
    numbers = [(n, *grown) for n in differing if (grown := _numbers(old[n], new[n])) is not None]
    if len(numbers) != 1 or len(differing) > 2:
        return None
    ((at, was, now),) = numbers
    pattern = pattern_of(old, new)
    # The word after it is its context, since the words before it, perhaps a name, differ from page to page.
    beside = old[at + 1] if at + 1 < len(old) else old[at - 1] if at else ""
    return number_of(f"{before.css_path} {pattern[at]} {beside}"), now - was


_ALL_UNITS = frozenset(range(len(UNITS_S)))
_NUMBER = re.compile(r"(\D*)(\d{1,9}|\d{1,3}(?:[., ']\d{3}){1,2})(\D*)")


def _numbers(old: str, new: str) -> tuple[int, int] | None:
    """The numbers of two words that differ in these only: 394 and 397 of "394d" and "397d"; else None."""
    before, after = _NUMBER.fullmatch(old), _NUMBER.fullmatch(new)
    if before is None or after is None or (before[1], before[3]) != (after[1], after[3]):
        return None
    return _integer(before[2]), _integer(after[2])


def _integer(written: str) -> int:
    return int("".join(filter(str.isdecimal, written)))
