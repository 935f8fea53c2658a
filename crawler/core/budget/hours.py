"""Calendar windows: when a domain may be crawled, and how fast, in the local time of a time zone.

Daylight saving time is handled exactly: an instant is open if the local time at that instant is open. So a day of 23
hours has less open time, and a day of 25 hours may have more.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise, zip_longest
from zoneinfo import ZoneInfo

from msgspec import Struct

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
MIN_SPEED, MAX_SPEED = 0.01, 100.0
MAX_CHARS = 500
# No request starts this shortly before closing, so that even most slow responses arrive in time.
CLOSING_MARGIN = timedelta(seconds=30)
SEARCH_DAYS = 15  # more than a week: a weekly opening may fall into the hour that daylight saving time skips
EXAMPLE = "write them as in 'Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun' or '22-06 x2; 06-22 x0.5 Europe/Vienna'"

_TIMES = re.compile(r"(\d{1,2})(?::(\d{2}))?-(\d{1,2})(?::(\d{2}))?", re.ASCII)
_SPEED = re.compile(r"x(\d{1,3}(?:\.\d{1,3})?)", re.ASCII)
_DAYS = re.compile(r"[a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)


class WeekSpan(Struct, frozen=True):
    """A weekly open window. begin, end: minutes since Monday 00:00 local time.  speed: a factor, 1 by default."""

    begin: int
    end: int
    speed: float


class Hours(Struct, frozen=True):
    """When a domain may be crawled. zone: an IANA name.  windows: at least one, sorted, without overlaps."""

    zone: str
    windows: tuple[WeekSpan, ...]

    @property
    def is_always(self) -> bool:
        """Return whether the domain may be crawled at any time at the default speed."""
        return self.windows == ALWAYS.windows


ALWAYS = Hours("UTC", (WeekSpan(0, WEEK_MINUTES, 1.0),))


class OpenSpan(Struct, frozen=True):
    """A period (UTC) in which requests may start, at one speed."""

    begin: datetime
    end: datetime
    speed: float

    @property
    def length(self) -> timedelta:
        return self.end - self.begin


class DayShare(Struct, frozen=True):
    """The share of a UTC day's open time that has passed, weighted by speed: 0 to 1.

    elapsed: until now.  ahead: after some more open time (compute_day_share).
    """

    elapsed: float
    ahead: float


@lru_cache(maxsize=1024)
def parse_hours(text: str) -> Hours:
    """Parse the hours that a user entered. Empty text means always open.

    Entries are separated by ";". Each has days (Mon-Fri, Sat,Sun; default every day), times (22:00-06:00 or 22-06, past
    midnight into the next day; default the whole day) and a speed (x2: twice as many requests; x0: closed; default x1).
    Where entries overlap, the later one applies; times without an entry are closed. Any entry may name the time zone of
    all (default UTC). Raise ValueError, with an example in the message, for hours that are never open or other text.
    """
    if not text.strip():
        return ALWAYS
    if len(text) > MAX_CHARS:
        raise ValueError(f"the hours are longer than {MAX_CHARS} characters; {EXAMPLE}")
    speeds = [0.0] * WEEK_MINUTES
    zones: set[str] = set()
    for entry in filter(None, map(str.strip, text.split(";"))):
        zones |= _apply_entry(entry, speeds)
    if len(zones) > 1:
        raise ValueError(f"the hours name more than one time zone: {' and '.join(sorted(zones))}; {EXAMPLE}")
    zone = zones.pop() if zones else "UTC"
    starts = [minute for minute in range(WEEK_MINUTES) if not minute or speeds[minute] != speeds[minute - 1]]
    runs = pairwise([*starts, WEEK_MINUTES])
    windows = tuple(WeekSpan(begin, end, speeds[begin]) for begin, end in runs if speeds[begin])
    if not windows:
        raise ValueError(f"the hours are never open; {EXAMPLE}")
    return Hours(zone, windows)


def _apply_entry(entry: str, speeds: list[float]) -> set[str]:
    """Set the speed of the minutes of the week that an entry names. Return the time zone it names, if any."""
    words_by_kind: dict[str, str] = {}
    for word in entry.split():
        if (kind := _classify_word(word)) in words_by_kind:
            raise ValueError(f"the hours {entry!r} name {kind} twice; {EXAMPLE}")
        words_by_kind[kind] = word
    zone = {_check_zone(words_by_kind.pop("a time zone"))} if "a time zone" in words_by_kind else set()
    if words_by_kind:
        begin, end = _parse_times(words_by_kind.get("times", "00-24"))
        word = words_by_kind.get("a speed", "x1")
        if (speed := float(word[1:])) and not MIN_SPEED <= speed <= MAX_SPEED:
            raise ValueError(f"the speed {word} is not between x{MIN_SPEED:g} and x{MAX_SPEED:g}; {EXAMPLE}")
        for day in _parse_days(words_by_kind.get("days", "mon-sun")):
            for minute in range(begin, end):
                speeds[(day * DAY_MINUTES + minute) % WEEK_MINUTES] = speed
    return zone


def _classify_word(word: str) -> str:
    lower = word.lower()
    if _DAYS.fullmatch(lower) and set(re.split("[-,]", lower)) <= set(DAY_NAMES):
        return "days"
    for kind, pattern in (("times", _TIMES), ("a speed", _SPEED), ("a time zone", _ZONE)):
        if pattern.fullmatch(word):
            return kind
    raise ValueError(f"{word!r} is neither days, times, a speed nor a time zone; {EXAMPLE}")


def _parse_days(word: str) -> Iterator[int]:
    for part in word.lower().split(","):
        first, _, last = part.partition("-")
        begin = DAY_NAMES.index(first)
        yield from ((begin + n) % 7 for n in range((DAY_NAMES.index(last or first) - begin) % 7 + 1))


def _parse_times(word: str) -> tuple[int, int]:
    """Return begin and end in minutes since midnight. The end is beyond 24:00 if the times cross midnight."""
    match = _TIMES.fullmatch(word)
    assert match is not None
    begin, end = (int(match[n]) * 60 + int(match[n + 1] or 0) for n in (1, 3))
    if begin >= DAY_MINUTES or end > DAY_MINUTES or int(match[2] or 0) > 59 or int(match[4] or 0) > 59:
        raise ValueError(f"{word!r} are not valid times of day; {EXAMPLE}")
    if begin == end:
        raise ValueError(f"{word!r} begin and end at the same time; write 00-24 for the whole day; {EXAMPLE}")
    return begin, end if end > begin else end + DAY_MINUTES


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # a folder of the time zone database raises OSError
        raise ValueError(f"{name!r} is not a time zone of this machine; {EXAMPLE}") from error
    return name


@lru_cache(maxsize=4096)
def list_open_spans(hours: Hours, day: date) -> tuple[OpenSpan, ...]:
    """Return the periods of a UTC day in which requests may start, sorted: open hours minus CLOSING_MARGIN."""
    midnight = datetime.combine(day, time(), tzinfo=UTC)
    next_day = midnight + timedelta(days=1)
    if hours.is_always:
        return (OpenSpan(midnight, next_day, 1.0),)
    spans: list[OpenSpan] = []
    wall_clock = list(_list_local_spans(hours, midnight, next_day + CLOSING_MARGIN))
    for span, later in zip_longest(wall_clock, wall_clock[1:]):
        goes_on = span.end > next_day if later is None else later.begin == span.end
        end = min(span.end if goes_on else span.end - CLOSING_MARGIN, next_day)
        if span.begin < end:
            spans.append(OpenSpan(span.begin, end, span.speed))
    return tuple(spans)


def _list_local_spans(hours: Hours, begin: datetime, end: datetime) -> Iterator[OpenSpan]:
    """Yield the periods between two instants (UTC) in which the local time is open."""
    zone = ZoneInfo(hours.zone)
    for since, until in pairwise([begin, *_find_clock_changes(zone, begin, end), end]):
        offset = _get_offset(zone, since)
        local = (since + offset).replace(tzinfo=None)
        monday = datetime.combine(local.date() - timedelta(days=local.weekday()), time(), tzinfo=UTC) - offset
        for week in (monday, monday + timedelta(weeks=1)):
            for window in hours.windows:
                opens = max(week + timedelta(minutes=window.begin), since)
                closes = min(week + timedelta(minutes=window.end), until)
                if opens < closes:
                    yield OpenSpan(opens, closes, window.speed)


def _find_clock_changes(zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the instants between two instants (UTC) at which the UTC offset of a zone changes."""
    since = begin
    while since < end:
        until, offset = min(since + timedelta(hours=1), end), _get_offset(zone, since)
        if offset != _get_offset(zone, until):
            before, after = since, until
            while after - before > timedelta(seconds=1):
                middle = before + (after - before) / 2
                before, after = (middle, after) if _get_offset(zone, middle) == offset else (before, middle)
            yield after.replace(microsecond=0)
        since = until


