"""Claiming: which domain is free and worth a lease now, and taking it with its addresses.

Leases run in real time by the database's clock; waking, back-off and the budget day in knowledge time (`at`).
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import uuid4

from psycopg.rows import class_row

from crawler.core.budget.hours import opening
from crawler.core.domain import Domain, Lease, RobotsCopy, hours_in, is_own_server
from crawler.core.visit.visit import NEVER
from crawler.store.claim.held import fence
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import COLUMNS, ROBOTS_COLUMNS, domain_from
from crawler.store.rows import execute, fetch_dict, fetch_one, fetch_value

# A domain that is due, or has something in its inbox. Either is found by an index, however many sleep.
DUE = "s.wake_at <= %(at)s"
CALLED = "s.domain_id = ANY(ARRAY(SELECT DISTINCT i.domain_id FROM inbox i))"
AWAKE = """
       d.state = 'active'
       AND (s.lease_token IS NULL OR s.leased_until < clock_timestamp())
       AND (s.resume_at IS NULL OR s.resume_at <= %(at)s)
       AND (s.last_visit_at IS NULL OR s.last_visit_at <= %(at)s)
       AND NOT coalesce(s.closed_from <= %(at)s AND %(at)s < s.opens_at, false)
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
# The longest overdue first, then who is called. One row is locked, not every candidate: claims at the same time take
# different domains.
CANDIDATE = f"""
    SELECT s.domain_id, s.addresses, coalesce({FREE_AT}, clock_timestamp()) AS free_at,
           s.delay_s, d.delay_s AS wished_s, d.authority, d.allow_private, d.hours
      FROM domain_state s
     CROSS JOIN LATERAL (SELECT * FROM domain d WHERE d.id = s.domain_id OFFSET 0) d  -- of one after the other
     WHERE {{}} AND {AWAKE} AND coalesce({FREE_AT} < clock_timestamp() + %(term)s / 2, true)
       AND NOT EXISTS (SELECT FROM {BLOCKING}) AND s.domain_id <> ALL(%(tried)s)
     ORDER BY s.wake_at NULLS LAST, s.domain_id
     LIMIT 1
       FOR UPDATE OF s SKIP LOCKED
"""  # noqa: S608  only our own conditions are put in
CANDIDATES = (CANDIDATE.format(DUE), CANDIDATE.format(CALLED))
# A slot of a lease that lives may come free at any time, and at its end at the latest: it is asked about again then.
NEXT_TURN = f"""
    SELECT min(greatest({FREE_AT} - clock_timestamp(), blocked.until - clock_timestamp(), interval '0.05 seconds'))
      FROM domain_state s JOIN domain d ON d.id = s.domain_id,
           LATERAL (SELECT max(least(a.held_until,
                                     (SELECT h.leased_until FROM domain_state h
                                       WHERE h.domain_id = a.domain_id AND h.lease_token = a.lease_token
                                         AND h.leased_until > clock_timestamp()))) AS until
                      FROM {BLOCKING}) blocked
     WHERE ({DUE} OR {CALLED}) AND {AWAKE} AND s.domain_id <> ALL(%(tried)s)
"""  # noqa: S608  only our own conditions are put in
TAKE_SLOTS = """
    INSERT INTO address_slot AS a (address, domain_id, lease_token, held_until)
    SELECT x, %(domain_id)s, %(token)s, clock_timestamp() + %(term)s + %(delay)s
      FROM unnest(%(slots)s::text[]) x ORDER BY x
    ON CONFLICT (address) DO UPDATE
       SET domain_id = excluded.domain_id, lease_token = excluded.lease_token, held_until = excluded.held_until
     WHERE a.held_until < clock_timestamp() OR a.domain_id = excluded.domain_id
    RETURNING a.address
"""
# What the hours say at an instant is reckoned here, not in SQL, and kept for all who ask until they open.
KEEP_CLOSED = """
    UPDATE domain_state SET closed_from = %(at)s, opens_at = %(opens_at)s WHERE domain_id = %(domain_id)s
"""
# A leased domain is awake, and only its release lets it sleep: whatever its holder makes due is claimed again, even if
# the holder dies. (What others ask for waits in the inbox, which wakes the domain as well.)
TAKE = f"""
    UPDATE domain_state s
       SET lease_token = %(token)s, leased_until = clock_timestamp() + %(term)s, holder = %(holder)s,
           next_request_at = %(free_at)s, delay_s = extract(epoch FROM %(delay)s::interval),
           wake_at = least(s.wake_at, %(at)s)
      FROM domain d
     WHERE s.domain_id = %(domain_id)s AND d.id = s.domain_id
 RETURNING {COLUMNS}, s.refusals,
           greatest(s.next_request_at - clock_timestamp(), interval '0') AS wait
"""  # noqa: S608  only our own column list is put in

NOTE_ADDRESSES = """
    UPDATE domain_state SET addresses = %(addresses)s WHERE domain_id = %(domain_id)s
 RETURNING delay_s * interval '1 second' AS delay
"""
ROBOTS = f"SELECT {', '.join(ROBOTS_COLUMNS)} FROM robots WHERE domain_id = %(domain_id)s"  # noqa: S608  our own columns
GIVE_BACK = (
    "UPDATE domain_state SET lease_token = NULL, leased_until = NULL, holder = NULL WHERE domain_id = %(domain_id)s"
)


