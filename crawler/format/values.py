"""Formatting of times, durations, sizes, shares, counts and deliveries, and sanitizing of texts from outside."""

from datetime import datetime, timedelta

from crawler import times


def format_instant(at: datetime | None) -> str:
    """Format a time to the minute in the machine's time zone, in a form that `--at` accepts; "never" for None."""
    return "never" if at is None else times.format_instant(at)


def format_when(at: datetime | None, *, now: datetime) -> str:
    """Format a time with the duration until or since then; "never" for None."""
    if at is None:
        return "never"
    apart = at - now
    if abs(apart) < timedelta(seconds=1):
        return f"{format_instant(at)} (now)"
    words = f"in {format_span(apart)}" if apart > timedelta(0) else f"{format_span(apart)} ago"
    return f"{format_instant(at)} ({words})"


def format_bytes(count: float) -> str:
    """Format a size with at most three digits, in powers of ten."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def format_span(length: timedelta) -> str:
    """Format a duration, without its sign, in seconds, minutes, hours or days."""
    seconds = abs(length.total_seconds())
    if seconds < 60:
        return f"{seconds:.3g} s"
    size, unit = (60, "minutes") if seconds < 7200 else (3600, "hours") if seconds < 72 * 3600 else (86_400, "days")
    count = f"{seconds / size:.0f}" if seconds / size >= 9.95 else f"{seconds / size:.1f}".removesuffix(".0")
    return f"{count} {unit.removesuffix('s') if count == '1' else unit}"


def format_share(share: float | None) -> str:
    """Format a share as a percentage."""
    return "-" if share is None else f"{100 * share:.1f}".removesuffix(".0") + "%"


def format_rate(per_day: float) -> str:
    """Format a change rate as changes per day, or as the interval between changes."""
    if per_day >= 1:
        return f"{per_day:.1f} times a day"
    return f"every {format_span(timedelta(days=1) / per_day)}" if per_day > 1e-4 else "almost never"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, which gets a plural s unless the count is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


MAX_TEXT_CHARS = 20_000  # of a text from outside, such as a page or a server's message
REPLACEMENT = "\ufffd"
# Bidirectional controls (Unicode 15, UAX 9) could make a text look like another one.
DIRECTION_CONTROLS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
_SANITIZED = dict.fromkeys({*range(32), *range(0x7F, 0xA0), *DIRECTION_CONTROLS} - {*b"\n\t"}, REPLACEMENT)


def sanitize_text(text: object) -> str:
    """Limit the length of a text from outside, and replace its control characters except newlines and tabs."""
    return str(text)[:MAX_TEXT_CHARS].translate(_SANITIZED)


def format_delivered(changes: int, messages: int) -> str:
    """Return how much was delivered, without a period."""
    return f"{format_count(changes, 'change')} sent in {format_count(messages, 'message')}"


def format_undelivered(number: int, reason: str) -> str:
    """Return why a delivery failed, as a sentence without initial capital and period."""
    return f"subscription {number} failed: {reason}"
