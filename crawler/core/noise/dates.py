"""Dates and clocks on pages: the date of a visit, as in mastheads, and build stamps ("generated at").

A build stamp does not differ in a second fetch: a page rebuilt every hour is the same in two fetches seconds apart. It
is recognized because it is the only difference, visit after visit, and fits both visits: a date must be between them, a
time of day alone may be any. It is not masked in general; only a stamp that fits its visits is ignored. A number that
only grows may be a count or a price, so it stays a change.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.noise.day_names import is_weekday, parse_months
from crawler.core.noise.noise import MAX_PATHS, VolatileContent
from crawler.core.noise.relative_time import find_passed_units
from crawler.core.noise.stability import StampStats
from crawler.core.noise.words import Words, keep_newest, split_words
from crawler.core.page.block import Block, BlockKind
from crawler.core.page.fingerprint import hash_text

ENOUGH_DATES = 2  # comparisons in which only a date differed and it fit the visits, before it counts as a stamp
ENOUGH_CLOCKS = 3  # the same for a time of day, which fits any visit
MAX_MISSES = 4  # mismatches that count; each doubles ENOUGH_DATES and ENOUGH_CLOCKS
TIME_ZONE_SLACK = timedelta(hours=14)  # a page does not name its time zone
CACHE_SLACK = timedelta(days=1)  # a new copy may be older than the last visit, which got a still older one from a cache
CONTEXT_WORDS = 3  # words on either side of the differing ones that may belong to the stamp

_ISO = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[Tt](\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?[Zz]?)?", re.ASCII)
_ANY_ORDER = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})", re.ASCII)
_COMPACT = re.compile(r"(20\d{2})(\d{2})(\d{2})(?:[Tt]?(\d{2})(\d{2})(\d{2})?[Zz]?)?", re.ASCII)
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2})[:h](\d{2})(?::(\d{2})(?:[.,]\d+)?)?(am|pm|z)?", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII | re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d{2}", re.ASCII)
_AGE = re.compile(r"\d{1,9}", re.ASCII)
_MERIDIEM = frozenset({"am", "pm", "a.m", "p.m"})


class _Stamp(Struct, frozen=True):
    """The instant that some words name.

    days: the days that they may mean; empty if they name none.  minute: minute of the day, or None.
    instant: the instant of a Unix time, or None.
    """

    days: frozenset[date] = frozenset()
    minute: int | None = None
    instant: datetime | None = None


def learn_stamps(
    volatile: VolatileContent, replaced: Sequence[tuple[Block, Block]], *, then: datetime, now: datetime
) -> VolatileContent:
    """Return the volatile content after a visit where only these blocks differ.

    Stamps that fit count only if all the blocks are such stamps; one that does not fit is a mismatch in any case.
    """
    all_readings = [_read_stamp_change(before, after, then=then, now=now) for before, after in replaced]
    readings = [reading for reading in all_readings if reading is not None]
    missed = [reading for reading in readings if not reading.fits]
    stats_by_key = dict(volatile.stamps)
    for reading in missed or (readings if len(readings) == len(all_readings) else ()):
        stats = stats_by_key.pop(reading.key, StampStats())
        after_miss = StampStats(misses=min(stats.misses + 1, MAX_MISSES))
        stats_by_key[reading.key] = replace(stats, matches=stats.matches + 1) if reading.fits else after_miss
    return replace(volatile, stamps=keep_newest(stats_by_key, MAX_PATHS))


def is_stamp_change(volatile: VolatileContent, before: Block, after: Block, *, then: datetime, now: datetime) -> bool:
    """Return whether two blocks differ only in a known stamp that fits both visits."""
    if not volatile.stamps:
        return False
    reading = _read_stamp_change(before, after, then=then, now=now)
    if reading is None or not reading.fits:
        return False
    stats = volatile.stamps.get(reading.key, StampStats())
    return stats.matches >= reading.min_visits << stats.misses


class _StampReading(Struct, frozen=True):
    """A difference of two blocks in stamps alone.

    key: a hash of the stamp's position and form.  fits: see `_fits_visits`.
    min_visits: how often it must fit before it is ignored; less often for dates, which rarely fit by chance.
    """

    key: int
    fits: bool
    min_visits: int


def _read_stamp_change(before: Block, after: Block, *, then: datetime, now: datetime) -> _StampReading | None:
    """Read the difference of two blocks as stamps; return None if any part of it is not one.

    A number that counts the elapsed time may differ beside a stamp; alone it is handled by relative_time.py.
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
        shapes.append(f"{shape} {new[first - 1].lower() if first else ''}")
        fits, min_visits = fits and is_fitting, max(min_visits, needed_visits)
    key = hash_text(f"{after.css_path} {after.kind} {' '.join(shapes)}")
    return _StampReading(key, fits, min_visits) if min_visits else None


