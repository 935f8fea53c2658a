"""Back-off: exponential waits, which Retry-After can extend."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

FIRST_BACKOFF = timedelta(seconds=30)
MIN_BACKOFF = timedelta(seconds=1)  # even if the maximum back-off is shorter


def parse_retry_after(value: str | None, *, now: datetime, server_date: str | None = None) -> timedelta | None:
    """Return the wait that a Retry-After header requests, or None without a valid one (RFC 9110, section 10.2.3).

    value: seconds or an HTTP date. A date is relative to the server's Date header if there is one, because the server's
    clock may be wrong, and `now` may be a time that the user chose.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:12]), 10**9))
    until = parse_http_date(value)
    return None if until is None else max(until - (parse_http_date(server_date) or now), timedelta(0))


@lru_cache(256)  # most responses of a second have the same date, and each visit reads it twice
def parse_http_date(value: str | None) -> datetime | None:
    """Return an HTTP date as an aware datetime, or None if it is invalid."""
    try:
        instant = parsedate_to_datetime(value or "")
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def compute_backoff(
    rejections: int, *, requested_wait: timedelta | None, max_backoff: timedelta, max_requested_wait: timedelta
) -> timedelta:
    """Return how long to wait after failures in a row, such as responses with 429 or 503.

    rejections: the number of failures, 1 or more. The wait is FIRST_BACKOFF, doubled by each further failure, up to
    `max_backoff`.
    requested_wait: the wait from Retry-After. It can extend the back-off up to `max_requested_wait`, but never shorten
    it.
    """
    max_doublings = math.ceil(math.log2(max(max_backoff / FIRST_BACKOFF, 1.0)))
    own_backoff = min(FIRST_BACKOFF * int(2 ** min(max(rejections - 1, 0), max_doublings)), max_backoff)
    return max(own_backoff, MIN_BACKOFF, min(requested_wait or timedelta(0), max_requested_wait))
