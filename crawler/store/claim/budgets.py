"""Grants of requests from the ledgers of the UTC day: that of each domain, and that of all domains together."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

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

NO_LIMIT = 2**31 - 1  # requests per day
MIN_PAUSE = timedelta(minutes=1)  # until the next grant, if the pace allows none now

# request_reason 1: BY_USER, 4: BY_URL, 5: TO_CONFIRM (core/freshness/visit_terms.py).
READ_DOMAIN_BUDGET = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor, s.costs, d.bytes_per_day, d.hours,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget,
           (SELECT count(*) FROM (
                SELECT FROM frontier f
                 WHERE f.domain_id = %(domain_id)s AND f.request_reason IN (1, 4, 5)
                   AND (f.request_reason <> 5 OR f.due_at <= %(at)s) LIMIT %(max_requests)s) r) AS requested,
           (SELECT min(f.due_at) FROM frontier f
             WHERE f.domain_id = %(domain_id)s AND f.request_reason = 5 AND f.due_at > %(at)s) AS next_confirmation_at
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
       FOR NO KEY UPDATE OF s
"""
READ_DOMAIN_LEDGER = """
    SELECT budget_day, spent_requests, spent_bytes, spent_floor FROM domain_state WHERE domain_id = %s FOR NO KEY UPDATE
"""
# CTE that writes the shared ledger, for a statement that writes a domain's ledger. shared_day: NULL writes nothing.
WITH_SHARED = """
    WITH shared AS (
        UPDATE ledger SET day = %(shared_day)s, spent_requests = %(shared_requests)s, spent_bytes = %(shared_bytes)s
         WHERE no = 1 AND %(shared_day)s::date IS NOT NULL)
"""
LEDGER_COLUMNS = """
    budget_day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(received_bytes)s,
    spent_floor = %(floor_visits)s
"""
WRITE_DOMAIN_LEDGER = f"{WITH_SHARED} UPDATE domain_state SET {LEDGER_COLUMNS} WHERE domain_id = %(domain_id)s"  # noqa: S608
# Shared by all workers, so it is locked last and only briefly.
READ_SHARED = "SELECT day AS budget_day, spent_requests, spent_bytes, 0 AS spent_floor FROM ledger WHERE no = 1"
LOCK_SHARED = f"{READ_SHARED} FOR UPDATE"
WRITE_SHARED = (
    "UPDATE ledger SET day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(received_bytes)s WHERE no = 1"
)


class Grant(Struct, frozen=True):
    """A number of requests that may be sent on this UTC day.

    requested_only: how many of these exceed the pace. They may only be used for pages that a user requested and for
    404s to confirm.  received_bytes: the bytes that may be received before the next grant; None: no limit.  next_at: if
    no requests are granted, when to ask again, in knowledge time (which --at sets).  is_limited: whether the requests
    or bytes of the day are limited.
    """

    requests: int
    day: date
    received_bytes: int | None = None
    next_at: datetime | None = None
    is_limited: bool = True
    requested_only: int = 0


class _DayBudget(Struct, frozen=True):
    """A ledger with the limits of its day. hours: the crawl hours over which the budget is spread."""

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
        """Return the number of bytes that may be debited; None: no limit."""
        if self.received_bytes is None:
            return None
        now, hours = self._choose_pace(at, paced=paced)
        return count_receivable_bytes(self.ledger, self.received_bytes, now=now, hours=hours)

    def _choose_pace(self, at: datetime, *, paced: bool) -> tuple[datetime, Hours]:
        """Return the instant and hours from which the pace follows; if not paced, those that allow the whole budget."""
        end = datetime.combine(_get_utc_day(at), datetime.max.time(), tzinfo=UTC)
        return (at, self.hours) if paced else (end, ALWAYS)


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
    """Debit up to max_requests requests and, if bytes are limited, the bytes that they are likely to receive.

    paced: spread requests over the day's open hours, except for pages that a user requested and for 404s to confirm;
    otherwise, the whole budget of the day may be granted at once. Nothing is granted outside the crawl hours.
    shared: the budget of all domains together.  waiting: requests granted before and not sent yet.  refund: requests or
    bytes debited before that are returned now.  Raise LeaseLost. A debit that is repeated after a lost connection may
    count requests twice, but never too few.
    """
    async with db.transaction() as connection:
        domain_params = {"domain_id": lease.domain.id, "token": lease.token, "max_requests": max_requests, "at": at}
        row = await fetch_dict(connection, READ_DOMAIN_BUDGET, domain_params)
        if row is None:
            raise LeaseLost(f"another worker has taken over {lease.domain.authority}")
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
        # For requests beyond the pace, and once the day's budget is spent, only the limits of the day apply.
        paced = paced and granted <= paced_requests and day_requests > 0
        mean_bytes = decode_costs(row["costs"]).get_cost(RequestKind.FULL).received_bytes
        limits = [budget.count_grantable_bytes(at=at, paced=paced) for budget in budgets]
        byte_limits = [limit for limit in limits if limit is not None]
        received_bytes = min((granted + waiting) * ceil(mean_bytes), *byte_limits) if byte_limits else None
        ledgers = [debit_ledger(each.ledger, granted, received_bytes=received_bytes or 0) for each in budgets]
        await _write_ledgers(connection, lease.domain.id, *ledgers)
        min_requests = min(budget.requests for budget in budgets)
        next_at = None if granted else _find_next_grant(budgets, hours, at=at, paced=paced)
        if next_at is not None and day_requests and row["next_confirmation_at"] is not None:
            next_at = min(next_at, find_opening(hours, row["next_confirmation_at"]))
        return Grant(
            granted,
            ledgers[0].day,
            requested_only=granted - paced_requests,
            received_bytes=received_bytes,
            next_at=next_at,
            is_limited=min_requests < NO_LIMIT or bool(byte_limits),
        )


