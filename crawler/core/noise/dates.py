"""Dates and clocks: of the look, as mastheads have them, and stamps of a build ("generated at").

A stamp outlives a second fetch: a page that is built anew every hour says the same in two fetches seconds apart. What
gives its stamp away is that it is all that differs, look after look, and that it names an instant between the two
looks. No gap is left in its place: only a stamp that fits the time of its look is ignored. A price, a version number or
a date to come never fits. Of a number that only grows nobody can say whether it is a count or a price.
"""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product

from crawler.core.noise.day_names import is_weekday, parse_months
from crawler.core.noise.noise import MAX_PATHS, VolatileContent
from crawler.core.noise.relative_time import find_passed_units
from crawler.core.noise.stability import StampStats
from crawler.core.noise.words import Words, keep_newest, split_words
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.outline import Block, BlockKind

ENOUGH_DATES = 2  # looks at which a date fitted and was all that differed: with the first look, three
ENOUGH_CLOCKS = 3  # the same of a time of the day, which fits any look
MAX_MISSES = 4  # times that the number of looks is doubled, as a place did not fit
TIME_ZONE_SLACK = timedelta(hours=14)  # of time zones that nobody names
CACHE_SLACK = timedelta(days=1)  # by which a page may have been built before it was seen unbuilt: caches
CONTEXT_WORDS = 3  # words on either side of those that differ, that may belong to the stamp

_ISO = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[Tt](\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?[Zz]?)?", re.ASCII)
_ANY_ORDER = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})", re.ASCII)
_COMPACT = re.compile(r"(20\d{2})(\d{2})(\d{2})(?:[Tt]?(\d{2})(\d{2})(\d{2})?[Zz]?)?", re.ASCII)
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2})[:h](\d{2})(?::(\d{2})(?:[.,]\d+)?)?(am|pm|z)?", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII | re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d{2}", re.ASCII)
_AGE = re.compile(r"\d{1,9}", re.ASCII)
_MERIDIEM = frozenset({"am", "pm", "a.m", "p.m"})


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What some words say of an instant. days: those that they can mean; empty where they name none.

    minute: of the day; None if they do not say.  instant: of the seconds since 1970.
    """

    days: frozenset[date] = frozenset()
    minute: int | None = None
    instant: datetime | None = None


def learn_stamps(
    volatile: VolatileContent, replaced: Sequence[tuple[Block, Block]], *, then: datetime, now: datetime
) -> VolatileContent:
    """The volatile places after a look at which these blocks are all that differs of a page. Do all of them fit?"""
    all_readings = [_read_stamp_change(before, after, then=then, now=now) for before, after in replaced]
    readings = [reading for reading in all_readings if reading is not None]
    missed = [reading.key for reading in readings if not reading.fits]
    stats_by_key = dict(volatile.stamps)
    if len(readings) == len(all_readings) and not missed:
        for reading in readings:
            stats = stats_by_key.pop(reading.key, StampStats())
            stats_by_key[reading.key] = replace(stats, matches=stats.matches + 1)
    for key in missed:
        stats = stats_by_key.pop(key, StampStats())
        stats_by_key[key] = StampStats(misses=min(stats.misses + 1, MAX_MISSES))
    return replace(volatile, stamps=keep_newest(stats_by_key, MAX_PATHS))


def is_stamp_change(volatile: VolatileContent, before: Block, after: Block, *, then: datetime, now: datetime) -> bool:
    """Whether all that differs between two blocks is a stamp of a place known for it, and fits the two looks."""
    if not volatile.stamps:
        return False
    reading = _read_stamp_change(before, after, then=then, now=now)
    if reading is None or not reading.fits:
        return False
    stats = volatile.stamps.get(reading.key, StampStats())
    return stats.matches >= reading.min_visits << stats.misses


@dataclass(frozen=True, slots=True)
class _StampReading:
    """Two wordings that differ in a stamp alone. key: hash of the place.  fits: it tells of its look.

    min_visits: looks at which it has to fit; few where it names a day, which seldom fits by chance.
    """

    key: int
    fits: bool
    min_visits: int


def _read_stamp_change(before: Block, after: Block, *, then: datetime, now: datetime) -> _StampReading | None:
    """How the difference of two blocks reads as stamps; None if some of it is none.

    Beside a date a number may stand that counts the time; alone it is none of ours (relative_time.py).
    """
    if before.kind is not after.kind or before.css_path != after.css_path or after.kind is BlockKind.LINK:
        return None
    old, new = split_words(before), split_words(after)
    if len(old) != len(new):
        return None
    shapes, fits, min_visits = [], True, 0
    for first, last, limits in _find_clusters(old, new):
        part = _read_cluster(old, new, first, last, limits, then=then, now=now)
        if part is None:
            return None
        shape, is_fitting, needed_visits = part
        word_before = new[first - 1].lower() if first else ""
        shapes.append(f"{shape} {word_before}")
        fits, min_visits = fits and is_fitting, max(min_visits, needed_visits)
    if not min_visits:
        return None
    return _StampReading(hash_text(f"{after.css_path} {after.kind} {' '.join(shapes)}"), fits, min_visits)


def _find_clusters(old: Words, new: Words) -> list[tuple[int, int, slice]]:
    """Runs of words that differ, by the first and the last; and with the words beside them that are no other run's."""
    differing = [n for n in range(len(old)) if old[n] != new[n]]
    runs: list[list[int]] = []
    for n in differing:
        if runs and n - runs[-1][-1] <= CONTEXT_WORDS:
            runs[-1].append(n)
        else:
            runs.append([n])
    clusters = []
    for at, run in enumerate(runs):
        min_start = runs[at - 1][-1] + 1 if at else 0
        max_end = runs[at + 1][0] if at + 1 < len(runs) else len(new)
        clusters.append(
            (run[0], run[-1], slice(max(run[0] - CONTEXT_WORDS, min_start), min(run[-1] + CONTEXT_WORDS + 1, max_end)))
        )
    return clusters


