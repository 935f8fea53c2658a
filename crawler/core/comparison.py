"""A page beside its last Snapshot, worked out once for all who ask: is one more look wanted, what is the verdict?"""

from dataclasses import dataclass, field
from datetime import datetime

from crawler.core.change import Rung, Understood
from crawler.core.compare import Difference, Lesson, Mask, difference, learnt, news, wants_pair
from crawler.core.visit import Earlier, Known, Target
from crawler.core.walls import Face, Wall
from crawler.core.withheld import face_of, wall_of


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs under a mask, and what of it is news.

    under: the mask that was known.  mask: the one by which it was compared, with what this look teaches.
    face: what the page shows, as far as it can tell a wall.  unseen: what decides where nothing differs.
    """

    under: Mask = field(repr=False)
    mask: Mask = field(repr=False)
    found: Difference
    left: Difference
    face: Face | None
    unseen: Rung = Rung.VOLATILE


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
    return Comparison(
        under=known.mask,
        mask=mask,
        found=found,
        left=news(found, mask, then=earlier.at, now=now),
        face=face_of(target, understood, earlier, known=known),
        unseen=_unseen(understood, earlier),
    )


def _unseen(understood: Understood, earlier: Earlier) -> Rung:
    """Why nothing may differ of bodies that do: their words that do are volatile, or none is seen to differ."""
    then, now = ([(place.part, place.text) for place in places] for places in (earlier.outline, understood.outline))
    if then != now:
        return Rung.VOLATILE
    return Rung.RULE if understood.is_viewed else Rung.MARKUP


def wants_again(target: Target, comparison: Comparison, earlier: Earlier, *, now: datetime, known: Known) -> bool:
    """Whether one more look at the page, at once, would tell more about what differs; not of a wall."""
    if wall_of(target, comparison.face, now=now, known=known) not in {None, Wall.SHRUNK, Wall.REPLACED}:
        return False
    left, mask = comparison.left, comparison.mask
    return wants_pair(left, mask, taken=len(earlier.again), returned=earlier.has_returned)
