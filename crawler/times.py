"""Instants and spans of time as people write them."""

import math
import re
from datetime import UTC, datetime, timedelta

FIRST_YEAR, LAST_YEAR = 1970, 2200  # beyond them arithmetic on instants runs out of room


def parse_instant(text: str) -> datetime:
    """An instant in ISO 8601, in UTC; without a time zone it is UTC already.

    ValueError, a sentence for a person, where it is none, or one that nothing could be reckoned with.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is no ISO 8601 instant such as 2026-01-31T12:00Z") from error
    if not FIRST_YEAR <= parsed.year < LAST_YEAR:
        raise ValueError(f"{text!r} is not between {FIRST_YEAR} and {LAST_YEAR}")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)


def format_instant(at: datetime) -> str:
    """To the minute, in the machine's time zone, in a form that `instant` reads."""
    local = at.astimezone()
    return f"{local:%Y-%m-%d %H:%M}{'Z' if not local.utcoffset() else local.isoformat()[-6:]}"


def format_typed_instant(at: datetime) -> str:
    """The first whole minute that is not before `at`, in one word, for a command that a person is to type."""
    minute = at.replace(second=0, microsecond=0)
    return format_instant(minute if minute == at else minute + timedelta(minutes=1)).replace(" ", "T")


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}  # seconds

MAX_SPAN = timedelta(days=36_500)

_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def parse_span(text: str) -> timedelta:
    """A number and s, m, h, d or w; several may follow one another, as in 1h30m; a bare number means seconds.

    ValueError, a sentence for a person, where it is none, or longer than a century.
    """
    normalized = text.strip().lower()
    parts = _PART.findall(normalized)
    if parts and "".join(number + unit for number, unit in parts) == normalized:
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    else:
        try:
            seconds = float(normalized)
        except ValueError:
            seconds = math.nan
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"{text!r} is no span of time such as 30s, 12h or 7d")
    if seconds > MAX_SPAN.total_seconds():
        raise ValueError(f"{text!r} is longer than a century")
    return timedelta(seconds=seconds)