def _read_cluster(
    old: Words, new: Words, first: int, last: int, limits: slice, *, then: datetime, now: datetime
) -> tuple[str, bool, int] | None:
    """What one run of words is, whether it fits, and at how many looks it has to; None if it is no stamp."""
    differing = [n for n in range(first, last + 1) if old[n] != new[n]]
    if all(_is_date_word(old[n]) and _is_date_word(new[n]) for n in differing):
        old_stamp, new_stamp = _parse_stamp(old[limits], now), _parse_stamp(new[limits], now)
        if old_stamp is not None and new_stamp is not None:
            is_dated = bool(new_stamp.days) or new_stamp.instant is not None
            shape, min_visits = ("date", ENOUGH_DATES) if is_dated else ("clock", ENOUGH_CLOCKS)
            return shape, _fits_visits(old_stamp, new_stamp, then=then, now=now), min_visits
    if len(differing) == 1:
        at = differing[0]
        if (
            _AGE.fullmatch(old[at])
            and _AGE.fullmatch(new[at])
            and find_passed_units(int(new[at]) - int(old[at]), now - then)
        ):
            return "age", True, 0
    return None


def _is_date_word(word: str) -> bool:
    """Whether a word may be part of a date or of a time of the day."""
    plain = word.lower()
    if plain in _MERIDIEM or parse_months(word) or is_weekday(word):
        return True
    return any(form.fullmatch(word) for form in (_ISO, _ANY_ORDER, _COMPACT, _EPOCH, _CLOCK, _DAY, _YEAR))


def _parse_stamp(words: Words, now: datetime) -> _Stamp | None:
    """The one instant that some words name; None if they name none, or more than one."""
    whole_dates = [days for word in words if (days := _parse_date_word(word))]
    instants = [datetime.fromtimestamp(int(word[:10]), UTC) for word in words if _EPOCH.fullmatch(word)]
    minutes = [
        minute for n, word in enumerate(words) if (minute := _parse_minute(word, words[n + 1 : n + 2])) is not None
    ]
    if len(whole_dates) + len(instants) > 1 or len(minutes) > 1:
        return None
    days = whole_dates[0] if whole_dates else frozenset() if instants else _parse_written_date(words, now)
    if not days and not instants and not minutes:
        return None
    return _Stamp(days, minutes[0] if minutes else None, instants[0] if instants else None)