def _get_offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def get_speed(hours: Hours, now: datetime) -> float:
    """Return the speed factor at an instant; 0 while the hours are closed."""
    at = now.astimezone(UTC)
    return next((span.speed for span in list_open_spans(hours, at.date()) if span.begin <= at < span.end), 0.0)


def find_opening(hours: Hours, now: datetime) -> datetime:
    """Return the first instant at which a request may start: `now`, or when the hours open next."""
    at = now.astimezone(UTC)
    return next(max(span.begin, at) for span in _iter_spans(hours, at) if span.end > at)


def find_closing(hours: Hours, now: datetime) -> datetime | None:
    """Return when the hours close next; None if they never close, or are closed at `now`."""
    at = now.astimezone(UTC)
    if not get_speed(hours, at):
        return None
    end = at
    for span in _iter_spans(hours, at):
        if span.begin > end:
            return end
        end = max(span.end, end)
    return None


def _iter_spans(hours: Hours, at: datetime) -> Iterator[OpenSpan]:
    """Yield the open periods of SEARCH_DAYS days, starting with the day of `at` (UTC)."""
    for n in range(SEARCH_DAYS):
        yield from list_open_spans(hours, at.date() + timedelta(days=n))


def compute_day_share(hours: Hours, now: datetime, *, lead: timedelta) -> DayShare:
    """Compute the share of the UTC day's open time that has passed. lead: the open time that `ahead` adds to it."""
    at = now.astimezone(UTC)
    total = elapsed = ahead = 0.0
    left = lead
    for span in list_open_spans(hours, at.date()):
        total += span.length.total_seconds() * span.speed
        passed = max(min(at, span.end) - span.begin, timedelta(0))
        more = min(span.length - passed, left)
        left -= more
        elapsed += passed.total_seconds() * span.speed
        ahead += (passed + more).total_seconds() * span.speed
    return DayShare(min(elapsed / total, 1.0), min(ahead / total, 1.0)) if total else DayShare(0.0, 0.0)


def list_week_spans(hours: Hours, now: datetime) -> tuple[tuple[OpenSpan, ...], ...]:
    """Return the open periods of seven UTC days, starting with the day of `now`."""
    first = now.astimezone(UTC).date()
    return tuple(list_open_spans(hours, first + timedelta(days=n)) for n in range(7))
