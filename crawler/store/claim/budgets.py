"""The ledgers of the UTC day: what a domain, and all domains together, may still ask for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from crawler.core.budget.cost import RequestKind
from crawler.core.budget.hours import ALWAYS, Hours, opening, speed_at
from crawler.core.budget.ledger import (
    NO_REFUND,
    NO_SHARED_LIMIT,
    Ledger,
    Refund,
    SharedBudget,
    debited,
    grantable,
    next_grant,
    receivable,
    settled,
    today,
)
from crawler.core.domain import Domain, Lease, hours_in
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.rows import costs_from, fetch_dict

NO_LIMIT = 2**31 - 1  # requests a day
LEAST_PAUSE = timedelta(minutes=1)

OWN = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor, s.costs, d.bytes_per_day, d.hours,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget,
           (SELECT count(*) FROM (
                SELECT FROM frontier f
                 WHERE f.domain_id = %(domain_id)s AND f.wanted IN (1, 4, 5) AND (f.wanted <> 5 OR f.due_at <= %(at)s)
                 LIMIT %(most)s) r) AS requested,
           (SELECT min(f.due_at) FROM frontier f
             WHERE f.domain_id = %(domain_id)s AND f.wanted = 5 AND f.due_at > %(at)s) AS next_confirmation_at
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
       FOR UPDATE OF s
"""
OWN_LEDGER = """
    SELECT budget_day, spent_requests, spent_bytes, spent_floor FROM domain_state WHERE domain_id = %s FOR UPDATE
"""
# Stands before a statement that writes a domain's row, so that both ledgers are written by one. shared_day: or NULL.
WITH_SHARED = """
    WITH shared AS (
        UPDATE ledger SET day = %(shared_day)s, spent_requests = %(shared_requests)s, spent_bytes = %(shared_bytes)s
         WHERE no = 1 AND %(shared_day)s::date IS NOT NULL)
"""
LEDGER_COLUMNS = """
    budget_day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(received_bytes)s, spent_floor = %(floor)s
"""
WRITE_OWN = f"""
    {WITH_SHARED}
    UPDATE domain_state
       SET {LEDGER_COLUMNS}
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own statement is put in
# Locked last, and for as short as can be: everybody's.
READ_SHARED = "SELECT day AS budget_day, spent_requests, spent_bytes, 0 AS spent_floor FROM ledger WHERE no = 1"
LOCK_SHARED = f"{READ_SHARED} FOR UPDATE"
WRITE_SHARED = (
    "UPDATE ledger SET day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(received_bytes)s WHERE no = 1"
)


@dataclass(frozen=True, slots=True)
class Grant:
    """Requests that may be made on that UTC day.

    requested_only: how many of them the pace would not allow yet: for pages that come first.
    received_bytes: what they may bring before more is asked for; None: no limit.  next_at: where there are no requests,
    when to ask again (knowledge time).  is_limited: requests or bytes of the day are.
    """

    requests: int
    day: date
    received_bytes: int | None = None
    next_at: datetime | None = None
    is_limited: bool = True
    requested_only: int = 0


@dataclass(frozen=True, slots=True)
class _DayBudget:
    """One ledger with its limits. hours: over which its day is spread."""

    ledger: Ledger
    requests: int
    received_bytes: int | None
    hours: Hours = ALWAYS

    def grantable(self, *, at: datetime, paced: bool) -> int:
        if not speed_at(self.hours, at):
            return 0
        now, hours = self._pace(at, paced=paced)
        return grantable(self.ledger, self.requests, now=now, hours=hours, most_bytes=self.received_bytes)

    def next_grant(self, *, at: datetime) -> datetime:
        return next_grant(self.ledger, self.requests, now=at, hours=self.hours, most_bytes=self.received_bytes)

    def room(self, *, at: datetime, paced: bool) -> int | None:
        """Return how many bytes may be debited; None: no limit."""
        if self.received_bytes is None:
            return None
        now, hours = self._pace(at, paced=paced)
        return receivable(self.ledger, self.received_bytes, now=now, hours=hours)

    def _pace(self, at: datetime, *, paced: bool) -> tuple[datetime, Hours]:
        """Return by which instant and hours to pace; without a pace, the day's last, when all of it may be granted."""
        return (at, self.hours) if paced else (datetime.combine(_day(at), datetime.max.time(), tzinfo=UTC), ALWAYS)