def _parse_date_word(word: str) -> frozenset[date]:
    """The days that a word can mean; in 3/4/2026 either number may be the month."""
    if match := _ISO.fullmatch(word) or _COMPACT.fullmatch(word):
        return _list_valid_dates((int(match[1]), int(match[2]), int(match[3])))
    if match := _ANY_ORDER.fullmatch(word):
        one, other, year = int(match[1]), int(match[3]), int(match[4])
        return _list_valid_dates((year, other, one), (year, one, other))
    return frozenset()


def _list_valid_dates(*parts: tuple[int, int, int]) -> frozenset[date]:
    dates = set()
    for year, month, day in parts:
        if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(max(year, 1), month)[1]:
            dates.add(date(max(year, 1), month, day))
    return frozenset(dates)


def _parse_minute(word: str, after: Sequence[str]) -> int | None:
    """The minute of the day that a word says, with the word after it, which may be am or pm."""
    match = _ISO.fullmatch(word) or _COMPACT.fullmatch(word)
    if match:
        return None if match[4] is None else int(match[4]) * 60 + int(match[5])
    clock = _CLOCK.fullmatch(word)
    if clock is None or int(clock[1]) > 24 or int(clock[2]) > 59:
        return None
    meridiem = (clock[4] or (after[0] if after else "")).lower()
    hour = int(clock[1]) % 12 + 12 * meridiem.startswith("p") if meridiem in _MERIDIEM else int(clock[1])
    return hour * 60 + int(clock[2])


def _parse_written_date(words: Words, now: datetime) -> frozenset[date]:
    """The days that words mean in which month, day and year stand apart; without a year, of this one or the last.

    With a year the month may be a name that nobody knows.
    """
    years = [int(word) for word in words if _YEAR.fullmatch(word)]
    numbers = [int(match[1]) for word in words if (match := _DAY.fullmatch(word)) and 1 <= int(match[1]) <= 31]
    if len(years) > 1:
        return frozenset()
    if years and len(numbers) == 2:  # 2026 / 3 / 5, as Chinese and Japanese have it, and 5 . 3 . 2026
        one, other = numbers
        first = next(word for word in words if _DAY.fullmatch(word))
        if words.index(str(years[0])) < words.index(first):
            return _list_valid_dates((years[0], one, other))
        return _list_valid_dates((years[0], other, one), (years[0], one, other))
    if len(numbers) != 1:
        return frozenset()
    named = [months for word in words if (months := parse_months(word))]
    if not named and years and any(word.isalpha() and len(word) > 2 for word in words):
        named = [frozenset(range(1, 13))]
    if len(named) != 1:
        return frozenset()
    return _list_valid_dates(
        *((year, month, numbers[0]) for year in years or (now.year - 1, now.year) for month in named[0])
    )


def _fits_visits(old: _Stamp, new: _Stamp, *, then: datetime, now: datetime) -> bool:
    """Whether a stamp is of between the two looks, and the one before it of before the first."""
    if new.instant is not None:
        earlier = old.instant
        return (
            earlier is not None and earlier < new.instant and then - CACHE_SLACK <= new.instant <= now + TIME_ZONE_SLACK
        )
    if bool(old.days) != bool(new.days):
        return False
    if not new.days:
        return True  # a time of the day alone fits any look
    first, last, before = (
        (then - CACHE_SLACK - TIME_ZONE_SLACK).date(),
        (now + TIME_ZONE_SLACK).date(),
        (then + TIME_ZONE_SLACK).date(),
    )
    fitting = {day for day in new.days if first <= day <= last}
    earlier_days = {day for day in old.days if day <= before}
    if not fitting or not earlier_days or max(fitting) < min(earlier_days):
        return False
    if max(fitting) > min(earlier_days):
        return True
    return old.minute is not None and new.minute is not None and new.minute > old.minute


ZONE_OFFSETS = (
    timedelta(hours=-14),
    timedelta(0),
    timedelta(hours=14),
)  # what day it is depends on where the server stands
# Dates are also written with all of the year, each number with a 0 before it or not.
DATE_FORMATS = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m%d")


