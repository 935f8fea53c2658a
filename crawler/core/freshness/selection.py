"""Select the pages that a claim hands out, from the heads of the due index and of the order of discovery. Pure.

The store's claim and the lab call one function. Due times only order an index; the value at today's belief and
today's price decides. So a stored due time may be out of date, and costs nothing but a second reading.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.signals import combine_signals, compute_days_ahead
from crawler.core.freshness.terms import PRIORITY_REQUESTS, RequestReason, VisitTerms
from crawler.core.freshness.value import (
    compute_due_gap,
    compute_first_values,
    compute_values_with_signals,
    compute_weights,
)

MIN_SCORE = 0.98  # of its price, from which on a look is not put off, since a new due time is a write
MIN_DELAY_DAYS = 1 / 1440  # a page that is put off is not read again in the same minute
DUE_TOLERANCE = 0.02  # a due time that would move by less than this part of its gap is left as it is
FLOOR_RETRY_DAYS = 1.0  # after which a floor visit is due again that today's share of the budget could not pay
CHECK_SHARE = 0.03  # of a budget, for visits of dead links; and as much for tests of pages that follow another one
DEAD_LINK_FACTOR = (
    1e-6  # factor on the score of a dead link where there is no budget, which puts it behind all other pages
)
MAX_CHECK_WAIT_DAYS = 180.0  # at most, until one is due again that has no turn: the budget may have grown since
NEVER_DAYS = 1e6  # a page that has to wait so long is never due
ROUNDING = 0.5 + 1e-6  # shares of slots are rounded; a product that is whole may come out a little less
MIN_YIELD = 0.05  # of a window's known pages that are worth a look: those of the next one are due in any case later
SCORE_TOLERANCE = 1e-3  # scores within a thousandth are equal, and the longest overdue goes first

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pages at the head of the due index or of the order of discovery: arrays of equal length. Times in days.

    a, b: of today's belief.
    shadow_price: importance x days that this look must be worth: the domain's price times what the look costs.
    min_interval, max_interval: no sooner after the last good look, and no later: the floor.  unseen: since it; of no
    meaning for a new page.  due_in: until the stored due time; below 0 when overdue.  is_unfetched: never asked for.
    is_requested: asked for by a user, or never had yet: worth any price.  is_timed: due by a clock of its own (retry,
    gone, moved, refused): not asked for before, nor put off. A page that was fetched, and that its terms want only
    once, has no interval: least and most are FOREVER_DAYS.  is_dead: gone, moved, or never a page.  is_duplicate: by
    another page's schedule. When due, such pages are visited in their share of a budget; without a budget a dead link
    goes behind all that are worth their price, as a floor visit.  is_ruled: its longest interval is a rule's: then a
    look is worth its price, and no floor visit.  cash: the order of discovery, the greatest first.  gap: between the
    last good look and the next, where another policy than the price says so; NaN elsewhere.  phase: the part of its gap
    that the next look waits (value.phase_of) of a page looked at once only; else 1.  activity_ahead: days by which the
    site's activity has gone ahead of the calendar since the last good look.  recall, signal_days_ahead: of sources of
    signals: the chance that a change would have been told, and the days by which what was told makes the page older; 0
    where nobody says anything.
    """

    a: Floats
    b: Floats
    weight: Floats
    shadow_price: Floats
    min_interval: Floats
    max_interval: Floats
    unseen: Floats
    due_in: Floats
    is_unfetched: Flags
    is_requested: Flags
    is_timed: Flags
    is_dead: Flags
    is_duplicate: Flags
    is_ruled: Flags
    cash: Floats
    phase: Floats
    gap: Floats
    activity_ahead: Floats
    recall: Floats
    signal_days_ahead: Floats


