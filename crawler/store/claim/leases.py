"""Leases: taking a domain, keeping it, giving it back, and the ledger of its requests.

Leases run in real time by the database's clock; waking, back-off and the budget day in knowledge time (`at`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from uuid import UUID, uuid4

from psycopg.rows import dict_row

from crawler.core.budget import NO_REFUND, Refund, settled
from crawler.core.domain import Domain, Hold, Lease, RobotsCopy
from crawler.errors import LeaseLost
from crawler.store.claim.budgets import (
    WITH_SHARED,
    ledger_from,
    ledger_values,
    settle_shared_budget,
    shared_values,
)
from crawler.store.database import Connection, Database
from crawler.store.domains import COLUMNS, domain_from

# The longest overdue first. A domain with something in its inbox is awake whatever its wake_at says.
AWAKE = """
       d.state = 'active'
       AND (s.lease_token IS NULL OR s.leased_until < clock_timestamp())
       AND (s.resume_at IS NULL OR s.resume_at <= %(at)s)
       AND (s.wake_at <= %(at)s OR EXISTS (SELECT FROM inbox i WHERE i.domain_id = s.domain_id))
       AND (s.last_visit_at IS NULL OR s.last_visit_at <= %(at)s)
       AND NOT coalesce(d.budget_per_day = 0, false)
       AND NOT coalesce(s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date
                        AND (s.spent_requests >= d.budget_per_day OR s.spent_bytes >= d.bytes_per_day), false)
       AND (%(only)s::bigint[] IS NULL OR s.domain_id = ANY(%(only)s))
"""
# Whoever died with the lease could send until its end; a lease that was given back left its own next_request_at.
FREE_AT = "greatest(s.next_request_at, s.leased_until + s.delay_s * interval '1 second')"
# Slots of the domain's addresses that another domain holds.
BLOCKING = """
       address_slot a
     WHERE a.address = ANY(s.addresses) AND a.domain_id <> s.domain_id AND a.held_until > clock_timestamp()
       AND NOT EXISTS (SELECT FROM unnest(%(exempt)s::inet[]) network
                        WHERE split_part(a.address, '%%', 1)::inet <<= network)
"""
# One row is locked, not every candidate: claims at the same time take different domains.
CANDIDATE = f"""
    SELECT s.domain_id, s.addresses, coalesce({FREE_AT}, clock_timestamp()) AS free_at,
           make_interval(secs => greatest(s.delay_s, CASE WHEN d.delay_s IS NOT NULL THEN d.delay_s
                                                          WHEN d.allow_private THEN 0
                                                          ELSE %(delay_s)s END)) AS delay
      FROM domain_state s JOIN domain d ON d.id = s.domain_id
     WHERE {AWAKE} AND coalesce({FREE_AT} < clock_timestamp() + %(term)s / 2, true)
       AND NOT EXISTS (SELECT FROM {BLOCKING}) AND s.domain_id <> ALL(%(tried)s)
     ORDER BY s.wake_at NULLS LAST, s.domain_id
     LIMIT 1
       FOR UPDATE OF s SKIP LOCKED
"""  # noqa: S608  only our own conditions are put in
# A slot of a lease that lives may come free at any time, and at its end at the latest: it is asked about again then.
NEXT_TURN = f"""
    SELECT min(greatest({FREE_AT} - clock_timestamp(), blocked.until - clock_timestamp(), interval '0.05 seconds'))
      FROM domain_state s JOIN domain d ON d.id = s.domain_id,
           LATERAL (SELECT max(least(a.held_until,
                                     (SELECT h.leased_until FROM domain_state h
                                       WHERE h.domain_id = a.domain_id AND h.lease_token = a.lease_token
                                         AND h.leased_until > clock_timestamp()))) AS until
                      FROM {BLOCKING}) blocked
     WHERE {AWAKE}
"""  # noqa: S608  only our own conditions are put in
TAKE_SLOTS = """
    INSERT INTO address_slot AS a (address, domain_id, lease_token, held_until)
    SELECT x, %(domain_id)s, %(token)s, clock_timestamp() + %(term)s + %(delay)s
      FROM unnest(%(addresses)s::text[]) x ORDER BY x
    ON CONFLICT (address) DO UPDATE
       SET domain_id = excluded.domain_id, lease_token = excluded.lease_token, held_until = excluded.held_until
     WHERE a.held_until < clock_timestamp() OR a.domain_id = excluded.domain_id
    RETURNING a.address
