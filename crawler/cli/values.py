"""What people type and read: instants, spans of time, sizes."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import typer

from crawler import instants, spans

T = TypeVar("T")
MOST = 1_000_000  # times anything


def instant(text: str) -> datetime:
    """An instant in ISO 8601; without a time zone it is UTC."""
    return _typed(instants.instant, text)


def span(text: str) -> timedelta:
    """A span of time: a number and s, m, h, d or w; several may follow one another, as in 1h30m. 5 means seconds."""
    return _typed(spans.span, text)


def _typed(parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


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


def order(text: str) -> str:
    """An order of discovery."""
    from crawler.core.order import Order

    known = [each.value for each in Order]
    if text not in known:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(known)}")
    return text


def since(text: str) -> int | timedelta:
    """Where to begin in the feed: a cursor that an earlier call printed, or a span of time before now."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else span(text)


def shown_instant(at: datetime | None) -> str:
    """To the minute, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%MZ") if at is not None else "never"


def shown_bytes(count: float) -> str:
    """With three digits at most, in powers of ten as networks have them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shown_span(length: timedelta) -> str:
    """In the largest unit that leaves more than one of it, or two units where the first is small."""
    seconds = abs(length.total_seconds())
    if seconds < 60:
        return f"{seconds:.3g} s"
    for size, unit in ((60, "minutes"), (3600, "hours"), (86_400, "days")):
        limit = {"minutes": 120 * 60, "hours": 72 * 3600, "days": math.inf}[unit]
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}" if seconds / size >= 9.95 else f"{seconds / size:.1f} {unit}"
    raise AssertionError(length)


def shown_share(share: float | None) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.1f} %"


def counted(count: int, noun: str) -> str:
    """So many of something, in English."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
