"""Recording: many visits in one transaction, with their pages, snapshots, links, cash, events and due times."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.budget import Costs, RequestKind, learnt
from crawler.core.change import NoiseMask, SiteEdit
from crawler.core.domain import Hold, Lease
from crawler.core.freshness import DAY, Scores, Wanted
from crawler.core.soft_errors import SoftErrorMemory
from crawler.core.visit import HeadOutcome, State, Visit, drift_after
from crawler.errors import LeaseLost
from crawler.store import learned
from crawler.store.claim import keep_slots, settle_shared_budget, write_hold
from crawler.store.columns import clean, copy, costs_from, costs_to
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.learned import put_mask, put_soft_errors
from crawler.store.record import admissions, events, pages, shared_schedules
from crawler.store.record.events import parts_of
from crawler.store.record.opic import load_batch, write_batch

RENEW_AND_READ = """
    UPDATE domain_state
       SET leased_until = clock_timestamp() + %(term)s
     WHERE domain_id = %(domain_id)s AND lease_token = %(token)s  -- expiry only lets others take it
 RETURNING next_event, costs, drift, drift_at
"""
ADVANCE = """
    UPDATE domain_state
       SET last_visit_at = greatest(last_visit_at, %(at)s), next_event = %(next_event)s,
           spent_bytes = greatest(spent_bytes + %(bytes)s
               - CASE WHEN budget_day = %(refund_day)s::date THEN %(debited_bytes)s ELSE 0 END, 0),
           spent_requests = greatest(
               spent_requests - CASE WHEN budget_day = %(refund_day)s::date THEN %(refund)s ELSE 0 END, 0),
           refusals = CASE WHEN %(good)s THEN 0 ELSE refusals END,
           costs = %(costs)s, drift = %(drift)s, drift_at = coalesce(%(learnt_at)s, drift_at)
     WHERE domain_id = %(domain_id)s
"""
VISITS = """
    COPY visit (domain_id, key, at, answer, status, reason, change, rung, distance_bits, conditional, requests,
                received_bytes, saved_bytes, elapsed_ms, cash, expected, due_at, price, audit,
                parts)
    FROM STDIN (FORMAT BINARY)
