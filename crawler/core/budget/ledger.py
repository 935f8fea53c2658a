"""The budget of a UTC day as a ledger: a claim debits what it is granted, a record gives back what was not needed.

Grants are paced over the day's open hours, a little ahead of them, so that the last of the day is granted while there
is still time to use it. What is granted is never above the budget, at any moment of the day, whatever it was before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from crawler.core.freshness import DAY

LEAD = timedelta(minutes=15)  # of open time that grants run ahead, so that the day's last can still be used in time
LEAST_LEAD = 1.0  # requests: the day's first is granted when it begins

Hours = Sequence[tuple[timedelta, timedelta]]  # since midnight UTC; from > until goes over midnight; none: all day


@dataclass(frozen=True, slots=True)
class Ledger:
    """What one day has been debited. received_bytes: a claim guesses them, and a record puts that right."""

    day: date
    requests: int = 0
    received_bytes: int = 0
    floor: int = 0  # of the requests, those for pages below their price


def today(ledger: Ledger, *, now: datetime) -> Ledger:
    """The same ledger, or a fresh one when its day is over. now: aware. A day that lies ahead stays."""
    day = now.astimezone(UTC).date()
    return ledger if ledger.day >= day else Ledger(day)


def grantable(ledger: Ledger, budget: int, *, now: datetime, hours: Hours = (), most_bytes: int | None = None) -> int:
    """How many requests may be debited now. Of several ledgers (domain's, overall) the least holds.

    budget: requests a day, 0 or more; what it is now counts, whatever it was when others were granted.  most_bytes: a
    day's; once so many are received, nothing is granted: what is under way may go over, one body to each parallel slot.
    """
    ledger = today(ledger, now=now)
    spans = _spans(hours)
    gone = _gone(now, spans)
    if gone is None:
        return 0
    length = sum((end - begin for begin, end in spans), timedelta(0))
    ahead = min((gone + LEAD) / length, 1.0)
    if most_bytes is not None and receivable(ledger, most_bytes, now=now, hours=hours) <= 0:
        return 0
    paced = math.floor(max(budget * ahead, budget * (gone / length) + LEAST_LEAD) + 1e-9)
    return max(min(paced, budget) - ledger.requests, 0)


def receivable(ledger: Ledger, most_bytes: int, *, now: datetime, hours: Hours = ()) -> int:
    """How many bytes may be debited now. most_bytes: a day's; paced as requests are."""
    spans = _spans(hours)
    gone = _gone(now, spans)
    if gone is None:
        return 0
    length = sum((end - begin for begin, end in spans), timedelta(0))
    ahead = min((gone + LEAD) / length, 1.0)
    return max(math.ceil(most_bytes * ahead) - today(ledger, now=now).received_bytes, 0)


def _gone(now: datetime, spans: list[tuple[timedelta, timedelta]]) -> timedelta | None:
    """How much of the day's open time has gone by; None when it is not open."""
    at = now.astimezone(UTC)
    since = timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
    if not any(begin <= since < end for begin, end in spans):
        return None
    return sum((max(min(since, end) - begin, timedelta(0)) for begin, end in spans), timedelta(0))


def _spans(hours: Hours) -> list[tuple[timedelta, timedelta]]:
    """The open hours within one day, in order, none of them overlapping."""
    pieces = []
    for begin, end in hours or ((timedelta(0), DAY),):
        pieces += [(begin, end)] if begin < end else [(timedelta(0), end), (begin, DAY)]
    spans: list[tuple[timedelta, timedelta]] = []
    for begin, end in sorted(pieces):
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        elif begin < end:
            spans.append((begin, end))
    return spans


def debited(ledger: Ledger, requests: int, *, floor: int = 0, received_bytes: int = 0) -> Ledger:
    """The ledger after a claim. requests: what `grantable` allowed, or less; floor: of them, below the price.

    received_bytes: what they will likely bring, at most what is `receivable`.
    """
    return replace(
        ledger,
        requests=ledger.requests + requests,
        received_bytes=ledger.received_bytes + received_bytes,
        floor=ledger.floor + floor,
    )


def settled(ledger: Ledger, *, day: date, granted: int, made: int, received_bytes: int) -> Ledger:
    """The ledger after a record: of `granted` requests, debited on `day`, `made` were made.

    A redirect hop or a retry needs a grant of its own before it is sent; one that had none is debited all the same, and
    later grants are fewer. A grant ends with its day: nothing is given back to the next one, nor sent on its account.
    """
    if day != ledger.day:
        return ledger
    requests = max(ledger.requests + made - granted, 0)
    return replace(ledger, requests=requests, received_bytes=ledger.received_bytes + received_bytes)


def floor_left(spent: int, budget: float, *, share: float, turn: int) -> int:
    """How many visits below the price the day may still hold.

    spent: of them, today.  budget: requests a day.  turn: the number of the day, by which a fraction of a visit is a
    whole one every so many days.
    """
    a_day = share * budget
    return max(_whole(a_day * (turn + 1)) - _whole(a_day * turn) - spent, 0)


def _whole(number: float) -> int:
    return math.floor(number + 1e-6)  # what was multiplied may be a little less than it is


@dataclass(frozen=True, slots=True)
class SharedBudget:
    """What all domains together may spend on a UTC day; None: as much as they like."""

    requests: int | None = None
    received_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.received_bytes is not None


NO_SHARED_LIMIT = SharedBudget()
