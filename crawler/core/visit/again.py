"""Whether a look at a page, seconds after another one, brought that page again, and not a wall or half of it.

What differs between two such looks is held to be volatile, on all pages of the domain. So the second one has to pass
what the first had to pass, with the first in place of the last Snapshot.
"""

from dataclasses import replace
from datetime import datetime

from crawler.core.change.change import Understood
from crawler.core.page.content import Ending
from crawler.core.page.outline import Part
from crawler.core.soft_errors.recognise import Wall, recognise
from crawler.core.soft_errors.sketch import own, turn_of
from crawler.core.visit.soft_errors import face_of
from crawler.core.visit.visit import Earlier, Known, Target
from crawler.core.volatile.words import words_of


def is_again(target: Target, first: Understood, second: Understood, *, now: datetime, known: Known) -> bool:
    """Whether both looks brought the same page. known: of the domain, before the second."""
    one, other = first.reading, second.reading
    is_torn = other.ending is not Ending.CLOSED and one.ending is not other.ending
    asks = other.asks_password and not one.asks_password
    if is_torn or asks or other.is_passed_on or not second.outline or one.kind != other.kind:
        return False
    face = face_of(replace(target, version=first.version), second, Earlier(first.outline, now), known=known)
    wall = recognise(face, known.walls, now=now) if face is not None else None
    if wall is not None and not (wall is Wall.CUT and one.ending is other.ending):
        return False
    turn = turn_of(own(first.outline, known.mask), own(second.outline, known.mask))
    return not turn.is_whole or _titles(first) == _titles(second)


def _titles(page: Understood) -> list[str]:
    """The words by which a page calls itself, without numbers: a counter may stand there."""
    titles = (place for place in page.outline if place.part is Part.TITLE)
    return [word for place in titles for word in words_of(place) if not any(map(str.isdigit, word))]
