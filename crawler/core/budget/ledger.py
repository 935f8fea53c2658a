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
LEAST_LEAD = 1.0  # requests that grants run ahead at least: the day's first is granted when it begins

Hours = Sequence[tuple[timedelta, timedelta]]  # begin and end since midnight UTC; begin > end spans midnight


@dataclass(frozen=True, slots=True)
class Ledger:
    """The debits of one UTC day. received_bytes: guessed by a claim, and put right by a record."""

    day: date
    requests: int = 0
    received_bytes: int = 0
    floor: int = 0  # of the requests, those for pages below their price


def today(ledger: Ledger, *, now: datetime) -> Ledger:
    """The ledger of today: the given one, or a fresh one when its day is over. now: aware. A day ahead stays."""
    day = now.astimezone(UTC).date()
    return ledger if ledger.day >= day else Ledger(day)


def grantable(ledger: Ledger, budget: int, *, now: datetime, hours: Hours = (), most_bytes: int | None = None) -> int:
    """The number of requests that may be debited now. Of several ledgers (domain's, overall) the least holds.

    budget: requests a day, 0 or more, as it is now, whatever it was when earlier requests were granted.
    most_bytes: a day's; once so many are received, nothing is granted. Bodies under way may exceed it, one to each
    parallel slot.
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
    """The number of bytes that may be debited now. most_bytes: a day's; paced as requests are."""
    spans = _spans(hours)
    gone = _gone(now, spans)
    if gone is None:
        return 0
    length = sum((end - begin for begin, end in spans), timedelta(0))
    ahead = min((gone + LEAD) / length, 1.0)
    return max(math.ceil(most_bytes * ahead) - today(ledger, now=now).received_bytes, 0)


def _gone(now: datetime, spans: list[tuple[timedelta, timedelta]]) -> timedelta | None:
    """The open time of the day that has gone by; None while the day is not open."""
    at = now.astimezone(UTC)
    since = timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
    if not any(begin <= since < end for begin, end in spans):
        return None
    return sum((max(min(since, end) - begin, timedelta(0)) for begin, end in spans), timedelta(0))


def _spans(hours: Hours) -> list[tuple[timedelta, timedelta]]:
    """The open hours within one day, in order, none of them overlapping."""
    parts = []
    for begin, end in hours or ((timedelta(0), DAY),):
        parts += [(begin, end)] if begin < end else [(timedelta(0), end), (begin, DAY)]
    spans: list[tuple[timedelta, timedelta]] = []
    for begin, end in sorted(parts):
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
    """The number of visits below the price that today may still hold.

    spent: such visits today.  budget: requests a day.  turn: the number of the day; it makes a fraction of a visit a
    whole one every so many days.
    """
    a_day = share * budget
    return max(_whole(a_day * (turn + 1)) - _whole(a_day * turn) - spent, 0)


def _whole(number: float) -> int:
    return math.floor(number + 1e-6)  # a product that is whole may come out a little less


@dataclass(frozen=True, slots=True)
class SharedBudget:
    """The budget of all domains together for a UTC day; None: no limit."""

    requests: int | None = None
    received_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.received_bytes is not None


NO_SHARED_LIMIT = SharedBudget()
