"""Recording of a batch of visits in one transaction, with pages, snapshots, links, cash, events and due times."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg.types.json import Jsonb

from crawler.core.budget.cost import Costs, RequestKind, learn_cost
from crawler.core.budget.ledger import NO_REFUND, Refund, settle_ledger
from crawler.core.change.edits import BoilerplateEdit
from crawler.core.change.mask import NoiseMask
from crawler.core.domain import Domain, Lease, Suspension
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.urls import PageKey, Url
from crawler.core.rendering.memory import RenderMemory
from crawler.core.soft_errors import SoftErrorMemory
from crawler.core.visit.state import State
from crawler.core.visit.visit import HeadOutcome, Visit
from crawler.errors import LeaseLost
from crawler.store import failure_runs
from crawler.store.claim import budgets
from crawler.store.claim.active_lease import fence, renew_slots, write_suspension
from crawler.store.database import REUSE_KEY_LOOKUPS, Connection, Database
from crawler.store.domain_rows import post_reprice, post_signals
from crawler.store.failure_runs import FailureEvent
from crawler.store.learned.credibility import learn_sources, learn_trust
from crawler.store.learned.domain_memory import write_memory
from crawler.store.record import admissions, events, lists, novelty, pages, shared_schedules, values
from crawler.store.record.events import format_parts
from crawler.store.record.opic import load_opic_batch, write_opic_batch
from crawler.store.rows import clean_text, copy_rows, decode_costs, encode_costs, fetch_dict, fetch_value

RENEW_AND_READ = """
    UPDATE domain_state
       SET leased_until = clock_timestamp() + %(term)s
     WHERE domain_id = %(domain_id)s AND lease_token = %(token)s  -- valid until another worker takes it
 RETURNING next_event, costs, budget_day, spent_requests, spent_bytes, spent_floor,
           EXISTS (SELECT FROM prior p WHERE p.domain_id = %(domain_id)s AND p.is_moving) AS is_moving,
           EXISTS (SELECT FROM failure_run r WHERE r.domain_id = %(domain_id)s AND r.key = '') AS was_suspended
"""
ADVANCE_DOMAIN = f"""
    {budgets.WITH_SHARED}
    UPDATE domain_state
       SET last_visit_at = greatest(last_visit_at, %(at)s), next_event = %(next_event)s,
           {budgets.LEDGER_COLUMNS},
           rejections = CASE WHEN %(good)s THEN 0 ELSE rejections END, costs = %(costs)s
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own statement is inserted
VISIT_COLUMNS = """
    domain_id int8, key bytea, at timestamptz, outcome text, status int2, reason text,
    change text, evidence text, distance_bits int2, parts text, magnitude float8,
    conditional bool, requests int2, received_bytes int4, saved_bytes int4, elapsed_ms int4,
    rendering text, added_words int4, added_links int4,
    cash int8, shadow_price float8, audit bool, expected float8, due_at timestamptz
"""
IS_RECORDED = "SELECT EXISTS (SELECT FROM visit WHERE domain_id = %s AND key = %s AND at = %s)"


class Batch(Struct, frozen=True):
    """Visits to record in one transaction, at least one, and what belongs to them.

    max_pages: the page limit of the domain; cash for links to further pages goes to the virtual page.  refund: requests
    debited from the day's budget but not sent, and the bytes that were debited in advance for these visits.
    is_shared: also charge the budget of all domains together.  suspension: suspend the domain because of one of these
    visits.  mask, soft_errors, renders: what the visits taught about the domain; None if nothing.  edit: a change of
    the domain's boilerplate to report, which `mask` already includes.  signals: change signals from these visits; they
    are put into the inbox.  page_score: a score of unfetched pages, for the discovery order.
    dispatched: pages that are being fetched, with or without those of these visits.  to_render: stored pages to render
    as soon as possible.
    """

    visits: Sequence[Visit]
    max_pages: int
    refund: Refund = NO_REFUND
    is_shared: bool = False
    suspension: Suspension | None = None
    mask: NoiseMask | None = None
    soft_errors: SoftErrorMemory | None = None
    renders: RenderMemory | None = None
    edit: BoilerplateEdit | None = None
    signals: Sequence[ChangeSignal] = ()
    page_score: Callable[[Url], float] | None = None
    dispatched: Collection[PageKey] = ()
    to_render: Collection[PageKey] = ()

    @property
    def at(self) -> datetime:
        """Return the time of the last visit."""
        return max(visit.at for visit in self.visits)