"""
TAKE = f"""
    UPDATE domain_state s
       SET lease_token = %(token)s, leased_until = clock_timestamp() + %(term)s, holder = %(holder)s,
           next_request_at = %(free_at)s, delay_s = extract(epoch FROM %(delay)s::interval)
      FROM domain d
     WHERE s.domain_id = %(domain_id)s AND d.id = s.domain_id
 RETURNING {COLUMNS}, s.refusals,
           greatest(s.next_request_at - clock_timestamp(), interval '0') AS wait
"""  # noqa: S608  only our own column list is put in
ANNOUNCE_DELAY = """
    UPDATE domain_state SET delay_s = extract(epoch FROM %(delay)s::interval)
     WHERE domain_id = %(domain_id)s AND lease_token = %(token)s
 RETURNING domain_id
"""
RENEW = """
    UPDATE domain_state s
       SET leased_until = clock_timestamp() + %(term)s
      FROM domain d
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s  -- expiry only lets others take it
       AND d.id = s.domain_id
 RETURNING d.state = 'active'
"""
# A slot outlasts its lease by the delay, since whoever dies with it may have sent until the end. Locked in order.
KEEP_SLOTS = """
    WITH own AS (SELECT address FROM address_slot
                  WHERE address = ANY(%(slots)s) AND lease_token = %(token)s ORDER BY address FOR UPDATE)
    UPDATE address_slot a SET held_until = s.leased_until + s.delay_s * interval '1 second'
      FROM own, domain_state s
     WHERE a.address = own.address AND s.domain_id = %(domain_id)s
 RETURNING a.address
"""
# The ledger; when the next request is allowed; and of all that could be done next, what can be done first: a page that
# was never fetched now, a known one when it is due.
END = """
    SELECT s.budget_day, s.spent_requests, s.spent_bytes, s.spent_floor,
           greatest(s.next_request_at, clock_timestamp() + %(wait)s) AS free_at, least(
               (SELECT min(due_at) FROM frontier WHERE domain_id = %(domain_id)s AND state <> 'new'),
               CASE WHEN EXISTS (SELECT FROM frontier WHERE domain_id = %(domain_id)s AND state = 'new')
                    THEN %(at)s END) AS wake_at
      FROM domain_state s
     WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
       FOR UPDATE OF s
"""
RELEASE = f"""
    {WITH_SHARED}
    UPDATE domain_state
       SET lease_token = NULL, leased_until = NULL, holder = NULL, wake_at = %(wake_at)s,
           budget_day = %(day)s, spent_requests = %(requests)s, spent_bytes = %(bytes)s, spent_floor = %(floor)s,
           next_request_at = %(free_at)s
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own statement is put in
GIVE_SLOTS_BACK = """
    WITH own AS (SELECT address FROM address_slot
                  WHERE address = ANY(%(slots)s) AND lease_token = %(token)s ORDER BY address FOR UPDATE)
    UPDATE address_slot a SET held_until = %(free_at)s FROM own WHERE a.address = own.address
"""


