"""How far two versions of a page are apart, in the page's own text: the SimHash distance under one mask."""

from collections import Counter
from dataclasses import dataclass

from crawler.core.change.difference import SAME, Difference, block_form
from crawler.core.change.mask import NoiseMask
from crawler.core.page import Block, BlockKind, BlockList, distance_bits, fingerprint_of

TEXTS = frozenset({BlockKind.TEXT, BlockKind.TITLE})


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two versions are apart. bits: of 64 that differ, None where the page has no text of its own.

    blocks: share of the page's own blocks, then and now, that differ: 0 to 1.
    """

    bits: int | None = None
    blocks: float = 0.0


NO_DISTANCE = Distance(0)


def distance_between(after: BlockList, found: Difference, own: Difference, mask: NoiseMask) -> Distance:
    """The distance of two versions that differ by `found`, of which `own` is the page's own doing.

    after: the blocks of the new version.  Out of both texts are boilerplate, volatile places, and what differs without
    being the page's own: so two versions that only noise tells apart have distance 0, whatever their bodies say.
    """
    if own == SAME:
        return NO_DISTANCE
    kept = _kept(mask.volatile.named(after), found, mask)
    were = [*(was for was, _ in own.replaced), *own.removed]
    are = [*(now for _, now in own.replaced), *own.added]
    texts = [_text([*kept, *changed], mask) for changed in (were, are)]
    one, other = (fingerprint_of(text) for text in texts)
    if one is None and other is None:
        bits = None
    elif one is None or other is None:
        bits = 32
    else:
        bits = distance_bits(one, other)
    return Distance(bits, len(were + are) / (len(were + are) + 2 * len(kept)))


def _kept(after: BlockList, found: Difference, mask: NoiseMask) -> list[Block]:
    """The page's own blocks that stand in both versions."""
    came = Counter([*(now for _, now in found.replaced), *found.added])
    kept = []
    for block in after:
        if came[block]:
            came[block] -= 1
        elif block.text and not _is_noise(block, mask):
            kept.append(block)
    return kept


def _is_noise(block: Block, mask: NoiseMask) -> bool:
    return mask.volatile.is_noise(block) or mask.boilerplate.contains(block_form(block, mask))


def _text(blocks: list[Block], mask: NoiseMask) -> str:
    """The words of text blocks, with a gap for each volatile one."""
    words = (mask.volatile.masked(block) for block in blocks if block.kind in TEXTS)
    return "\n".join(map(" ".join, words))