async def record_visits(db: Database, lease: Lease, batch: Batch, *, retrying: bool = False) -> int:
    """Record a batch in one transaction and return the number of admitted pages that may be fetched now.

    The transaction checks and renews the lease and writes visits, snapshots, new pages, cash, due times and events.
    retrying: an earlier try may have been committed; if so, record nothing and return 0.
    Raise LeaseLost, without any change, if another worker holds the domain or one of its addresses.
    """
    domain_id, visits = lease.domain.id, batch.visits
    async with db.transaction() as connection:
        # Locks the domain's row for the transaction.
        parameters = {"domain_id": domain_id, "token": lease.token, "term": lease.term}
        state = await fetch_dict(connection, RENEW_AND_READ, parameters)
        if state is None:
            raise LeaseLost(f"another worker has taken over {lease.domain.authority}")
        await renew_slots(connection, lease)
        await connection.execute(REUSE_KEY_LOOKUPS)
        if retrying and await fetch_value(connection, IS_RECORDED, (domain_id, visits[0].target.key, visits[0].at)):
            return 0
        visits = await lists.limit_feeds(connection, domain_id, visits)
        settings = lease.domain.settings
        opic = await load_opic_batch(connection, domain_id, visits, settings=settings, page_score=batch.page_score)
        needs_novelty = state["is_moving"] or novelty.is_needed(opic, visits)
        templates = await novelty.load_novelty(connection, domain_id) if needs_novelty else None
        admitted = admissions.settle_visits(opic, visits, max_pages=batch.max_pages, novelty=templates)
        await admissions.write_admitted(connection, domain_id, opic, admitted)
        await pages.write_pages(connection, domain_id, opic, visits)
        await pages.request_renders(connection, domain_id, batch.to_render, at=batch.at)
        await shared_schedules.update_schedules(connection, domain_id, visits)
        await pages.write_links(connection, domain_id, opic, visits)
        await write_opic_batch(connection, domain_id, opic, dispatched=batch.dispatched)
        if templates is not None:
            await novelty.write_novelty(connection, domain_id, templates, at=batch.at, dispatched=batch.dispatched)
        await pages.write_versions(connection, domain_id, visits)
        await lists.write_lists(connection, domain_id, visits)
        deferrals = templates.deferrals if templates is not None else ()
        first = state["next_event"]
        failures = await _record_failures(connection, lease.domain, batch, visits, was_suspended=state["was_suspended"])
        new_values = await values.write_values(connection, lease.domain, visits)
        count = await events.write_events(
            connection,
            lease.domain,
            visits,
            batch.edit,
            deferrals,
            values=new_values,
            failures=failures,
            first_number=first,
        )
        await copy_rows(connection, "visit", VISIT_COLUMNS, (_build_visit_row(domain_id, visit) for visit in visits))
        await _write_learned(connection, domain_id, batch)
        await _advance_domain(connection, domain_id, batch, state, next_event=first + count)
        return sum(position.state is State.UNFETCHED and position.deferred_until is None for _, position in admitted)


async def _record_failures(
    connection: Connection, domain: Domain, batch: Batch, visits: Sequence[Visit], *, was_suspended: bool
) -> list[FailureEvent]:
    """Record failures in a row of pages and of the domain; return the events to write."""
    found = await failure_runs.record_page_failures(connection, domain, visits)
    if was_suspended and any(visit.is_good for visit in visits):
        found += await failure_runs.end_suspensions(connection, domain, at=batch.at)
    if batch.suspension is not None:
        found += await failure_runs.record_suspension(connection, domain, batch.suspension, at=batch.at)
    return found


