"""The learned noise mask of a domain: what differs from fetch to fetch, and what is the site's, not a page's."""

from dataclasses import dataclass, field

from crawler.core.change.boilerplate import NO_BOILERPLATE, Boilerplate
from crawler.core.change.site_edits import NO_EDITS, Edits
from crawler.core.change.variants import Variants
from crawler.core.volatile import NOTHING_VOLATILE, Volatile


@dataclass(frozen=True, slots=True)
class NoiseMask:
    """What one domain's pages have that is no news; immutable.

    pairs: taken so far, of `compared` looks.  looks: that it was learnt from.  edits: of the frame, told and not.
    variants: of its pages, what they say by turns.
    """

    volatile: Volatile = NOTHING_VOLATILE
    boilerplate: Boilerplate = NO_BOILERPLATE
    pairs: int = 0
    compared: int = 0
    looks: int = 0
    edits: Edits = NO_EDITS
    variants: Variants = field(default_factory=dict)


NO_MASK = NoiseMask()
