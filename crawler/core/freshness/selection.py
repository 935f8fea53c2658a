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
from crawler.core.freshness.signals import days_ahead, heard_from
from crawler.core.freshness.terms import COME_FIRST, Terms, Wanted
from crawler.core.freshness.value import due_gap, first_values, values_heard, weights_of

WORTH = 0.98  # of its price, from which on a look is not put off, since a new due time is a write
LEAST_DELAY_DAYS = 1 / 1440  # a page that is put off is not read again in the same minute
SAME_DUE = 0.02  # a due time that would move by less than this part of its gap is left as it is
FLOOR_AGAIN_DAYS = 1.0  # after which a floor visit is due again that today's share of the budget could not pay
CHECK_SHARE = 0.03  # of a budget, for visits of dead links; and as much for tests of pages that follow another one
BEHIND = 1e-6  # factor on the score of a dead link where there is no budget, which puts it behind all other pages
CHECK_AGAIN_DAYS = 180.0  # at most, until one is due again that has no turn: the budget may have grown since
FOREVER_DAYS = 1e6  # a page that has to wait so long is never due
ROUND = 0.5 + 1e-6  # shares of slots are rounded; a product that is whole may come out a little less
LEAST_YIELD = 0.05  # of a window's known pages that are worth a look: those of the next one are due in any case later
EQUAL = 1e-3  # scores within a thousandth are equal, and the longest overdue goes first

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pages at the head of the due index or of the order of discovery: arrays of equal length. Times in days.

    a, b: of today's belief.
    price: importance x days that this look must be worth: the domain's price times what the look costs.
    least, most: no sooner after the last good look, and no later: the floor.  unseen: since it; of no meaning for a new
    page.  due_in: until the stored due time; below 0 when overdue.
    is_new: never asked for.  is_wanted: asked for by a user, or never had yet: worth any price.
    is_timed: due by a clock of its own (retry, gone, moved, refused): not asked for before, nor put off.
    A page that was fetched, and that its terms want only once, has no interval: least and most are FOREVER_DAYS.
    is_dead: gone, moved, or never a page.  is_follower: by another page's schedule. When due, such pages are visited in
    their share of a budget; without a budget a dead link goes behind all that are worth their price, as a floor visit.
    is_ruled: its longest interval is a rule's: then a look is worth its price, and no floor visit.
    cash: the order of discovery, the greatest first.
    gap: between the last good look and the next, where another policy than the price says so; NaN elsewhere.
    phase: the part of its gap that the next look waits (value.phase_of) of a page looked at once only; else 1.
    activity_ahead: days by which the site's activity has gone ahead of the calendar since the last good look.
    recall, ahead: of sources of signals: the chance that a change would have been told, and the days by which what was
    told makes the page older; 0 where nobody says anything.
    """

    a: Floats
    b: Floats
    weight: Floats
    price: Floats
    least: Floats
    most: Floats
    unseen: Floats
    due_in: Floats
    is_new: Flags
    is_wanted: Flags
    is_timed: Flags
    is_dead: Flags
    is_follower: Flags
    is_ruled: Flags
    cash: Floats
    phase: Floats
    gap: Floats
    activity_ahead: Floats
    recall: Floats
    ahead: Floats


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

    chosen: to hand out, in this order.  later, due_in: pages whose due times are to be rewritten, and in how many days
    they are due, inf for never.  floor: number of chosen pages below their price, due by their longest interval alone.
    filling: number of chosen pages below their price, for slots that nothing else needs; they come last.
    further: another window of the due index should be read: the last one yielded pages, and there is room left.
    """

    chosen: Indices
    later: Indices
    due_in: Floats
    floor: int
    filling: int
    further: bool


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """Pages as rows hold them: columns of equal length. Times in days.

    terms: of each page; many pages share one object.  a, b: of today's belief.  is_had: the page has a version.
    amount: factor on the importance, by how much a page's changes change.  gap: see Candidates.
    signals: of each page since its last good look, by the number of their source (Terms.sources).  activity_ahead: see
    Candidates.
    wanted: a Wanted each; a page that its terms want once is looked at again for a user only.
    """

    terms: Sequence[Terms]
    a: Sequence[float]
    b: Sequence[float]
    importance: Sequence[float]
    amount: Sequence[float] | Floats
    gap: Sequence[float]
    unseen: Sequence[float]
    due_in: Sequence[float]
    is_new: Sequence[bool]
    is_had: Sequence[bool]
    wanted: Sequence[int]
    is_timed: Sequence[bool]
    is_dead: Sequence[bool]
    is_follower: Sequence[bool]
    phase: Sequence[float]
    activity_ahead: Sequence[float]
    signals: Sequence[Sequence[int]]


