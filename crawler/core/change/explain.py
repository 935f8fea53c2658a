"""Explain the mask of a page, block by block: what is not compared, and why. For people."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from crawler.core.change.difference import Difference, significant
from crawler.core.change.mask import NoiseMask
from crawler.core.noise.dates import tells_the_day
from crawler.core.noise.words import words_of
from crawler.core.page.outline import Block, BlockKind, BlockList
from crawler.core.page.selectors import View


class Why(StrEnum):
    """Reason why a block, or a difference, is not significant."""

    NOT = ""  # it is significant
    WORDS = "words"  # some of its words were found to differ within seconds, or to count the time; the rest is compared
    NOISE = "noise"  # this very block came or went within seconds
    UNSTABLE = "unstable"  # the text at its path differs from one fetch to the next
    BOILERPLATE = "boilerplate"  # boilerplate, now or before
    DAY = "day"  # it says the day of the look
    RULE = "rule"  # a user's rule ignores it, or watches others


@dataclass(frozen=True, slots=True)
class ExplainedBlock:
    """A block and what of it is masked. masked: begin and end in the text of each masked word, in their order.

    rule: the selector, XPath or expression of a user's rule that leaves the block out, or some of it.
    """

    kind: BlockKind
    text: str
    why: Why = Why.NOT
    masked: tuple[tuple[int, int], ...] = ()
    rule: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether no word of the block can be a change of the page."""
        return self.why in {Why.NOISE, Why.UNSTABLE, Why.BOILERPLATE, Why.RULE}


def explain_blocks(
    whole: BlockList, seen: BlockList, mask: NoiseMask, *, view: View, apart: Mapping[str, BlockList] | None = None
) -> list[ExplainedBlock]:
    """All blocks of a page, with what of each is masked. seen: the blocks left by the view.

    apart: the blocks left by each rule of the view alone, by rule; shows which rule leaves a block out.
    """
    left = Counter(seen)
    every = Counter(whole)
    lacking = {rule: every - Counter(rest) for rule, rest in (apart or {}).items()}
    found: list[ExplainedBlock] = []
    for block in whole:
        compared = replace(block, text=view.without_ignored(block.text))
        if left[compared]:
            left[compared] -= 1
            (named,) = mask.volatile.named((compared,))
            masked = _masked_in(named, mask)
            why = _why_masked(named, mask) or (Why.WORDS if masked else Why.NOT)
            found.append(ExplainedBlock(named.kind, named.text, why, masked, _cutting(block, view)))
        else:
            rule = next((rule for rule, lost in lacking.items() if lost[block]), _cutting(block, view))
            found.append(ExplainedBlock(block.kind, block.text, Why.RULE, rule=rule))
    return found


def _cutting(block: Block, view: View) -> str:
    """The first of a view's expressions that finds something in a block, or an empty string."""
    return next((text for text in view.ignore_text if View(ignore_text=(text,)).cuts(block.text)), "")


def _why_masked(block: Block, mask: NoiseMask) -> Why:
    if mask.volatile.swings(block):
        return Why.UNSTABLE
    if mask.volatile.is_noise(block):
        return Why.NOISE
    if mask.is_boilerplate(block):
        return Why.BOILERPLATE
    return Why.NOT


def _masked_in(block: Block, mask: NoiseMask) -> tuple[tuple[int, int], ...]:
    """Begin and end of each masked word in a block's text. Each word is searched for behind the one before it."""
    compared_words = mask.volatile.words(block)
    gaps = mask.volatile.gaps(block.css_path, compared_words)
    found: list[tuple[int, int]] = []
    end = n = 0
    for word in words_of(block):
        start = block.text.index(word, end)
        end = start + len(word)
        is_compared = n < len(compared_words) and compared_words[n] == word
        if not is_compared or n in gaps:
            found.append((start, end))
        n += is_compared
    return tuple(found)


def why_no_news(found: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> Why:
    """The reason why a difference is not significant; Why.NOT where it is."""
    if significant(found, mask, then=then, now=now):
        return Why.NOT
    for before, after in found.replaced:
        compared_words = mask.volatile.both(before, after)
        if before.kind is not BlockKind.LINK and tells_the_day(*compared_words, then=then, now=now):
            return Why.DAY
    masked = [_why_masked(block, mask) for block in found.blocks]
    has_gaps = any(map(mask.volatile.has_gaps, found.blocks))
    return next((why for why in masked if why), Why.WORDS if has_gaps else Why.BOILERPLATE)