async def request_renders(
    db: Database, lease: Lease, to_render: Collection[PageKey], renders: RenderMemory, *, at: datetime
) -> None:
    """Make stored pages due for rendering and store the memory of renders. Raise LeaseLost."""
    async with db.transaction() as connection:
        await fence(connection, lease)
        await pages.request_renders(connection, lease.domain.id, to_render, at=at)
        await write_memory(connection, lease.domain.id, renders)


async def _write_learned(connection: Connection, domain_id: int, batch: Batch) -> None:
    await learn_trust(connection, domain_id, batch.visits)
    if await learn_sources(connection, domain_id, batch.visits):
        await post_reprice(connection, domain_id, at=batch.at)
    await post_signals(connection, domain_id, batch.signals, at=batch.at)
    for memory in (batch.mask, batch.soft_errors, batch.renders):
        if memory is not None:
            await write_memory(connection, domain_id, memory)


async def _advance_domain(
    connection: Connection, domain_id: int, batch: Batch, state: dict[str, Any], *, next_event: int
) -> None:
    """Update the row of the domain and, last, the shared ledger, because all other workers wait for that one."""
    if batch.suspension is not None:
        await write_suspension(connection, domain_id, batch.suspension)
    received_bytes = sum(visit.received_bytes for visit in batch.visits)
    ledger = settle_ledger(budgets.build_ledger(state), batch.refund, received_bytes=received_bytes)
    is_good = any(visit.is_good for visit in batch.visits) and batch.suspension is None
    costs = _update_costs(decode_costs(state["costs"]), batch.visits)
    values = {"domain_id": domain_id, "at": batch.at, "next_event": next_event, "good": is_good}
    values |= budgets.build_ledger_params(ledger) | {"costs": Jsonb(encode_costs(costs))}
    values |= await budgets.settle_shared_budget(
        connection, batch.refund, is_shared=batch.is_shared, received_bytes=received_bytes
    )
    await connection.execute(ADVANCE_DOMAIN, values)


def _update_costs(costs: Costs, visits: Sequence[Visit]) -> Costs:
    for visit in visits:
        if visit.requests and visit.is_good:
            kind = RequestKind.CONDITIONAL if visit.conditional else RequestKind.FULL
            requests = visit.requests
            if visit.head_outcome is not None:
                kind, requests = RequestKind.HEAD, requests + (visit.head_outcome is not HeadOutcome.BODY_SKIPPED)
            version = visit.snapshot.version if visit.snapshot is not None else visit.target.version
            if version is not None and version.is_rendered:
                kind, requests = RequestKind.RENDER, requests + visit.rendering.requests
            costs = learn_cost(costs, kind, requests=requests, received_bytes=visit.received_bytes)
    return costs


def _build_visit_row(domain_id: int, visit: Visit) -> tuple[Any, ...]:
    """Return the row of a visit, in the order of VISIT_COLUMNS."""
    target, verdict, rendering = visit.target, visit.verdict, visit.rendering
    outcome_values = (domain_id, target.key, visit.at, visit.outcome, visit.status, clean_text(visit.reason))
    evidence, bits = verdict.evidence.value, verdict.distance_bits
    change_values = (visit.reported_change.value, evidence, bits, format_parts(visit), visit.magnitude)
    requests = min(visit.requests + visit.extra_requests + rendering.requests, 32_000)
    elapsed_ms = round(visit.elapsed.total_seconds() * 1000)
    exchange_values = (visit.conditional, requests, visit.received_bytes, visit.saved_bytes, elapsed_ms)
    cash = target.cash if visit.recipients is not None else 0
    # Visits that were requested because the canonical page changed would bias the calibration.
    expected = None if target.requested is RequestReason.BY_CANONICAL else visit.expected_change
    plan_values = (cash, target.terms.shadow_price, target.requested is RequestReason.BY_AUDIT, expected, visit.due_at)
    render_values = (rendering.outcome, rendering.added_words, rendering.added_links)
    return (*outcome_values, *change_values, *exchange_values, *render_values, *plan_values)
