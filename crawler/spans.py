"""Spans of time as people write them."""

import math
import re
from datetime import timedelta

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}  # seconds
LONGEST = timedelta(days=36_500)
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def span(text: str) -> timedelta:
    """A number and s, m, h, d or w; several may follow one another, as in 1h30m; a bare number means seconds.

    ValueError, a sentence for a person, where it is none, or longer than a century.
    """
    wanted = text.strip().lower()
    parts = _PART.findall(wanted)
    if parts and "".join(number + unit for number, unit in parts) == wanted:
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    else:
        try:
            seconds = float(wanted)
        except ValueError:
            seconds = math.nan
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"{text!r} is no span of time such as 30s, 12h or 7d")
    if seconds > LONGEST.total_seconds():
        raise ValueError(f"{text!r} is longer than a century")
    return timedelta(seconds=seconds)
