"""Instants, spans of time, sizes, shares, counts and deliveries as people read them; and strangers' texts, harmless."""

import math
from datetime import datetime, timedelta

from crawler import times


def format_instant(at: datetime | None) -> str:
    """To the minute, in the machine's time zone, in a form that `--at` reads."""
    return "never" if at is None else times.format_instant(at)


def format_when(at: datetime | None, *, now: datetime) -> str:
    """An instant with how long it is until then, or since."""
    if at is None:
        return "never"
    apart = at - now
    if abs(apart) < timedelta(seconds=1):
        return f"{format_instant(at)} (now)"
    words = f"in {format_span(apart)}" if apart > timedelta(0) else f"{format_span(apart)} ago"
    return f"{format_instant(at)} ({words})"


def format_bytes(count: float) -> str:
    """With three digits at most, in powers of ten as networks have them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def format_span(length: timedelta) -> str:
    """In the largest unit that leaves more than one of it, or two units where the first is small."""
    seconds = abs(length.total_seconds())
    if seconds < 60:
        return f"{seconds:.3g} s"
    for size, unit, limit in ((60, "minutes", 120 * 60), (3600, "hours", 72 * 3600), (86_400, "days", math.inf)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}" if seconds / size >= 9.95 else f"{seconds / size:.1f} {unit}"
    raise AssertionError(length)


def format_share(share: float | None) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.1f} %"


def format_rate(per_day: float) -> str:
    """A change rate as people say it."""
    if per_day >= 1:
        return f"{per_day:.1f} a day"
    return f"every {format_span(timedelta(days=1) / per_day)}" if per_day > 1e-4 else "hardly ever"


def format_count(count: int, noun: str) -> str:
    """So many of something, in English."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


MAX_TEXT_CHARS = 20_000  # characters of a stranger's text on a page
# What would turn the words around it (Unicode 15, 3.4): a text that looks like another one.
REPLACEMENT = "\ufffd"
DIRECTION_CONTROLS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def sanitize_text(text: object) -> str:
    """Return a text without what steers its reader: control characters, and those that turn the direction."""
    return "".join(
        REPLACEMENT if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or ord(c) in DIRECTION_CONTROLS else c
        for c in str(text)[:MAX_TEXT_CHARS]
    )


def format_delivered(changes: int, messages: int) -> str:
    """Return how much was delivered, without a full stop."""
    return f"{format_count(changes, 'change')} told in {format_count(messages, 'message')}"


def format_undelivered(number: int, reason: str) -> str:
    """Return why a subscription was not told, as a sentence without its capital and its full stop."""
    return f"subscription {number} was not told: {reason}"
