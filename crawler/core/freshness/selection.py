"""Select the pages to fetch now, from the heads of the due index and of the discovery order.

Due times only order an index; the value at the current estimate and price decides. So a stored due time may be
outdated, which only costs one more read.
A *floor visit* is a visit below the price to a page that has reached its longest interval, or, without a budget, to a
dead link. A limited share of a budget is used for floor visits.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.signals import combine_signals, compute_days_ahead
from crawler.core.freshness.visit_terms import PRIORITY_REQUESTS, RequestReason, VisitTerms
from crawler.core.freshness.visit_value import (
    compute_due_gap,
    compute_first_values,
    compute_values_with_signals,
    compute_weights,
)

# The score of a page is the value of a visit over its price, or the time since the last visit over a policy's gap. From
# this score on, a page can be selected. It is below 1, because a page that is almost due would have to be rescheduled.
MIN_SCORE = 0.98
MIN_DELAY_DAYS = 1 / 1440  # a rescheduled page is not read again within a minute
DUE_TOLERANCE = 0.02  # share of the gap; a due time that moves by less is not rewritten
FLOOR_RETRY_DAYS = 1.0  # delay of floor visits beyond today's share of the budget
CHECK_SHARE = 0.03  # of a budget, for visits to dead links, and the same for checks of duplicates
DEAD_LINK_FACTOR = 1e-6  # on a dead link's lateness; it puts the link behind all other pages
MAX_CHECK_WAIT_DAYS = 180.0  # for a check without a slot, because the budget may grow
NEVER_DAYS = 1e6  # a page that must wait this long is never due
ROUNDING = 0.5 + 1e-6  # shares of slots are rounded; rounding errors can put a whole product slightly below
# Share of fetched pages in a window of the due index that can be selected, wait for a check, or leave the index. Below
# this share, the next window, whose pages are due later, is not read.
MIN_YIELD = 0.05
SCORE_TOLERANCE = 1e-3  # relative; among equal scores, the longest overdue page comes first

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


class Candidates(Struct, frozen=True):
    """Pages at the head of the due index or of the discovery order: arrays of equal length. Times are in days.

    a, b: the current change-rate estimate.  weight: see visit_value.compute_weights.
    shadow_price: the minimum value of this visit in importance x days: the domain's price times the cost of the visit.
    min_interval, max_interval: bounds of the time since the last successful visit; NEVER_DAYS for a page that a rule
    `once` excludes from revisits.  unseen: since the last successful visit; meaningless for an unfetched page.
    due_in: until the stored due time; below 0 if overdue.
    is_requested: visited at any price, for a RequestReason.
    is_timed: due at its stored time, whatever its value (retry, gone, moved, excluded, duplicate).
    is_dead: gone, moved, or never a page.  is_duplicate: follows the schedule of its canonical page. When due, both are
    visited within their share of a budget; without a budget, dead links come last, as floor visits.
    is_ruled: a rule sets the longest interval; a visit at this interval is not a floor visit.
    cash: a number by which unfetched pages are ordered, highest first.  gap: from the last successful visit to the next
    one by a policy that is no ValuePolicy; else NaN.  phase: the share of its gap that a page with only one visit
    waits (visit_value.compute_phase); else 1.  activity_ahead: days by which site activity is ahead of the calendar
    since the last successful visit.  recall, signal_days_ahead: the probability that a change would have been signaled,
    and the days that signals add to the age of the page; 0 without a source.
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


class DayBudget(Struct, frozen=True):
    """A domain's budget. per_day: requests, of which dead links and duplicates get CHECK_SHARE each.

    floor_left: the number of floor visits that are still allowed today.
    """

    per_day: float
    floor_left: int


class Selection(Struct, frozen=True):
    """The result of a selection; pages are indices into the candidates.

    chosen: the pages to dispatch, in this order.  rescheduled, due_in: pages whose due times must be rewritten, and
    the days until they are due (inf: never).  floor_visits: the number of floor visits among the chosen pages.
    filler_visits: the number of chosen pages below their price that fill slots left over; they come last.
    needs_more_candidates: whether to read another window of the due index, because slots are left and the last window
    reached MIN_YIELD.
    """

    chosen: Indices
    rescheduled: Indices
    due_in: Floats
    floor_visits: int
    filler_visits: int
    needs_more_candidates: bool


