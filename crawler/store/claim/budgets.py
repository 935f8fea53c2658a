"""The ledgers of the UTC day: what a domain, and all domains together, may still ask for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from crawler.core.budget.cost import RequestKind
from crawler.core.budget.hours import ALWAYS, Hours, find_opening, get_speed
from crawler.core.budget.ledger import (
    NO_REFUND,
    NO_SHARED_LIMIT,
    Ledger,
    Refund,
    SharedBudget,
    compute_next_grant,
    count_grantable_requests,
    count_receivable_bytes,
    debit_ledger,
    roll_over,
    settle_ledger,
)
from crawler.core.domain import Domain, Lease, parse_stored_hours
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.rows import decode_costs, fetch_dict

NO_LIMIT = 2**31 - 1  # requests a day
MIN_PAUSE = timedelta(minutes=1)

READ_DOMAIN_BUDGET = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor, s.costs, d.bytes_per_day, d.hours,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget,
           (SELECT count(*) FROM (
                SELECT FROM frontier f
                 WHERE f.domain_id = %(domain_id)s AND f.request_reason IN (1, 4, 5) AND (f.request_reason <> 5 OR
                 f.due_at <= %(at)s) LIMIT %(most)s) r) AS requested,
           (SELECT min(f.due_at) FROM frontier f
             WHERE f.domain_id = %(domain_id)s AND f.request_reason = 5 AND f.due_at > %(at)s) AS next_confirmation_at
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
       FOR UPDATE OF s
"""
READ_DOMAIN_LEDGER = """
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
WRITE_DOMAIN_LEDGER = f"""
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

    def count_grantable(self, *, at: datetime, paced: bool) -> int:
        if not get_speed(self.hours, at):
            return 0
        now, hours = self._choose_pace(at, paced=paced)
        return count_grantable_requests(self.ledger, self.requests, now=now, hours=hours, max_bytes=self.received_bytes)

    def find_next_grant(self, *, at: datetime) -> datetime:
        return compute_next_grant(self.ledger, self.requests, now=at, hours=self.hours, max_bytes=self.received_bytes)

    def count_grantable_bytes(self, *, at: datetime, paced: bool) -> int | None:
        """Return how many bytes may be debited; None: no limit."""
        if self.received_bytes is None:
            return None
        now, hours = self._choose_pace(at, paced=paced)
        return count_receivable_bytes(self.ledger, self.received_bytes, now=now, hours=hours)

    def _choose_pace(self, at: datetime, *, paced: bool) -> tuple[datetime, Hours]:
        """Return by which instant and hours to pace; without a pace, the day's last, when all of it may be granted."""
        return (
            (at, self.hours) if paced else (datetime.combine(_get_utc_day(at), datetime.max.time(), tzinfo=UTC), ALWAYS)
        )


async def debit(
    db: Database,
    lease: Lease,
    *,
    max_requests: int,
    at: datetime,
    paced: bool,
    shared: SharedBudget = NO_SHARED_LIMIT,
    waiting: int = 0,
    refund: Refund = NO_REFUND,
) -> Grant:
    """Take up to `most` requests from the budgets of the day, and where bytes are limited, what they will likely bring.

    paced: spread over the day's open hours, but for pages that come first: requested ones, and 404s to be confirmed.
    Else the whole day's budget may go at once. While the hours are closed there is nothing.  shared: what all domains
    together may spend.  waiting: requests that were granted before and not made.  refund: bytes that were granted
    before and are given back for those granted now.  Raises LeaseLost. A debit that is repeated because its answer was
    lost takes twice: the ledger may count too many, never too few.
    """
    async with db.transaction() as connection:
        domain_params = {"domain_id": lease.domain.id, "token": lease.token, "most": max_requests, "at": at}
        row = await fetch_dict(connection, READ_DOMAIN_BUDGET, domain_params)
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        hours = parse_stored_hours(row["hours"])
        budgets = [replace(_build_day_budget(row, row["budget"], row["bytes_per_day"], refund, at=at), hours=hours)]
        if shared.is_limited:
            shared_row = await fetch_dict(connection, LOCK_SHARED) or {}
            budgets.append(_build_day_budget(shared_row, shared.requests, shared.received_bytes, refund, at=at))
        paced_requests, day_requests = (
            min(max_requests, *(budget.count_grantable(at=at, paced=is_paced) for budget in budgets))
            for is_paced in (paced, False)
        )
        granted = max(paced_requests, min(row["requested"], day_requests))
        # A spent day is waited for to its end, and nothing else.
        paced = paced and granted <= paced_requests and day_requests > 0
        expected_bytes = (granted + waiting) * ceil(
            decode_costs(row["costs"]).get_cost(RequestKind.FULL).received_bytes
        )
        byte_limits = [
            byte_limit
            for budget in budgets
            if (byte_limit := budget.count_grantable_bytes(at=at, paced=paced)) is not None
        ]
        received_bytes = min(expected_bytes, *byte_limits) if byte_limits else None
        domain_ledger, *shared_ledgers = [
            debit_ledger(budget.ledger, granted, received_bytes=received_bytes or 0) for budget in budgets
        ]
        values = (
            build_ledger_params(domain_ledger) | build_shared_params(*shared_ledgers) | {"domain_id": lease.domain.id}
        )
        await connection.execute(WRITE_DOMAIN_LEDGER, values)
        min_requests = min(budget.requests for budget in budgets)
        next_at = None if granted else _find_next_grant(budgets, hours, at=at, paced=paced)
        if next_at is not None and day_requests and row["next_confirmation_at"] is not None:
            next_at = min(next_at, find_opening(hours, row["next_confirmation_at"]))
        return Grant(
            granted,
            domain_ledger.day,
            requested_only=granted - paced_requests,
            received_bytes=received_bytes,
            next_at=next_at,
            is_limited=min_requests < NO_LIMIT or bool(byte_limits),
        )


