"""Changes between two versions of a page, and whether they are the page's own.

`judge` decides by digests; `difference` and `significant` by blocks, under the domain's noise mask and without the
site's boilerplate; `update_mask` learns from a comparison; `diff_pages` shows people what changed, word by word. Uses
volatile and what is below it.
"""

from crawler.core.change.boilerplate import BlockCount, Boilerplate, form_of
from crawler.core.change.change import Change, Rung, Verdict, judge
from crawler.core.change.difference import Difference, difference, significant
from crawler.core.change.distance import distance_between
from crawler.core.change.explain import ExplainedBlock, Why, explain_blocks, why_no_news
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.near_duplicates import LEAST_TEXT_BYTES, NEAR_BITS, DuplicateGroup, duplicate_groups
from crawler.core.change.observation import (
    Observation,
    has_second_fetches_left,
    needs_second_fetch,
    take_site_edits,
    update_mask,
    update_with_difference,
)
from crawler.core.change.site_edits import Edits, SiteEdit
from crawler.core.change.template_edits import TemplateEdit
from crawler.core.change.variants import ENOUGH_RETURNS, Variant, learn_variants, numbers_of, returns_of, variant_of
from crawler.core.change.word_diff import (
    BlockDiff,
    BlockStatus,
    Hunk,
    PageDiff,
    RunKind,
    WordRun,
    around_change,
    cut_at_word,
    diff_pages,
    diff_texts,
    diff_words,
    excerpt,
    with_marks,
)