async def count_shared_requests_left(db: Database, shared: SharedBudget, *, at: datetime) -> int | None:
    """Return the number of requests that all domains together may still send today; None: no limit."""
    if not shared.is_limited:
        return None
    row = await fetch_dict(db, READ_SHARED) or {}
    budget = _build_day_budget(row, shared.requests, shared.received_bytes, NO_REFUND, at=at)
    return budget.count_grantable(at=at, paced=False)


async def charge(db: Database, domain: Domain, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Charge a domain for requests sent outside any lease, such as at its registration."""
    async with db.transaction() as connection:
        row = await fetch_dict(connection, READ_DOMAIN_LEDGER, (domain.id,))
        if row is None:
            return  # the domain was deleted
        ledger = debit_ledger(roll_over(build_ledger(row), now=at), requests, received_bytes=received_bytes)
        await _write_ledgers(connection, domain.id, ledger)


async def _write_ledgers(connection: Connection, domain_id: int, ledger: Ledger, *shared: Ledger) -> None:
    """Write the ledger of a domain and, if given, the shared one."""
    values = build_ledger_params(ledger) | build_shared_params(*shared) | {"domain_id": domain_id}
    await connection.execute(WRITE_DOMAIN_LEDGER, values)


async def charge_shared_budget(db: Database, *, requests: int, received_bytes: int, at: datetime) -> None:
    """Charge the budget of all domains together for requests sent outside any lease."""
    async with db.transaction() as connection:
        before = roll_over(await _lock_shared_ledger(connection), now=at)
        ledger = debit_ledger(before, requests, received_bytes=received_bytes)
        await connection.execute(WRITE_SHARED, build_ledger_params(ledger))


async def settle_shared_budget(
    connection: Connection, refund: Refund, *, is_shared: bool, received_bytes: int = 0
) -> dict[str, Any]:
    """Lock the shared ledger, apply a refund and received bytes to it, and return the parameters of WITH_SHARED.

    Call this right before the last statement of the transaction, because all other workers wait from here on. Without
    `is_shared`, the ledger is neither locked nor changed.
    """
    if not is_shared:
        return build_shared_params()
    ledger = await _lock_shared_ledger(connection)
    return build_shared_params(settle_ledger(ledger, refund, received_bytes=received_bytes))


async def _lock_shared_ledger(connection: Connection) -> Ledger:
    return build_ledger(await fetch_dict(connection, LOCK_SHARED) or {})


def build_ledger(row: dict[str, Any]) -> Ledger:
    """Return the ledger of a row. Its day is date.min if nothing was ever debited."""
    day = row["budget_day"] or date.min
    return Ledger(day, row["spent_requests"], row["spent_bytes"], row["spent_floor"])


def build_ledger_params(ledger: Ledger) -> dict[str, Any]:
    """Return the parameters of a statement that writes a ledger."""
    return asdict(ledger) | {"day": None if ledger.day == date.min else ledger.day}


def build_shared_params(ledger: Ledger | None = None) -> dict[str, Any]:
    """Return the parameters of WITH_SHARED; None leaves the shared ledger unchanged."""
    day, requests, size = (ledger.day, ledger.requests, ledger.received_bytes) if ledger else (None, None, None)
    return {"shared_day": day, "shared_requests": requests, "shared_bytes": size}


def _build_day_budget(
    row: dict[str, Any], requests: int | None, max_bytes: int | None, refund: Refund, *, at: datetime
) -> _DayBudget:
    ledger = roll_over(settle_ledger(build_ledger(row), refund), now=at)
    return _DayBudget(ledger, NO_LIMIT if requests is None else requests, max_bytes)


def _get_utc_day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _find_next_grant(budgets: Sequence[_DayBudget], hours: Hours, *, at: datetime, paced: bool) -> datetime:
    """Return when all budgets allow a request again, within the open hours: by their pace, or on the next day.

    paced: whether the pace, and not the budget of the day, limits the requests.
    """
    tomorrow = datetime.combine(_get_utc_day(at) + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    if not paced:
        return find_opening(hours, tomorrow)
    next_at = max(budget.find_next_grant(at=at) for budget in budgets)
    return find_opening(hours, min(max(next_at, at + MIN_PAUSE), tomorrow))
