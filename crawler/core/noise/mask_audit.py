"""Audit of the mask: the differences that it hides, and when a second fetch tests them. No proof is for ever."""

from collections.abc import Sequence

from crawler.core.http import PageKey
from crawler.core.noise.noise import Volatile
from crawler.core.noise.words import words_of
from crawler.core.page import Block, BlockList, number_of

TESTED_EVERY = 50  # looks at which only masked blocks differ, for one test
DOUBTED_EVERY = 5  # such looks for one test, where a masked block stood still in the last second fetch


def hidden_by_mask(before: BlockList, after: BlockList, volatile: Volatile) -> Sequence[Block]:
    """The volatile blocks of a page that differ from those before."""
    before, after = volatile.named(before), volatile.named(after)
    old_blocks = set(before)
    return [block for block in after if block not in old_blocks and _is_masked(block, volatile)]


def _is_masked(block: Block, volatile: Volatile) -> bool:
    return volatile.is_noise(block) or volatile.masked(block) != words_of(block)


def wants_test(blocks: Sequence[Block], volatile: Volatile, *, page: PageKey, looks: int) -> bool:
    """Whether this look is to test, by a second fetch, if the hidden blocks still differ within seconds.

    looks: at the domain so far. The choice of tests does not depend on chance, and favours no page.
    """
    if not blocks:
        return False
    every = DOUBTED_EVERY if any(map(volatile.is_doubted, blocks)) else TESTED_EVERY
    return number_of(f"{page.hex()} {looks}") % every == 0