async def count_shared_requests_left(db: Database, shared: SharedBudget, *, at: datetime) -> int | None:
    """Requests that all domains together may still make today; None: no limit."""
    if not shared.is_limited:
        return None
    row = await fetch_dict(db, READ_SHARED) or {}
    return _build_day_budget(row, shared.requests, shared.received_bytes, NO_REFUND, at=at).count_grantable(
        at=at, paced=False
    )


async def charge(db: Database, domain: Domain, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Count requests for a domain that were made outside any lease, such as at its registration."""
    async with db.transaction() as connection:
        row = await fetch_dict(connection, READ_DOMAIN_LEDGER, (domain.id,))
        if row is None:
            return  # removed meanwhile
        ledger = debit_ledger(roll_over(build_ledger(row), now=at), requests, received_bytes=received_bytes)
        await connection.execute(
            WRITE_DOMAIN_LEDGER, build_ledger_params(ledger) | build_shared_params() | {"domain_id": domain.id}
        )


async def charge_shared_budget(db: Database, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Count requests for all domains together that were made outside any lease."""
    async with db.transaction() as connection:
        ledger = roll_over(await _lock_shared_ledger(connection), now=at)
        await connection.execute(
            WRITE_SHARED, build_ledger_params(debit_ledger(ledger, requests, received_bytes=received_bytes))
        )


async def settle_shared_budget(
    connection: Connection, refund: Refund, *, is_shared: bool, received_bytes: int = 0
) -> dict[str, Any]:
    """Lock the ledger of all domains together, and give its values after a batch or a lease, for WITH_SHARED.

    Called right before the transaction's last statement: everybody else waits from here on. Not where the ledger is
    not shared in: it stays as it is.
    """
    if not is_shared:
        return build_shared_params()
    return build_shared_params(
        settle_ledger(await _lock_shared_ledger(connection), refund, received_bytes=received_bytes)
    )


async def _lock_shared_ledger(connection: Connection) -> Ledger:
    return build_ledger(await fetch_dict(connection, LOCK_SHARED) or {})


def build_ledger(row: dict[str, Any]) -> Ledger:
    """The ledger in a row that was read; its day lies before all others where nothing was ever debited."""
    day = row["budget_day"] or date.min
    return Ledger(day, row["spent_requests"], row["spent_bytes"], row["spent_floor"])


def build_ledger_params(ledger: Ledger) -> dict[str, Any]:
    """The values of a statement that writes a ledger."""
    return asdict(ledger) | {"day": None if ledger.day == date.min else ledger.day}


def build_shared_params(ledger: Ledger | None = None) -> dict[str, Any]:
    """The values of WITH_SHARED; None leaves the ledger of all domains together as it is."""
    if ledger is None:
        return {"shared_day": None, "shared_requests": None, "shared_bytes": None}
    return {"shared_day": ledger.day, "shared_requests": ledger.requests, "shared_bytes": ledger.received_bytes}


def _build_day_budget(
    row: dict[str, Any], requests: int | None, received_bytes: int | None, refund: Refund, *, at: datetime
) -> _DayBudget:
    ledger = roll_over(settle_ledger(build_ledger(row), refund), now=at)
    return _DayBudget(ledger, NO_LIMIT if requests is None else requests, received_bytes)


def _get_utc_day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _find_next_grant(budgets: Sequence[_DayBudget], hours: Hours, *, at: datetime, paced: bool) -> datetime:
    """Return when all budgets allow one more request, by their pace or since the next day begins, in open hours."""
    tomorrow = datetime.combine(_get_utc_day(at) + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    if not paced:
        return find_opening(hours, tomorrow)
    next_at = max(budget.find_next_grant(at=at) for budget in budgets)
    return find_opening(hours, min(max(next_at, at + MIN_PAUSE), tomorrow))
