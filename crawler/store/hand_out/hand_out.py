"""Which page next: handing out the pages that are worth a fetch, best first."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from math import isinf
from typing import Any

from crawler.core.budget import MOST_CORRECTION, falling_price
from crawler.core.domain import Domain, Lease
from crawler.core.freshness import COME_FIRST, Candidates, Defaults, Selection, Wanted, select, select_requested_first
from crawler.core.http import PageKey
from crawler.core.novelty import LONGEST_WAIT
from crawler.core.visit.visit import NEVER, State, Target
from crawler.errors import LeaseLost
from crawler.store import learned
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.hand_out.candidates import CandidateRow, ScoredRows, score_head, with_more_new
from crawler.store.hand_out.scoring import ScoringContext, scoring_context
from crawler.store.hand_out.targets import is_revisit, targets_of
from crawler.store.partitions import count_if_outgrown

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
        values = {"domain_id": lease.domain.id, "at": at, "without": list(without), "requested_only": requested_only}
        context = await scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if context is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values | {"most": most}, context=context)
        memory = None  # read where a URL with a query is met
        for _ in range(MOST_WINDOWS):
            doubtful = _with_queries(weighed, selection)
            if doubtful and memory is None:
                memory = await learned.novelty_memory_of(connection, lease.domain.id)
            repeats = [row.key for row in doubtful if memory is not None and memory.is_read_already(row.url)]
            if not repeats:
                break
            aside = {"domain_id": lease.domain.id, "keys": repeats, "until": at + LONGEST_WAIT}
            await connection.execute(SET_ASIDE, aside)
            weighed, selection = await _best(connection, values | {"most": most}, context=context)
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
        await learned.count_revisits(connection, lease.domain.id, [each.group for each in targets if is_revisit(each)])
        return targets


async def preview(db: Database, domain: Domain, *, most: int, at: datetime, defaults: Defaults) -> list[Target]:
    """The pages that `hand_out` would give first. Needs no lease and writes nothing."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": most, "requested_only": 0}
        context = await scoring_context(connection, domain, at=at, defaults=defaults)
        if context is None:
            return []
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values, context=context)
        return await targets_of(connection, domain.id, weighed, selection.chosen.tolist(), context)


async def _best(
    connection: Connection, values: dict[str, Any], *, context: ScoringContext
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
    if _are_new_ones_missing(weighed, selection, slots, share_known=share_known):
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


def _are_new_ones_missing(weighed: ScoredRows, selection: Selection, slots: int, *, share_known: int) -> bool:
    """Whether due pages that are not worth a look leave room for new ones that were not read."""
    new = int(weighed.head.is_new.sum())
    known = len(selection.chosen) - int(weighed.head.is_new[selection.chosen].sum())
    return slots - share_known <= new < slots - known


def due_in(days: float, *, at: datetime) -> datetime:
    """The instant so many days from now; inf is never."""
    return NEVER if isinf(days) else at + timedelta(days=days)
