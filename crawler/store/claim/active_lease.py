"""An active lease: renew it, write the domain's state under it, and release it."""

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from crawler.core.budget.hours import find_opening
from crawler.core.budget.ledger import NO_REFUND, Refund, settle_ledger
from crawler.core.domain import Lease, RobotsCopy, Suspension
from crawler.errors import LeaseLost
from crawler.store import failure_runs
from crawler.store.claim import budgets
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import put_robots
from crawler.store.rows import execute, fetch_dict, fetch_value

WRITE_DELAY = """
    UPDATE domain_state SET delay_s = extract(epoch FROM %(delay)s::interval)
     WHERE domain_id = %(domain_id)s AND lease_token = %(token)s
 RETURNING domain_id
"""
RENEW = """
    UPDATE domain_state s
       SET leased_until = clock_timestamp() + %(term)s
      FROM domain d
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s  -- valid until another worker takes it
       AND d.id = s.domain_id
 RETURNING d.state = 'active'
"""
# A slot outlasts its lease by the crawl delay, because a dead holder may have sent requests until the end of the lease.
# Rows are locked in a fixed order.
RENEW_SLOTS = """
    WITH own AS (SELECT address FROM address_slot
                  WHERE address = ANY(%(slots)s) AND lease_token = %(token)s ORDER BY address FOR UPDATE)
    UPDATE address_slot a SET held_until = s.leased_until + s.delay_s * interval '1 second'
      FROM own, domain_state s
     WHERE a.address = own.address AND s.domain_id = %(domain_id)s
 RETURNING a.address
"""
# Read the ledger, when the next request is allowed, and when the first page is due. Unfetched pages are due at once
# unless they are deferred; to use the whole budget, so are fetched ones. Must match FRONTIER in candidate_query.py.
# request_reason 1: BY_USER, 4: BY_URL.
READ_LEASE_END = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor,
           greatest(s.next_request_at, clock_timestamp() + %(wait)s) AS free_at, least(
               (SELECT min(due_at) FROM frontier WHERE domain_id = %(domain_id)s AND state <> 'unfetched'),
               (SELECT min(due_at) FROM frontier WHERE domain_id = %(domain_id)s AND state = 'unfetched'),
               CASE WHEN EXISTS (SELECT FROM frontier
                                  WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at IS NULL
                                    AND (boosted OR request_reason IN (1, 4) OR section NOT IN (
                                        SELECT no FROM prior
                                         WHERE domain_id = %(domain_id)s AND deferred_until IS NOT NULL)))
                       OR EXISTS (SELECT FROM frontier WHERE domain_id = %(domain_id)s AND request_reason IN (1, 4))
                    THEN %(at)s END,
               CASE WHEN %(uses_whole_budget)s
                     AND EXISTS (SELECT FROM frontier WHERE domain_id = %(domain_id)s AND state = 'fetched')
                    THEN %(at)s END) AS due_at
      FROM domain_state s
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
       FOR NO KEY UPDATE OF s
"""
RELEASE = f"""
    {budgets.WITH_SHARED}
    UPDATE domain_state
       SET lease_token = NULL, leased_until = NULL, holder = NULL, wake_at = %(wake_at)s,
           paced_until = %(paced_until)s, next_request_at = %(free_at)s, {budgets.LEDGER_COLUMNS}
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own statement is inserted
FENCE = "SELECT domain_id FROM domain_state WHERE domain_id = %s AND lease_token = %s FOR NO KEY UPDATE"
RELEASE_SLOTS = """
    WITH own AS (SELECT address FROM address_slot
                  WHERE address = ANY(%(slots)s) AND lease_token = %(token)s ORDER BY address FOR UPDATE)
    UPDATE address_slot a SET held_until = %(free_at)s FROM own WHERE a.address = own.address
"""


async def write_delay(db: Database, lease: Lease, *, delay: timedelta) -> None:
    """Store the crawl delay, before the first request that it applies to. Raise LeaseLost.

    If this holder dies, the next holder of the domain or of one of its addresses waits this long after the last
    possible request.
    """
    async with db.transaction() as connection:
        if await fetch_value(connection, WRITE_DELAY, _build_params(lease, delay=delay)) is None:
            raise _build_lease_lost(lease)
        await renew_slots(connection, lease)


async def renew(db: Database, lease: Lease) -> bool:
    """Renew the lease for another term and return whether the domain is active, that is, not paused by the user.

    Raise LeaseLost if another worker holds the domain or one of its addresses.
    """
    async with db.transaction() as connection:
        is_active = await fetch_value(connection, RENEW, _build_params(lease, term=lease.term))
        if is_active is None:
            raise _build_lease_lost(lease)
        await renew_slots(connection, lease)
        return bool(is_active)