class CandidateColumns(Struct, frozen=True):
    """Pages as columns of equal length, as read from rows. Times are in days. For the other columns see Candidates.

    terms: many pages share one object.  magnitude_factor: the factor on importance for change magnitudes.
    signals: the signals about each page since its last successful visit, per source (VisitTerms.sources).
    has_version: a version is stored.  request_reason: of RequestReason; a page with rule `once` is only revisited for
    PRIORITY_REQUESTS.
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
    """Build Candidates from columns. Unfetched pages must be in discovery order."""
    terms = columns.terms
    distinct_terms = {id(each): each for each in terms}
    position_by_id = {term_id: n for n, term_id in enumerate(distinct_terms)}
    rows = [
        (each.shadow_price, each.min_interval / DAY, each.max_interval / DAY, each.once, each.is_ruled)
        for each in distinct_terms.values()
    ]
    figures = np.array(rows).reshape(-1, 5)[[position_by_id[id(each)] for each in terms]]
    shadow_price, min_interval, max_interval, once, is_ruled = figures.T
    is_unfetched = np.array(columns.is_unfetched, dtype=np.bool_)
    has_version = np.array(columns.has_version, dtype=np.bool_)
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


def join_candidates(one: Candidates, other: Candidates) -> Candidates:
    columns = ((getattr(one, name), getattr(other, name)) for name in Candidates.__struct_fields__)
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
    """Select pages whose value reaches their price, by score. Reschedule the others to the time when it will.

    slots: the maximum number of pages.  discovery_share, refresh_share: the guaranteed shares of slots for unfetched
    pages (at any price) and for revisits while there are any. The other slots go to the higher score, and slots left
    over to unfetched pages.
    slots_before: the slots of earlier calls; needed to add up fractions of slots over small batches.
    budget: None means no limit.
    last_window: the index of the first candidate of the window of the due index that was read last.
    fills_slots: fill slots left over with pages below their price, by score.
    Unfetched pages are chosen by `cash`, requested ones first.
    """
    scores = _compute_scores(head)
    is_fetched = ~head.is_unfetched
    by_rule = is_fetched & head.is_ruled & ~head.is_timed & (head.unseen >= head.max_interval)
    scores = np.where(by_rule, np.maximum(scores, head.unseen / head.max_interval), scores)
    is_check_due, is_check_postponed, check_wait_days = _schedule_checks(head, slots, slots_before, budget)
    scores = np.where(is_check_due, np.inf, scores)
    ready = is_fetched & ~head.is_dead & np.where(head.is_timed, head.due_in <= 0, scores >= MIN_SCORE)
    ready = is_check_due | (ready & ~is_check_postponed)
    below = is_fetched & ~ready & ~is_check_postponed & (~head.is_timed | head.is_dead)
    # Floor visits are ordered by lateness if it exceeds their score, and dead links come last.
    lateness = _compute_lateness(head)
    floor = _choose_floor_visits(head, below, lateness, floor_left=None if budget is None else budget.floor_left)
    scores = np.where(floor, np.where(head.is_dead, lateness, np.maximum(scores, lateness)), scores)
    refresh = _sort_by_score(np.flatnonzero(ready | floor), scores, overdue=-head.due_in)
    discovery = np.flatnonzero(head.is_unfetched)
    discovery = discovery[np.lexsort((-head.cash[discovery], ~head.is_requested[discovery]))]
    min_firsts, min_revisits = _guarantee_slots(slots, slots_before, discovery_share, refresh_share)
    dead = int((head.is_dead & ~is_check_due)[refresh].sum())
    min_slots = min_firsts, min(min_revisits, len(refresh) - dead)
    first_scores = np.sort(scores[discovery])[::-1]
    firsts, revisits = _split_slots(first_scores, scores[refresh], slots=slots, min_slots=min_slots, dead=dead)
    chosen = _interleave(discovery[:firsts], refresh[:revisits])
    below = is_fetched & ~ready & ~floor & ~head.is_timed
    filling = np.flatnonzero(below & (scores > 0) & (head.max_interval < NEVER_DAYS) & fills_slots)
    filling = _sort_by_score(filling, scores, overdue=-head.due_in)[: slots - len(chosen)]
    below[filling] = False
    rescheduled, due_in = _reschedule_pages(head, below)
    rescheduled = np.append(rescheduled, np.flatnonzero(is_check_postponed))
    due_in = np.append(due_in, check_wait_days[is_check_postponed])
    never = rescheduled[np.isinf(due_in)]
    is_productive = _is_window_productive(is_fetched, ready | floor | is_check_postponed, never, start=last_window)
    return Selection(
        chosen=np.append(chosen, filling),
        rescheduled=rescheduled,
        due_in=due_in,
        floor_visits=int(floor[chosen].sum()),
        filler_visits=len(filling),
        needs_more_candidates=len(chosen) < slots and is_productive,
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
    """Select requested pages first, then others.

    requested: the rank of each requested page, highest first; 0 for other pages.  select_others: calls `select_pages`
    with the other pages, the slots left for them, and the index of the first one in the last window.
    requested_only: slots that are reserved for requested pages.
    """
    ranks = np.array(requested, dtype=np.intp)
    first, others = np.flatnonzero(ranks), np.flatnonzero(ranks == 0)
    first = first[np.argsort(-ranks[first], kind="stable")][:slots]
    begin = int(np.searchsorted(others, last_window))
    selection = select_others(_take(head, others), slots - max(len(first), requested_only), begin)
    chosen = np.concatenate([first, others[selection.chosen]])
    return replace(selection, chosen=chosen, rescheduled=others[selection.rescheduled])


def _take(head: Candidates, pages: Indices) -> Candidates:
    return Candidates(*(getattr(head, name)[pages] for name in Candidates.__struct_fields__))


def _is_window_productive(is_fetched: Flags, is_useful: Flags, never: Indices, *, start: int) -> bool:
    """Return whether enough fetched pages of a window are useful or leave the due index forever (MIN_YIELD)."""
    useful_pages = int(is_useful[start:].sum() + (never >= start).sum())
    return useful_pages > 0 and useful_pages >= MIN_YIELD * int(is_fetched[start:].sum())


def _compute_scores(head: Candidates) -> Floats:
    """Return the score of each page; 0 for a fetched page before its minimum interval, inf for a requested page."""
    waited = head.unseen / head.phase
    aged = (1 - head.recall) * np.maximum(waited + head.activity_ahead, 0.0) + head.signal_days_ahead
    a, b, weight, ahead, longest = head.a, head.b, head.weight, head.signal_days_ahead, head.max_interval
    score = compute_values_with_signals(a, b, weight, aged, ahead=ahead, max_interval=longest)
    revisits = np.where(head.unseen < head.min_interval, 0.0, score)
    first = compute_first_values(a, b, weight, longest)
    score = np.where(head.is_unfetched, first, revisits) / head.shadow_price
    by_clock = ~np.isnan(head.gap)  # ordered by lateness; the phase shortens the first gap
    lateness = waited / np.clip(np.where(by_clock, head.gap, 1.0), head.min_interval, head.max_interval)
    score = np.where(by_clock, np.where(head.unseen < head.min_interval, 0.0, lateness), score)
    return np.where(head.is_requested, np.inf, score)


def _schedule_checks(
    head: Candidates, slots: int, slots_before: int, budget: DayBudget | None
) -> tuple[Flags, Flags, Floats]:
    """Return which due dead links and duplicates get a slot by a budget, which do not, and the days these wait."""
    is_due, is_postponed = np.zeros_like(head.is_dead), np.zeros_like(head.is_dead)
    wait_days = np.zeros_like(head.due_in)
    if budget is None:
        return is_due, is_postponed, wait_days
    a_day = CHECK_SHARE * budget.per_day
    checks_before, checks_after = (
        int(CHECK_SHARE * count + ROUNDING) for count in (slots_before, slots_before + slots)
    )
    for kind in (head.is_dead, head.is_duplicate & ~head.is_dead):
        due = np.flatnonzero(kind & (head.due_in <= 0))
        due = due[np.argsort(head.due_in[due], kind="stable")]
        is_due[due[: checks_after - checks_before]] = True
        others = due[checks_after - checks_before :]
        is_postponed[others] = True
        wait_days[others] = np.minimum(np.arange(1, len(others) + 1) / max(a_day, 1e-9), MAX_CHECK_WAIT_DAYS)
    return is_due, is_postponed, wait_days


def _choose_floor_visits(head: Candidates, below: Flags, lateness: Floats, *, floor_left: int | None) -> Flags:
    """Choose floor visits: up to `floor_left` of the pages `below` their price, those most overdue first.

    Without a limit, due dead links are floor visits too and come last.
    """
    overdue = np.flatnonzero(below & np.where(head.is_dead, head.due_in <= 0, lateness >= 1))
    floor = np.zeros_like(below)
    by_lateness = overdue[np.argsort(-lateness[overdue], kind="stable")]
    floor[by_lateness if floor_left is None else by_lateness[: max(floor_left, 0)]] = True
    return floor


def _compute_lateness(head: Candidates) -> Floats:
    """Return the time since each page's last visit over its longest interval; almost 0 for a dead link."""
    return head.unseen / head.max_interval * np.where(head.is_dead, DEAD_LINK_FACTOR, 1.0)


