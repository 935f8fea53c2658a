"""The learned noise mask of a domain: volatile content, boilerplate and variants.

Variants are blocks that alternate on a page, such as the versions of an A/B test that each stay for a day. A second
fetch, seconds later, does not show them. A block that returned once may be a reverted edit, which is a change. A block
that returns repeatedly, each time within weeks, is a variant and not a change.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from msgspec import Struct, field

from crawler.core.change.boilerplate import NO_BOILERPLATE, Boilerplate, compute_form
from crawler.core.change.edits import NO_EDITS, BoilerplateEdits, TemplateEdits
from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import NO_VOLATILE_CONTENT, VolatileContent
from crawler.core.noise.words import Words, keep_newest, select_numbers
from crawler.core.page.block import Block, BlockKind, BlockPair
from crawler.core.page.fingerprint import hash_text

MAX_VARIANTS = 2048  # added or removed blocks of a domain's pages; the oldest are dropped first
MAX_CHANGED_BLOCKS = 64  # of one visit; if more differ, the page was rewritten, and none is counted
ENOUGH_RETURNS = 2  # after which a block counts as a variant
MAX_RETURN_GAP = timedelta(days=30)  # since the block was last added or removed; later, counting starts again


class Variant(Struct, frozen=True):
    """A block that was removed from a page or added to it; a known variant after ENOUGH_RETURNS.

    returns: how often it came back.  last_at: when it was last added or removed.  is_gone: whether it is removed now.
    """

    returns: int
    last_at: datetime
    is_gone: bool


Variants = Mapping[int, Variant]  # by compute_variant_key


class NoiseMask(Struct, frozen=True):
    """The noise mask of one domain: what never counts as a change of its pages. Immutable.

    second_fetches: the number of second fetches so far.  visits: the number of visits that the mask learned from.
    compared_visits: the number of those that found a page with a Snapshot to compare.
    edits: edits of the site, reported or pending.  template_edits: edits of blocks that only some pages share.
    variants: blocks that may alternate on a page (A/B tests).
    """

    volatile: VolatileContent = NO_VOLATILE_CONTENT
    boilerplate: Boilerplate = NO_BOILERPLATE
    second_fetches: int = 0
    compared_visits: int = 0
    visits: int = 0
    edits: BoilerplateEdits = NO_EDITS
    template_edits: TemplateEdits = field(default_factory=dict)
    variants: Variants = field(default_factory=dict)

    def compute_form(self, block: Block) -> int:
        """Return a hash of a block's path, kind and masked words."""
        return compute_form(block, self.volatile.mask_words(block))

    def compute_edit_key(self, sides: BlockPair) -> int:
        """Return a key for a pair of an old and a new block. The same edit has the same key on all pages."""
        was, now = (block and self.compute_form(block) for block in sides)
        return hash_text(f"{was} {now}")

    def select_numbers(self, block: Block | None) -> Words:
        """Return the words of a block that contain a number, such as a price; () for a link or no block.

        A number in the target of a link is an id or belongs to the host, such as 127.0.0.1:8080 in all internal links.
        """
        if block is None or block.kind is BlockKind.LINK:
            return ()
        return select_numbers(self.volatile.mask_words(block))

    def is_boilerplate(self, block: Block) -> bool:
        """Return whether a block is boilerplate now; see `Boilerplate.contains`."""
        return self.boilerplate.contains(self.compute_form(block))

    def is_noise(self, block: Block) -> bool:
        """Return whether a block is boilerplate, or volatile as a whole."""
        return self.volatile.is_noise(block) or self.is_boilerplate(block)


NO_MASK = NoiseMask()


def compute_variant_key(page: PageKey, form: int) -> int:
    """Return the key of a block of a page in Variants. form: see `NoiseMask.compute_form`."""
    return hash_text(f"{page.hex()} {form}")


def learn_variants(before: Variants, *, removed: AbstractSet[int], added: AbstractSet[int], at: datetime) -> Variants:
    """Return the variants after one more visit.

    removed, added: keys (see `compute_variant_key`) of the significant blocks that were removed or added.
    """
    if not removed | added or len(removed | added) > MAX_CHANGED_BLOCKS:
        return before
    variants = dict(before)
    for key in sorted(removed | added):
        variant = variants.pop(key, None)
        is_gone = key not in added
        if variant is None or at - variant.last_at > MAX_RETURN_GAP:
            variants[key] = Variant(0, at, is_gone)
        else:
            variants[key] = Variant(variant.returns + (variant.is_gone and not is_gone), at, is_gone)
    return keep_newest(variants, MAX_VARIANTS)


def count_returns(variants: Variants, key: int) -> int:
    """Return how often a block came back to its page. key: see `compute_variant_key`."""
    variant = variants.get(key)
    return variant.returns if variant is not None else 0
