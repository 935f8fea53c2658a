"""What a page says without what its domain's noise mask hides."""

from crawler.core.change.explain import ExplainedBlock, explain_blocks
from crawler.core.change.mask import NoiseMask
from crawler.core.page import WHOLE, BlockKind, BlockList

SAYS = frozenset({BlockKind.TEXT, BlockKind.TITLE})  # nobody reads addresses and descriptions
GAP = "\u2026"  # for what is masked: words on both sides of it do not become one text


def masked_text(blocks: BlockList, mask: NoiseMask) -> str:
    """The text of a page's blocks, a line each, without volatile words, noise and boilerplate."""
    blocks = tuple(block for block in blocks if block.kind in SAYS and block.text)
    explained = explain_blocks(blocks, blocks, mask, view=WHOLE)
    return "\n".join(_compared(block) for block in explained if not block.is_whole)


def _compared(block: ExplainedBlock) -> str:
    """The text of a block with a gap in place of each masked word."""
    parts, end = [], 0
    for begin, until in block.masked:
        parts += [block.text[end:begin], GAP]
        end = until
    return "".join([*parts, block.text[end:]])
