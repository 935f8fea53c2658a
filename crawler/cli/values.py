"""What people type and read: instants, spans of time, sizes."""

import ipaddress
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

import typer

from crawler import times

T = TypeVar("T")
MOST = 1_000_000  # times anything

DAYS_BACK = {"today": 0, "yesterday": 1}
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # as networks count them
MOST_BYTES = 10**18  # the day's sum of them has to fit 64 bits
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?b)?", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)", re.ASCII)


def instant(text: str) -> datetime:
    """An instant in ISO 8601; without a time zone it is UTC."""
    return _typed(times.instant, text)


def span(text: str) -> timedelta:
    """A span of time: a number and s, m, h, d or w; several may follow one another, as in 1h30m. 5 means seconds."""
    return _typed(times.span, text)


def interval(text: str) -> timedelta:
    """A span of time above nothing."""
    length = span(text)
    if length <= timedelta(0):
        raise typer.BadParameter(f"{text!r} is not above 0")
    return length


def size(text: str) -> int:
    """So many bytes: a number and kB, MB, GB or TB, in powers of ten; a bare number means bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no size such as 500MB, 2GB or 1000000")
    count = round(Decimal(match[1]) * BYTES[(match[2] or "").lower()])
    if count > MOST_BYTES:
        raise typer.BadParameter(f"{text!r} is more than a million terabytes")
    return count


def ip_address(text: str) -> str:
    """An address to listen on."""
    return str(_typed(ipaddress.ip_address, text))


def share(text: str) -> float:
    """A share of the whole, neither nothing nor all of it: 95% or 0.95."""
    match = _SHARE.fullmatch(text.strip())
    number = float(Decimal(match[1]) / (100 if match[2] else 1)) if match else 0.0
    if not 0 < number < 1:
        raise typer.BadParameter(f"{text!r} is no share above 0 and below 1, such as 95% or 0.95")
    return number


def _typed(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def render_mode(text: str) -> str:
    """Whether pages are rendered: auto, always or never."""
    if text not in {"auto", "always", "never"}:
        raise typer.BadParameter(f"{text!r} is none of auto, always, never")
    return text


def positive(text: str) -> float:
    """A number above nothing, and small enough to be multiplied with others of its kind."""
    try:
        number = float(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no number") from error
    if not math.isfinite(number) or number <= 0:
        raise typer.BadParameter(f"{text!r} is not above 0")
    if number > MOST:
        raise typer.BadParameter(f"{text!r} is above {MOST:,}")
    return number


def part(text: str) -> float:
    """A part of something, or more than all of it: 3% or 0.03."""
    number = positive(text.removesuffix("%").strip())
    return number / 100 if text.endswith("%") else number


def since(text: str, *, now: datetime) -> int | timedelta | datetime:
    """Where to begin in the feed: a cursor of an earlier call, a span before now, a day or an instant (UTC)."""
    wanted = text.strip().lower()
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= 18:
        return int(wanted)
    if wanted in DAYS_BACK:
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=DAYS_BACK[wanted])
    if "-" in wanted:
        return instant(text)
    try:
        return times.span(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is no cursor, no span such as 7d, and no day such as yesterday or 2026-11-22"
        ) from error
