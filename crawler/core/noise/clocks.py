"""Recognise blocks that say the day or the time of the look, as mastheads and clocks do."""

import calendar
import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product

from crawler.core.noise.words import Words

ZONES = (timedelta(hours=-14), timedelta(0), timedelta(hours=14))  # what day it is depends on where the server stands
WRITTEN = (
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%Y%m%d",
)  # and with all of the year, each number with a 0 before it or not


def tells_the_day(before: Words, after: Words, *, then: datetime, now: datetime) -> bool:
    """Whether two wordings of a block differ only in that each says the day of its own look.

    A number that happens to be the day's is not enough: month or year has to stand beside it.
    """
    if len(before) != len(after):
        return False
    differing = [(old.lower(), new.lower()) for old, new in zip(before, after, strict=True) if old != new]
    whole_then, parts_then, _ = _date_words(then)
    whole_now, parts_now, beside = _date_words(now)
    if all(old in whole_then and new in whole_now for old, new in differing):
        return True
    is_date = all(old in whole_then | parts_then and new in whole_now | parts_now for old, new in differing)
    return is_date and any(word.lower() in beside for word in after)


_DIGITS = re.compile(r"\d+")


def clock_in(before: Words, after: Words, *, then: datetime, now: datetime) -> frozenset[int]:
    """The positions of words that say the time of both looks to the minute, in one time zone.

    before, after: with as many words.
    """
    return frozenset(at for zone in _zones(before, then) & _zones(after, now) for at in zone[1])


def _zones(words: Words, instant: datetime) -> frozenset[tuple[int, tuple[int, ...]]]:
    """The clocks in a text: their distance from UTC in quarters of an hour, and the positions of their words.

    A clock of twelve hours may be of either half of the day.
    """
    numbers = [(at, digits) for at, word in enumerate(words) for digits in _DIGITS.findall(word)]
    found = set()
    for n, ((at, hour), (beside, minute)) in enumerate(pairwise(numbers)):
        if not _are_neighbours(at, beside) or not _is_sixtieth(minute) or len(hour) > 2 or int(hour) > 24:
            continue
        ahead = (int(hour) * 60 + int(minute) - instant.hour * 60 - instant.minute) % 720
        if (ahead + 1) % 15 <= 2:
            after = numbers[n + 2 : n + 3]
            seconds = [third for third, said in after if _are_neighbours(beside, third) and _is_sixtieth(said)]
            found.add(((ahead + 1) // 15 % 48, (at, beside, *seconds)))
    return frozenset(found)


def _are_neighbours(one: int, other: int) -> bool:
    return other - one <= 2


def _is_sixtieth(digits: str) -> bool:
    return len(digits) == 2 and int(digits) < 60


DateWords = tuple[frozenset[str], frozenset[str], frozenset[str]]  # see _words_of_day


def _date_words(instant: datetime) -> DateWords:
    days = [_words_of_day((instant + zone).date()) for zone in ZONES]
    whole, parts, beside = (frozenset().union(*each) for each in zip(*days, strict=True))
    return whole, parts, beside


@lru_cache(256)
def _words_of_day(day: date) -> DateWords:
    """The ways to write a day: as one word; its parts as words; and the parts that stand for month or year."""
    whole = {day.strftime(form) for form in WRITTEN}
    for d, m in product((f"{day.day}", f"{day.day:02}"), (f"{day.month}", f"{day.month:02}")):
        whole |= {f"{d}.{m}.{day.year}", f"{d}/{m}/{day.year}", f"{m}/{d}/{day.year}", f"{day.year}/{m}/{d}"}
        whole |= {f"{d}-{m}-{day.year}", f"{day.year}-{m}-{d}"}
    months = {calendar.month_name[day.month], calendar.month_abbr[day.month]}
    beside = {name.lower() for name in months} | {str(day.year)}
    weekdays = {calendar.day_name[day.weekday()].lower(), calendar.day_abbr[day.weekday()].lower()}
    ordinal = {f"{day.day}{ending}" for ending in ("st", "nd", "rd", "th")}
    parts = beside | weekdays | ordinal | {str(day.day), f"{day.day:02}", str(day.month), f"{day.month:02}"}
    return frozenset(whole), frozenset(parts), frozenset(beside)
