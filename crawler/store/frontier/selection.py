"""Selection of the pages to fetch next, the most valuable first.

When the shadow price or the rules change, the due times of all fetched pages are recomputed in slices (batches).
Otherwise pages that are now due would wait until their old due times, because a selection reads only the first rows of
the due-time index.

Terms: the due order is the order of that index. A window is a number of consecutive rows of it, and the head is the
first window. A slot is a place for one page in a selection. A filler is a page that gets a slot although its value is
below the shadow price, because no other page has enough value. Floor visits are the few visits below the shadow price
to pages that have reached their longest interval.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isinf
from typing import Any

from crawler.core.budget.shadow_price import MAX_CORRECTION, compute_price_decay
from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import has_same_weighing
from crawler.core.freshness.policies import ValuePolicy
from crawler.core.freshness.selection import Selection, find_outdated_due_times, select_pages, select_requested_first
from crawler.core.freshness.visit_terms import PRIORITY_REQUESTS, CrawlDefaults, RequestReason
from crawler.core.http.urls import PageKey
from crawler.core.novelty import MAX_WAIT
from crawler.core.visit.state import NEVER, State
from crawler.core.visit.visit import Target
from crawler.errors import LeaseLost
from crawler.store.claim.active_lease import fence
from crawler.store.database import REUSE_KEY_LOOKUPS, Connection, Database
from crawler.store.domain_rows import read_domain, write_inbox_cursor
from crawler.store.frontier.candidate_query import (
    KEY_ROWS,
    SLICE_ROWS,
    CandidateRow,
    ScoredRows,
    add_unfetched_pages,
    score_head,
    score_pages,
)
from crawler.store.frontier.scoring import ScoringContext, read_scoring_context
from crawler.store.frontier.targets import is_revisit, read_targets
from crawler.store.learned.credibility import count_revisits
from crawler.store.learned.domain_memory import read_novelty_memory
from crawler.store.partitions import analyze_if_outgrown
from crawler.store.rows import fetch_dict, fetch_rows

FIRST_INSTANT = datetime(1, 1, 1, tzinfo=UTC)
WINDOW_FACTOR = 3  # pages read from the head of the due order, as a multiple of the pages to select
MIN_WINDOW = 30  # at least this many pages are read, so that selecting pages one at a time finds the same pages
MAX_EXTRA_PAGES = 100  # at most this many more than the pages to select are read: scoring costs as much as selecting

WRITE_DUE_TIMES = """
    UPDATE frontier f SET due_at = x.due_at, request_reason = 0
      FROM unnest(%(keys)b::bytea[], %(due_at)b::timestamptz[]) AS x(key, due_at)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.state <> 'unfetched'
       AND f.request_reason NOT IN (1, 4, 5)
"""
IS_DEFERRABLE = "key = ANY(%(keys)s) AND state = 'unfetched' AND due_at IS NULL AND NOT boosted"
FIND_REPEATS = f"SELECT key FROM frontier WHERE domain_id = %(domain_id)s AND {IS_DEFERRABLE}"  # noqa: S608  our own
DEFER_REPEATS = f"""
    UPDATE frontier SET due_at = %(until)s WHERE domain_id = %(domain_id)s AND {IS_DEFERRABLE} RETURNING key
