"""Dates in URL lists: W3C formats, mail formats, and other unambiguous ones."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from msgspec import Struct

MIN_DATE = datetime(1990, 1, 1, tzinfo=UTC)  # older than any web page; earlier dates mean "unknown"
MAX_DATE_CHARS = 80
_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_MONTH, _YEAR = timedelta(days=31), timedelta(days=366)
_LONGEST_ZONE = timedelta(hours=14)

# Hours that a zone's name is ahead of UTC. Two values mean an ambiguous name, or one for both summer and winter: CST is
# America's or China's, AST Atlantic or Arabia, BST British or Bangladesh, IST Irish, Israel's or India's. Sources: RFC
# 5322, 4.3 (North America), and the abbreviations of the IANA time zone database.
_ZONES = {
    name: (float(least), float(most or least))
    for name, least, most in re.findall(
        r"(\w+)=([-\d.]+)(?:/([-\d.]+))?",
        """
        Z=0 UT=0 UTC=0 GMT=0 WET=0 SST=-11 HST=-10 AKST=-9 AKDT=-8 PST=-8 PDT=-7 MST=-7 MDT=-6 CDT=-5 EST=-5 COT=-5
        PET=-5 EDT=-4 CLT=-4 VET=-4 ADT=-3 BRT=-3 ART=-3 CLST=-3 NST=-3.5 NDT=-2.5 CET=1 MEZ=1 WEST=1 WAT=1 CEST=2
        MESZ=2 EET=2 CAT=2 SAST=2 EEST=3 MSK=3 EAT=3 TRT=3 PKT=5 UZT=5 ICT=7 WIB=7 AWST=8 HKT=8 PHT=8 SGT=8 WITA=8
        JST=9 KST=9 WIT=9 ACST=9.5 AEST=10 ACDT=10.5 AEDT=11 NZST=12 NZDT=13
        AKT=-9/-8 PT=-8/-7 MT=-7/-6 CT=-6/-5 ET=-5/-4 CST=-6/8 AST=-4/3 BST=1/6 IST=1/5.5
        """,
    )
}
_ANYWHERE = (-12.0, 14.0)  # the range of offsets of an unknown zone

_CLOCK = r"(?P<hour>\d\d?) :? (?P<minute>\d\d) (?: :? (?P<second>\d\d) (?:[.,]\d+)? )?"
_HALF = r"\s* (?P<half>[AaPp](?:\.[Mm]\.|[Mm])(?![A-Za-z]))?"
_ZONE = r"\s* (?P<zone>(?:[A-Za-z]{1,5})?\s*(?:[+\u2212-]\d\d?(?::?\d\d)?)?)"
_PLACE = r"\s* (?P<place>\[[\w/+-]+\]|\([^()]*\)|[A-Z][A-Za-z]+/[\w/+-]+)? \s*"
_TIME = rf"(?: (?:\s*[Tt_,]\s*|\s+|{{no_gap}}) {_CLOCK} {_HALF} )? {_ZONE} {_PLACE} $"
_SEPARATE, _JOINED = _TIME.replace("{no_gap}", "(?!)"), _TIME.replace("{no_gap}", "")
_FORMS = (
    re.compile(r"(?x)(?P<year>\d{4}) (?P<month>\d\d) (?P<day>\d\d)" + _JOINED),
    re.compile(r"(?x)(?P<year>\d{4}) (?:(?P<by>[-/.]) (?P<month>\d\d?) (?:(?P=by) (?P<day>\d\d?))?)?" + _SEPARATE),
    re.compile(r"(?x)(?P<first>\d\d?) (?P<by>[./-]) (?P<other>\d\d?) (?P=by) (?P<year>\d{4})" + _SEPARATE),
)
# For endings such as: Nov 24, 2026 at 3:00 PM PT; Tue Nov 24 12:00:00 CET 2026; Tue Nov 24 12:00:00 2026 +0100 (CET)
_WITH_COLONS = _CLOCK.replace(":?", ":")
_TIME_IN_WORDS = re.compile(
    rf"\b {_WITH_COLONS} {_HALF} (?:\s+(?P<year>\d{{4}}))? {_ZONE} (?:\s+(?P<later>\d{{4}}))? {_PLACE} $", re.VERBOSE
)
_SINCE_1970 = re.compile(r"(\d{10})(?:\.\d+)?|(\d{13})")
_HOURS_AND_MINUTES = re.compile(r"(\d\d?):?(\d\d)?$")
_TIME_OF_DAY = re.compile(r"\d:\d\d")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)


class ListDate(Struct, frozen=True, order=True):
    """A date in a list. at: the first instant that the date may mean, UTC.  span: the time to the last such instant."""

    at: datetime
    span: timedelta = timedelta(0)

    @property
    def end(self) -> datetime:
        return self.at + self.span


def parse_list_date(text: str) -> ListDate | None:
    """Return the date that a text means; None for an ambiguous date, one before MIN_DATE, or a text that is no date.

    A text without a zone is in UTC. An ambiguous or unknown zone makes the span longer. With dots, the day comes first
    if both orders are possible; with slashes or hyphens, such a date is ambiguous (3/4/2026).
    """
    text = text.strip().strip("\"'").strip()
    if not text or len(text) > MAX_DATE_CHARS:
        return None
    try:
        date = _parse_numeric_date(text) or _parse_worded_date(text)
    except (ValueError, OverflowError):
        return None
    return date if date is not None and date.at >= MIN_DATE else None


def _parse_numeric_date(text: str) -> ListDate | None:
    """Return a date whose month is a number, or None if the text has no such form."""
    if since := _SINCE_1970.fullmatch(text):
        seconds = int(since[1]) if since[1] else int(since[2]) / 1000
        return ListDate(datetime.fromtimestamp(seconds, UTC), _SECOND)
    for form in _FORMS:
        if match := form.fullmatch(text):
            return _build_date(match.groupdict())
    return None


def _build_date(parts: dict[str, str | None]) -> ListDate | None:
    month, day = parts.get("month"), parts.get("day")
    if parts.get("first"):
        month, day = parts["other"], parts["first"]
        if int(month or 0) > 12:
            month, day = day, month
        elif parts["by"] != "." and int(day or 0) <= 12 and day != month:
            return None  # Europe and America read it differently
    at = datetime(int(parts["year"] or 0), int(month or 1), int(day or 1), tzinfo=UTC)
    if parts["hour"] is None:
        name = (parts["zone"] or "").strip("+-\u22120123456789: ").upper()
        if name not in {"", "Z", "UT", "UTC", "GMT"}:
            return None  # without a time, the word is probably no zone
        return _convert_zone(at, _DAY if day else _MONTH if month else _YEAR, parts)
    return _add_time(at, parts)


def _add_time(day: datetime, parts: dict[str, str | None]) -> ListDate | None:
    """Return the instant of a time of day in its zone, or None if the time is invalid."""
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"][0] in "pP" else 0)
    if hour > 24 or minute > 59 or second > 60:
        return None
    at = day + timedelta(hours=hour, minutes=minute, seconds=second)
    return _convert_zone(at, _SECOND if parts["second"] else _MINUTE, parts)


def _convert_zone(at: datetime, span: timedelta, parts: dict[str, str | None]) -> ListDate:
    """Convert a local time to UTC by the zone that follows it."""
    min_offset, max_offset = _parse_offsets(parts["zone"] or "", has_place=bool(parts["place"]))
    return ListDate(at - max_offset, span + (max_offset - min_offset))


def _parse_offsets(zone: str, *, has_place: bool) -> tuple[timedelta, timedelta]:
    """Return the minimum and maximum offset of a zone from UTC. has_place: whether the name of a place follows it.

    A number takes precedence over the name before it: GMT+2 is two hours ahead. Raises ValueError above 14 hours.
    """
    name = zone.rstrip("+-\u22120123456789:").rstrip()
    number = zone.removeprefix(name).strip()
    if number:
        hours, minutes = _HOURS_AND_MINUTES.findall(number)[0]
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset > _LONGEST_ZONE:
            raise ValueError(zone)
        signed = offset if number[0] == "+" else -offset
        return signed, signed
    default = _ANYWHERE if name or has_place else (0.0, 0.0)
    min_hours, max_hours = _ZONES.get(name.upper(), default)
    return timedelta(hours=min_hours), timedelta(hours=max_hours)


def _parse_worded_date(text: str) -> ListDate | None:
    """Return a date with the name of a month: RFC 822, RFC 850, asctime and informal formats."""
    text = _ORDINAL.sub("", text)
    time = _TIME_IN_WORDS.search(text)
    if time is None:  # no time, or one that unknown text follows
        return None if _TIME_OF_DAY.search(text) else ListDate(_parse_day(text), _DAY)
    day = text[: time.start()].rstrip(" ,-T").removesuffix(" at").rstrip(" ,")
    return _add_time(_parse_day(f"{day} {time['year'] or time['later'] or ''}"), time.groupdict())


def _parse_day(day: str) -> datetime:
    """Return the start of a day written in words, UTC. Raises ValueError if the text is not a day."""
    return parsedate_to_datetime(f"{day.strip()} 00:00:00 +0000")
