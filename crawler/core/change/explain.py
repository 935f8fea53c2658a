"""Explanation of a page's noise mask for people: which blocks are not compared, and why."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.change import MaskReason
from crawler.core.change.difference import Difference, select_significant
from crawler.core.change.mask import NoiseMask
from crawler.core.noise.dates import differs_only_in_date
from crawler.core.noise.words import split_words
from crawler.core.page.block import Block, BlockKind, BlockList
from crawler.core.page.selectors import View


class ExplainedBlock(Struct, frozen=True):
    """A block and its masked parts.

    masked: the start and end of each masked word in the text, in order.
    rule: what excludes the block or a part of it: a regular expression, or a label of `View.split`.
    """

    kind: BlockKind
    text: str
    why: MaskReason = MaskReason.NONE
    masked: tuple[tuple[int, int], ...] = ()
    rule: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether the whole block is left out of the comparison."""
        return self.why in {MaskReason.NOISE, MaskReason.UNSTABLE, MaskReason.BOILERPLATE, MaskReason.RULE}


def explain_blocks(
    all_blocks: BlockList,
    visible_blocks: BlockList,
    mask: NoiseMask,
    *,
    view: View,
    blocks_by_rule: Mapping[str, BlockList] | None = None,
) -> list[ExplainedBlock]:
    """Explain what is masked in each block of a page.

    view: the user's rules on what to compare.  visible_blocks: the blocks that the view keeps.
    blocks_by_rule: the blocks that each rule of the view keeps on its own, to find the rule that excludes a block.
    """
    remaining = Counter(visible_blocks)
    counts = Counter(all_blocks)
    missing_by_rule = {rule: counts - Counter(rest) for rule, rest in (blocks_by_rule or {}).items()}
    explained: list[ExplainedBlock] = []
    for block in all_blocks:
        # The first ignore expression of the view that matches the block.
        texts = (text for text in view.ignore_text if View(ignore_text=(text,)).matches_ignored(block.text))
        expression, compared = next(texts, ""), replace(block, text=view.without_ignored(block.text))
        if remaining[compared]:
            remaining[compared] -= 1
            (stored,) = mask.volatile.apply_aliases((compared,))
            masked = _find_masked_ranges(stored, mask)
            reason = _find_mask_reason(stored, mask) or (MaskReason.WORDS if masked else MaskReason.NONE)
            explained.append(ExplainedBlock(stored.kind, stored.text, reason, masked, expression))
        else:
            rule = next((rule for rule, lost in missing_by_rule.items() if lost[block]), expression)
            explained.append(ExplainedBlock(block.kind, block.text, MaskReason.RULE, rule=rule))
    return explained


def _find_mask_reason(block: Block, mask: NoiseMask) -> MaskReason:
    if mask.volatile.is_noise(block):
        return MaskReason.UNSTABLE if mask.volatile.is_unstable(block) else MaskReason.NOISE
    return MaskReason.BOILERPLATE if mask.is_boilerplate(block) else MaskReason.NONE


def _find_masked_ranges(block: Block, mask: NoiseMask) -> tuple[tuple[int, int], ...]:
    """Return the start and end of each masked word in a block's text."""
    compared_words = mask.volatile.get_words(block)
    gaps = mask.volatile.get_gaps(block.css_path, compared_words)
    ranges: list[tuple[int, int]] = []
    end = n = 0
    for word in split_words(block):
        start = block.text.index(word, end)
        end = start + len(word)
        is_compared = n < len(compared_words) and compared_words[n] == word
        if not is_compared or n in gaps:
            ranges.append((start, end))
        n += is_compared
    return tuple(ranges)


def explain_insignificance(diff: Difference, mask: NoiseMask, *, then: datetime, now: datetime) -> MaskReason:
    """Return why a difference is not significant, or MaskReason.NONE if it is."""
    if select_significant(diff, mask, then=then, now=now):
        return MaskReason.NONE
    for before, after in diff.replaced:
        compared_words = mask.volatile.mask_pair(before, after)
        if before.kind is not BlockKind.LINK and differs_only_in_date(*compared_words, then=then, now=now):
            return MaskReason.DATE
    reasons = [_find_mask_reason(block, mask) for block in diff.blocks]
    has_gaps = any(map(mask.volatile.has_gaps, diff.blocks))
    return next((reason for reason in reasons if reason), MaskReason.WORDS if has_gaps else MaskReason.BOILERPLATE)