async def claim(
    db: Database,
    *,
    at: datetime,
    holder: str,
    term: timedelta,
    only: Collection[Domain] | None = None,
    exempt_addresses: Sequence[str] = (),
    delay: timedelta = timedelta(0),
    held: Collection[int] = (),
) -> Lease | None:
    """Take a free domain whose time has come, the longest overdue first, with a slot of each of its addresses.

    only: choose among these.  exempt_addresses: networks whose addresses take no slot.  delay: of domains whose users
    set none, until announce_delay says what robots.txt wants; domains that may be private have none.
    held: domains that the caller is crawling already; their leases may have run out while the store was away.
    A domain whose hours are closed is passed over. None if there is no such domain now.
    """
    since = time.monotonic()
    values = _values_of(at=at, only=only, exempt=exempt_addresses) | {"token": uuid4(), "holder": holder, "term": term}
    tried = list(held)  # and others that are found blocked by an address that was taken a moment ago
    async with db.transaction() as connection:
        while True:
            await connection.execute("SAVEPOINT candidate")
            found = await _find_candidate(connection, values | {"tried": tried})
            if found is None:
                return None
            # Who claims whatever is due (try_page) has looked at the hours before.
            opens_at = at if at == NEVER else opening(hours_in(found["hours"]), at)
            if opens_at > at:
                await connection.execute(KEEP_CLOSED, found | {"at": at, "opens_at": opens_at})
                continue
            is_own = is_own_server(found["authority"], found["addresses"], allow_private=found["allow_private"])
            usual_s = 0 if is_own else delay.total_seconds()
            in_force_s = max(found["delay_s"], usual_s if found["wished_s"] is None else found["wished_s"])
            slots = slotted(found["addresses"], exempt_addresses)
            taking = values | found | {"slots": slots, "delay": timedelta(seconds=in_force_s)}
            if await _take_slots(connection, taking):
                return replace(await _take(connection, taking), since=since)
            # All slots or none, and no lock on what is not taken.
            await connection.execute("ROLLBACK TO SAVEPOINT candidate")
            tried.append(found["domain_id"])


async def _find_candidate(connection: Connection, values: dict[str, Any]) -> dict[str, Any] | None:
    for statement in CANDIDATES:
        found = await fetch_dict(connection, statement, values)
        if found is not None:
            return found
    return None


def _values_of(*, at: datetime, only: Collection[Domain] | None, exempt: Sequence[str]) -> dict[str, Any]:
    """Return the values of the statements that look for a domain."""
    ids = None if only is None else [domain.id for domain in only]
    return {"at": at, "only": ids, "exempt": [str(ip_network(network)) for network in exempt]}


def slotted(addresses: Collection[str], exempt: Sequence[str]) -> list[str]:
    """The addresses that take a slot: those outside the exempt networks, sorted so that nobody waits in a circle."""
    networks = [ip_network(network) for network in exempt]
    return sorted({a for a in addresses if not any(ip_address(a) in network for network in networks)})


async def move(db: Database, lease: Lease, addresses: Collection[str], *, exempt: Sequence[str]) -> Lease | None:
    """The lease with the slots of the addresses that its domain has today, and these stored for the next one.

    None, and the domain is given back, where another domain holds one of them: the next claim waits for that.
    Raises LeaseLost.
    """
    slots = slotted(addresses, exempt)
    async with db.transaction() as connection:
        await fence(connection, lease)
        values = {"domain_id": lease.domain.id, "addresses": sorted(addresses), "slots": slots}
        noted = await fetch_dict(connection, NOTE_ADDRESSES, values)
        assert noted is not None
        await connection.execute("SAVEPOINT slots")
        if await _take_slots(connection, values | noted | {"token": lease.token, "term": lease.term}):
            return replace(lease, slots=tuple(slots), domain=replace(lease.domain, addresses=tuple(addresses)))
        await connection.execute("ROLLBACK TO SAVEPOINT slots")
        await connection.execute(GIVE_BACK, values)
        return None


async def _take_slots(connection: Connection, values: dict[str, Any]) -> bool:
    """Take all slots for a domain, if they are free; return whether they were."""
    return not values["slots"] or await execute(connection, TAKE_SLOTS, values) == len(values["slots"])


async def _take(connection: Connection, values: dict[str, Any]) -> Lease:
    row = await fetch_dict(connection, TAKE, values)
    assert row is not None
    robots = await fetch_one(connection, class_row(RobotsCopy), ROBOTS, values)
    return Lease(
        domain=domain_from(row),
        token=values["token"],
        holder=values["holder"],
        term=values["term"],
        wait=row["wait"],
        refusals=row["refusals"],
        robots=robots,
        slots=tuple(values["slots"]),
    )


async def next_turn(
    db: Database,
    *,
    at: datetime,
    only: Collection[Domain] | None = None,
    exempt_addresses: Sequence[str] = (),
    held: Collection[int] = (),
) -> timedelta | None:
    """Real time until it is worth claiming again; None if waiting alone frees no domain.

    Counts domains that only a delay or an address holds back; not those that somebody else holds.
    held: as in `claim`.
    """
    values = _values_of(at=at, only=only, exempt=exempt_addresses) | {"tried": list(held)}
    wait: timedelta | None = await fetch_value(db, NEXT_TURN, values)
    return wait
