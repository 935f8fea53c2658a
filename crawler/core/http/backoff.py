"""Back-off: Retry-After, and exponential waits of our own where the server gives none."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FIRST_BACKOFF = timedelta(seconds=30)
MIN_BACKOFF = timedelta(seconds=1)  # Retry-After: 0 does not switch the back-off off


def parse_retry_after(value: str | None, *, now: datetime, server_date: str | None = None) -> timedelta | None:
    """The wait that a Retry-After header asks for, or None if it asks for none (RFC 9110, section 10.2.3).

    value: seconds or an HTTP date. A date is counted from the server's own Date where there is one, since the server's
    clock may be wrong, and ours may be an instant of the user's choice.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:12]), 10**9))
    until = parse_http_date(value)
    return None if until is None else max(until - (parse_http_date(server_date) or now), timedelta(0))


def parse_http_date(value: str | None) -> datetime | None:
    """An HTTP date as an aware instant, or None if it is none."""
    if not value:
        return None
    try:
        instant = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def compute_backoff(
    rejections: int, *, requested_wait: timedelta | None, max_backoff: timedelta, max_requested_wait: timedelta
) -> timedelta:
    """The time for which a domain is left alone after its nth refusal in a row (429 or 503), or after an outage.

    rejections: 1 or more, doubling FIRST_BACKOFF each time up to `most`.  requested_wait: the wait of Retry-After; it is
    kept to, up to `most_asked`, and never shortens our own.
    """
    doublings = min(
        max(rejections - 1, 0), math.ceil(math.log2(max_backoff / FIRST_BACKOFF)) if max_backoff > FIRST_BACKOFF else 0
    )
    own_backoff = min(FIRST_BACKOFF * int(2**doublings), max_backoff)
    return max(own_backoff, MIN_BACKOFF, min(requested_wait or timedelta(0), max_requested_wait))
