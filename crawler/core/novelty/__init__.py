"""Novelty: whether first looks at the pages of a template still bring anything new, or the site has no end there.

`sample_of` takes a few hashes of a page's text; `NoveltyMemory` tells how many of them no earlier page had, and which
query parameters make no other page; `is_barren` says of a template that its pages bring nothing new. Uses page and
http.
"""

from crawler.core.novelty.evidence import (
    ASK_AGAIN_EVERY,
    LONGEST_WAIT,
    NO_EVIDENCE,
    NoveltyEvidence,
    TemplateNovelty,
    is_barren,
    section_of,
    time_after,
)
from crawler.core.novelty.memory import NoveltyMemory, SeenHashes
from crawler.core.novelty.sample import Sample, parse_with_sample, sample_of
from crawler.core.novelty.urls import has_repeats, without_each_parameter