def _sort_by_score(pages: Indices, scores: Floats, *, overdue: Floats) -> Indices:
    """Sort pages by score; among equal scores, the longest overdue page comes first."""
    steps = np.full(len(pages), np.inf)
    finite = np.isfinite(scores[pages])
    steps[finite] = np.round(np.log(np.maximum(scores[pages][finite], 1e-300)) / SCORE_TOLERANCE)
    return pages[np.lexsort((-overdue[pages], -steps))]


def _guarantee_slots(slots: int, slots_before: int, discovery_share: float, refresh_share: float) -> tuple[int, int]:
    """Return the guaranteed slots of unfetched pages and of revisits.

    If the shares add up to at most 1, each gets its share with an error of less than two slots.
    """
    firsts, both = (
        int(share * (slots_before + slots) + ROUNDING) - int(share * slots_before + ROUNDING)
        for share in (discovery_share, discovery_share + refresh_share)
    )
    return firsts, max(both - firsts, 0)


def _split_slots(first: Floats, revisits: Floats, slots: int, min_slots: tuple[int, int], dead: int) -> tuple[int, int]:
    """Return the numbers of unfetched and of fetched pages to dispatch. Both score arrays are sorted, best first.

    min_slots: the guaranteed slots.  dead: the number of dead links at the end of `revisits`; they come after all
    unfetched pages. An unfetched page below its price takes a slot that is left over, because unused slots are lost.
    """
    firsts = min(len(first), min_slots[0], slots)
    min_revisits = min(len(revisits), min_slots[1], slots - firsts)
    slots_left = slots - firsts - min_revisits
    rest = np.concatenate([first[firsts:], revisits[min_revisits:]])
    is_first = np.arange(len(rest)) < len(first) - firsts
    is_dead = np.arange(len(rest)) >= len(rest) - dead
    chosen = np.lexsort((-rest, is_first & (rest < MIN_SCORE), is_dead))[:slots_left]
    extra_firsts = int(is_first[chosen].sum())
    return firsts + extra_firsts, min_revisits + len(chosen) - extra_firsts