def candidates_of(columns: CandidateColumns) -> Candidates:
    """The Candidates from columns, new pages in the order of discovery."""
    terms = columns.terms
    alike = {id(each): each for each in terms}
    place = {same: n for n, same in enumerate(alike)}
    figures = np.array([_figures(each) for each in alike.values()]).reshape(-1, 5)
    price, least, most, once, is_ruled = figures[[place[id(each)] for each in terms]].T
    new, had = np.array(columns.is_new, dtype=np.bool_), np.array(columns.is_had, dtype=np.bool_)
    asked = np.array(columns.wanted, dtype=np.intp)
    done = ~new & had & (once > 0) & ~np.isin(asked, list(COME_FIRST))
    a, b = np.array(columns.a), np.array(columns.b)
    heard = heard_from(columns.signals, [each.sources for each in terms], a / b)
    return Candidates(
        a=a,
        b=b,
        weight=weights_of(np.array(columns.importance) * np.asarray(columns.amount)),
        price=price,
        least=np.where(done, FOREVER_DAYS, least),
        most=np.where(done, FOREVER_DAYS, most),
        unseen=np.array(columns.unseen),
        due_in=np.array(columns.due_in),
        is_new=new,
        is_wanted=~done & (asked != Wanted.NO),
        is_timed=~new & ~done & (np.array(columns.is_timed, dtype=np.bool_) | (once > 0)),
        is_dead=np.array(columns.is_dead, dtype=np.bool_) & (asked == Wanted.NO),
        is_follower=np.array(columns.is_follower, dtype=np.bool_) & (asked == Wanted.NO),
        is_ruled=is_ruled > 0,
        cash=-np.arange(float(len(terms))),
        phase=np.array(columns.phase),
        gap=np.array(columns.gap),
        activity_ahead=np.array(columns.activity_ahead),
        recall=np.asarray(heard.recall),
        ahead=days_ahead(a, b, heard),
    )


def _figures(terms: Terms) -> tuple[float, ...]:
    return terms.price, terms.least / DAY, terms.most / DAY, terms.once, terms.is_ruled


def joined(one: Candidates, other: Candidates) -> Candidates:
    """The Candidates of both, one after the other."""
    columns = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(Candidates))
    return Candidates(*map(np.concatenate, columns))