def _find_clusters(old: Words, new: Words) -> list[tuple[int, int, slice]]:
    """Return the ends of each group of words that differ, at most CONTEXT_WORDS apart, and a slice with its context."""
    differing = [n for n in range(len(old)) if old[n] != new[n]]
    if not differing:
        return []
    between = ((n, m) for n, m in pairwise(differing) if m - n > CONTEXT_WORDS)
    gaps = [(-1, differing[0]), *between, (differing[-1], len(new))]  # before, between and after the groups
    clusters = []
    for (end_before, first), (last, next_start) in pairwise(gaps):
        start, end = max(first - CONTEXT_WORDS, end_before + 1), min(last + CONTEXT_WORDS + 1, next_start)
        clusters.append((first, last, slice(start, end)))
    return clusters


def _read_cluster(
    old: Words, new: Words, first: int, last: int, limits: slice, *, then: datetime, now: datetime
) -> tuple[str, bool, int] | None:
    """Return the form of one group of differing words, whether it fits, and min_visits; None if it is not a stamp.

    first, last: the positions of its ends.  limits: the words that may belong to the stamp.
    """
    differing = [n for n in range(first, last + 1) if old[n] != new[n]]
    if all(_is_date_word(old[n]) and _is_date_word(new[n]) for n in differing):
        old_stamp, new_stamp = _parse_stamp(old[limits], now), _parse_stamp(new[limits], now)
        if old_stamp is not None and new_stamp is not None:
            is_dated = bool(new_stamp.days) or new_stamp.instant is not None
            shape, min_visits = ("date", ENOUGH_DATES) if is_dated else ("clock", ENOUGH_CLOCKS)
            return shape, _fits_visits(old_stamp, new_stamp, then=then, now=now), min_visits
    old_word, new_word = old[differing[0]], new[differing[0]]
    is_age = len(differing) == 1 and _AGE.fullmatch(old_word) and _AGE.fullmatch(new_word)
    return ("age", True, 0) if is_age and find_passed_units(int(new_word) - int(old_word), now - then) else None


def _is_date_word(word: str) -> bool:
    """Return whether a word may be part of a date or a time of day."""
    if word.lower() in _MERIDIEM or parse_months(word) or is_weekday(word):
        return True
    return any(form.fullmatch(word) for form in (_ISO, _ANY_ORDER, _COMPACT, _EPOCH, _CLOCK, _DAY, _YEAR))


def _parse_stamp(words: Words, now: datetime) -> _Stamp | None:
    """Return the instant that some words name, or None if they name none or several. now: see _parse_written_date."""
    whole_dates = [days for word in words if (days := _parse_date_word(word))]
    instants = [datetime.fromtimestamp(int(word[:10]), UTC) for word in words if _EPOCH.fullmatch(word)]
    all_minutes = (_parse_minute(word, words[n + 1 : n + 2]) for n, word in enumerate(words))
    minutes = [minute for minute in all_minutes if minute is not None]
    if len(whole_dates) + len(instants) > 1 or len(minutes) > 1:
        return None
    days = whole_dates[0] if whole_dates else frozenset() if instants else _parse_written_date(words, now)
    if not days and not instants and not minutes:
        return None
    return _Stamp(days, minutes[0] if minutes else None, instants[0] if instants else None)