def _interleave(first: Indices, revisits: Indices) -> Indices:
    """Mix first visits and revisits evenly, so that a truncated batch keeps the mix."""
    position = np.concatenate([(np.arange(len(pages)) + 0.5) / max(len(pages), 1) for pages in (first, revisits)])
    return np.concatenate([first, revisits])[np.argsort(position, kind="stable")]


def _compute_gaps(head: Candidates, at: Indices) -> Floats:
    """Return the days from the last visit until these pages are due. The phase shortens first gaps that are finite."""
    pages = _take(head, at)
    activity_gap = compute_due_gap(
        pages.a,
        pages.b,
        pages.weight,
        pages.shadow_price,
        min_interval=pages.min_interval + pages.activity_ahead,
        max_interval=pages.max_interval + pages.activity_ahead,
        recall=pages.recall,
        ahead=pages.signal_days_ahead,
    )
    policy_gap = np.clip(pages.gap, pages.min_interval, pages.max_interval)
    gap = np.where(np.isnan(pages.gap), activity_gap - pages.activity_ahead, policy_gap)
    return np.where(gap >= NEVER_DAYS, gap, np.maximum(gap * pages.phase, pages.min_interval))


def _reschedule_pages(head: Candidates, pages: Flags) -> tuple[Indices, Floats]:
    """Return the pages with outdated stored due times, and the days until they are due, or FLOOR_RETRY_DAYS if due."""
    at = np.flatnonzero(pages)
    gap = _compute_gaps(head, at)
    days_left = gap - head.unseen[at]
    due_in, stored = np.where(days_left > 0, np.maximum(days_left, MIN_DELAY_DAYS), FLOOR_RETRY_DAYS), head.due_in[at]
    moved = (np.abs(due_in - stored) > DUE_TOLERANCE * gap) | (stored <= 0)
    for_ever = gap >= NEVER_DAYS
    due_in, moved = np.where(for_ever, np.inf, due_in), np.where(for_ever, stored < NEVER_DAYS, moved)
    return at[moved], due_in[moved]


def find_outdated_due_times(head: Candidates) -> tuple[Indices, Floats]:
    """Return the fetched pages whose stored due time differs from the current one, and the days until they are due.

    Days of 0 or less: the value reaches the price already, or the longest interval has passed.  inf: never due.
    A page that is overdue by both times keeps its stored due time.
    """
    at = np.flatnonzero(~head.is_unfetched & ~head.is_timed & ~head.is_requested)
    gap = _compute_gaps(head, at)
    days_left, stored = gap - head.unseen[at], head.due_in[at]
    moved = (np.abs(days_left - stored) > DUE_TOLERANCE * gap) & ((days_left > 0) | (stored > 0))
    for_ever = gap >= NEVER_DAYS
    days_left, moved = np.where(for_ever, np.inf, days_left), np.where(for_ever, stored < NEVER_DAYS, moved)
    return at[moved], days_left[moved]