"""  # noqa: S608  as above
LOWER_SHADOW_PRICE = f"""
    UPDATE domain_plan SET price_correction = greatest(price_correction * %(factor)s, {1 / MAX_CORRECTION})
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  our own number
SPEND_FLOOR = "UPDATE domain_state SET spent_floor = spent_floor + %(floor)s WHERE domain_id = %(domain_id)s"
MAX_WINDOWS = 16  # windows of the due order read for one selection
# The number of overdue pages scored if they compete for a budget. The longest overdue are not the most valuable: after
# a release or an outage, nearly all pages of a site are overdue at once.
MAX_OVERDUE = 400
MAX_FILLER_PAGES = 400  # next due pages scored to fill slots of a budget for which no page has enough value
SLICE = 10_000  # pages rescored in one transaction: about half a second, in which others wait for the domain's row
# Locked before the price is read: a concurrent writer of a new price waits, and then requests another recomputation.
REPRICE_REQUEST = """
    SELECT id, payload FROM inbox WHERE domain_id = %s AND kind = 'reprice' ORDER BY id LIMIT 1 FOR UPDATE
"""
# This recomputation covers all changes of the price before its start.
BEGIN_REPRICING = "DELETE FROM inbox WHERE domain_id = %s AND kind = 'reprice' AND id <> %s AND NOT payload ? 'after'"
END_REPRICING = "DELETE FROM inbox WHERE id = %s"
# Under revisit policies other than by value, pages do not share schedules.
UNLINK_DUPLICATES = "UPDATE page SET canonical = NULL, is_copy = false WHERE domain_id = %s AND canonical IS NOT NULL"


async def select_targets(
    db: Database,
    lease: Lease,
    *,
    max_targets: int,
    at: datetime,
    dispatched: Collection[PageKey],
    defaults: CrawlDefaults,
    requested_only: int = 0,
) -> list[Target]:
    """Select the pages to fetch now.

    Pages of PRIORITY_REQUESTS come first, then fetched pages by value relative to the shadow price, and unfetched pages
    in discovery order. Fetched pages whose value is below the price get a new due time.
    requested_only: how many of the targets are reserved for PRIORITY_REQUESTS.  dispatched: pages being fetched.
    Raise LeaseLost.
    """
    await analyze_if_outgrown(db, lease.domain.id)
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "at": at, "without": list(dispatched)}
        values |= {"most": max_targets, "requested_only": requested_only}
        context = await read_scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if context is None:
            raise LeaseLost(f"another worker has taken over {lease.domain.authority}")
        await connection.execute(REUSE_KEY_LOOKUPS)
        scored, selection = await _select_new(connection, values, context, defers_repeats=True)
        due_times = _compute_due_times(scored, selection, at=at)
        if due_times:
            keys, due = list(due_times), list(due_times.values())
            await connection.execute(WRITE_DUE_TIMES, values | {"keys": keys, "due_at": due})
        if selection.filler_visits:
            days = selection.filler_visits / max(lease.domain.settings.budget_per_day or 1, 1)
            await connection.execute(LOWER_SHADOW_PRICE, values | {"factor": compute_price_decay(days)})
        if selection.floor_visits:
            await connection.execute(SPEND_FLOOR, values | {"floor": selection.floor_visits})
        targets = await read_targets(connection, lease.domain.id, scored, selection.chosen.tolist(), context)
        await count_revisits(connection, lease.domain.id, [each.group for each in targets if is_revisit(each)])
        return targets


