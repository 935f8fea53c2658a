"""Relative times ("3 days ago"): numbers that grow by the elapsed time, in a unit from seconds to years.

A number counts as a clock if it grew by the elapsed time often enough: by different amounts above one, by more than one
on several pages, or by one on many pages. One growth by one proves little, because prices grow so too. The number is
not masked in general; it is ignored only if it is the one that the elapsed time predicts.
"""

import re
from datetime import timedelta

from msgspec.structs import replace

from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import MAX_PATHS, VolatileContent
from crawler.core.noise.stability import CounterStats
from crawler.core.noise.words import build_pattern, keep_newest
from crawler.core.page.block import Block
from crawler.core.page.fingerprint import hash_text

ENOUGH_AGREEMENTS = 3  # matches with the elapsed time before a number counts as a clock, and one of the next three:
ENOUGH_GROWTHS = 2  # different growths above 1
ENOUGH_PAGES = 4  # pages with growth above 1; numbers of pages that are visited together grow by the same amount
MANY_PAGES = 8  # pages with growth by 1
MAX_MISSES = 10  # mismatches that count; each doubles ENOUGH_AGREEMENTS
MAX_DOUBLINGS = 3  # of these mismatches, how many also double MANY_PAGES
UNITS_S = (1, 60, 3600, 86400, 7 * 86400, 30.44 * 86400, 365.25 * 86400)  # seconds to years, in seconds


def learn_relative_time(
    volatile: VolatileContent, before: Block, after: Block, *, page: PageKey, elapsed: timedelta
) -> VolatileContent:
    """Return the volatile content after a block differed from its text `elapsed` ago: its number may count the time.

    A mismatch discards the evidence. The number may qualify again, but each time needs twice as many matches.
    """
    growth = _find_growth(volatile, before, after)
    if growth is None:
        return volatile
    key, by = growth
    stats = volatile.counters.get(key, CounterStats())
    units = find_passed_units(by, elapsed) & (stats.units or _ALL_UNITS)
    if units:
        stats = replace(stats, agreements=stats.agreements + 1, units=units)
        if by == 1:
            pages = tuple(dict.fromkeys((*stats.slow_pages, page)))
            stats = replace(stats, slow_pages=pages[: MANY_PAGES << MAX_DOUBLINGS])
        else:
            growths, pages = (*sorted(stats.growths - {by}), by), tuple(dict.fromkeys((*stats.fast_pages, page)))
            stats = replace(stats, growths=frozenset(growths[-ENOUGH_GROWTHS:]), fast_pages=pages[:ENOUGH_PAGES])
    else:
        stats = CounterStats(misses=min(stats.misses + 1, MAX_MISSES))
    return replace(volatile, counters=keep_newest({**volatile.counters, key: stats}, MAX_PATHS))


def is_relative_time_change(volatile: VolatileContent, before: Block, after: Block, *, elapsed: timedelta) -> bool:
    """Return whether only a number that counts the time differs, and grew by the elapsed time."""
    growth = _find_growth(volatile, before, after)
    if growth is None:
        return False
    key, by = growth
    stats = volatile.counters.get(key, CounterStats())
    if not find_passed_units(by, elapsed) & stats.units:
        return False
    is_fast = len(stats.growths) >= ENOUGH_GROWTHS or len(stats.fast_pages) >= ENOUGH_PAGES
    is_clock = is_fast or len(stats.slow_pages) >= MANY_PAGES << min(stats.misses, MAX_DOUBLINGS)
    return is_clock and stats.agreements >= ENOUGH_AGREEMENTS << stats.misses


def find_passed_units(growth: int, elapsed: timedelta) -> frozenset[int]:
    """Return the units, as indices of UNITS_S, of which `growth` have passed, give or take one."""
    if growth < 1:
        return frozenset()
    passed = elapsed.total_seconds()
    return frozenset(n for n, s in enumerate(UNITS_S) if s <= passed * 2 and abs(growth * s - passed) < s)


def _find_growth(volatile: VolatileContent, before: Block, after: Block) -> tuple[int, int] | None:
    """Return a hash of the path and context of the number that differs, and its growth; None unless exactly one does.

    One more word may differ, such as its unit: "1 day", "2 days".
    """
    old, new = volatile.mask_pair(before, after)
    if before.css_path != after.css_path or len(old) != len(new):
        return None
    differing = [n for n in range(len(old)) if old[n] != new[n]]
    numbers = [(n, *pair) for n in differing if (pair := _parse_numbers(old[n], new[n])) is not None]
    if len(numbers) != 1 or len(differing) > 2:
        return None
    ((at, was, now),) = numbers
    pattern = build_pattern(old, new)
    # The context is the word after the number; the words before the number, perhaps a name, differ from page to page.
    context_word = old[at + 1] if at + 1 < len(old) else old[at - 1] if at else ""
    return hash_text(f"{before.css_path} {pattern[at]} {context_word}"), now - was


_ALL_UNITS = frozenset(range(len(UNITS_S)))
_NUMBER = re.compile(r"(\D*)(\d{1,9}|\d{1,3}(?:[., ']\d{3}){1,2})(\D*)")


def _parse_numbers(old: str, new: str) -> tuple[int, int] | None:
    """Return the numbers of two words that differ only in a number (394 and 397 of "394d" and "397d"), or None."""
    before, after = _NUMBER.fullmatch(old), _NUMBER.fullmatch(new)
    if before is None or after is None or (before[1], before[3]) != (after[1], after[3]):
        return None
    return _parse_integer(before[2]), _parse_integer(after[2])


def _parse_integer(text: str) -> int:
    return int("".join(filter(str.isdecimal, text)))
