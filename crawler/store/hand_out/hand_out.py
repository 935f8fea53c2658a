"""Which page next: handing out the pages that are worth a fetch, best first.

After the price or the rules have changed, known pages are scored again, slice by slice. A claim reads no further in
the due order than its windows yield. Where the price has fallen, or a rule asks for more, the old order has pages that
are worth a visit now behind others that are not. No claim would reach them before their old due times.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from math import isinf
from typing import Any

from crawler.core.budget.shadow_price import MOST_CORRECTION, falling_price
from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import weighs_alike
from crawler.core.freshness.policies import PricePolicy
from crawler.core.freshness.selection import Candidates, Selection, due_again, select, select_requested_first
from crawler.core.freshness.terms import COME_FIRST, Defaults, Wanted
from crawler.core.http.urls import PageKey
from crawler.core.novelty import LONGEST_WAIT
from crawler.core.visit.visit import NEVER, State, Target
from crawler.errors import LeaseLost
from crawler.store.claim.held import fence
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.domain_rows import domain_numbered, go_on_after
from crawler.store.hand_out.candidates import (
    BY_KEYS,
    SLICES,
    CandidateRow,
    ScoredRows,
    score_head,
    score_pages,
    with_more_new,
)
from crawler.store.hand_out.scoring import ScoringContext, scoring_context
from crawler.store.hand_out.targets import is_revisit, targets_of
from crawler.store.learned.credibility import count_revisits
from crawler.store.learned.memories import novelty_memory_of
from crawler.store.partitions import count_if_outgrown
from crawler.store.rows import fetch_dict

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
WINDOW = 3  # of the head of the due order, how many times what is wanted is weighed before the best are handed out,
MIN_WINDOW = 30  # at least so many: a small budget grants one slot at a time, which finds what ten would find
MOST_BESIDE = 100  # but no more than so many pages beside what is wanted: weighing costs as much as handing out

PUT_OFF = """
    UPDATE frontier f SET due_at = x.due_at, wanted = 0
      FROM unnest(%(keys)b::bytea[], %(due_at)b::timestamptz[]) AS x(key, due_at)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.state <> 'new' AND f.wanted NOT IN (1, 4, 5)
"""
SET_ASIDE = """
    UPDATE frontier SET due_at = %(until)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND state = 'new' AND due_at IS NULL AND NOT favoured
"""
LOWER_PRICE = f"""
    UPDATE domain_plan SET price_correction = greatest(price_correction * %(factor)s, {1 / MOST_CORRECTION})
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  our own number
SPEND_FLOOR = "UPDATE domain_state SET spent_floor = spent_floor + %(floor)s WHERE domain_id = %(domain_id)s"
MOST_WINDOWS = 16  # of the due order, read for one hand-out
# Of pages that are overdue and compete for a budget, so many are weighed. The longest overdue are not the most
# valuable: after a release or an outage nearly all pages of a site are overdue at once.
MOST_OVERDUE = 400
MAX_FILLING = 400  # pages that are weighed for slots of a budget that no page is worth, the next due ones
SLICE = 10_000  # pages scored under one lease: about half a second, in which others wait for the domain's row
# Locked before the price is read: who writes another price then waits, and finds that this pass has begun.
REPRICE_WISH = """
    SELECT id, payload FROM inbox WHERE domain_id = %s AND kind = 'reprice' ORDER BY id LIMIT 1 FOR UPDATE
"""
# This pass serves for all changes of the price before it begins.
BEGIN_REPRICING = "DELETE FROM inbox WHERE domain_id = %s AND kind = 'reprice' AND id <> %s AND NOT payload ? 'after'"
REPRICED = "DELETE FROM inbox WHERE id = %s"
# Where no price decides, each page has a time of its own.
LEAVE_ALL = "UPDATE page SET leader = NULL, is_copy = false WHERE domain_id = %s AND leader IS NOT NULL"