@dataclass(frozen=True, slots=True)
class DayBudget:
    """A domain's budget. per_day: requests, of which dead links get CHECK_SHARE, and followers as much.

    floor_left: visits below the price that the day still holds.
    """

    per_day: float
    floor_left: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of a selection; indices into the candidates.

    chosen: to hand out, in this order.  rescheduled, due_in: pages whose due times are to be rewritten, and in how many
    days they are due, inf for never.  floor_visits: number of chosen pages below their price, due by their longest
    interval alone.  filler_visits: number of chosen pages below their price, for slots that nothing else needs; they
    come last.  needs_more_candidates: another window of the due index should be read: the last one yielded pages, and
    there is room left.
    """

    chosen: Indices
    rescheduled: Indices
    due_in: Floats
    floor_visits: int
    filler_visits: int
    needs_more_candidates: bool


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """Pages as rows hold them: columns of equal length. Times in days.

    terms: of each page; many pages share one object.  a, b: of today's belief.  has_version: the page has a version.
    magnitude_factor: factor on the importance, by how much a page's changes change.  gap: see Candidates.
    signals: of each page since its last good look, by the number of their source (Terms.sources).  activity_ahead: see
    Candidates.
    request_reason: a Wanted each; a page that its terms want once is looked at again for a user only.
    """

    terms: Sequence[VisitTerms]
    a: Sequence[float]
    b: Sequence[float]
    importance: Sequence[float]
    magnitude_factor: Sequence[float] | Floats
    gap: Sequence[float]
    unseen: Sequence[float]
    due_in: Sequence[float]
    is_unfetched: Sequence[bool]
    has_version: Sequence[bool]
    request_reason: Sequence[int]
    is_timed: Sequence[bool]
    is_dead: Sequence[bool]
    is_duplicate: Sequence[bool]
    phase: Sequence[float]
    activity_ahead: Sequence[float]
    signals: Sequence[Sequence[int]]


def build_candidates(columns: CandidateColumns) -> Candidates:
    """The Candidates from columns, new pages in the order of discovery."""
    terms = columns.terms
    distinct_terms = {id(each): each for each in terms}
    position_by_id = {term_id: n for n, term_id in enumerate(distinct_terms)}
    figures = np.array([_get_term_values(each) for each in distinct_terms.values()]).reshape(-1, 5)
    shadow_price, min_interval, max_interval, once, is_ruled = figures[[position_by_id[id(each)] for each in terms]].T
    is_unfetched, has_version = (
        np.array(columns.is_unfetched, dtype=np.bool_),
        np.array(columns.has_version, dtype=np.bool_),
    )
    request_reason = np.array(columns.request_reason, dtype=np.intp)
    is_done = ~is_unfetched & has_version & (once > 0) & ~np.isin(request_reason, list(PRIORITY_REQUESTS))
    a, b = np.array(columns.a), np.array(columns.b)
    signals = combine_signals(columns.signals, [each.sources for each in terms], a / b)
    return Candidates(
        a=a,
        b=b,
        weight=compute_weights(np.array(columns.importance) * np.asarray(columns.magnitude_factor)),
        shadow_price=shadow_price,
        min_interval=np.where(is_done, NEVER_DAYS, min_interval),
        max_interval=np.where(is_done, NEVER_DAYS, max_interval),
        unseen=np.array(columns.unseen),
        due_in=np.array(columns.due_in),
        is_unfetched=is_unfetched,
        is_requested=~is_done & (request_reason != RequestReason.NONE),
        is_timed=~is_unfetched & ~is_done & (np.array(columns.is_timed, dtype=np.bool_) | (once > 0)),
        is_dead=np.array(columns.is_dead, dtype=np.bool_) & (request_reason == RequestReason.NONE),
        is_duplicate=np.array(columns.is_duplicate, dtype=np.bool_) & (request_reason == RequestReason.NONE),
        is_ruled=is_ruled > 0,
        cash=-np.arange(float(len(terms))),
        phase=np.array(columns.phase),
        gap=np.array(columns.gap),
        activity_ahead=np.array(columns.activity_ahead),
        recall=np.asarray(signals.recall),
        signal_days_ahead=compute_days_ahead(a, b, signals),
    )


def _get_term_values(terms: VisitTerms) -> tuple[float, ...]:
    return terms.shadow_price, terms.min_interval / DAY, terms.max_interval / DAY, terms.once, terms.is_ruled


def join_candidates(one: Candidates, other: Candidates) -> Candidates:
    """The Candidates of both, one after the other."""
    columns = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(Candidates))
    return Candidates(*map(np.concatenate, columns))


def select_pages(
    head: Candidates,
    *,
    slots: int,
    discovery_share: float,
    refresh_share: float,
    slots_before: int = 0,
    budget: DayBudget | None = None,
    last_window: int = 0,
    fills_slots: bool = False,
) -> Selection:
    """Select pages that are worth their price, by value over price; put the others off until they will be.

    slots: how many pages may be handed out.  discovery_share, refresh_share: shares of them guaranteed to new pages (at
    any price) and to revisits (at the price) while there are any; the rest goes to the better score, and what is left
    over then to new pages. So none is chosen only where no page is new or due, however few the slots.
    slots_before: handed out so far, from any beginning, so that fractions of slots in small hand-outs add up.
    budget: None: no bound.
    last_window: index of the first candidate of the last window that was read of the due index.
    fills_slots: slots that are left over go to the pages with the highest value over price, due or not.
    New pages go by cash among themselves: in that order the cash economy converges.
    """
    scores = _compute_scores(head)
    is_fetched = ~head.is_unfetched
    by_rule = is_fetched & head.is_ruled & ~head.is_timed & (head.unseen >= head.max_interval)
    scores = np.where(by_rule, np.maximum(scores, head.unseen / head.max_interval), scores)
    is_check_due, is_check_deferred, check_wait_days = _schedule_checks(
        head, slots=slots, slots_before=slots_before, budget=budget
    )
    scores = np.where(is_check_due, np.inf, scores)
    ready = is_fetched & ~head.is_dead & np.where(head.is_timed, head.due_in <= 0, scores >= MIN_SCORE)
    ready = is_check_due | (ready & ~is_check_deferred)
    floor = _choose_floor_visits(
        head,
        is_fetched & ~ready & ~is_check_deferred & (~head.is_timed | head.is_dead),
        floor_left=None if budget is None else budget.floor_left,
    )
    # A floor visit comes in the order of its lateness, however low its value, and one of a dead link behind all others.
    lateness = _compute_lateness(head)
    scores = np.where(floor, np.where(head.is_dead, lateness, np.maximum(scores, lateness)), scores)
    refresh = _sort_by_score(np.flatnonzero(ready | floor), scores, overdue=-head.due_in)
    discovery = np.flatnonzero(head.is_unfetched)
    discovery = discovery[np.lexsort((-head.cash[discovery], ~head.is_requested[discovery]))]
    min_unfetched, min_fetched = _guarantee_slots(
        slots, slots_before, discovery_share=discovery_share, refresh_share=refresh_share
    )
    dead = int((head.is_dead & ~is_check_due)[refresh].sum())
    firsts, revisits = _split_slots(
        np.sort(scores[discovery])[::-1],
        scores[refresh],
        slots=slots,
        min_slots=(min_unfetched, min(min_fetched, len(refresh) - dead)),
        dead=dead,
    )
    chosen = _interleave(discovery[:firsts], refresh[:revisits])
    below = is_fetched & ~ready & ~floor & ~head.is_timed
    filling = np.flatnonzero(below & (scores > 0) & (head.max_interval < NEVER_DAYS) & fills_slots)
    filling = _sort_by_score(filling, scores, overdue=-head.due_in)[: slots - len(chosen)]
    below[filling] = False
    rescheduled, due_in = _defer_pages(head, below)
    rescheduled = np.append(rescheduled, np.flatnonzero(is_check_deferred))
    due_in = np.append(due_in, check_wait_days[is_check_deferred])
    never = rescheduled[np.isinf(due_in)]
    return Selection(
        chosen=np.append(chosen, filling),
        rescheduled=rescheduled,
        due_in=due_in,
        floor_visits=int(floor[chosen].sum()),
        filler_visits=len(filling),
        needs_more_candidates=len(chosen) < slots
        and _is_window_productive(is_fetched, ready | floor | is_check_deferred, never, start=last_window),
    )


def select_requested_first(
    head: Candidates,
    requested: Sequence[int],
    select_others: Callable[[Candidates, int, int], Selection],
    *,
    slots: int,
    requested_only: int = 0,
    last_window: int = 0,
) -> Selection:
    """Select the pages that a user has requested, then others.

    requested: above 0 for each such page; the greatest come first.  select_others: `select_pages`, given the other
    pages, the slots that are left for them, and the index of the first one of the last window.  requested_only: slots
    that no other page may take.
    """
    ranks = np.array(requested, dtype=np.intp)
    first, others = np.flatnonzero(ranks), np.flatnonzero(ranks == 0)
    first = first[np.argsort(-ranks[first], kind="stable")][:slots]
    other_candidates = Candidates(*(getattr(head, each.name)[others] for each in fields(Candidates)))
    begin = int(np.searchsorted(others, last_window))
    selection = select_others(other_candidates, slots - max(len(first), requested_only), begin)
    return replace(
        selection, chosen=np.concatenate([first, others[selection.chosen]]), rescheduled=others[selection.rescheduled]
    )


def _is_window_productive(is_fetched: Flags, is_useful: Flags, never: Indices, *, start: int) -> bool:
    """Whether enough of a window's known pages are worth a look, or leave the due index for ever."""
    useful_pages = int(is_useful[start:].sum() + (never >= start).sum())
    return useful_pages > 0 and useful_pages >= MIN_YIELD * int(is_fetched[start:].sum())