async def preview_targets(
    db: Database, domain: Domain, *, max_targets: int, at: datetime, defaults: CrawlDefaults
) -> list[Target]:
    """Return the pages that `select_targets` would select. Needs no lease and writes nothing."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": max_targets, "requested_only": 0}
        context = await read_scoring_context(connection, domain, at=at, defaults=defaults)
        if context is None:
            return []
        await connection.execute(REUSE_KEY_LOOKUPS)
        scored, selection = await _select_new(connection, values, context, defers_repeats=False)
        return await read_targets(connection, domain.id, scored, selection.chosen.tolist(), context)


async def _select_new(
    connection: Connection, values: dict[str, Any], context: ScoringContext, *, defers_repeats: bool
) -> tuple[ScoredRows, Selection]:
    """Select the best pages except unfetched ones that were read under another URL.

    defers_repeats: store later due times of those.  Boosted and requested pages are never left out.
    """
    scored, selection = await _select_best(connection, values, context)
    memory = None  # read only if a selected URL has a query
    for _ in range(MAX_WINDOWS):
        query_pages = _find_query_pages(scored, selection)
        if query_pages and memory is None:
            memory = await read_novelty_memory(connection, values["domain_id"])
        repeats = [row.key for row in query_pages if memory is not None and memory.was_read_before(row.url)]
        statement = DEFER_REPEATS if defers_repeats else FIND_REPEATS
        keys = {"keys": repeats, "until": values["at"] + MAX_WAIT}
        deferred = await fetch_rows(connection, statement, values | keys) if repeats else []
        if not deferred:
            break
        values = values | {"without": [*values["without"], *(key for (key,) in deferred)]}
        scored, selection = await _select_best(connection, values, context)
    return scored, selection


async def _select_best(
    connection: Connection, values: dict[str, Any], context: ScoringContext
) -> tuple[ScoredRows, Selection]:
    """Score the first candidates of both orders, then further windows of the due order as long as they yield pages.

    While nothing is selected, read on up to the last due page, but at most MAX_WINDOWS: due pages wake the domain, so
    each must be selected or rescheduled.
    """
    slots = values["most"]
    share_fetched = max(int(slots * context.refresh_share) - 2, 0)  # rounding can cost two slots
    window = {
        "most": max(min(slots * WINDOW_FACTOR, slots + MAX_EXTRA_PAGES), MIN_WINDOW),
        "most_new": slots,  # unfetched pages are read in the order of selection, so no more are needed
        "share_new": round(slots * context.discovery_share),
        "share_fetched": share_fetched,
        "after_at": FIRST_INSTANT,
        "after_key": b"",
    }
    scored = await score_head(connection, values | window, context)
    selection = _select_pages(scored, values, context)
    unfetched_count = int(scored.head.is_unfetched.sum())
    fetched_count = len(selection.chosen) - int(scored.head.is_unfetched[selection.chosen].sum())
    # Due pages that were rescheduled instead of selected leave slots for more unfetched pages.
    if slots - share_fetched <= unfetched_count < slots - fetched_count:
        scored = await add_unfetched_pages(connection, values | window | {"most_new": share_fetched}, context, scored)
        selection = _select_pages(scored, values, context)
    remaining = MAX_OVERDUE - len(scored.rows)
    if context.is_scarce and scored.end is not None and scored.end[0] <= values["at"] and remaining > 0:
        next_window = window | _build_next_window(scored.end) | {"most": remaining}
        scored += await score_head(connection, values | next_window, context)
        selection = _select_pages(scored, values, context)
    for _ in range(MAX_WINDOWS - 1):
        is_fruitless = not len(selection.chosen) and scored.end is not None and scored.end[0] <= values["at"]
        if scored.end is None or not (selection.needs_more_candidates or is_fruitless):
            break
        window |= _build_next_window(scored.end) | ({"most": MAX_OVERDUE} if is_fruitless else {})
        before = len(scored.rows)
        scored += await score_head(connection, values | window, context)
        selection = _select_pages(scored, values, context, last_window=before)
    if context.uses_whole_budget and len(selection.chosen) < slots:
        # Timed pages cannot fill a slot.
        remaining = max(MAX_FILLER_PAGES, slots) - int((~scored.head.is_timed).sum())
        if scored.end is not None and remaining > 0:
            window |= _build_next_window(scored.end) | {"most": remaining}
            scored += await score_head(connection, values | window, context)
        selection = _select_pages(scored, values, context, fills=True)
    return scored, selection


def _build_next_window(end: tuple[datetime, PageKey]) -> dict[str, Any]:
    """Return the parameters of the next window of the due order, after this place."""
    return {"most_new": 0, "share_fetched": 0, "after_at": end[0], "after_key": end[1]}


def _find_query_pages(scored: ScoredRows, selection: Selection) -> list[CandidateRow]:
    """Return the pages selected in discovery order with a query: each may be another URL of a fetched page."""
    rows = (scored.rows[n] for n in selection.chosen.tolist())
    unfetched = (row for row in rows if row.state == State.UNFETCHED and row.request_reason == RequestReason.NONE)
    return [row for row in unfetched if row.due_at is None and "?" in row.url]


def _select_pages(
    scored: ScoredRows, values: dict[str, Any], context: ScoringContext, *, last_window: int = 0, fills: bool = False
) -> Selection:
    """Select pages. last_window: index of the first page of the last window.  fills: also select fillers."""
    select = partial(
        select_pages,
        discovery_share=context.discovery_share,
        refresh_share=context.refresh_share,
        slots_before=max(context.slot_number - values["most"], 0),  # without the slots of this selection
        budget=context.budget,
        fills_slots=fills,
    )
    return select_requested_first(
        scored.head,
        [row.request_reason if row.request_reason in PRIORITY_REQUESTS else 0 for row in scored.rows],
        lambda head, slots, begin: select(head, slots=slots, last_window=begin),
        slots=values["most"],
        requested_only=values["requested_only"],
        last_window=last_window,
    )


def _compute_due_times(scored: ScoredRows, selection: Selection, *, at: datetime) -> dict[PageKey, datetime]:
    """Return the due times to rewrite.

    Those of pages that are not due yet wait for a selection that selects nothing, as the last one of most leases does:
    until then, every record changes them, and the pages are read again.
    """
    found = zip(selection.rescheduled.tolist(), selection.due_in.tolist(), strict=True)
    is_last = not len(selection.chosen)
    outdated = ((n, days) for n, days in found if is_last or isinf(days) or scored.rows[n].due_in <= 0)
    return {scored.rows[n].key: compute_due_at(days, at=at) for n, days in outdated}


def compute_due_at(days: float, *, at: datetime) -> datetime:
    """Return the instant in a number of days; NEVER for inf."""
    return NEVER if isinf(days) else at + timedelta(days=days)


async def update_due_times(
    db: Database, lease: Lease, *, at: datetime, defaults: CrawlDefaults, max_pages: int = SLICE
) -> bool:
    """Recompute the due times of a slice of the domain's pages if that was requested; return whether this was done.

    The inbox row of the request stores the progress and keeps the domain awake until all pages are done. If rules or
    settings have changed since the lease was claimed, the next lease does it. Raise LeaseLost.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        row = await fetch_dict(connection, REPRICE_REQUEST, (lease.domain.id,))
        if row is None:
            return False
        after = bytes.fromhex(row["payload"].get("after", ""))
        if not after:
            await connection.execute(BEGIN_REPRICING, (lease.domain.id, row["id"]))
        current = await read_domain(connection, lease.domain.id)
        context = await read_scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if current is None or context is None or not has_same_weighing(current.settings, lease.domain.settings):
            return False
        if not after and not isinstance(context.revisit_policy, ValuePolicy):
            await connection.execute(UNLINK_DUPLICATES, (lease.domain.id,))
        await connection.execute(REUSE_KEY_LOOKUPS)
        values = {"domain_id": lease.domain.id, "after_key": after, "most": max_pages, "at": at}
        pages = await score_pages(connection, SLICE_ROWS, values, context)
        await _write_due_times(connection, lease.domain.id, pages, at=at)
        if len(pages.rows) < max_pages:
            await connection.execute(END_REPRICING, (row["id"],))
        else:
            await write_inbox_cursor(connection, row["id"], pages.rows[-1].key)
        return True


async def rescore_pages(
    connection: Connection, domain: Domain, keys: Sequence[PageKey], *, at: datetime, defaults: CrawlDefaults
) -> None:
    """Recompute the due times of these pages after change signals."""
    context = await read_scoring_context(connection, domain, at=at, defaults=defaults)
    if context is not None:
        values = {"domain_id": domain.id, "keys": list(keys), "at": at}
        pages = await score_pages(connection, KEY_ROWS, values, context)
        await _write_due_times(connection, domain.id, pages, at=at)


async def _write_due_times(connection: Connection, domain_id: int, pages: ScoredRows, *, at: datetime) -> None:
    rescheduled, days = find_outdated_due_times(pages.head)
    if len(rescheduled):
        keys, due = [pages.rows[n].key for n in rescheduled], [compute_due_at(float(each), at=at) for each in days]
        await connection.execute(WRITE_DUE_TIMES, {"domain_id": domain_id, "keys": keys, "due_at": due})
