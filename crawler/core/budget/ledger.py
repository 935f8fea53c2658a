"""The budget of a UTC day as a ledger: a claim debits what it is granted, a record gives back what was not needed.

Grants are paced over the open hours of the day, a little ahead of them, so that the last of the day is granted while
there is still time to use it. What is granted is never above the budget, at any moment of the day, whatever it was
before.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from crawler.core.budget.hours import ALWAYS, Hours, compute_day_share, get_speed

LEAD = timedelta(minutes=15)  # of open time that grants run ahead, so that the day's last can still be used in time
MIN_LEAD = 1.0  # requests: the day's first is granted when it begins


@dataclass(frozen=True, slots=True)
class Ledger:
    """The debits of one UTC day. received_bytes: guessed by a claim, and put right by a record."""

    day: date
    requests: int = 0
    received_bytes: int = 0
    floor: int = 0  # of the requests, those for pages below their price


@dataclass(frozen=True, slots=True)
class Refund:
    """What was debited on a day and is given back.

    day: None where nothing was debited.  received_bytes: that were debited in advance.
    """

    day: date | None = None
    requests: int = 0
    received_bytes: int = 0


NO_REFUND = Refund()


def roll_over(ledger: Ledger, *, now: datetime) -> Ledger:
    """The ledger as it stands, or a fresh one when its day is over. now: aware. A day that lies ahead stays."""
    day = now.astimezone(UTC).date()
    return ledger if ledger.day >= day else Ledger(day)


def count_grantable_requests(
    ledger: Ledger, budget: int, *, now: datetime, hours: Hours = ALWAYS, max_bytes: int | None = None
) -> int:
    """How many requests may be debited now. Of several ledgers (domain's, overall) the least holds.

    budget: requests a day, 0 or more, as it is now, whatever it was when earlier requests were granted.
    hours: over which the day's requests are spread; while they are closed nothing is granted.
    max_bytes: a day's; once so many are received, nothing is granted. Bodies under way may exceed it, one to each
    parallel slot.
    """
    return _count_paced(ledger, budget, now=now, hours=hours, max_bytes=max_bytes) if get_speed(hours, now) else 0


def compute_next_grant(
    ledger: Ledger, budget: int, *, now: datetime, hours: Hours = ALWAYS, max_bytes: int | None = None
) -> datetime:
    """Return when `grantable` next allows a request: by the pace of this UTC day, or when the next day begins.

    To the second. The hours may be closed then.
    """
    at = now.astimezone(UTC)
    tomorrow = datetime.combine(at.date() + timedelta(days=1), time(), tzinfo=UTC)

    def is_allowed(second: int) -> bool:
        instant = at + timedelta(seconds=second)
        return _count_paced(ledger, budget, now=instant, hours=hours, max_bytes=max_bytes) > 0

    seconds = range(math.ceil((tomorrow - at).total_seconds()))
    return min(at + timedelta(seconds=bisect_left(seconds, True, key=is_allowed)), tomorrow)  # noqa: FBT003


def _count_paced(ledger: Ledger, budget: int, *, now: datetime, hours: Hours, max_bytes: int | None) -> int:
    """Return how many requests the pace of the day allows, whether the hours are open or not."""
    if max_bytes is not None and count_receivable_bytes(ledger, max_bytes, now=now, hours=hours) <= 0:
        return 0
    share = compute_day_share(hours, now, lead=LEAD)
    paced = math.floor(max(budget * share.ahead, budget * share.elapsed + MIN_LEAD) + 1e-9)
    return max(min(paced, budget) - roll_over(ledger, now=now).requests, 0)


def count_receivable_bytes(ledger: Ledger, max_bytes: int, *, now: datetime, hours: Hours = ALWAYS) -> int:
    """How many bytes may be debited now. max_bytes: a day's; paced as requests are."""
    ahead = compute_day_share(hours, now, lead=LEAD).ahead
    return max(math.ceil(max_bytes * ahead) - roll_over(ledger, now=now).received_bytes, 0)


def debit_ledger(ledger: Ledger, requests: int, *, received_bytes: int = 0) -> Ledger:
    """The ledger after a claim. requests: what `grantable` allowed, or less.

    received_bytes: what they will likely bring, at most what is `count_receivable_bytes`.
    """
    return replace(ledger, requests=ledger.requests + requests, received_bytes=ledger.received_bytes + received_bytes)


def settle_ledger(ledger: Ledger, refund: Refund, *, received_bytes: int = 0) -> Ledger:
    """The ledger after a record or a release. received_bytes: what came, however much of it was debited before.

    A grant ends with its day: what was debited on another day than the ledger's is not given back. What came is counted
    all the same. A refund below 0 is one more debit. The ledger itself never falls below 0.
    """
    if refund.day != ledger.day:
        refund = NO_REFUND
    return replace(
        ledger,
        requests=max(ledger.requests - refund.requests, 0),
        received_bytes=max(ledger.received_bytes + received_bytes - refund.received_bytes, 0),
    )


def count_floor_left(spent: int, budget: float, *, share: float, day_number: int) -> int:
    """The number of visits below the price that today may still hold.

    spent: such visits today.  budget: requests a day.  day_number: of today; it makes a fraction of a visit a
    whole one every so many days.
    """
    a_day = share * budget
    return max(_round_down(a_day * (day_number + 1)) - _round_down(a_day * day_number) - spent, 0)


def _round_down(number: float) -> int:
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
