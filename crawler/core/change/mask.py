"""The learned noise mask of a domain: what differs from fetch to fetch, and what is the site's, not a page's."""

from dataclasses import dataclass, field

from crawler.core.change.boilerplate import NO_BOILERPLATE, Boilerplate, form_of
from crawler.core.change.edits import NO_EDITS, Edits, TemplateEdits
from crawler.core.change.variants import Variants
from crawler.core.noise.noise import NOTHING_VOLATILE, Volatile
from crawler.core.page.outline import Block


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

    def is_boilerplate(self, block: Block) -> bool:
        """Whether a block stands on nearly all pages now."""
        return self.boilerplate.contains(self.form_of(block))

    def is_noise(self, block: Block) -> bool:
        """Whether a block is volatile as a whole, or boilerplate."""
        return self.volatile.is_noise(block) or self.is_boilerplate(block)


NO_MASK = NoiseMask()
