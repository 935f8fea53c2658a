"""Claiming domains: find a free domain that is due and lease it with its network addresses.

A *slot* is the right to send requests to a network address. Only one domain at a time has it, so that domains on the
same server are crawled one after the other.
Leases run in real time by the database's clock. Waking, back-off and budget days run in knowledge time (`at`, which
--at sets).
"""

import dataclasses
import time
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import uuid4

from msgspec.structs import replace
from psycopg.rows import class_row

from crawler.core.budget.hours import find_opening
from crawler.core.domain import Domain, Lease, RobotsCopy, is_own_server, parse_stored_hours
from crawler.core.visit.state import NEVER
from crawler.store.claim.active_lease import fence
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import DOMAIN_COLUMNS, ROBOTS_COLUMNS, build_domain
from crawler.store.rows import execute, fetch_dict, fetch_one, fetch_value

# A domain that is due or has rows in its inbox. Both are found by index among any number of sleeping domains.
DUE = "s.wake_at <= %(at)s"
HAS_INBOX = "s.domain_id = ANY(ARRAY(SELECT DISTINCT i.domain_id FROM inbox i))"
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
# When the next request may be sent: set on release; after a dead holder, the end of its lease plus the crawl delay,
# because it may have sent requests until then.
FREE_AT = "greatest(s.next_request_at, s.leased_until + s.delay_s * interval '1 second')"
# Address slots of the domain that another domain holds.
BLOCKING_SLOTS = """
       address_slot a
     WHERE a.address = ANY(s.addresses) AND a.domain_id <> s.domain_id AND a.held_until > clock_timestamp()
       AND NOT EXISTS (SELECT FROM unnest(%(exempt)s::inet[]) network
                        WHERE split_part(a.address, '%%', 1)::inet <<= network)
"""
# The longest overdue domain first, then those with an inbox. Only one row is locked, so concurrent claims take
# different domains.
CANDIDATE = f"""
    SELECT s.domain_id, s.addresses, coalesce({FREE_AT}, clock_timestamp()) AS free_at,
           s.delay_s, d.delay_s AS set_delay_s, d.authority, d.allow_private, d.hours
      FROM domain_state s
     CROSS JOIN LATERAL (SELECT * FROM domain d WHERE d.id = s.domain_id OFFSET 0) d  -- OFFSET 0: look up row by row
     WHERE {{}} AND {AWAKE} AND coalesce({FREE_AT} < clock_timestamp() + %(term)s / 2, true)
       AND NOT EXISTS (SELECT FROM {BLOCKING_SLOTS}) AND s.domain_id <> ALL(%(tried)s)
     ORDER BY s.wake_at NULLS LAST, s.domain_id
     LIMIT 1
       FOR NO KEY UPDATE OF s SKIP LOCKED
"""  # noqa: S608  only our own conditions are inserted
CANDIDATES = (CANDIDATE.format(DUE), CANDIDATE.format(HAS_INBOX))
# While another lease holds an address, the wait ends at the end of that lease at the latest.
CLAIM_WAIT = f"""
    SELECT min(greatest({FREE_AT} - clock_timestamp(), blocked.until - clock_timestamp(), interval '0.05 seconds'))
      FROM domain_state s JOIN domain d ON d.id = s.domain_id,
           LATERAL (SELECT max(least(a.held_until,
                                     (SELECT h.leased_until FROM domain_state h
                                       WHERE h.domain_id = a.domain_id AND h.lease_token = a.lease_token
                                         AND h.leased_until > clock_timestamp()))) AS until
                      FROM {BLOCKING_SLOTS}) blocked
     WHERE ({DUE} OR {HAS_INBOX}) AND {AWAKE} AND s.domain_id <> ALL(%(tried)s)
"""  # noqa: S608  only our own conditions are inserted
CLAIM_SLOTS = """
    INSERT INTO address_slot AS a (address, domain_id, lease_token, held_until)
    SELECT x, %(domain_id)s, %(token)s, clock_timestamp() + %(term)s + %(delay)s
      FROM unnest(%(slots)s::text[]) x ORDER BY x
    ON CONFLICT (address) DO UPDATE
       SET domain_id = excluded.domain_id, lease_token = excluded.lease_token, held_until = excluded.held_until
     WHERE a.held_until < clock_timestamp() OR a.domain_id = excluded.domain_id
    RETURNING a.address
"""
# Crawl hours are computed in Python and stored, so other claims skip the domain until it opens.
WRITE_CLOSED_HOURS = "UPDATE domain_state SET closed_from = %s, opens_at = %s WHERE domain_id = %s"
# A leased domain is awake until it is released, so it is claimed again if the holder dies. (Rows in the inbox keep the
# domain awake, too.)
WRITE_LEASE = f"""
    UPDATE domain_state s
       SET lease_token = %(token)s, leased_until = clock_timestamp() + %(term)s, holder = %(holder)s,
           next_request_at = %(free_at)s, delay_s = extract(epoch FROM %(delay)s::interval),
           wake_at = least(s.wake_at, %(at)s)
      FROM domain d
     WHERE s.domain_id = %(domain_id)s AND d.id = s.domain_id
 RETURNING {DOMAIN_COLUMNS}, s.rejections,
           greatest(s.next_request_at - clock_timestamp(), interval '0') AS wait
"""  # noqa: S608  only our own column list is inserted

WRITE_ADDRESSES = """
    UPDATE domain_state SET addresses = %s WHERE domain_id = %s RETURNING delay_s * interval '1 second' AS delay
"""
READ_ROBOTS = f"SELECT {', '.join(ROBOTS_COLUMNS)} FROM robots WHERE domain_id = %(domain_id)s"  # noqa: S608  our own columns
CLEAR_LEASE = "UPDATE domain_state SET lease_token = NULL, leased_until = NULL, holder = NULL WHERE domain_id = %s"


