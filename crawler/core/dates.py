"""Whether a place tells the day on which it was looked at, as mastheads and footers do."""

import calendar
from datetime import date, datetime, timedelta
from functools import lru_cache

from crawler.core.words import Words

ZONES = (timedelta(hours=-14), timedelta(0), timedelta(hours=14))  # what day it is depends on where the server stands
WRITTEN = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m%d")


def tells_the_day(before: Words, after: Words, *, then: datetime, now: datetime) -> bool:
    """Whether two wordings of a place differ only in that each tells the day of its own look.

    A number that happens to be that day's is not enough: month or year has to stand beside it.
    """
    if len(before) != len(after):
        return False
    differing = [(old.lower(), new.lower()) for old, new in zip(before, after, strict=True) if old != new]
    whole_then, parts_then, _ = _said_of(then)
    whole_now, parts_now, beside = _said_of(now)
    if all(old in whole_then and new in whole_now for old, new in differing):
        return True
    told = all(old in whole_then | parts_then and new in whole_now | parts_now for old, new in differing)
    return told and any(word.lower() in beside for word in after)


Said = tuple[frozenset[str], frozenset[str], frozenset[str]]


def _said_of(instant: datetime) -> Said:
    days = [_of_day((instant + zone).date()) for zone in ZONES]
    whole, parts, beside = (frozenset().union(*each) for each in zip(*days, strict=True))
    return whole, parts, beside


@lru_cache(256)
def _of_day(day: date) -> Said:
    """A day as one word, its parts as words, and those of the parts that no other number is likely to be."""
    whole = {day.strftime(form) for form in WRITTEN}
    whole |= {
        f"{day.day}.{day.month}.{day.year}",
        f"{day.day}/{day.month}/{day.year}",
        f"{day.month}/{day.day}/{day.year}",
    }
    months = {calendar.month_name[day.month], calendar.month_abbr[day.month]}
    beside = {name.lower() for name in months} | {str(day.year)}
    weekdays = {calendar.day_name[day.weekday()].lower(), calendar.day_abbr[day.weekday()].lower()}
    ordinal = {f"{day.day}{ending}" for ending in ("st", "nd", "rd", "th")}
    parts = beside | weekdays | ordinal | {str(day.day), f"{day.day:02}", str(day.month), f"{day.month:02}"}
    return frozenset(whole), frozenset(parts), frozenset(beside)