async def renew_slots(connection: Connection, lease: Lease) -> None:
    """Extend the address slots to the end of the renewed lease. Raise LeaseLost if one was taken."""
    values = _build_params(lease, slots=list(lease.slots))
    if lease.slots and await execute(connection, RENEW_SLOTS, values) != len(lease.slots):
        raise LeaseLost(f"another worker has taken over an address of {lease.domain.authority}")


def _build_params(lease: Lease, **others: Any) -> dict[str, Any]:
    return {"domain_id": lease.domain.id, "token": lease.token, **others}


def _build_lease_lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"another worker has taken over {lease.domain.authority}")


async def save_robots(db: Database, lease: Lease, robots_copy: RobotsCopy, *, changed: bool) -> None:
    """Store the result of a request for robots.txt. If its rules changed, make excluded pages due. Raise LeaseLost."""
    async with db.transaction() as connection:
        await fence(connection, lease)
        await put_robots(connection, lease.domain, robots_copy, replaces=True)
        if changed:
            await connection.execute(
                "UPDATE frontier SET due_at = %s WHERE domain_id = %s AND state = 'excluded'",
                (robots_copy.fetched_at, lease.domain.id),
            )


async def suspend_domain(db: Database, lease: Lease, suspension: Suspension, *, at: datetime) -> None:
    """Suspend the domain until an instant of knowledge time, or longer if it is already. Raise LeaseLost.

    If it has been suspended so often or for so long that it must be reported, this also adds the event.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        await write_suspension(connection, lease.domain.id, suspension)
        for event in await failure_runs.record_suspension(connection, lease.domain, suspension, at=at):
            await failure_runs.add_event(connection, lease.domain, event)


async def write_suspension(connection: Connection, domain_id: int, suspension: Suspension) -> None:
    """Suspend the domain as `suspend_domain` does, within the caller's transaction."""
    await connection.execute(
        """UPDATE domain_state SET resume_at = greatest(resume_at, %s), resume_reason = %s, rejections = %s
            WHERE domain_id = %s""",
        (suspension.until, suspension.reason, suspension.rejections, domain_id),
    )


class LeaseEnd(Struct, frozen=True):
    """The state at the end of a lease.

    refund: what was debited but not used.  is_shared: also refund the budget of all domains together.
    wait: real time until the next request is allowed.  not_before: knowledge time before which the budget allows no
    request; None if it allows one now.  uses_whole_budget: spend the budget even if no page has enough value.
    """

    refund: Refund = NO_REFUND
    wait: timedelta = timedelta(0)
    not_before: datetime | None = None
    is_shared: bool = False
    uses_whole_budget: bool = False


EMPTY_LEASE_END = LeaseEnd()


async def release(db: Database, lease: Lease, end: LeaseEnd = EMPTY_LEASE_END, *, at: datetime) -> None:
    """Release the domain and set the time of its next claim. Do nothing if the lease was lost."""
    async with db.transaction() as connection:
        values = _build_params(lease, at=at, wait=end.wait, uses_whole_budget=end.uses_whole_budget)
        row = await fetch_dict(connection, READ_LEASE_END, values)
        if row is None:
            return
        # A domain that is due now keeps its due time, so the longest overdue of several domains is claimed first.
        wake_at = row["due_at"]
        if wake_at is not None:  # None if no page is ever due
            wake_at = max(wake_at, end.not_before or wake_at)
            opens_at = find_opening(lease.domain.hours, max(wake_at, at))
            wake_at = opens_at if opens_at > max(wake_at, at) else wake_at
        values |= {"free_at": row["free_at"], "wake_at": wake_at, "paced_until": end.not_before or at}
        if lease.slots:
            await connection.execute(RELEASE_SLOTS, values | {"slots": list(lease.slots)})
        values |= budgets.build_ledger_params(settle_ledger(budgets.build_ledger(row), end.refund))
        is_shared = end.is_shared and bool(end.refund.requests or end.refund.received_bytes)
        values |= await budgets.settle_shared_budget(connection, end.refund, is_shared=is_shared)
        await connection.execute(RELEASE, values)


async def fence(connection: Connection, lease: Lease) -> None:
    """Lock the domain's row for the lease holder until the end of the transaction. Raise LeaseLost."""
    if await fetch_value(connection, FENCE, (lease.domain.id, lease.token)) is None:
        raise _build_lease_lost(lease)