async def claim(
    db: Database,
    *,
    at: datetime,
    holder: str,
    term: timedelta,
    only: Collection[Domain] | None = None,
    exempt_addresses: Sequence[str] = (),
    delay: timedelta = timedelta(0),
    leased_ids: Collection[int] = (),
) -> Lease | None:
    """Lease a free domain that is due, the longest overdue first, or else one with rows in its inbox.

    The lease includes a slot for each address. Skip domains outside their crawl hours. Return None if there is none.
    holder: the name of the worker.  term: after this time, the lease expires unless it is renewed.
    only: choose among these.  exempt_addresses: networks whose addresses take no slot.  delay: the crawl delay of
    domains without a setting, except the user's own servers; a longer one of the last lease stays until `write_delay`.
    leased_ids: domains that the caller is crawling already; their leases may have expired during an outage of the
    database.
    """
    since = time.monotonic()
    values = _build_claim_params(at=at, only=only, exempt=exempt_addresses)
    values |= {"token": uuid4(), "holder": holder, "term": term}
    tried = list(leased_ids)  # plus those whose addresses turn out to be taken
    async with db.transaction() as connection:
        while True:
            await connection.execute("SAVEPOINT candidate")
            values["tried"] = tried
            candidate = await fetch_dict(connection, CANDIDATES[0], values)
            candidate = candidate or await fetch_dict(connection, CANDIDATES[1], values)
            if candidate is None:
                return None
            # A caller that claims at NEVER has checked the hours before (engine/try_page.py).
            opens_at = at if at == NEVER else find_opening(parse_stored_hours(candidate["hours"]), at)
            if opens_at > at:
                await connection.execute(WRITE_CLOSED_HOURS, (at, opens_at, candidate["domain_id"]))
                continue
            addresses, delay_s = candidate["addresses"], candidate["set_delay_s"]
            if delay_s is None:
                is_own = is_own_server(candidate["authority"], addresses, allow_private=candidate["allow_private"])
                delay_s = 0 if is_own else delay.total_seconds()
            slots = list_slot_addresses(addresses, exempt_addresses)
            longer_delay = timedelta(seconds=max(candidate["delay_s"], delay_s))
            lease_params = values | candidate | {"slots": slots, "delay": longer_delay}
            if await _claim_slots(connection, lease_params):
                return replace(await _claim_domain(connection, lease_params), since=since)
            # Take all slots or none, and keep no lock on a domain that is not taken.
            await connection.execute("ROLLBACK TO SAVEPOINT candidate")
            tried.append(candidate["domain_id"])


def _build_claim_params(*, at: datetime, only: Collection[Domain] | None, exempt: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the statements that search for a domain."""
    ids = None if only is None else [domain.id for domain in only]
    return {"at": at, "only": ids, "exempt": [str(ip_network(network)) for network in exempt]}


def list_slot_addresses(addresses: Collection[str], exempt: Sequence[str]) -> list[str]:
    """Return the addresses that need a slot: those outside the exempt networks, sorted to prevent deadlocks."""
    networks = [ip_network(network) for network in exempt]
    return sorted({a for a in addresses if not any(ip_address(a) in network for network in networks)})


async def change_addresses(
    db: Database, lease: Lease, addresses: Collection[str], *, exempt: Sequence[str]
) -> Lease | None:
    """Store the current addresses of a leased domain and return the lease with their slots.

    If another domain holds one of them, release the domain and return None: the next claim waits for the address.
    Raise LeaseLost.
    """
    slots = list_slot_addresses(addresses, exempt)
    async with db.transaction() as connection:
        await fence(connection, lease)
        delay = await fetch_value(connection, WRITE_ADDRESSES, (sorted(addresses), lease.domain.id))
        values = {"domain_id": lease.domain.id, "slots": slots, "delay": delay}
        await connection.execute("SAVEPOINT slots")
        if await _claim_slots(connection, values | {"token": lease.token, "term": lease.term}):
            domain = dataclasses.replace(lease.domain, addresses=tuple(addresses))
            return replace(lease, slots=tuple(slots), domain=domain)
        await connection.execute("ROLLBACK TO SAVEPOINT slots")
        await connection.execute(CLEAR_LEASE, (lease.domain.id,))
        return None


async def _claim_slots(connection: Connection, values: dict[str, Any]) -> bool:
    """Take all slots of a domain and return whether they were free."""
    return not values["slots"] or await execute(connection, CLAIM_SLOTS, values) == len(values["slots"])


async def _claim_domain(connection: Connection, values: dict[str, Any]) -> Lease:
    row = await fetch_dict(connection, WRITE_LEASE, values)
    assert row is not None
    robots = await fetch_one(connection, class_row(RobotsCopy), READ_ROBOTS, values)
    return Lease(
        domain=build_domain(row),
        token=values["token"],
        holder=values["holder"],
        term=values["term"],
        wait=row["wait"],
        rejections=row["rejections"],
        robots=robots,
        slots=tuple(values["slots"]),
    )


async def compute_claim_wait(
    db: Database,
    *,
    at: datetime,
    only: Collection[Domain] | None = None,
    exempt_addresses: Sequence[str] = (),
    leased_ids: Collection[int] = (),
) -> timedelta | None:
    """Return the real time until a claim can succeed, or None if waiting frees no domain.

    Considers domains that wait only for a crawl delay or an address, not those that other workers hold.
    leased_ids: as in `claim`.
    """
    values = _build_claim_params(at=at, only=only, exempt=exempt_addresses) | {"tried": list(leased_ids)}
    wait: timedelta | None = await fetch_value(db, CLAIM_WAIT, values)
    return wait