async def claim(
    db: Database,
    *,
    at: datetime,
    holder: str,
    term: timedelta,
    only: Collection[Domain] | None = None,
    exempt_addresses: Sequence[str] = (),
    delay: timedelta = timedelta(0),
) -> Lease | None:
    """Take a free domain whose time has come, the longest overdue first, with a slot of each of its addresses.

    only: choose among these.  exempt_addresses: networks whose addresses take no slot.  delay: of domains whose users
    set none, until announce_delay says what robots.txt wants; domains that may be private have none.
    None if there is no such domain now.
    """
    token = uuid4()
    values = {
        "at": at,
        "only": None if only is None else [domain.id for domain in only],
        "exempt": _networks(exempt_addresses),
        "term": term,
        "delay_s": delay.total_seconds(),
    }
    tried: list[int] = []  # and found blocked by an address that was taken a moment ago
    async with db.transaction() as connection:
        while True:
            await connection.execute("SAVEPOINT candidate")
            row = await (await connection.execute(CANDIDATE, values | {"tried": tried})).fetchone()
            if row is None:
                return None
            found = _Candidate(row[0], slotted(row[1], exempt_addresses), free_at=row[2], delay=row[3])
            if await _slots_taken(connection, found, token, term=term):
                return await _take(connection, found, token, holder=holder, term=term)
            # All slots or none, and no lock on what is not taken.
            await connection.execute("ROLLBACK TO SAVEPOINT candidate")
            tried.append(found.domain_id)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A domain that may be taken. free_at: when its next request is allowed."""

    domain_id: int
    slots: list[str]
    free_at: datetime
    delay: timedelta


def slotted(addresses: Collection[str], exempt: Sequence[str]) -> list[str]:
    """The addresses that take a slot: those outside the exempt networks, sorted so that nobody waits in a circle."""
    networks = [ip_network(network) for network in exempt]
    return sorted({a for a in addresses if not any(ip_address(a) in network for network in networks)})


def _networks(exempt: Sequence[str]) -> list[str]:
    return [str(ip_network(network)) for network in exempt]


async def _slots_taken(connection: Connection, found: _Candidate, token: UUID, *, term: timedelta) -> bool:
    if not found.slots:
        return True
    values = {
        "domain_id": found.domain_id,
        "token": token,
        "term": term,
        "delay": found.delay,
        "addresses": found.slots,
    }
    taken = await (await connection.execute(TAKE_SLOTS, values)).fetchall()
    return len(taken) == len(found.slots)


async def _take(connection: Connection, found: _Candidate, token: UUID, *, holder: str, term: timedelta) -> Lease:
    async with connection.cursor(row_factory=dict_row) as cursor:
        values = {"domain_id": found.domain_id, "token": token, "holder": holder, "term": term}
        await cursor.execute(TAKE, values | {"free_at": found.free_at, "delay": found.delay})
        row = await cursor.fetchone()
        assert row is not None
        await cursor.execute(
            "SELECT body, outcome, fetched_at, good_at, due_at FROM robots WHERE domain_id = %s", (found.domain_id,)
        )
        robots = await cursor.fetchone()
    return Lease(
        domain=domain_from(row),
        token=token,
        holder=holder,
        term=term,
        wait=row["wait"],
        refusals=row["refusals"],
        robots=RobotsCopy(**robots) if robots else None,
        slots=tuple(found.slots),
    )


async def next_turn(
    db: Database, *, at: datetime, only: Collection[Domain] | None = None, exempt_addresses: Sequence[str] = ()
) -> timedelta | None:
    """How long, in real time, until it is worth asking for a domain again; None if waiting alone gives none.

    Counts domains that only a delay or an address holds back; not those that somebody else holds.
    """
    async with db.transaction() as connection:
        ids = None if only is None else [domain.id for domain in only]
        values = {"at": at, "only": ids, "exempt": _networks(exempt_addresses)}
        row = await (await connection.execute(NEXT_TURN, values)).fetchone()
        return row[0] if row else None


async def announce_delay(db: Database, lease: Lease, *, delay: timedelta) -> None:
    """Say what delay is in force, before the first request that it spaces. Raises LeaseLost.

    Whoever takes the domain or one of its addresses over from a holder that died waits so long after its last
    possible request.
    """
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token, "delay": delay}
        if await (await connection.execute(ANNOUNCE_DELAY, values)).fetchone() is None:
            raise _lost(lease)
        await keep_slots(connection, lease)


async def renew(db: Database, lease: Lease) -> bool:
    """Keep the lease for another term; False if the domain's user has paused it meanwhile.

    Raises LeaseLost if somebody else has it, or one of its addresses.
    """
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token, "term": lease.term}
        row = await (await connection.execute(RENEW, values)).fetchone()
        if row is None:
            raise _lost(lease)
        await keep_slots(connection, lease)
        return bool(row[0])


async def keep_slots(connection: Connection, lease: Lease) -> None:
    """Keep the lease's address slots as long as the lease, which is renewed before. Raises LeaseLost if one is gone."""
    if not lease.slots:
        return
    values = {"domain_id": lease.domain.id, "token": lease.token, "slots": list(lease.slots)}
    kept = await (await connection.execute(KEEP_SLOTS, values)).fetchall()
    if len(kept) != len(lease.slots):
        raise LeaseLost(f"another worker has taken an address of {lease.domain.authority}")


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"another worker has taken {lease.domain.authority}")


