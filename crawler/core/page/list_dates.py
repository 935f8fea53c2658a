"""Dates as URL lists have them: the W3C's forms, those of mail, and others that mean one instant only."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # the web is no older: what is earlier says that nobody knows
MAX_DATE_CHARS = 64
_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_MONTH, _YEAR = timedelta(days=31), timedelta(days=366)
_LONGEST_ZONE = timedelta(hours=14)

_TIME = r"""(?: (?:\s*[Tt_,]\s*|\s+|{no_gap}) (?P<hour>\d\d?) :? (?P<minute>\d\d)
              (?: :? (?P<second>\d\d) (?:[.,]\d+)? )?
              \s* (?P<half>[AaPp]\.?[Mm]\.?)? )?
            \s* (?P<zone>[Zz]|UTC|GMT|UT|[+\u2212-]\d\d?(?::?\d\d)?)? (?:\s*\[[\w/+-]+\])? $"""
_SEPARATE, _JOINED = _TIME.format(no_gap=r"(?!)"), _TIME.format(no_gap="")
_FORMS = tuple(
    re.compile(form, re.VERBOSE)
    for form in (
        r"(?P<year>\d{4}) (?P<month>\d\d) (?P<day>\d\d)" + _JOINED,
        r"(?P<year>\d{4}) (?:(?P<by>[-/.]) (?P<month>\d\d?) (?:(?P=by) (?P<day>\d\d?))?)?" + _SEPARATE,
        r"(?P<first>\d\d?) (?P<by>[./-]) (?P<other>\d\d?) (?P=by) (?P<year>\d{4})" + _SEPARATE,
    )
)
_SINCE_1970 = re.compile(r"(\d{10})(?:\.\d+)?|(\d{13})")
_HAS_TIME = re.compile(r"\d:\d\d")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class ListDate:
    """A date of a list. at: the first instant that it may mean, UTC.  span: how much later the last one may be."""

    at: datetime
    span: timedelta = timedelta(0)

    @property
    def end(self) -> datetime:
        return self.at + self.span


def date_of(text: str) -> ListDate | None:
    """The date that a text means, or None where it means none, or might mean two.

    Without a zone it is UTC. With slashes the day comes first or second, as it must; where both could be, nobody knows.
    """
    text = text.strip().strip("\"'").strip()
    if not text or len(text) > MAX_DATE_CHARS:
        return None
    try:
        found = _numbers(text) or _words(text)
    except (ValueError, OverflowError):
        return None
    return found if found is not None and found.at >= EARLIEST else None


def _numbers(text: str) -> ListDate | None:
    """A date in digits alone."""
    if since := _SINCE_1970.fullmatch(text):
        seconds = int(since[1]) if since[1] else int(since[2]) / 1000
        return ListDate(datetime.fromtimestamp(seconds, UTC), _SECOND)
    for form in _FORMS:
        if found := form.fullmatch(text):
            return _date_from(found.groupdict())
    return None


def _date_from(parts: dict[str, str | None]) -> ListDate | None:
    month, day = parts.get("month"), parts.get("day")
    if parts.get("first"):
        month, day = parts["other"], parts["first"]
        if int(month or 0) > 12:
            month, day = day, month
        elif parts["by"] != "." and int(day or 0) <= 12 and day != month:
            return None  # on either side of an ocean it is another day
    at = datetime(int(parts["year"] or 0), int(month or 1), int(day or 1), tzinfo=UTC)
    if parts["hour"] is None:
        return ListDate(at, _DAY if day else _MONTH if month else _YEAR)
    hour = int(parts["hour"])
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"][0] in "pP" else 0)
    if hour > 24 or int(parts["minute"] or 0) > 59 or int(parts["second"] or 0) > 60:
        return None
    at += timedelta(hours=hour, minutes=int(parts["minute"] or 0), seconds=int(parts["second"] or 0))
    return ListDate(at - _offset(parts["zone"]), _SECOND if parts["second"] else _MINUTE)


def _offset(zone: str | None) -> timedelta:
    """What a zone is ahead of UTC."""
    if zone is None or zone[0] not in "+-\u2212":
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    if offset > _LONGEST_ZONE:
        raise ValueError(zone)
    return offset if zone[0] == "+" else -offset


def _words(text: str) -> ListDate | None:
    """A date with the name of a month: RFC 822, RFC 850, asctime, and what people write."""
    has_time = _HAS_TIME.search(text) is not None
    text = _ORDINAL.sub("", text)
    at = parsedate_to_datetime(text if has_time else f"{text} 00:00:00")
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return ListDate(at, _SECOND if has_time else _DAY)
