"""The ledger of a UTC day's budget: requests granted and used.

A grant is a number of requests that a worker may send. Granted requests are debited; unused ones are refunded. Grants
are paced over the open hours of the day, slightly ahead of time, so that the last requests are granted while they can
still be used. Nothing is granted beyond the current budget, which may change during the day.
"""

import math
from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.hours import ALWAYS, Hours, compute_day_share, get_speed

LEAD = timedelta(minutes=15)  # grants are issued this much early, so that the last ones of the day can be used
MIN_LEAD = 1.0  # requests; the first one is granted at the beginning of the day


class Ledger(Struct, frozen=True):
    """The debits of one UTC day. received_bytes: estimated for a grant, corrected when its visits are recorded."""

    day: date
    requests: int = 0
    received_bytes: int = 0
    floor_visits: int = 0  # as defined in core/freshness/selection.py; their requests are included in `requests`


class Refund(Struct, frozen=True):
    """A refund of what was debited on a day.

    day: None if nothing was debited.  received_bytes: what was debited in advance.
    """

    day: date | None = None
    requests: int = 0
    received_bytes: int = 0


NO_REFUND = Refund()


def roll_over(ledger: Ledger, *, now: datetime) -> Ledger:
    """Return the ledger, or an empty one if its day is over. A ledger of a future day stays unchanged."""
    day = now.astimezone(UTC).date()
    return ledger if ledger.day >= day else Ledger(day)


def count_grantable_requests(
    ledger: Ledger, budget: int, *, now: datetime, hours: Hours = ALWAYS, max_bytes: int | None = None
) -> int:
    """Return how many requests may be debited now. With several ledgers (domain, overall), use the lowest result.

    budget: the current budget in requests per day, 0 or more.
    hours: the day's requests are spread over these hours; while they are closed, nothing is granted.
    max_bytes: bytes per day; once they are received, nothing is granted. Bodies in transit may exceed it, one per
    parallel slot.
    """
    return _count_paced(ledger, budget, now=now, hours=hours, max_bytes=max_bytes) if get_speed(hours, now) else 0


def compute_next_grant(
    ledger: Ledger, budget: int, *, now: datetime, hours: Hours = ALWAYS, max_bytes: int | None = None
) -> datetime:
    """Return when the pace of this UTC day next allows a request, at the latest the beginning of the next day.

    Accurate to the second. The hours may be closed at that time.
    """
    at = now.astimezone(UTC)
    tomorrow = datetime.combine(at.date() + timedelta(days=1), time(), tzinfo=UTC)

    def is_allowed(n: int) -> bool:
        return _count_paced(ledger, budget, now=at + timedelta(seconds=n), hours=hours, max_bytes=max_bytes) > 0

    seconds = range(math.ceil((tomorrow - at).total_seconds()))
    return min(at + timedelta(seconds=bisect_left(seconds, True, key=is_allowed)), tomorrow)  # noqa: FBT003


def _count_paced(ledger: Ledger, budget: int, *, now: datetime, hours: Hours, max_bytes: int | None) -> int:
    """Return how many requests the pace of the day allows, even if the hours are closed."""
    if max_bytes is not None and count_receivable_bytes(ledger, max_bytes, now=now, hours=hours) <= 0:
        return 0
    share = compute_day_share(hours, now, lead=LEAD)
    paced = math.floor(max(budget * share.ahead, budget * share.elapsed + MIN_LEAD) + 1e-9)
    return max(min(paced, budget) - roll_over(ledger, now=now).requests, 0)


def count_receivable_bytes(ledger: Ledger, max_bytes: int, *, now: datetime, hours: Hours = ALWAYS) -> int:
    """Return how many bytes may be debited now, paced like requests. max_bytes: bytes per day."""
    ahead = compute_day_share(hours, now, lead=LEAD).ahead
    return max(math.ceil(max_bytes * ahead) - roll_over(ledger, now=now).received_bytes, 0)


def debit_ledger(ledger: Ledger, requests: int, *, received_bytes: int = 0) -> Ledger:
    """Return the ledger with these requests and bytes added."""
    return replace(ledger, requests=ledger.requests + requests, received_bytes=ledger.received_bytes + received_bytes)


def settle_ledger(ledger: Ledger, refund: Refund, *, received_bytes: int = 0) -> Ledger:
    """Return the ledger after a refund and after bytes were received, debited before or not.

    A grant ends with its day, so a refund for another day is ignored, but the received bytes are still counted. A
    negative refund is a debit. The ledger never falls below 0.
    """
    if refund.day != ledger.day:
        refund = NO_REFUND
    return replace(
        ledger,
        requests=max(ledger.requests - refund.requests, 0),
        received_bytes=max(ledger.received_bytes + received_bytes - refund.received_bytes, 0),
    )


def count_floor_left(spent: int, budget: float, *, share: float, day_number: int) -> int:
    """Return how many floor visits (core/freshness/selection.py) are still allowed today.

    spent: floor visits today.  budget: requests per day.  share: the share of the budget for floor visits.
    day_number: days since any fixed date; it spreads fractional visits, so that 0.25 a day becomes one every four days.
    """
    a_day, rounding = share * budget, 1e-6  # rounding errors can put a whole product slightly below
    tomorrow, today = (math.floor(a_day * n + rounding) for n in (day_number + 1, day_number))
    return max(tomorrow - today - spent, 0)


class SharedBudget(Struct, frozen=True):
    """The budget of all domains together for a UTC day. None means no limit."""

    requests: int | None = None
    received_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.received_bytes is not None


NO_SHARED_LIMIT = SharedBudget()
