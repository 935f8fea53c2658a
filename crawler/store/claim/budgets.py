"""The ledgers of the UTC day: what a domain, and all domains together, may still ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from psycopg.rows import dict_row

from crawler.core.budget import (
    NO_SHARED_LIMIT,
    Ledger,
    RequestKind,
    SharedBudget,
    debited,
    grantable,
    receivable,
    today,
)
from crawler.core.domain import Domain, Lease
from crawler.core.freshness import DAY
from crawler.errors import LeaseLost
from crawler.store.columns import costs_from
from crawler.store.database import Connection, Database

NO_LIMIT = 2**31 - 1  # requests a day
LEAST_PAUSE = timedelta(minutes=1)
BYTES_PAUSE = timedelta(minutes=15)  # until the pace has caught up with a body that was larger than thought

OWN = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor, s.costs, d.bytes_per_day,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %s AND s.lease_token = %s
       FOR UPDATE OF s
"""
WRITE_OWN = """
    UPDATE domain_state
       SET budget_day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(bytes)s, spent_floor = %(floor)s
     WHERE domain_id = %(domain_id)s
"""
# Locked last, and for as short as can be: everybody's.
READ_ALL = "SELECT day AS budget_day, spent_requests, spent_bytes, 0 AS spent_floor FROM ledger WHERE no = 1"
ALL = f"{READ_ALL} FOR UPDATE"
WRITE_ALL = "UPDATE ledger SET day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(bytes)s WHERE no = 1"
SETTLE_ALL = """
    UPDATE ledger
       SET spent_requests = greatest(
               spent_requests - CASE WHEN day = %(refund_day)s::date THEN %(refund)s ELSE 0 END, 0),
           spent_bytes = greatest(
               spent_bytes + %(bytes)s - CASE WHEN day = %(refund_day)s::date THEN %(debited_bytes)s ELSE 0 END, 0)
     WHERE no = 1
"""
# Requests outside any lease. A day that lies ahead stays: the ledger may count too many, never too few.
CHARGE_OWN = """
    UPDATE domain_state
       SET spent_requests = CASE WHEN budget_day >= %(day)s THEN spent_requests ELSE 0 END + %(requests)s,
           spent_bytes = CASE WHEN budget_day >= %(day)s THEN spent_bytes ELSE 0 END + %(bytes)s,
           spent_floor = CASE WHEN budget_day >= %(day)s THEN spent_floor ELSE 0 END,
           budget_day = greatest(budget_day, %(day)s)
     WHERE domain_id = %(domain_id)s
"""
CHARGE_ALL = """
    UPDATE ledger
       SET spent_requests = CASE WHEN day >= %(day)s THEN spent_requests ELSE 0 END + %(requests)s,
           spent_bytes = CASE WHEN day >= %(day)s THEN spent_bytes ELSE 0 END + %(bytes)s,
           day = greatest(day, %(day)s)
     WHERE no = 1
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """Requests that may be made on that UTC day.

    received_bytes: what they may bring before more is asked for; None: no limit.  next_at: where there are no requests,
    when to ask again (knowledge time).
    """

    requests: int
    day: date
    received_bytes: int | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnusedBytes:
    """Bytes that a lease has been granted on a day and did not receive so far."""

    received_bytes: int = 0
    day: date | None = None


NO_UNUSED_BYTES = UnusedBytes()


@dataclass(frozen=True, slots=True)
class _DayBudget:
    """One ledger with its limits."""

    ledger: Ledger
    requests: int
    received_bytes: int | None

    def grantable(self, *, at: datetime, paced: bool) -> int:
        if paced:
            return grantable(self.ledger, self.requests, now=at, most_bytes=self.received_bytes)
        is_full = self.received_bytes is not None and self.ledger.received_bytes >= self.received_bytes
        return 0 if is_full else max(self.requests - self.ledger.requests, 0)

    def room(self, *, at: datetime, paced: bool) -> int | None:
        """Bytes that may be debited; None: no limit."""
        if self.received_bytes is None:
            return None
        if paced:
            return receivable(self.ledger, self.received_bytes, now=at)
        return max(self.received_bytes - self.ledger.received_bytes, 0)


async def debit(
    db: Database,
    lease: Lease,
    *,
    most: int,
    at: datetime,
    paced: bool,
    together: SharedBudget = NO_SHARED_LIMIT,
    waiting: int = 0,
    spare: UnusedBytes = NO_UNUSED_BYTES,
) -> Grant:
    """Take up to `most` requests from the budgets of the day, and where bytes are limited, what they will likely bring.

    paced: spread over the day; else the whole day's budget may go at once.  waiting: requests that were granted before
    and not made.  spare: bytes that were granted before and are given back for those granted now.  Raises LeaseLost.
    Asked again after an answer that was lost, it takes again: the ledger may count too many, never too few.
    """
    async with db.transaction() as connection:
        row = await _one(connection, OWN, (lease.domain.id, lease.token))
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        books = [_book(row, row["budget"], row["bytes_per_day"], spare, at=at)]
        if together.is_limited:
            everybody = await _one(connection, ALL, ()) or {}
            books.append(_book(everybody, together.requests, together.received_bytes, spare, at=at))
        granted = min(most, *(book.grantable(at=at, paced=paced) for book in books))
        likely = (granted + waiting) * ceil(costs_from(row["costs"]).of(RequestKind.FULL).received_bytes)
        rooms = [room for book in books if (room := book.room(at=at, paced=paced)) is not None]
        received_bytes = min(likely, *rooms) if rooms else None
        own, *others = [debited(book.ledger, granted, received_bytes=received_bytes or 0) for book in books]
        await connection.execute(WRITE_OWN, _values(own) | {"domain_id": lease.domain.id})
        for ledger in others:
            await connection.execute(WRITE_ALL, _values(ledger))
        budget = min(book.requests for book in books)
        return Grant(granted, own.day, received_bytes, None if granted else _next_grant(budget, at=at, paced=paced))


async def left_of_shared_budget(db: Database, together: SharedBudget, *, at: datetime) -> int | None:
    """Requests that all domains together may still make today; None: no limit."""
    if not together.is_limited:
        return None
    async with db.transaction() as connection:
        row = await _one(connection, READ_ALL, ()) or {}
    return _book(row, together.requests, together.received_bytes, NO_UNUSED_BYTES, at=at).grantable(at=at, paced=False)


async def charge(db: Database, domain: Domain, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Count requests for a domain that were made outside any lease, such as at its registration."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "requests": requests, "bytes": received_bytes, "day": _day(at)}
        await connection.execute(CHARGE_OWN, values)


async def charge_shared_budget(db: Database, *, requests: int, received_bytes: int, at: datetime) -> None:
    """The same for all domains together."""
    async with db.transaction() as connection:
        values = {"requests": requests, "bytes": received_bytes, "day": _day(at)}
        await connection.execute(CHARGE_ALL, values)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _book(
    row: dict[str, Any], requests: int | None, received_bytes: int | None, spare: UnusedBytes, *, at: datetime
) -> _DayBudget:
    day = row["budget_day"] or date.min
    of_others = row["spent_bytes"] - (spare.received_bytes if day == spare.day else 0)
    ledger = Ledger(day, row["spent_requests"], max(of_others, 0), row["spent_floor"])
    return _DayBudget(today(ledger, now=at), NO_LIMIT if requests is None else requests, received_bytes)


def _next_grant(budget: int, *, at: datetime, paced: bool) -> datetime:
    """When the pace allows one more request, or the next day begins."""
    tomorrow = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    if not paced or budget <= 0:
        return tomorrow
    pause = BYTES_PAUSE if budget >= NO_LIMIT else DAY / budget
    return min(at + max(pause, LEAST_PAUSE), tomorrow)


def _values(ledger: Ledger) -> dict[str, Any]:
    return {
        "day": ledger.day,
        "requests": ledger.requests,
        "bytes": ledger.received_bytes,
        "floor": ledger.floor,
    }


async def settle_shared_budget(
    connection: Connection, *, refund: int, refund_day: date | None, received_bytes: int, debited_bytes: int
) -> None:
    """Count what came of a batch for all domains together; the last statement of its transaction.

    debited_bytes: on the refund's day, in advance; what is more than was received is given back.
    """
    values = {"refund": refund, "refund_day": refund_day, "bytes": received_bytes, "debited_bytes": debited_bytes}
    await connection.execute(SETTLE_ALL, values)


async def _one(connection: Connection, statement: str, values: Sequence[Any]) -> dict[str, Any] | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), values)
        return await cursor.fetchone()