def _compute_scores(head: Candidates) -> Floats:
    """The scores: value over price; 0 before the least interval is over."""
    waited = head.unseen / head.phase
    aged = (1 - head.recall) * np.maximum(waited + head.activity_ahead, 0.0) + head.signal_days_ahead
    score = compute_values_with_signals(
        head.a, head.b, head.weight, aged, ahead=head.signal_days_ahead, max_interval=head.max_interval
    )
    revisits = np.where(head.unseen < head.min_interval, 0.0, score)
    first = compute_first_values(head.a, head.b, head.weight, head.max_interval)
    score = np.where(head.is_unfetched, first, revisits) / head.shadow_price
    by_clock = ~np.isnan(head.gap)  # in the order of their lateness; a first gap is cut by its phase
    lateness = waited / np.clip(np.where(by_clock, head.gap, 1.0), head.min_interval, head.max_interval)
    score = np.where(by_clock, np.where(head.unseen < head.min_interval, 0.0, lateness), score)
    return np.where(head.is_requested, np.inf, score)


def _schedule_checks(
    head: Candidates, *, slots: int, slots_before: int, budget: DayBudget | None
) -> tuple[Flags, Flags, Floats]:
    """Flags of the due dead links and followers that have their turn, of those that have not, and the days until it."""
    is_due, is_deferred, wait_days = (
        np.zeros_like(head.is_dead),
        np.zeros_like(head.is_dead),
        np.zeros_like(head.due_in),
    )
    if budget is None:
        return is_due, is_deferred, wait_days
    a_day = CHECK_SHARE * budget.per_day
    slots_used, slots_end = (int(CHECK_SHARE * count + ROUNDING) for count in (slots_before, slots_before + slots))
    for kind in (head.is_dead, head.is_duplicate & ~head.is_dead):
        due = np.flatnonzero(kind & (head.due_in <= 0))
        due = due[np.argsort(head.due_in[due], kind="stable")]
        is_due[due[: slots_end - slots_used]] = True
        others = due[slots_end - slots_used :]
        is_deferred[others] = True
        wait_days[others] = np.minimum(np.arange(1, len(others) + 1) / max(a_day, 1e-9), MAX_CHECK_WAIT_DAYS)
    return is_due, is_deferred, wait_days