"""


async def record(
    db: Database,
    lease: Lease,
    visits: Sequence[Visit],
    *,
    max_pages: int,
    refund: int = 0,
    refund_day: date | None = None,
    debited_bytes: int = 0,
    hold: Hold | None = None,
    again: bool = False,
    together: bool = False,
    mask: NoiseMask | None = None,
    soft_errors: SoftErrorMemory | None = None,
    edit: SiteEdit | None = None,
) -> int:
    """Write everything that the visits (at least one) changed, or nothing. Gives how many new pages were admitted.

    In one transaction: lease checked and renewed, visits, snapshots, pages admitted, cash settled, due times, events.
    max_pages: links beyond that many pages are not admitted and pay the reserve.  refund: requests that were taken
    from the budget of refund_day but not sent.  debited_bytes: of those that the visits received, how many were taken
    from it before.  hold: leave the domain alone, because of one of these visits.
    again: the same was tried before, and nobody knows whether its commit arrived; it is not applied twice.
    together: what it cost counts for all domains too.  mask, walls: of the domain, if the visits taught
    anything of them.  edit: of the domain's frame, to be told together with the mask that knows it for told.
    Raises LeaseLost where another worker holds the domain: then nothing was written.
    """
    domain_id = lease.domain.id
    async with db.transaction() as connection:
        values = {"domain_id": domain_id, "token": lease.token, "term": lease.term}
        row = await (await connection.execute(RENEW_AND_READ, values)).fetchone()
        if row is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        await keep_slots(connection, lease)
        await connection.execute(BY_KEY)
        if again and await _is_recorded(connection, domain_id, visits[0]):
            return 0
        books = await load_batch(connection, domain_id, visits, domain_settings=lease.domain.settings)
        admitted = admissions.settle(books, visits, max_pages=max_pages)
        await admissions.write(connection, domain_id, books, admitted)
        await pages.write_pages(connection, domain_id, books, visits)
        await shared_schedules.settle(connection, domain_id, visits)
        await pages.write_links(connection, domain_id, books, visits)
        await write_batch(connection, domain_id, books)
        await pages.write_versions(connection, domain_id, visits)
        next_event, costs, scores, learnt_at = row
        told = await events.write(connection, lease.domain, visits, edit, first=next_event)
        await _write_visits(connection, domain_id, visits)
        await learned.learn_of(connection, domain_id, visits)
        if mask is not None:
            await put_mask(connection, domain_id, mask)
        if soft_errors is not None:
            await put_soft_errors(connection, domain_id, soft_errors)
        received = sum(visit.received_bytes for visit in visits)
        unused = refund + sum(1 - visit.requests for visit in visits)
        await connection.execute(
            ADVANCE,
            {
                "domain_id": domain_id,
                "at": max(visit.at for visit in visits),
                "next_event": next_event + told,
                "bytes": received,
                "refund_day": refund_day,
                "refund": unused,
                "debited_bytes": debited_bytes,
                "good": any(visit.is_good for visit in visits) and hold is None,
                **_learnt(visits, costs, scores, learnt_at),
            },
        )
        if hold is not None:
            await write_hold(connection, domain_id, hold)
        if together:
            await settle_shared_budget(
                connection,
                refund=unused,
                refund_day=refund_day,
                received_bytes=received,
                debited_bytes=debited_bytes,
            )
        return sum(stand.state is State.NEW for _, stand in admitted)


def _learnt(visits: Sequence[Visit], costs: dict[str, Any], scores: Scores, at: datetime | None) -> dict[str, Any]:
    """What a batch teaches about the domain: what looks cost, and how fast its rates drift."""
    told = [visit for visit in visits if visit.expected_change is not None and visit.target.wanted is Wanted.NO]
    last = max((visit.at for visit in told), default=None)
    if last is not None:
        days = (last - at) / DAY if at is not None else 0.0
        scores = drift_after(scores, told, days=days)
    return {
        "costs": Jsonb(costs_to(_costs_after(costs_from(costs), visits))),
        "drift": list(scores),
        "learnt_at": last,
    }


def _costs_after(costs: Costs, visits: Sequence[Visit]) -> Costs:
    for visit in visits:
        if visit.requests and visit.is_good:
            kind = RequestKind.CONDITIONAL if visit.conditional else RequestKind.FULL
            requests = visit.requests
            if visit.head_outcome is not None:
                kind, requests = RequestKind.HEAD, requests + (visit.head_outcome is not HeadOutcome.SPARED)
            costs = learnt(costs, kind, requests=requests, received_bytes=visit.received_bytes)
    return costs


async def _is_recorded(connection: Connection, domain_id: int, visit: Visit) -> bool:
    cursor = await connection.execute(
        "SELECT FROM visit WHERE domain_id = %s AND key = %s AND at = %s", (domain_id, visit.target.key, visit.at)
    )
    return await cursor.fetchone() is not None


async def _write_visits(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    types = ["int8", "bytea", "timestamptz", "text", "int2", "text", "text", "text", "int2", "bool", "int2"]
    types += ["int4", "int4", "int4", "int8", "float8", "timestamptz", "float8", "bool", "text"]
    await copy(connection, VISITS, types, (_visit_row(domain_id, visit) for visit in visits))


def _visit_row(domain_id: int, visit: Visit) -> tuple[Any, ...]:
    return (
        domain_id,
        visit.target.key,
        visit.at,
        visit.answer,
        visit.status,
        clean(visit.reason),
        visit.change.value,
        visit.verdict.rung.value,
        visit.verdict.distance_bits,
        visit.conditional,
        visit.requests + visit.second_fetches,
        visit.received_bytes,
        visit.saved_bytes,
        round(visit.elapsed.total_seconds() * 1000),
        visit.target.cash if visit.recipients is not None else 0,
        # Who is called because another page changed is no sample of what was expected.
        None if visit.target.wanted is Wanted.BY_LEADER else visit.expected_change,
        visit.due_at,
        visit.target.terms.price,
        visit.target.wanted is Wanted.BY_AUDIT,
        parts_of(visit),
    )