async def debit(
    db: Database,
    lease: Lease,
    *,
    most: int,
    at: datetime,
    paced: bool,
    shared: SharedBudget = NO_SHARED_LIMIT,
    waiting: int = 0,
    spare: Refund = NO_REFUND,
) -> Grant:
    """Take up to `most` requests from the budgets of the day, and where bytes are limited, what they will likely bring.

    paced: spread over the day's open hours, but for pages that come first: requested ones, and 404s to be confirmed.
    Else the whole day's budget may go at once. While the hours are closed there is nothing.  shared: what all domains
    together may spend.  waiting: requests that were granted before and not made.  spare: bytes that were granted before
    and are given back for those granted now.  Raises LeaseLost.
    A debit that is repeated because its answer was lost takes twice: the ledger may count too many, never too few.
    """
    async with db.transaction() as connection:
        own_values = {"domain_id": lease.domain.id, "token": lease.token, "most": most, "at": at}
        row = await fetch_dict(connection, OWN, own_values)
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        hours = hours_in(row["hours"])
        budgets = [replace(_day_budget(row, row["budget"], row["bytes_per_day"], spare, at=at), hours=hours)]
        if shared.is_limited:
            everybody = await fetch_dict(connection, LOCK_SHARED) or {}
            budgets.append(_day_budget(everybody, shared.requests, shared.received_bytes, spare, at=at))
        in_time, of_day = (
            min(most, *(budget.grantable(at=at, paced=is_paced) for budget in budgets)) for is_paced in (paced, False)
        )
        granted = max(in_time, min(row["requested"], of_day))
        # A spent day is waited for to its end, and nothing else.
        paced = paced and granted <= in_time and of_day > 0
        likely = (granted + waiting) * ceil(costs_from(row["costs"]).of(RequestKind.FULL).received_bytes)
        rooms = [room for budget in budgets if (room := budget.room(at=at, paced=paced)) is not None]
        received_bytes = min(likely, *rooms) if rooms else None
        own, *others = [debited(budget.ledger, granted, received_bytes=received_bytes or 0) for budget in budgets]
        values = ledger_values(own) | shared_values(*others) | {"domain_id": lease.domain.id}
        await connection.execute(WRITE_OWN, values)
        least = min(budget.requests for budget in budgets)
        next_at = None if granted else _next_grant(budgets, hours, at=at, paced=paced)
        if next_at is not None and of_day and row["next_confirmation_at"] is not None:
            next_at = min(next_at, opening(hours, row["next_confirmation_at"]))
        return Grant(
            granted,
            own.day,
            requested_only=granted - in_time,
            received_bytes=received_bytes,
            next_at=next_at,
            is_limited=least < NO_LIMIT or bool(rooms),
        )


async def left_of_shared_budget(db: Database, shared: SharedBudget, *, at: datetime) -> int | None:
    """Requests that all domains together may still make today; None: no limit."""
    if not shared.is_limited:
        return None
    row = await fetch_dict(db, READ_SHARED) or {}
    return _day_budget(row, shared.requests, shared.received_bytes, NO_REFUND, at=at).grantable(at=at, paced=False)


async def charge(db: Database, domain: Domain, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Count requests for a domain that were made outside any lease, such as at its registration."""
    async with db.transaction() as connection:
        row = await fetch_dict(connection, OWN_LEDGER, (domain.id,))
        if row is None:
            return  # removed meanwhile
        ledger = debited(today(ledger_from(row), now=at), requests, received_bytes=received_bytes)
        await connection.execute(WRITE_OWN, ledger_values(ledger) | shared_values() | {"domain_id": domain.id})


async def charge_shared_budget(db: Database, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Count requests for all domains together that were made outside any lease."""
    async with db.transaction() as connection:
        ledger = today(await _lock_shared(connection), now=at)
        await connection.execute(WRITE_SHARED, ledger_values(debited(ledger, requests, received_bytes=received_bytes)))


async def settle_shared_budget(
    connection: Connection, refund: Refund, *, is_shared: bool, received_bytes: int = 0
) -> dict[str, Any]:
    """Lock the ledger of all domains together, and give its values after a batch or a lease, for WITH_SHARED.

    Called right before the transaction's last statement: everybody else waits from here on. Not where the ledger is
    not shared in: it stays as it is.
    """
    if not is_shared:
        return shared_values()
    return shared_values(settled(await _lock_shared(connection), refund, received_bytes=received_bytes))


async def _lock_shared(connection: Connection) -> Ledger:
    return ledger_from(await fetch_dict(connection, LOCK_SHARED) or {})


def ledger_from(row: dict[str, Any]) -> Ledger:
    """The ledger in a row that was read; its day lies before all others where nothing was ever debited."""
    day = row["budget_day"] or date.min
    return Ledger(day, row["spent_requests"], row["spent_bytes"], row["spent_floor"])


def ledger_values(ledger: Ledger) -> dict[str, Any]:
    """The values of a statement that writes a ledger."""
    return asdict(ledger) | {"day": None if ledger.day == date.min else ledger.day}


def shared_values(ledger: Ledger | None = None) -> dict[str, Any]:
    """The values of WITH_SHARED; None leaves the ledger of all domains together as it is."""
    if ledger is None:
        return {"shared_day": None, "shared_requests": None, "shared_bytes": None}
    return {"shared_day": ledger.day, "shared_requests": ledger.requests, "shared_bytes": ledger.received_bytes}


def _day_budget(
    row: dict[str, Any], requests: int | None, received_bytes: int | None, spare: Refund, *, at: datetime
) -> _DayBudget:
    ledger = today(settled(ledger_from(row), spare), now=at)
    return _DayBudget(ledger, NO_LIMIT if requests is None else requests, received_bytes)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _next_grant(budgets: Sequence[_DayBudget], hours: Hours, *, at: datetime, paced: bool) -> datetime:
    """Return when all budgets allow one more request, by their pace or since the next day begins, in open hours."""
    tomorrow = datetime.combine(_day(at) + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    if not paced:
        return opening(hours, tomorrow)
    found = max(budget.next_grant(at=at) for budget in budgets)
    return opening(hours, min(max(found, at + LEAST_PAUSE), tomorrow))