def _choose_floor_visits(head: Candidates, below: Flags, *, floor_left: int | None) -> Flags:
    """Flags of the floor visits: `left` pages below their price that are longest past their longest interval.

    Dead links that are due come after them.
    """
    lateness = _compute_lateness(head)
    overdue = np.flatnonzero(below & np.where(head.is_dead, head.due_in <= 0, lateness >= 1))
    floor = np.zeros_like(below)
    floor[
        overdue[np.argsort(-lateness[overdue], kind="stable")][: None if floor_left is None else max(floor_left, 0)]
    ] = True
    return floor


def _compute_lateness(head: Candidates) -> Floats:
    """Return the part of its longest interval for which each page was not visited, and nearly 0 for a dead link."""
    return head.unseen / head.max_interval * np.where(head.is_dead, DEAD_LINK_FACTOR, 1.0)


def _sort_by_score(pages: Indices, scores: Floats, *, overdue: Floats) -> Indices:
    """The pages by score, and of equal score the longest overdue first."""
    steps = np.full(len(pages), np.inf)
    finite = np.isfinite(scores[pages])
    steps[finite] = np.round(np.log(np.maximum(scores[pages][finite], 1e-300)) / SCORE_TOLERANCE)
    return pages[np.lexsort((-overdue[pages], -steps))]


