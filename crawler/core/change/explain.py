"""What of a page is masked, piece by piece, and why: for people who want to see what is compared."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from crawler.core.change.boilerplate import form_of
from crawler.core.change.difference import Difference, significant
from crawler.core.change.mask import NoiseMask
from crawler.core.page import Block, BlockKind, BlockList, View
from crawler.core.volatile import tells_the_day, words_of


class Why(StrEnum):
    """Why a piece, or a difference, is no news."""

    NOT = ""  # it is
    WORDS = "words"  # some of its words were found to differ within seconds, or to count the time; the rest is compared
    NOISE = "noise"  # this very piece came or went within seconds
    UNSTABLE = "unstable"  # what stands in its place differs from one look to the next
    BOILERPLATE = "boilerplate"  # it stands, or stood, on nearly all pages of the domain
    DAY = "day"  # it tells the day of the look
    RULE = "rule"  # its user wants it ignored, or others watched


@dataclass(frozen=True, slots=True)
class ExplainedBlock:
    """A place with what of it is masked. masked: where in the text such words begin and end, in their order.

    rule: what of the rules leaves it out, or some of it: a selector, an XPath, an expression.
    """

    kind: BlockKind
    text: str
    why: Why = Why.NOT
    masked: tuple[tuple[int, int], ...] = ()
    rule: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it can be news of the page."""
        return self.why in {Why.NOISE, Why.UNSTABLE, Why.BOILERPLATE, Why.RULE}


def explain_block(place: Block, mask: NoiseMask) -> ExplainedBlock:
    """What a domain's mask hides of a place."""
    (place,) = mask.volatile.named((place,))
    why = _why_masked(place, mask)
    masked = _masked_in(place, mask)
    return ExplainedBlock(place.kind, place.text, why or (Why.WORDS if masked else Why.NOT), masked)


def explain_blocks(
    whole: BlockList, seen: BlockList, mask: NoiseMask, *, view: View, apart: Mapping[str, BlockList] | None = None
) -> list[ExplainedBlock]:
    """All of a page, with what of it is masked. seen: through that view.

    apart: what each of the view's places alone leaves of the page, by which is told what leaves a piece out.
    """
    left = Counter(seen)
    every = Counter(whole)
    lacking = {rule: every - Counter(rest) for rule, rest in (apart or {}).items()}
    found: list[ExplainedBlock] = []
    for place in whole:
        compared = replace(place, text=view.without_ignored(place.text))
        if left[compared]:
            left[compared] -= 1
            found.append(replace(explain_block(compared, mask), rule=_cutting(place, view)))
        else:
            rule = next((rule for rule, lost in lacking.items() if lost[place]), _cutting(place, view))
            found.append(ExplainedBlock(place.kind, place.text, Why.RULE, rule=rule))
    return found


def _cutting(place: Block, view: View) -> str:
    """Which of a view's expressions finds something in a place."""
    return next((text for text in view.ignore_text if View(ignore_text=(text,)).cuts(place.text)), "")


def _why_masked(place: Block, mask: NoiseMask) -> Why:
    if mask.volatile.swings(place):
        return Why.UNSTABLE
    if mask.volatile.is_noise(place):
        return Why.NOISE
    if mask.boilerplate.contains(form_of(place, mask.volatile.masked(place))):
        return Why.BOILERPLATE
    return Why.NOT


def _masked_in(place: Block, mask: NoiseMask) -> tuple[tuple[int, int], ...]:
    """Between two words stands only what is of no word, so each is the next such text."""
    said = mask.volatile.said(place)
    gaps = mask.volatile.gaps(place.css_path, said)
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


def why_no_news(found: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> Why:
    """Why one single difference is none, or NOT where it is."""
    if significant(found, mask, then=then, now=now):
        return Why.NOT
    for before, after in found.replaced:
        said = mask.volatile.both(before, after)
        if before.kind is not BlockKind.LINK and tells_the_day(*said, then=then, now=now):
            return Why.DAY
    masked = [_why_masked(place, mask) for place in found.places]
    return next((why for why in masked if why), Why.WORDS if _has_gaps(found, mask) else Why.BOILERPLATE)


def _has_gaps(found: Difference, mask: NoiseMask) -> bool:
    return any(mask.volatile.has_gaps(place) for place in found.places)