async def hand_out(
    db: Database,
    lease: Lease,
    *,
    most: int,
    at: datetime,
    without: Collection[PageKey],
    defaults: Defaults,
    requested_only: int = 0,
) -> list[Target]:
    """The pages worth a fetch now.

    First those that a user has requested, then known ones by value over price, and new ones in the domain's order.
    requested_only: how many of `most` may only be pages that a user has requested.  without: keys in flight.
    Pages that turn out not to be worth their price yet get a new due time.  Raises LeaseLost.
    """
    await count_if_outgrown(db, lease.domain.id)
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "at": at, "without": list(without)}
        values |= {"most": most, "requested_only": requested_only}
        context = await scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if context is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values, context)
        memory = None  # read where a URL with a query is met
        for _ in range(MOST_WINDOWS):
            doubtful = _with_queries(weighed, selection)
            if doubtful and memory is None:
                memory = await novelty_memory_of(connection, lease.domain.id)
            repeats = [row.key for row in doubtful if memory is not None and memory.is_read_already(row.url)]
            if not repeats:
                break
            await connection.execute(SET_ASIDE, values | {"keys": repeats, "until": at + LONGEST_WAIT})
            weighed, selection = await _best(connection, values, context)
        if len(selection.later):
            due = [due_in(float(days), at=at) for days in selection.due_in]
            keys = [weighed.rows[n].key for n in selection.later]
            await connection.execute(PUT_OFF, values | {"keys": keys, "due_at": due})
        if selection.filling:
            days = selection.filling / max(lease.domain.settings.budget_per_day or 1, 1)
            await connection.execute(LOWER_PRICE, values | {"factor": falling_price(days)})
        if selection.floor:
            await connection.execute(SPEND_FLOOR, values | {"floor": selection.floor})
        targets = await targets_of(connection, lease.domain.id, weighed, selection.chosen.tolist(), context)
        await count_revisits(connection, lease.domain.id, [each.group for each in targets if is_revisit(each)])
        return targets


