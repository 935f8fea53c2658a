"""A page beside its last Snapshot, worked out once for all who ask: is one more look wanted, what is the verdict?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change import (
    ENOUGH_RETURNS,
    Difference,
    Lesson,
    Mask,
    Rung,
    difference,
    form_of,
    has_pairs,
    learn_variants,
    learnt,
    news,
    numbers_of,
    returns_of,
    variant_of,
    wants_pair,
)
from crawler.core.http import PageKey
from crawler.core.page import Place, Understood, left_out
from crawler.core.soft_errors import Face, Wall
from crawler.core.visit.soft_errors import face_of, wall_of
from crawler.core.visit.visit import Earlier, Known, Target
from crawler.core.volatile import hidden, wants_test


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs under a mask, and what of it is news.

    under: the mask that was known.  mask: the one by which it was compared, with what this look teaches.
    face: what the page shows, as far as it can tell a wall.
    hidden: what differs and is volatile, where nothing is news.  unseen: what decides where nothing differs.
    """

    under: Mask = field(repr=False)
    mask: Mask = field(repr=False)
    found: Difference
    left: Difference
    face: Face | None
    hidden: Sequence[Place] = ()
    unseen: Rung = Rung.VOLATILE
    varies: bool = False  # some of it would be news, had the page not said it by turns before


def compare(
    target: Target, understood: Understood, earlier: Earlier, *, now: datetime, known: Known, settled: bool = False
) -> Comparison:
    """What separates a page from what it was. settled: the mask is taken as it stands."""
    mask = known.mask
    if settled:
        found = difference(earlier.outline, understood.outline, mask.volatile)
    else:
        lesson = Lesson(target.key, understood.outline, now, earlier.outline, earlier.at, earlier.again)
        mask, found = learnt(mask, lesson)
    fresh = news(found, mask, then=earlier.at, now=now)
    if not settled:
        mask = _with_variants(mask, target.key, fresh, at=now)
    left = _unseen_before(fresh, mask, target.key)
    return Comparison(
        under=known.mask,
        mask=mask,
        found=found,
        left=left,
        face=face_of(target, understood, earlier, known=known),
        hidden=() if left or settled else hidden(earlier.outline, understood.outline, mask.volatile),
        unseen=_unseen(understood, earlier),
        varies=left != fresh,
    )


def _with_variants(mask: Mask, page: PageKey, fresh: Difference, *, at: datetime) -> Mask:
    went = {_variant(place, mask, page) for place in (*(was for was, _ in fresh.replaced), *fresh.removed)}
    came = {_variant(place, mask, page) for place in (*(now for _, now in fresh.replaced), *fresh.added)}
    return replace(mask, variants=learn_variants(mask.variants, went=went, came=came, at=at))


def _variant(place: Place, mask: Mask, page: PageKey) -> int:
    return variant_of(page, form_of(place, mask.volatile.masked(place)))


def _unseen_before(fresh: Difference, mask: Mask, page: PageKey) -> Difference:
    """What is left without what this page says by turns: words, never numbers."""

    def numbers(place: Place) -> Sequence[str]:
        return numbers_of(mask.volatile.masked(place))

    def returned(place: Place) -> int:
        return returns_of(mask.variants, _variant(place, mask, page))

    def is_known(place: Place) -> bool:
        return not numbers(place) and returned(place) >= ENOUGH_RETURNS

    def are_known(was: Place, now: Place) -> bool:
        has_returned = returned(was) and returned(now) and max(returned(was), returned(now)) >= ENOUGH_RETURNS
        return bool(has_returned) and numbers(was) == numbers(now)

    return replace(
        fresh,
        replaced=tuple(pair for pair in fresh.replaced if not are_known(*pair)),
        removed=tuple(place for place in fresh.removed if not is_known(place)),
        added=tuple(place for place in fresh.added if not is_known(place)),
    )


def _unseen(understood: Understood, earlier: Earlier) -> Rung:
    """Why no piece of bodies that differ may: a rule hides some, its words are volatile, or no piece tells it."""
    if left_out(earlier.outline) != left_out(understood.outline):
        return Rung.RULE
    then, now = ([(place.part, place.text) for place in places] for places in (earlier.outline, understood.outline))
    return Rung.VOLATILE if then != now else Rung.MARKUP


def wants_again(target: Target, comparison: Comparison, earlier: Earlier, *, now: datetime, known: Known) -> bool:
    """Whether one more look at the page, at once, would tell more about what differs; not of a wall."""
    if wall_of(target, comparison.face, now=now, known=known) not in {None, Wall.SHRUNK, Wall.REPLACED}:
        return False
    left, mask = comparison.left, comparison.mask
    if left or earlier.again:
        return wants_pair(left, mask, taken=len(earlier.again), returned=earlier.has_returned)
    return has_pairs(mask) and wants_test(comparison.hidden, mask.volatile, page=target.key, looks=mask.looks)
