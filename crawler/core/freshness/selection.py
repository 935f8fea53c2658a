"""Which pages a claim hands out, from the heads of the due index and of the order of discovery. Pure.

The store's claim and the lab call the same function. Due times are only a place in an index: what decides is the value
at today's belief and today's price. So a stored due time may be out of date, and costs nothing but a second reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.belief import DAY
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.terms import Terms, Wanted
from crawler.core.freshness.value import due_gap, first_values, values, weights_of

WORTH = 0.98  # of its price: a look so near to it is not put off, since a new due time is a write
LEAST_DELAY_DAYS = 1 / 1440  # a page that is put off is not read again in the same minute
SAME_DUE = 0.02  # a due time that would move by less than this part of its gap is left as it is
FLOOR_AGAIN_DAYS = 1.0  # when a floor visit is asked for again that today's share of the budget could not pay
FOREVER_DAYS = 1e6  # who has to wait so long waits for ever
ROUND = 0.5 + 1e-6  # shares of all turns are rounded; what was multiplied may be a little less than it is
EQUAL = 1e-3  # scores within a thousandth are equal, and the longest overdue goes first

Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pages at the head of one of the two orders, as a claim reads them: arrays of equal length. Times in days.

    a, b: of today's belief.
    price: importance x days that this look must be worth: the domain's price times what the look costs.
    least, most: no sooner after the last good look, and no later: the floor.  unseen: since it; of no meaning for a new
    page.  due_in: until the stored due time; below 0 when overdue.
    is_new: never asked for.  is_wanted: asked for by a user, or never had yet: worth any price.
    is_timed: due by a clock of its own (retry, gone, moved, refused): not to be asked before, nor put off.
    A page that was had, and that nobody wants again, has no interval: least and most are FOREVER_DAYS.
    is_ruled: its longest interval is a rule's: then a look is worth its price, and no floor visit.
    cash: the order of discovery, the greatest first.
    phase: 1, or of a page that was looked at once only, the part of its gap that its next look waits (price.phase_of).
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
    is_ruled: Flags
    cash: Floats
    phase: Floats


@dataclass(frozen=True, slots=True)
class Selection:
    """What becomes of a head; indices into it.

    chosen: to hand out, in this order.  later, due_in: whose due times are to be rewritten, and in how many days they
    are due, inf for never.  floor: how many of the chosen are below their price, and only due because of the longest
    interval.
    further: whether another window of the due index should be read: this one yielded, and there is room left.
    """

    chosen: Indices
    later: Indices
    due_in: Floats
    floor: int
    further: bool


def candidates_of(
    terms: Sequence[Terms],
    *,
    a: Sequence[float],
    b: Sequence[float],
    importance: Sequence[float],
    unseen: Sequence[float],
    due_in: Sequence[float],
    is_new: Sequence[bool],
    is_had: Sequence[bool],
    wanted: Sequence[int],
    is_timed: Sequence[bool],
    phase: Sequence[float],
) -> Candidates:
    """Pages as the selection weighs them, the new ones in the order of discovery.

    terms: of each page, one object for many of them.  a, b: of today's belief.  is_had: it has a
    version.  wanted: a Wanted each; a page that its terms want once is looked at again for a user only.
    """
    alike = {id(each): each for each in terms}
    place = {same: n for n, same in enumerate(alike)}
    figures = np.array([_figures(each) for each in alike.values()]).reshape(-1, 5)
    price, least, most, once, is_ruled = figures[[place[id(each)] for each in terms]].T
    new, had = np.array(is_new, dtype=np.bool_), np.array(is_had, dtype=np.bool_)
    asked = np.array(wanted, dtype=np.intp)
    done = ~new & had & (once > 0) & (asked != Wanted.BY_USER)
    return Candidates(
        a=np.array(a),
        b=np.array(b),
        weight=weights_of(np.array(importance)),
        price=price,
        least=np.where(done, FOREVER_DAYS, least),
        most=np.where(done, FOREVER_DAYS, most),
        unseen=np.array(unseen),
        due_in=np.array(due_in),
        is_new=new,
        is_wanted=~done & (asked != Wanted.NO),
        is_timed=~new & ~done & (np.array(is_timed, dtype=np.bool_) | (once > 0)),
        is_ruled=is_ruled > 0,
        cash=-np.arange(float(len(terms))),
        phase=np.array(phase),
    )


def _figures(terms: Terms) -> tuple[float, ...]:
    return terms.price, terms.least / DAY, terms.most / DAY, terms.once, terms.is_ruled


def joined(one: Candidates, other: Candidates) -> Candidates:
    """Both, one after the other."""
    columns = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(Candidates))
    return Candidates(*map(np.concatenate, columns))


def select(
    head: Candidates,
    *,
    slots: int,
    discovery_share: float,
    refresh_share: float,
    turn: int = 0,
    floor_left: int | None = None,
) -> Selection:
    """Hand out what is worth its price, by value over price; put the rest off until it will be.

    slots: how many may be handed out.  discovery_share, refresh_share: of them, guaranteed to new pages (at any price)
    and to looking again (at the price) while there are any; the rest goes to the better score.  turn: slots so far,
    from any beginning: what is no whole slot of a small hand-out is one after some turns.  floor_left: visits below the
    price that the day's budget for them still holds; None: no bound.
    New pages go by cash among themselves: that order is what makes the cash economy converge.
    """
    scores = _scores(head)
    known = ~head.is_new
    told = known & head.is_ruled & ~head.is_timed & (head.unseen >= head.most)
    scores = np.where(told, np.maximum(scores, head.unseen / head.most), scores)
    ready = known & np.where(head.is_timed, head.due_in <= 0, scores >= WORTH)
    floor = _floor(head, known & ~ready & ~head.is_timed, left=floor_left)
    scores = np.where(
        floor, np.maximum(scores, head.unseen / head.most), scores
    )  # its turn comes, however low its value
    refresh = _best_first(np.flatnonzero(ready | floor), scores, overdue=-head.due_in)
    discovery = np.flatnonzero(head.is_new)
    discovery = discovery[np.lexsort((-head.cash[discovery], ~head.is_wanted[discovery]))]
    firsts, again = _split(
        np.sort(scores[discovery])[::-1],
        scores[refresh],
        slots=slots,
        least=_guaranteed(slots, turn, discovery_share=discovery_share, refresh_share=refresh_share),
    )
    chosen = _in_turns(discovery[:firsts], refresh[:again])
    later, due_in = _put_off(head, known & ~ready & ~floor & ~head.is_timed)
    return Selection(
        chosen=chosen,
        later=later,
        due_in=due_in,
        floor=int(floor[chosen].sum()),
        further=len(chosen) < slots and bool((ready | floor).any() or np.isinf(due_in).any()),
    )


def _scores(head: Candidates) -> Floats:
    """Value over price. Sooner than the least interval nothing is worth anything."""
    waited = head.unseen / head.phase
    again = np.where(head.unseen < head.least, 0.0, values(head.a, head.b, head.weight, waited))
    first = first_values(head.a, head.b, head.weight, head.most)
    return np.where(head.is_wanted, np.inf, np.where(head.is_new, first, again) / head.price)


def _floor(head: Candidates, below: Flags, *, left: int | None) -> Flags:
    """Which pages below their price are past their longest interval: the longest past first, `left` of them."""
    past = head.unseen / head.most
    asking = np.flatnonzero(below & (past >= 1))
    floor = np.zeros_like(below)
    floor[asking[np.argsort(-past[asking], kind="stable")][: None if left is None else max(left, 0)]] = True
    return floor


def _best_first(pages: Indices, scores: Floats, *, overdue: Floats) -> Indices:
    """By score, and of equal score the longest overdue first."""
    steps = np.full(len(pages), np.inf)
    finite = np.isfinite(scores[pages])
    steps[finite] = np.round(np.log(np.maximum(scores[pages][finite], 1e-300)) / EQUAL)
    return pages[np.lexsort((-overdue[pages], -steps))]


def _guaranteed(slots: int, turn: int, *, discovery_share: float, refresh_share: float) -> tuple[int, int]:
    """How many of these slots are new pages', and how many those that are looked at again, if there are so many.

    Over any turns each gets its share but for less than two slots. Both together never get more than there are.
    """
    firsts, both = (
        int(share * (turn + slots) + ROUND) - int(share * turn + ROUND)
        for share in (discovery_share, discovery_share + refresh_share)
    )
    return firsts, max(both - firsts, 0)


def _split(first: Floats, again: Floats, *, slots: int, least: tuple[int, int]) -> tuple[int, int]:
    """How many new and how many known pages are handed out; both score arrays best first. least: guaranteed."""
    firsts = min(len(first), least[0], slots)
    again_least = min(len(again), least[1], slots - firsts)
    room = slots - firsts - again_least
    rest = np.concatenate([first[firsts:], again[again_least:]])
    is_first = np.arange(len(rest)) < len(first) - firsts
    allowed = np.flatnonzero(~is_first | (rest >= WORTH))
    taken = allowed[np.argsort(-rest[allowed], kind="stable")][:room]
    more = int(is_first[taken].sum())
    return firsts + more, again_least + len(taken) - more


def _in_turns(first: Indices, again: Indices) -> Indices:
    """Both, mixed evenly, so that a batch that is cut off keeps the mix."""
    place = np.concatenate([(np.arange(len(pages)) + 0.5) / max(len(pages), 1) for pages in (first, again)])
    return np.concatenate([first, again])[np.argsort(place, kind="stable")]


def _gaps(head: Candidates, at: Indices) -> Floats:
    """After how many days these pages are due. A first gap is cut by its phase, but for what is never due."""
    gap = due_gap(head.a[at], head.b[at], head.weight[at], head.price[at], least=head.least[at], most=head.most[at])
    cut = np.maximum(gap * head.phase[at], head.least[at])
    return np.where(gap >= FOREVER_DAYS, gap, cut)


def _put_off(head: Candidates, pages: Flags) -> tuple[Indices, Floats]:
    """When these pages are worth their price, for those whose stored due time says otherwise."""
    at = np.flatnonzero(pages)
    gap = _gaps(head, at)
    left = gap - head.unseen[at]
    again = np.where(left > 0, np.maximum(left, LEAST_DELAY_DAYS), FLOOR_AGAIN_DAYS)
    moved = np.abs(again - head.due_in[at]) > SAME_DUE * gap
    moved |= head.due_in[at] <= 0
    for_ever = gap >= FOREVER_DAYS
    again, moved = np.where(for_ever, np.inf, again), np.where(for_ever, head.due_in[at] < FOREVER_DAYS, moved)
    return at[moved], again[moved]


def due_again(head: Candidates) -> tuple[Indices, Floats]:
    """Which known pages' stored due times are not those of today's price and terms, and in how many days they are due.

    At or below 0: its look is worth its price already, or its longest interval is over.  inf: never.  A page that is
    overdue by both stays where it is.
    """
    at = np.flatnonzero(~head.is_new & ~head.is_timed & ~head.is_wanted)
    gap = _gaps(head, at)
    left, stored = gap - head.unseen[at], head.due_in[at]
    moved = (np.abs(left - stored) > SAME_DUE * gap) & ((left > 0) | (stored > 0))
    for_ever = gap >= FOREVER_DAYS
    left, moved = np.where(for_ever, np.inf, left), np.where(for_ever, stored < FOREVER_DAYS, moved)
    return at[moved], left[moved]