def differs_only_in_date(before: Words, after: Words, *, then: datetime, now: datetime) -> bool:
    """Whether two wordings of a block differ only in that each says the day of its own look.

    A number that happens to be the day's is not enough: month or year has to stand beside it.
    """
    if len(before) != len(after):
        return False
    differing = [(old.lower(), new.lower()) for old, new in zip(before, after, strict=True) if old != new]
    whole_then, parts_then, _ = _list_date_words(then)
    whole_now, parts_now, month_or_year = _list_date_words(now)
    if all(old in whole_then and new in whole_now for old, new in differing):
        return True
    is_date = all(old in whole_then | parts_then and new in whole_now | parts_now for old, new in differing)
    return is_date and any(word.lower() in month_or_year for word in after)


_DIGITS = re.compile(r"\d+")


def find_clock_words(before: Words, after: Words, *, then: datetime, now: datetime) -> frozenset[int]:
    """The positions of words that say the time of both looks to the minute, in one time zone.

    before, after: with as many words.
    """
    return frozenset(at for zone in _find_clocks(before, then) & _find_clocks(after, now) for at in zone[1])


def _find_clocks(words: Words, instant: datetime) -> frozenset[tuple[int, tuple[int, ...]]]:
    """The clocks in a text: their distance from UTC in quarters of an hour, and the positions of their words.

    A clock of twelve hours may be of either half of the day.
    """
    numbers = [(at, digits) for at, word in enumerate(words) for digits in _DIGITS.findall(word)]
    clocks = set()
    for n, ((at, hour), (minute_at, minute)) in enumerate(pairwise(numbers)):
        if not _are_neighbors(at, minute_at) or not _is_minute_or_second(minute) or len(hour) > 2 or int(hour) > 24:
            continue
        offset_minutes = (int(hour) * 60 + int(minute) - instant.hour * 60 - instant.minute) % 720
        if (offset_minutes + 1) % 15 <= 2:
            after = numbers[n + 2 : n + 3]
            seconds = [
                third
                for third, digits_after in after
                if _are_neighbors(minute_at, third) and _is_minute_or_second(digits_after)
            ]
            clocks.add(((offset_minutes + 1) // 15 % 48, (at, minute_at, *seconds)))
    return frozenset(clocks)


def _are_neighbors(one: int, other: int) -> bool:
    return other - one <= 2


def _is_minute_or_second(digits: str) -> bool:
    return len(digits) == 2 and int(digits) < 60


DateWords = tuple[frozenset[str], frozenset[str], frozenset[str]]  # see _words_of_day


def _list_date_words(instant: datetime) -> DateWords:
    days = [_list_day_words((instant + zone).date()) for zone in ZONE_OFFSETS]
    whole_words, parts, month_or_year = (frozenset().union(*each) for each in zip(*days, strict=True))
    return whole_words, parts, month_or_year


@lru_cache(256)
def _list_day_words(day: date) -> DateWords:
    """The ways to write a day: as one word; its parts as words; and the parts that stand for month or year."""
    whole_words = {day.strftime(form) for form in DATE_FORMATS}
    for d, m in product((f"{day.day}", f"{day.day:02}"), (f"{day.month}", f"{day.month:02}")):
        whole_words |= {f"{d}.{m}.{day.year}", f"{d}/{m}/{day.year}", f"{m}/{d}/{day.year}", f"{day.year}/{m}/{d}"}
        whole_words |= {f"{d}-{m}-{day.year}", f"{day.year}-{m}-{d}"}
    months = {calendar.month_name[day.month], calendar.month_abbr[day.month]}
    month_or_year = {name.lower() for name in months} | {str(day.year)}
    weekdays = {calendar.day_name[day.weekday()].lower(), calendar.day_abbr[day.weekday()].lower()}
    ordinal = {f"{day.day}{ending}" for ending in ("st", "nd", "rd", "th")}
    parts = month_or_year | weekdays | ordinal | {str(day.day), f"{day.day:02}", str(day.month), f"{day.month:02}"}
    return frozenset(whole_words), frozenset(parts), frozenset(month_or_year)
