"""What of a page is masked, piece by piece, and why: for people who want to see what is compared."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from crawler.core.compare import Difference, Mask, news
from crawler.core.dates import tells_the_day
from crawler.core.frame import form_of
from crawler.core.outline import Outline, Part, Place
from crawler.core.view import View
from crawler.core.volatile import noise_of
from crawler.core.words import words_of


class Why(StrEnum):
    """Why a piece, or a difference, is no news."""

    NOT = ""  # it is
    WORDS = "words"  # some of its words were found to differ within seconds, or to count the time; the rest is compared
    NOISE = "noise"  # this very piece came or went within seconds
    SWINGS = "swings"  # what stands in its place differs from one look to the next
    FRAME = "frame"  # it stands, or stood, on nearly all pages of the domain
    DAY = "day"  # it tells the day of the look
    RULE = "rule"  # its user wants it ignored, or others watched


@dataclass(frozen=True, slots=True)
class Piece:
    """A place with what of it is masked. masked: where in the text such words begin and end, in their order."""

    part: Part
    text: str
    why: Why = Why.NOT
    masked: tuple[tuple[int, int], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it can be news of the page."""
        return self.why in {Why.NOISE, Why.SWINGS, Why.FRAME, Why.RULE}


def piece_of(place: Place, mask: Mask) -> Piece:
    """What a domain's mask hides of a place."""
    why = _why_masked(place, mask)
    masked = _masked_in(place, mask)
    return Piece(place.part, place.text, why or (Why.WORDS if masked else Why.NOT), masked)


def pieces_of(whole: Outline, seen: Outline, mask: Mask, *, view: View) -> list[Piece]:
    """All of a page, with what of it is masked. seen: through that view."""
    left = Counter(seen)
    found: list[Piece] = []
    for place in whole:
        compared = replace(place, text=view.without_ignored(place.text))
        if left[compared]:
            left[compared] -= 1
            found.append(piece_of(compared, mask))
        else:
            found.append(Piece(place.part, place.text, Why.RULE))
    return found


def _why_masked(place: Place, mask: Mask) -> Why:
    if mask.volatile.swings(place.path):
        return Why.SWINGS
    if noise_of(place) in mask.volatile.noise:
        return Why.NOISE
    if mask.frame.holds(form_of(place, mask.volatile.masked(place))):
        return Why.FRAME
    return Why.NOT


def _masked_in(place: Place, mask: Mask) -> tuple[tuple[int, int], ...]:
    """Between two words stands only what is of no word, so each is the next such text."""
    said = mask.volatile.said(place)
    gaps = mask.volatile.gaps(place.path, said)
    found: list[tuple[int, int]] = []
    end = n = 0
    for word in words_of(place):
        start = place.text.index(word, end)
        end = start + len(word)
        is_said = n < len(said) and said[n] == word
        if not is_said or n in gaps:
            found.append((start, end))
        n += is_said
    return tuple(found)


def why_no_news(found: Difference, mask: Mask, *, then: datetime, now: datetime) -> Why:
    """Why one single difference is none, or NOT where it is."""
    if news(found, mask, then=then, now=now):
        return Why.NOT
    for before, after in found.replaced:
        said = mask.volatile.both(before, after)
        if before.part is not Part.LINK and tells_the_day(*said, then=then, now=now):
            return Why.DAY
    masked = [_why_masked(place, mask) for place in found.places]
    return next((why for why in masked if why), Why.WORDS if _has_gaps(found, mask) else Why.FRAME)


def _has_gaps(found: Difference, mask: Mask) -> bool:
    return any(mask.volatile.has_gaps(place) for place in found.places)
