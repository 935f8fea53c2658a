"""The ledgers of the UTC day: what a domain, and all domains together, may still ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.belief import DAY
from crawler.core.domain import Lease
from crawler.core.ledger import Ledger, debited, grantable, today
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database

NO_LIMIT = 2**31 - 1  # requests a day
LEAST_PAUSE = timedelta(minutes=1)
BYTES_PAUSE = timedelta(minutes=15)  # until the pace has caught up with a body that was larger than thought

OWN = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor, d.bytes_per_day,
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
ALL = "SELECT day AS budget_day, spent_requests, spent_bytes, 0 AS spent_floor FROM ledger WHERE no = 1 FOR UPDATE"
WRITE_ALL = "UPDATE ledger SET day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(bytes)s WHERE no = 1"
SETTLE_ALL = """
    UPDATE ledger
       SET spent_requests = greatest(
               spent_requests - CASE WHEN day = %(refund_day)s::date THEN %(refund)s ELSE 0 END, 0),
           spent_bytes = spent_bytes + %(bytes)s
     WHERE no = 1
"""


@dataclass(frozen=True, slots=True)
class Together:
    """What all domains together may spend on a UTC day; None: as much as they like."""

    requests: int | None = None
    received_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.received_bytes is not None


UNLIMITED = Together()


@dataclass(frozen=True, slots=True)
class Granted:
    """Requests that may be made. next_at: where there are none, when to ask again (knowledge time)."""

    requests: int
    next_at: datetime | None = None


async def debit(
    db: Database, lease: Lease, *, most: int, at: datetime, paced: bool, together: Together = UNLIMITED
) -> Granted:
    """Take up to `most` requests from the budgets of the day. Raises LeaseLost.

    paced: spread over the day; else the whole day's budget may go at once.
    Asked again after an answer that was lost, it takes again: the ledger may count too many, never too few.
    """
    async with db.transaction() as connection:
        row = await _one(connection, OWN, (lease.domain.id, lease.token))
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        own = today(_ledger(row), now=at)
        budget = NO_LIMIT if row["budget"] is None else row["budget"]
        granted = min(most, _allowed(own, budget, row["bytes_per_day"], at=at, paced=paced))
        if together.is_limited:
            overall = NO_LIMIT if together.requests is None else together.requests
            everybody = today(_ledger(await _one(connection, ALL, ()) or {}), now=at)
            granted = min(granted, _allowed(everybody, overall, together.received_bytes, at=at, paced=paced))
            await connection.execute(WRITE_ALL, _values(debited(everybody, granted)))
            budget = min(budget, overall)
        await connection.execute(WRITE_OWN, _values(debited(own, granted)) | {"domain_id": lease.domain.id})
        return Granted(granted, None if granted else _next_grant(budget, at=at, paced=paced))


def _allowed(ledger: Ledger, budget: int, most_bytes: int | None, *, at: datetime, paced: bool) -> int:
    if paced:
        return grantable(ledger, budget, now=at, most_bytes=most_bytes)
    if most_bytes is not None and ledger.received_bytes >= most_bytes:
        return 0
    return max(budget - ledger.requests, 0)


def _next_grant(budget: int, *, at: datetime, paced: bool) -> datetime:
    """When the pace allows one more request, or the next day begins."""
    tomorrow = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    if not paced or budget <= 0:
        return tomorrow
    pause = BYTES_PAUSE if budget >= NO_LIMIT else DAY / budget
    return min(at + max(pause, LEAST_PAUSE), tomorrow)


def _ledger(row: dict[str, Any]) -> Ledger:
    day = row["budget_day"] or date.min
    return Ledger(day, row["spent_requests"], row["spent_bytes"], row["spent_floor"])


def _values(ledger: Ledger) -> dict[str, Any]:
    return {
        "day": ledger.day,
        "requests": ledger.requests,
        "bytes": ledger.received_bytes,
        "floor": ledger.floor,
    }


async def settle_together(connection: Connection, *, refund: int, refund_day: date | None, received_bytes: int) -> None:
    """Count what came of a batch for all domains together; the last statement of its transaction."""
    values = {"refund": refund, "refund_day": refund_day, "bytes": received_bytes}
    await connection.execute(SETTLE_ALL, values)


async def _one(connection: Connection, statement: str, values: Sequence[Any]) -> dict[str, Any] | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), values)
        return await cursor.fetchone()
