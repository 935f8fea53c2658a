"""The learned noise mask of a domain: what differs from fetch to fetch, what is the site's, and variants of a page.

Variants are blocks that go and come back, such as the halves of an A/B test that hold for a day each. A second fetch,
seconds later, does not show them. A block that came back once proves nothing: an edit that is taken back is a change. A
block that comes back again and again, each time within weeks, is a variant and no change.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crawler.core.change.boilerplate import NO_BOILERPLATE, Boilerplate, form_of
from crawler.core.change.edits import NO_EDITS, Edits, TemplateEdits
from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import NOTHING_VOLATILE, Volatile
from crawler.core.noise.words import newest
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block, Sides

MOST_VARIANTS = 2048  # blocks of one domain's pages that went or came; the oldest are forgotten first
MOST_BLOCKS = 64  # of one look; a page that is written anew has no variants
ENOUGH_RETURNS = 2  # of a block, to call it a variant
WITHIN = timedelta(days=30)  # since a block last went or came; later, its returns are counted anew


@dataclass(frozen=True, slots=True)
class Variant:
    """A block of one page that went or came. returns: how often it came back.  last: when it went or came."""

    returns: int
    last: datetime
    is_gone: bool


Variants = Mapping[int, Variant]  # by variant_of


@dataclass(frozen=True, slots=True)
class NoiseMask:
    """The noise mask of one domain: what of its pages never counts as a change; immutable.

    pairs: second fetches taken so far, over `compared` looks.  looks: that the mask was learnt from.
    edits: of the boilerplate, reported or not yet.  template_edits: of what only some pages share.
    variants: texts that its pages show by turns (A/B tests).
    """

    volatile: Volatile = NOTHING_VOLATILE
    boilerplate: Boilerplate = NO_BOILERPLATE
    second_fetches: int = 0
    compared: int = 0
    looks: int = 0
    edits: Edits = NO_EDITS
    template_edits: TemplateEdits = field(default_factory=dict)
    variants: Variants = field(default_factory=dict)

    def form_of(self, block: Block) -> int:
        """A number for a block's path, kind and masked words."""
        return form_of(block, self.volatile.masked(block))

    def edit_key(self, sides: Sides) -> int:
        """Return a number for one change, the same on each page."""
        was, now = (block and self.form_of(block) for block in sides)
        return number_of(f"{was} {now}")

    def is_boilerplate(self, block: Block) -> bool:
        """Whether a block stands on nearly all pages now."""
        return self.boilerplate.contains(self.form_of(block))

    def is_noise(self, block: Block) -> bool:
        """Whether a block is volatile as a whole, or boilerplate."""
        return self.volatile.is_noise(block) or self.is_boilerplate(block)


NO_MASK = NoiseMask()


def variant_of(page: PageKey, form: int) -> int:
    return number_of(f"{page.hex()} {form}")


def learn_variants(known: Variants, *, went: AbstractSet[int], came: AbstractSet[int], at: datetime) -> Variants:
    """The variants after one more look. went, came: significant blocks of the page, by variant_of."""
    if not went | came or len(went | came) > MOST_BLOCKS:
        return known
    variants = dict(known)
    for key in sorted(went | came):
        variant = variants.pop(key, None)
        is_gone = key not in came
        if variant is None or at - variant.last > WITHIN:
            variants[key] = Variant(0, at, is_gone)
        else:
            variants[key] = Variant(variant.returns + (variant.is_gone and not is_gone), at, is_gone)
    return newest(variants, MOST_VARIANTS)


def returns_of(known: Variants, key: int) -> int:
    """How often a block came back to its page."""
    variant = known.get(key)
    return variant.returns if variant is not None else 0
