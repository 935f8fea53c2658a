"""Values as people type them: sizes, shares, numbers and intervals. Raises ValueError with a sentence for people."""

import math
import re
from datetime import timedelta
from decimal import Decimal

from crawler import times

MAX_FACTOR = 1_000_000  # times anything
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # as networks count them
MAX_BYTES = 10**18  # the day's sum of them has to fit 64 bits
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?b)?", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)", re.ASCII)


def parse_interval(text: str) -> timedelta:
    """Parse a span of time above 0, such as 12h."""
    length = times.span(text)
    if length <= timedelta(0):
        raise ValueError(f"{text!r} is not above 0")
    return length


def parse_size(text: str) -> int:
    """Parse a number of bytes: a number and kB, MB, GB or TB, in powers of ten; a bare number means bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no size such as 500MB, 2GB or 1000000")
    count = round(Decimal(match[1]) * BYTES[(match[2] or "").lower()])
    if count > MAX_BYTES:
        raise ValueError(f"{text!r} is more than a million terabytes")
    return count


def parse_share(text: str) -> float:
    """Parse a share of the whole, above 0 and below 1: 95% or 0.95."""
    match = _SHARE.fullmatch(text.strip())
    number = float(Decimal(match[1]) / (100 if match[2] else 1)) if match else 0.0
    if not 0 < number < 1:
        raise ValueError(f"{text!r} is no share above 0 and below 1, such as 95% or 0.95")
    return number


def parse_positive(text: str) -> float:
    """Parse a number above 0 that is small enough to be multiplied with others of its kind."""
    try:
        number = float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no number") from error
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{text!r} is not above 0")
    if number > MAX_FACTOR:
        raise ValueError(f"{text!r} is above {MAX_FACTOR:,}")
    return number
