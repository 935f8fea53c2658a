"""Back-off: Retry-After, and exponential waits of our own where the server gives none."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FIRST_BACKOFF = timedelta(seconds=30)
LEAST_BACKOFF = timedelta(seconds=1)  # Retry-After: 0 does not switch the back-off off


def retry_after(value: str | None, *, now: datetime, server_date: str | None = None) -> timedelta | None:
    """The wait that a Retry-After header asks for, or None if it asks for none (RFC 9110, section 10.2.3).

    value: seconds or an HTTP date. A date is counted from the server's own Date where there is one, since the server's
    clock may be wrong, and ours may be an instant of the user's choice.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:12]), 10**9))
    until = http_date(value)
    return None if until is None else max(until - (http_date(server_date) or now), timedelta(0))


def http_date(value: str | None) -> datetime | None:
    """An HTTP date as an aware instant, or None if it is none."""
    if not value:
        return None
    try:
        instant = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def backoff(refusals: int, *, asked: timedelta | None, most: timedelta, most_asked: timedelta) -> timedelta:
    """The time for which a domain is left alone after its nth refusal in a row (429 or 503), or after an outage.

    refusals: 1 or more, doubling FIRST_BACKOFF each time up to `most`.  asked: the wait of Retry-After; it is kept to,
    up to `most_asked`, and never shortens our own.
    """
    doublings = min(max(refusals - 1, 0), math.ceil(math.log2(most / FIRST_BACKOFF)) if most > FIRST_BACKOFF else 0)
    own = min(FIRST_BACKOFF * int(2**doublings), most)
    return max(own, LEAST_BACKOFF, min(asked or timedelta(0), most_asked))