def _guarantee_slots(slots: int, slots_before: int, *, discovery_share: float, refresh_share: float) -> tuple[int, int]:
    """The slots guaranteed to new pages and to revisits.

    Over any run of slots each gets its share but for less than two slots. Both never get more slots than there are.
    """
    firsts, both = (
        int(share * (slots_before + slots) + ROUNDING) - int(share * slots_before + ROUNDING)
        for share in (discovery_share, discovery_share + refresh_share)
    )
    return firsts, max(both - firsts, 0)


def _split_slots(
    first: Floats, revisits: Floats, *, slots: int, min_slots: tuple[int, int], dead: int
) -> tuple[int, int]:
    """Return the numbers of new and of known pages to hand out; both score arrays best first.

    min_slots: guaranteed slots.  dead: dead links among the revisits, their last ones, which come after all new pages.
    A new page below its price takes a slot that nobody else needs: a paced slot that is left over may not come again.
    """
    firsts = min(len(first), min_slots[0], slots)
    min_revisits = min(len(revisits), min_slots[1], slots - firsts)
    room = slots - firsts - min_revisits
    rest = np.concatenate([first[firsts:], revisits[min_revisits:]])
    is_first = np.arange(len(rest)) < len(first) - firsts
    is_dead = np.arange(len(rest)) >= len(rest) - dead
    chosen = np.lexsort((-rest, is_first & (rest < MIN_SCORE), is_dead))[:room]
    extra_firsts = int(is_first[chosen].sum())
    return firsts + extra_firsts, min_revisits + len(chosen) - extra_firsts


def _interleave(first: Indices, revisits: Indices) -> Indices:
    """The new pages and the revisits mixed evenly, so that a batch that is cut off keeps the mix."""
    position = np.concatenate([(np.arange(len(pages)) + 0.5) / max(len(pages), 1) for pages in (first, revisits)])
    return np.concatenate([first, revisits])[np.argsort(position, kind="stable")]


def _compute_gaps(head: Candidates, at: Indices) -> Floats:
    """The days after which these pages are due. A first gap is cut by its phase, but for a page that is never due."""
    min_interval, max_interval, policy_gap, activity_ahead = (
        head.min_interval[at],
        head.max_interval[at],
        head.gap[at],
        head.activity_ahead[at],
    )
    activity_gap = compute_due_gap(
        head.a[at],
        head.b[at],
        head.weight[at],
        head.shadow_price[at],
        min_interval=min_interval + activity_ahead,
        max_interval=max_interval + activity_ahead,
        recall=head.recall[at],
        ahead=head.signal_days_ahead[at],
    )
    gap = activity_gap - activity_ahead
    gap = np.where(np.isnan(policy_gap), gap, np.clip(policy_gap, min_interval, max_interval))
    cut = np.maximum(gap * head.phase[at], head.min_interval[at])
    return np.where(gap >= NEVER_DAYS, gap, cut)


def _defer_pages(head: Candidates, pages: Flags) -> tuple[Indices, Floats]:
    """The pages whose stored due time is out of date, and the days until they are worth their price."""
    at = np.flatnonzero(pages)
    gap = _compute_gaps(head, at)
    days_left = gap - head.unseen[at]
    due_in = np.where(days_left > 0, np.maximum(days_left, MIN_DELAY_DAYS), FLOOR_RETRY_DAYS)
    moved = np.abs(due_in - head.due_in[at]) > DUE_TOLERANCE * gap
    moved |= head.due_in[at] <= 0
    for_ever = gap >= NEVER_DAYS
    due_in, moved = np.where(for_ever, np.inf, due_in), np.where(for_ever, head.due_in[at] < NEVER_DAYS, moved)
    return at[moved], due_in[moved]


def find_outdated_due_times(head: Candidates) -> tuple[Indices, Floats]:
    """The known pages whose stored due time is not that of today's price and terms, and the days until they are due.

    Days at or below 0: the look is worth its price already, or the longest interval is over.  inf: never due.
    A page that is overdue by both keeps its stored due time.
    """
    at = np.flatnonzero(~head.is_unfetched & ~head.is_timed & ~head.is_requested)
    gap = _compute_gaps(head, at)
    days_left, stored = gap - head.unseen[at], head.due_in[at]
    moved = (np.abs(days_left - stored) > DUE_TOLERANCE * gap) & ((days_left > 0) | (stored > 0))
    for_ever = gap >= NEVER_DAYS
    days_left, moved = np.where(for_ever, np.inf, days_left), np.where(for_ever, stored < NEVER_DAYS, moved)
    return at[moved], days_left[moved]