def select(
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
    scores = _scores(head)
    known = ~head.is_new
    by_rule = known & head.is_ruled & ~head.is_timed & (head.unseen >= head.most)
    scores = np.where(by_rule, np.maximum(scores, head.unseen / head.most), scores)
    paid, unpaid, turns = _checks(head, slots=slots, slots_before=slots_before, budget=budget)
    scores = np.where(paid, np.inf, scores)
    ready = known & ~head.is_dead & np.where(head.is_timed, head.due_in <= 0, scores >= WORTH)
    ready = paid | (ready & ~unpaid)
    floor = _floor(
        head,
        known & ~ready & ~unpaid & (~head.is_timed | head.is_dead),
        left=None if budget is None else budget.floor_left,
    )
    # A floor visit comes in the order of its lateness, however low its value, and one of a dead link behind all others.
    late = _lateness(head)
    scores = np.where(floor, np.where(head.is_dead, late, np.maximum(scores, late)), scores)
    refresh = _best_first(np.flatnonzero(ready | floor), scores, overdue=-head.due_in)
    discovery = np.flatnonzero(head.is_new)
    discovery = discovery[np.lexsort((-head.cash[discovery], ~head.is_wanted[discovery]))]
    least_new, least_known = _guaranteed(
        slots, slots_before, discovery_share=discovery_share, refresh_share=refresh_share
    )
    dead = int((head.is_dead & ~paid)[refresh].sum())
    firsts, revisits = _split(
        np.sort(scores[discovery])[::-1],
        scores[refresh],
        slots=slots,
        least=(least_new, min(least_known, len(refresh) - dead)),
        dead=dead,
    )
    chosen = _in_turns(discovery[:firsts], refresh[:revisits])
    below = known & ~ready & ~floor & ~head.is_timed
    filling = np.flatnonzero(below & (scores > 0) & (head.most < FOREVER_DAYS) & fills_slots)
    filling = _best_first(filling, scores, overdue=-head.due_in)[: slots - len(chosen)]
    below[filling] = False
    later, due_in = _put_off(head, below)
    later = np.append(later, np.flatnonzero(unpaid))
    due_in = np.append(due_in, turns[unpaid])
    never = later[np.isinf(due_in)]
    return Selection(
        chosen=np.append(chosen, filling),
        later=later,
        due_in=due_in,
        floor=int(floor[chosen].sum()),
        filling=len(filling),
        further=len(chosen) < slots and _yields(known, ready | floor | unpaid, never, start=last_window),
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

    requested: above 0 for each such page; the greatest come first.  select_others: `select`, given the other pages, the
    slots that are left for them, and the index of the first one of the last window.  requested_only: slots that no
    other page may take.
    """
    ranks = np.array(requested, dtype=np.intp)
    first, others = np.flatnonzero(ranks), np.flatnonzero(ranks == 0)
    first = first[np.argsort(-ranks[first], kind="stable")][:slots]
    rest = Candidates(*(getattr(head, each.name)[others] for each in fields(Candidates)))
    begin = int(np.searchsorted(others, last_window))
    found = select_others(rest, slots - max(len(first), requested_only), begin)
    return replace(found, chosen=np.concatenate([first, others[found.chosen]]), later=others[found.later])


def _yields(known: Flags, found: Flags, never: Indices, *, start: int) -> bool:
    """Whether enough of a window's known pages are worth a look, or leave the due index for ever."""
    many = int(found[start:].sum() + (never >= start).sum())
    return many > 0 and many >= LEAST_YIELD * int(known[start:].sum())


def _scores(head: Candidates) -> Floats:
    """The scores: value over price; 0 before the least interval is over."""
    waited = head.unseen / head.phase
    aged = (1 - head.recall) * np.maximum(waited + head.activity_ahead, 0.0) + head.ahead
    worth = values_heard(head.a, head.b, head.weight, aged, ahead=head.ahead, most=head.most)
    revisits = np.where(head.unseen < head.least, 0.0, worth)
    first = first_values(head.a, head.b, head.weight, head.most)
    worth = np.where(head.is_new, first, revisits) / head.price
    by_clock = ~np.isnan(head.gap)  # in the order of their lateness; a first gap is cut by its phase
    late = waited / np.clip(np.where(by_clock, head.gap, 1.0), head.least, head.most)
    worth = np.where(by_clock, np.where(head.unseen < head.least, 0.0, late), worth)
    return np.where(head.is_wanted, np.inf, worth)


def _checks(
    head: Candidates, *, slots: int, slots_before: int, budget: DayBudget | None
) -> tuple[Flags, Flags, Floats]:
    """Flags of the due dead links and followers that have their turn, of those that have not, and the days until it."""
    paid, unpaid, turns = np.zeros_like(head.is_dead), np.zeros_like(head.is_dead), np.zeros_like(head.due_in)
    if budget is None:
        return paid, unpaid, turns
    a_day = CHECK_SHARE * budget.per_day
    turn, last = (int(CHECK_SHARE * count + ROUND) for count in (slots_before, slots_before + slots))
    for kind in (head.is_dead, head.is_follower & ~head.is_dead):
        due = np.flatnonzero(kind & (head.due_in <= 0))
        due = due[np.argsort(head.due_in[due], kind="stable")]
        paid[due[: last - turn]] = True
        others = due[last - turn :]
        unpaid[others] = True
        turns[others] = np.minimum(np.arange(1, len(others) + 1) / max(a_day, 1e-9), CHECK_AGAIN_DAYS)
    return paid, unpaid, turns


def _floor(head: Candidates, below: Flags, *, left: int | None) -> Flags:
    """Flags of the floor visits: `left` pages below their price that are longest past their longest interval.

    Dead links that are due come after them.
    """
    past = _lateness(head)
    asking = np.flatnonzero(below & np.where(head.is_dead, head.due_in <= 0, past >= 1))
    floor = np.zeros_like(below)
    floor[asking[np.argsort(-past[asking], kind="stable")][: None if left is None else max(left, 0)]] = True
    return floor


def _lateness(head: Candidates) -> Floats:
    """Return the part of its longest interval for which each page was not visited, and nearly 0 for a dead link."""
    return head.unseen / head.most * np.where(head.is_dead, BEHIND, 1.0)


def _best_first(pages: Indices, scores: Floats, *, overdue: Floats) -> Indices:
    """The pages by score, and of equal score the longest overdue first."""
    steps = np.full(len(pages), np.inf)
    finite = np.isfinite(scores[pages])
    steps[finite] = np.round(np.log(np.maximum(scores[pages][finite], 1e-300)) / EQUAL)
    return pages[np.lexsort((-overdue[pages], -steps))]


def _guaranteed(slots: int, slots_before: int, *, discovery_share: float, refresh_share: float) -> tuple[int, int]:
    """The slots guaranteed to new pages and to revisits.

    Over any run of slots each gets its share but for less than two slots. Both never get more slots than there are.
    """
    firsts, both = (
        int(share * (slots_before + slots) + ROUND) - int(share * slots_before + ROUND)
        for share in (discovery_share, discovery_share + refresh_share)
    )
    return firsts, max(both - firsts, 0)


def _split(first: Floats, revisits: Floats, *, slots: int, least: tuple[int, int], dead: int) -> tuple[int, int]:
    """Return the numbers of new and of known pages to hand out; both score arrays best first.

    least: guaranteed slots.  dead: dead links among the revisits, their last ones, which come after all new pages.
    A new page below its price takes a slot that nobody else needs: a paced slot that is left over may not come again.
    """
    firsts = min(len(first), least[0], slots)
    again_least = min(len(revisits), least[1], slots - firsts)
    room = slots - firsts - again_least
    rest = np.concatenate([first[firsts:], revisits[again_least:]])
    is_first = np.arange(len(rest)) < len(first) - firsts
    is_dead = np.arange(len(rest)) >= len(rest) - dead
    taken = np.lexsort((-rest, is_first & (rest < WORTH), is_dead))[:room]
    more = int(is_first[taken].sum())
    return firsts + more, again_least + len(taken) - more


def _in_turns(first: Indices, revisits: Indices) -> Indices:
    """The new pages and the revisits mixed evenly, so that a batch that is cut off keeps the mix."""
    place = np.concatenate([(np.arange(len(pages)) + 0.5) / max(len(pages), 1) for pages in (first, revisits)])
    return np.concatenate([first, revisits])[np.argsort(place, kind="stable")]


def _gaps(head: Candidates, at: Indices) -> Floats:
    """The days after which these pages are due. A first gap is cut by its phase, but for a page that is never due."""
    least, most, said, activity_ahead = head.least[at], head.most[at], head.gap[at], head.activity_ahead[at]
    by_site = due_gap(
        head.a[at],
        head.b[at],
        head.weight[at],
        head.price[at],
        least=least + activity_ahead,
        most=most + activity_ahead,
        recall=head.recall[at],
        ahead=head.ahead[at],
    )
    gap = by_site - activity_ahead
    gap = np.where(np.isnan(said), gap, np.clip(said, least, most))
    cut = np.maximum(gap * head.phase[at], head.least[at])
    return np.where(gap >= FOREVER_DAYS, gap, cut)


def _put_off(head: Candidates, pages: Flags) -> tuple[Indices, Floats]:
    """The pages whose stored due time is out of date, and the days until they are worth their price."""
    at = np.flatnonzero(pages)
    gap = _gaps(head, at)
    left = gap - head.unseen[at]
    due_in = np.where(left > 0, np.maximum(left, LEAST_DELAY_DAYS), FLOOR_AGAIN_DAYS)
    moved = np.abs(due_in - head.due_in[at]) > SAME_DUE * gap
    moved |= head.due_in[at] <= 0
    for_ever = gap >= FOREVER_DAYS
    due_in, moved = np.where(for_ever, np.inf, due_in), np.where(for_ever, head.due_in[at] < FOREVER_DAYS, moved)
    return at[moved], due_in[moved]


def due_again(head: Candidates) -> tuple[Indices, Floats]:
    """The known pages whose stored due time is not that of today's price and terms, and the days until they are due.

    Days at or below 0: the look is worth its price already, or the longest interval is over.  inf: never due.
    A page that is overdue by both keeps its stored due time.
    """
    at = np.flatnonzero(~head.is_new & ~head.is_timed & ~head.is_wanted)
    gap = _gaps(head, at)
    left, stored = gap - head.unseen[at], head.due_in[at]
    moved = (np.abs(left - stored) > SAME_DUE * gap) & ((left > 0) | (stored > 0))
    for_ever = gap >= FOREVER_DAYS
    left, moved = np.where(for_ever, np.inf, left), np.where(for_ever, stored < FOREVER_DAYS, moved)
    return at[moved], left[moved]