async def save_robots(db: Database, lease: Lease, copy: RobotsCopy, *, changed: bool) -> None:
    """Keep what came of asking for robots.txt. If its rules changed, refused pages are asked about again. LeaseLost."""
    async with db.transaction() as connection:
        await fence(connection, lease)
        await connection.execute(
            """INSERT INTO robots (domain_id, body, outcome, fetched_at, good_at, due_at)
               VALUES (%(id)s, %(body)s, %(outcome)s, %(fetched_at)s, %(good_at)s, %(due_at)s)
               ON CONFLICT (domain_id) DO UPDATE SET body = excluded.body, outcome = excluded.outcome,
                   fetched_at = excluded.fetched_at, good_at = excluded.good_at, due_at = excluded.due_at""",
            {
                "id": lease.domain.id,
                "body": copy.body,
                "outcome": copy.outcome,
                "fetched_at": copy.fetched_at,
                "good_at": copy.good_at,
                "due_at": copy.due_at,
            },
        )
        if changed:
            await connection.execute(
                "UPDATE frontier SET due_at = %s WHERE domain_id = %s AND state = 'refused'",
                (copy.fetched_at, lease.domain.id),
            )


async def hold(db: Database, lease: Lease, hold: Hold) -> None:
    """Leave the domain alone until an instant of knowledge time. Raises LeaseLost."""
    async with db.transaction() as connection:
        await fence(connection, lease)
        await write_hold(connection, lease.domain.id, hold)


async def write_hold(connection: Connection, domain_id: int, hold: Hold) -> None:
    """The same within a transaction of the caller's."""
    await connection.execute(
        """UPDATE domain_state SET resume_at = greatest(resume_at, %s), resume_reason = %s, refusals = %s
            WHERE domain_id = %s""",
        (hold.until, hold.reason, hold.refusals, domain_id),
    )


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """What a lease leaves over.

    refund: taken from its budgets and not used.  is_shared: the budget of all domains together is one of them.
    wait: real time until the next request is allowed.  not_before: knowledge time before which its budget has nothing
    for it.
    """

    refund: Refund = NO_REFUND
    wait: timedelta = timedelta(0)
    not_before: datetime | None = None
    is_shared: bool = False


NOTHING_LEFT_OVER = LeaseEnd()


async def release(db: Database, lease: Lease, end: LeaseEnd = NOTHING_LEFT_OVER, *, at: datetime) -> None:
    """Give the domain back, with the time at which it is worth claiming again. A lost lease is no error any more."""
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token, "at": at, "wait": end.wait}
        async with connection.cursor(row_factory=dict_row) as cursor:
            row = await (await cursor.execute(END, values)).fetchone()
        if row is None:
            return
        values |= {"free_at": row["free_at"], "wake_at": _later(row["wake_at"], end.not_before)}
        if lease.slots:
            await connection.execute(GIVE_SLOTS_BACK, values | {"slots": list(lease.slots)})
        values |= ledger_values(settled(ledger_from(row), end.refund))
        is_shared = end.is_shared and (end.refund.requests or end.refund.received_bytes)
        values |= await settle_shared_budget(connection, end.refund) if is_shared else shared_values()
        await connection.execute(RELEASE, values)


def _later(wake_at: datetime | None, not_before: datetime | None) -> datetime | None:
    return wake_at if wake_at is None or not_before is None else max(wake_at, not_before)


async def fence(connection: Connection, lease: Lease) -> None:
    """Only the holder of the lease goes on; it keeps the domain's row locked until the transaction ends. LeaseLost."""
    cursor = await connection.execute(
        "SELECT FROM domain_state WHERE domain_id = %s AND lease_token = %s FOR UPDATE",
        (lease.domain.id, lease.token),
    )
    if await cursor.fetchone() is None:
        raise _lost(lease)
