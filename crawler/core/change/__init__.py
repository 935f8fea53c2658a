"""What has changed between two versions of a page, and whether it is the page's own.

`judge` decides by digests; `difference` and `news` by blocks, under the domain's noise mask and without the site's
boilerplate; `learn` is what a comparison teaches the mask. Uses volatile and what is below it.
"""

from crawler.core.change.boilerplate import Frame, Stand, form_of
from crawler.core.change.change import Change, Rung, Verdict, judge
from crawler.core.change.difference import Difference, difference, news
from crawler.core.change.explain import Piece, Why, pieces_of, why_no_news
from crawler.core.change.lesson import Lesson, has_pairs, learn, learnt, told, wants_pair
from crawler.core.change.mask import NO_MASK, Mask
from crawler.core.change.near_duplicates import LEAST_TEXT_BYTES, NEAR_BITS, Group, groups
from crawler.core.change.site_edits import Edits, SiteEdit
from crawler.core.change.variants import ENOUGH_RETURNS, Variant, learn_variants, numbers_of, returns_of, variant_of

__all__ = [
    "ENOUGH_RETURNS",
    "LEAST_TEXT_BYTES",
    "NEAR_BITS",
    "NO_MASK",
    "Change",
    "Difference",
    "Edits",
    "Frame",
    "Group",
    "Lesson",
    "Mask",
    "Piece",
    "Rung",
    "SiteEdit",
    "Stand",
    "Variant",
    "Verdict",
    "Why",
    "difference",
    "form_of",
    "groups",
    "has_pairs",
    "judge",
    "learn",
    "learn_variants",
    "learnt",
    "news",
    "numbers_of",
    "pieces_of",
    "returns_of",
    "told",
    "variant_of",
    "wants_pair",
    "why_no_news",
]
