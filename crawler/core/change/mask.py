"""The learned noise mask of a domain: what differs from fetch to fetch, what is the site's, and variants of a page.

Variants are blocks that go and come back, such as the halves of an A/B test that hold for a day each. A second fetch,
seconds later, does not show them. A block that came back once proves nothing: an edit that is taken back is a change. A
block that comes back again and again, each time within weeks, is a variant and no change.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crawler.core.change.boilerplate import NO_BOILERPLATE, Boilerplate, compute_form
from crawler.core.change.edits import NO_EDITS, BoilerplateEdits, TemplateEdits
from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import NO_VOLATILE_CONTENT, VolatileContent
from crawler.core.noise.words import keep_newest
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.outline import Block, BlockPair

MAX_VARIANTS = 2048  # blocks of one domain's pages that went or came; the oldest are forgotten first
MAX_CHANGED_BLOCKS = 64  # of one look; a page that is written anew has no variants
ENOUGH_RETURNS = 2  # of a block, to call it a variant
MAX_RETURN_GAP = timedelta(days=30)  # since a block last went or came; later, its returns are counted anew


@dataclass(frozen=True, slots=True)
class Variant:
    """A block of one page that went or came. returns: how often it came back.  last_at: when it went or came."""

    returns: int
    last_at: datetime
    is_gone: bool


Variants = Mapping[int, Variant]  # by variant_of


@dataclass(frozen=True, slots=True)
class NoiseMask:
    """The noise mask of one domain: what of its pages never counts as a change; immutable.

    pairs: second fetches taken so far, over `compared` looks.  visits: that the mask was learnt from.
    edits: of the boilerplate, reported or not yet.  template_edits: of what only some pages share.
    variants: texts that its pages show by turns (A/B tests).
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
        """A number for a block's path, kind and masked words."""
        return compute_form(block, self.volatile.mask_words(block))

    def compute_edit_key(self, sides: BlockPair) -> int:
        """Return a number for one change, the same on each page."""
        was, now = (block and self.compute_form(block) for block in sides)
        return hash_text(f"{was} {now}")

    def is_boilerplate(self, block: Block) -> bool:
        """Whether a block stands on nearly all pages now."""
        return self.boilerplate.contains(self.compute_form(block))

    def is_noise(self, block: Block) -> bool:
        """Whether a block is volatile as a whole, or boilerplate."""
        return self.volatile.is_noise(block) or self.is_boilerplate(block)


NO_MASK = NoiseMask()


def compute_variant_key(page: PageKey, form: int) -> int:
    return hash_text(f"{page.hex()} {form}")


def learn_variants(before: Variants, *, removed: AbstractSet[int], added: AbstractSet[int], at: datetime) -> Variants:
    """The variants after one more look. removed, added: significant blocks of the page, by variant_of."""
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
    """How often a block came back to its page."""
    variant = variants.get(key)
    return variant.returns if variant is not None else 0