async def preview(db: Database, domain: Domain, *, most: int, at: datetime, defaults: Defaults) -> list[Target]:
    """The pages that `hand_out` would give first. Needs no lease and writes nothing."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": most, "requested_only": 0}
        context = await scoring_context(connection, domain, at=at, defaults=defaults)
        if context is None:
            return []
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values, context)
        return await targets_of(connection, domain.id, weighed, selection.chosen.tolist(), context)


async def _best(
    connection: Connection, values: dict[str, Any], context: ScoringContext
) -> tuple[ScoredRows, Selection]:
    """Score the first candidates of both orders, then further windows of the due order as long as one yields pages.

    While nothing is chosen, windows go on to the end of what is due: what is due wakes the domain, so it is selected
    or put off.
    """
    slots = values["most"]
    share_known = max(int(slots * context.refresh_share) - 2, 0)  # a single hand-out may give them two slots less
    window = {
        "most": max(min(slots * WINDOW, slots + MOST_BESIDE), MIN_WINDOW),
        "most_new": slots,  # they are read in the order in which they are handed out
        "share_new": round(slots * context.discovery_share),
        "share_known": share_known,
        "after_at": BEGINNING,
        "after_key": b"",
    }
    weighed = await score_head(connection, values | window, context)
    selection = _selected(weighed, values, context)
    new = int(weighed.head.is_new.sum())
    known = len(selection.chosen) - int(weighed.head.is_new[selection.chosen].sum())
    if slots - share_known <= new < slots - known:  # due pages not worth a visit leave room for new ones not read yet
        weighed = await with_more_new(connection, values | window | {"most_new": share_known}, context, weighed)
        selection = _selected(weighed, values, context)
    room = MOST_OVERDUE - len(weighed.rows)
    if context.is_scarce and weighed.end is not None and weighed.end[0] <= values["at"] and room > 0:
        others = window | _after(weighed.end) | {"most": room}
        weighed += await score_head(connection, values | others, context)
        selection = _selected(weighed, values, context)
    for _ in range(MOST_WINDOWS - 1):
        is_fruitless = not len(selection.chosen) and weighed.end is not None and weighed.end[0] <= values["at"]
        if weighed.end is None or not (selection.further or is_fruitless):
            break
        window |= _after(weighed.end) | ({"most": MOST_OVERDUE} if is_fruitless else {})
        before = len(weighed.rows)
        weighed += await score_head(connection, values | window, context)
        selection = _selected(weighed, values, context, last_window=before)
    if context.uses_whole_budget and len(selection.chosen) < slots:
        room = max(MAX_FILLING, slots) - int((~weighed.head.is_timed).sum())  # timed ones do not fill
        if weighed.end is not None and room > 0:
            weighed += await score_head(connection, values | window | _after(weighed.end) | {"most": room}, context)
        selection = _selected(weighed, values, context, fills_slots=True)
    return weighed, selection


def _after(end: tuple[datetime, PageKey]) -> dict[str, Any]:
    """The values of another window of the due order, which begins after this place."""
    return {"most_new": 0, "share_known": 0, "after_at": end[0], "after_key": end[1]}


def _with_queries(weighed: ScoredRows, selection: Selection) -> list[CandidateRow]:
    """The chosen new pages that may have been read under another name, as is known by now."""
    chosen = (weighed.rows[n] for n in selection.chosen.tolist())
    return [
        row
        for row in chosen
        if row.state == State.NEW and row.wanted == Wanted.NO and row.due_at is None and "?" in row.url
    ]


def _selected(
    weighed: ScoredRows,
    values: dict[str, Any],
    context: ScoringContext,
    *,
    last_window: int = 0,
    fills_slots: bool = False,
) -> Selection:
    most = values["most"]

    def select_others(head: Candidates, slots: int, begin: int) -> Selection:
        return select(
            head,
            slots=slots,
            discovery_share=context.discovery_share,
            refresh_share=context.refresh_share,
            slots_before=max(context.turn - most, 0),  # the slots of this hand-out are counted already
            budget=context.budget,
            last_window=begin,
            fills_slots=fills_slots,
        )

    return select_requested_first(
        weighed.head,
        [row.wanted if row.wanted in COME_FIRST else 0 for row in weighed.rows],
        select_others,
        slots=most,
        requested_only=values["requested_only"],
        last_window=last_window,
    )


def due_in(days: float, *, at: datetime) -> datetime:
    """The instant so many days from now; inf is never."""
    return NEVER if isinf(days) else at + timedelta(days=days)


async def reprice(db: Database, lease: Lease, *, at: datetime, defaults: Defaults, most: int = SLICE) -> bool:
    """Give a slice of the domain's pages the due times of today's price, if that has moved; whether there was any.

    The inbox row says how far it came, which keeps the domain awake until all pages are at the new price. New rules,
    and settings by which pages are due, wait for a lease that was claimed with them.  Raises LeaseLost.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        row = await fetch_dict(connection, REPRICE_WISH, (lease.domain.id,))
        if row is None:
            return False
        after = bytes.fromhex(row["payload"].get("after", ""))
        if not after:
            await connection.execute(BEGIN_REPRICING, (lease.domain.id, row["id"]))
        wished = await domain_numbered(connection, lease.domain.id)
        context = await scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if wished is None or context is None or not weighs_alike(wished.settings, lease.domain.settings):
            return False
        if not after and not isinstance(context.revisit, PricePolicy):
            await connection.execute(LEAVE_ALL, (lease.domain.id,))
        await connection.execute(BY_KEY)
        values = {"domain_id": lease.domain.id, "after_key": after, "most": most, "at": at}
        pages = await score_pages(connection, SLICES, values, context)
        await _write_due_times(connection, lease.domain.id, pages, at=at)
        if len(pages.rows) < most:
            await connection.execute(REPRICED, (row["id"],))
        else:
            await go_on_after(connection, row["id"], pages.rows[-1].key)
        return True


async def reweigh(
    connection: Connection, domain: Domain, keys: Sequence[PageKey], *, at: datetime, defaults: Defaults
) -> None:
    """Give these pages the due times of today, since something was heard of them."""
    context = await scoring_context(connection, domain, at=at, defaults=defaults)
    if context is not None:
        values = {"domain_id": domain.id, "keys": list(keys), "at": at}
        pages = await score_pages(connection, BY_KEYS, values, context)
        await _write_due_times(connection, domain.id, pages, at=at)


async def _write_due_times(connection: Connection, domain_id: int, pages: ScoredRows, *, at: datetime) -> None:
    moved, days = due_again(pages.head)
    if not len(moved):
        return
    values = {
        "domain_id": domain_id,
        "keys": [pages.rows[n].key for n in moved],
        "due_at": [due_in(float(each), at=at) for each in days],
    }
    await connection.execute(PUT_OFF, values)