def _parse_date_word(word: str) -> frozenset[date]:
    """Return the days that a word may mean; in 3/4/2026, either number may be the month."""
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
    """Return the minute of the day that a word means, given the word after it, which may be am or pm."""
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
    """Return the days that words with separate month, day and year may mean.

    now: determines the year if there is none: this one or the last one.
    If there is a year and a word that is not a known month, the word may be any month in an unknown language.
    """
    years = [int(word) for word in words if _YEAR.fullmatch(word)]
    numbers = [int(match[1]) for word in words if (match := _DAY.fullmatch(word)) and 1 <= int(match[1]) <= 31]
    if len(years) > 1:
        return frozenset()
    if years and len(numbers) == 2:  # 2026 / 3 / 5, as in Chinese and Japanese, or 5 . 3 . 2026
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
    return _list_valid_dates(*product(years or (now.year - 1, now.year), named[0], numbers))


def _fits_visits(old: _Stamp, new: _Stamp, *, then: datetime, now: datetime) -> bool:
    """Return whether the new stamp is from between the two visits, and the old one is older; both with slack."""
    if new.instant is not None:
        is_between = then - CACHE_SLACK <= new.instant <= now + TIME_ZONE_SLACK
        return old.instant is not None and old.instant < new.instant and is_between
    if bool(old.days) != bool(new.days):
        return False
    if not new.days:
        return True  # a time of day alone matches any visit
    first, last = (then - CACHE_SLACK - TIME_ZONE_SLACK).date(), (now + TIME_ZONE_SLACK).date()
    fitting = {day for day in new.days if first <= day <= last}
    earlier_days = {day for day in old.days if day <= (then + TIME_ZONE_SLACK).date()}
    if not fitting or not earlier_days or max(fitting) < min(earlier_days):
        return False
    if max(fitting) > min(earlier_days):
        return True
    return old.minute is not None and new.minute is not None and new.minute > old.minute


ZONE_OFFSETS = (timedelta(hours=-14), timedelta(0), timedelta(hours=14))  # the server's time zone is unknown
# Formats with separators and a four-digit year are in `_list_day_words`.
DATE_FORMATS = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m%d")


def differs_only_in_date(before: Words, after: Words, *, then: datetime, now: datetime) -> bool:
    """Return whether two versions of a block differ only in the dates of their visits.

    A number that happens to be the day is not enough: the month or the year must be in the block too.
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
    """Return the positions of words that show the time of both visits, give or take a minute, in one time zone.

    before, after: must have the same number of words.
    """
    clocks = _find_clocks(before, then) & _find_clocks(after, now)
    return frozenset(at for _, positions in clocks for at in positions)


def _find_clocks(words: Words, instant: datetime) -> frozenset[tuple[int, tuple[int, ...]]]:
    """Return the clocks in a text: their offset from UTC in quarters of an hour, and the positions of their words.

    A 12-hour clock may be in either half of the day.
    """
    numbers = [(at, digits) for at, word in enumerate(words) for digits in _DIGITS.findall(word)]
    clocks = set()
    for n, ((at, hour), (minute_at, minute)) in enumerate(pairwise(numbers)):
        if not _may_follow(minute, minute_at - at) or len(hour) > 2 or int(hour) > 24:
            continue
        offset_minutes = (int(hour) * 60 + int(minute) - instant.hour * 60 - instant.minute) % 720
        if (offset_minutes + 1) % 15 <= 2:
            after = numbers[n + 2 : n + 3]
            seconds = [third for third, digits in after if _may_follow(digits, third - minute_at)]
            clocks.add(((offset_minutes + 1) // 15 % 48, (at, minute_at, *seconds)))
    return frozenset(clocks)


def _may_follow(digits: str, words: int) -> bool:
    """Return whether a number may be the minute or second that follows another. words: how many words after it."""
    return words <= 2 and len(digits) == 2 and int(digits) < 60


DateWords = tuple[frozenset[str], frozenset[str], frozenset[str]]  # see _list_day_words


def _list_date_words(instant: datetime) -> DateWords:
    days = (_list_day_words((instant + zone).date()) for zone in ZONE_OFFSETS)
    whole_words, parts, month_or_year = zip(*days, strict=True)
    return frozenset().union(*whole_words), frozenset().union(*parts), frozenset().union(*month_or_year)


@lru_cache(256)
def _list_day_words(day: date) -> DateWords:
    """Return the ways to write a day: as one word, its parts as words, and the parts for month and year."""
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
