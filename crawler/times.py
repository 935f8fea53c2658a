"""Parse and format instants and time spans as people write them."""

import math
import re
from datetime import UTC, datetime, timedelta

FIRST_YEAR, LAST_YEAR = 1970, 2199  # of instants that users enter


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 instant and return it in UTC; without a time zone it is taken as UTC.

    Raise ValueError with a message for users if it is not an instant, or too far in the past or future.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is not an ISO 8601 instant such as 2026-01-31T12:00Z") from error
    if not FIRST_YEAR <= parsed.year <= LAST_YEAR:
        raise ValueError(f"{text!r} is not in the years {FIRST_YEAR} to {LAST_YEAR}")
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)


def format_instant(at: datetime) -> str:
    """Format an instant to the minute, in the machine's time zone, so that `parse_instant` can parse it."""
    local = at.astimezone()
    return f"{local:%Y-%m-%d %H:%M}{'Z' if not local.utcoffset() else local.isoformat()[-6:]}"


def format_typed_instant(at: datetime) -> str:
    """Format the instant rounded up to a whole minute, without spaces, for use in a command line."""
    minute = at.replace(second=0, microsecond=0)
    return format_instant(minute if minute == at else minute + timedelta(minutes=1)).replace(" ", "T")


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}  # seconds

MAX_SPAN = timedelta(days=36_500)

_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def parse_span(text: str) -> timedelta:
    """Parse a time span such as 30s, 12h, 7d or 1h30m. The units are s, m, h, d and w; a number alone is in seconds.

    Raise ValueError with a message for users if it is not a span, or longer than a century.
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
        raise ValueError(f"{text!r} is not a time span such as 30s, 12h or 7d")
    if seconds > MAX_SPAN.total_seconds():
        raise ValueError(f"{text!r} is longer than a century")
    return timedelta(seconds=seconds)


def format_span(length: timedelta) -> str:
    """Return a time span in the largest unit that fits, up to days, so that `parse_span` can parse it."""
    seconds = length.total_seconds()
    unit = next((each for each in "dhm" if seconds and seconds % UNITS[each] == 0), "s")
    return f"{seconds / UNITS[unit]:.10g}{unit}"
