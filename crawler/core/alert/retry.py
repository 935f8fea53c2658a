"""Further tries of a message that was not taken, and when there are no more of them."""

from datetime import datetime, timedelta

from crawler.core.http import backoff

LONGEST_WAIT = timedelta(hours=1)  # of ours, from one try to the next
MOST_ASKED = timedelta(days=1)  # a longer Retry-After is a mistake: the receiver would not learn of anything for long
MOST_TRIES = 16  # of one message: six minutes for the first four, then to the hour; ten hours in all
TOO_OLD = timedelta(days=3)  # a weekend, and a receiver that is mended on Monday
DEAD_KEPT = timedelta(days=90)  # what a receiver that is gone for good was not told must not pile up without an end


def next_try(tries: int, *, asked: timedelta | None, now: datetime) -> datetime:
    """When a message, or a receiver, is tried again after its nth failure in a row: 30 s, doubling to an hour.

    tries: 1 or more.  asked: the wait that the receiver asks for (Retry-After), which is kept to.
    """
    return now + backoff(tries, asked=asked, most=LONGEST_WAIT, most_asked=MOST_ASKED)


def is_hopeless(tries: int, *, waiting_since: datetime, now: datetime) -> bool:
    """Whether a message is given up. waiting_since: when a receiver that is there could have taken it first."""
    return tries >= MOST_TRIES or now - waiting_since > TOO_OLD
