"""Soft errors: soft 404, login, consent and block pages, truncated bodies, which come with status 200.

`recognise` names the soft error that an answer shows, or None. The evidence is a text that many pages share, the
domain's answer to a not-found probe, and the share of the page's own text that was replaced. Uses change.
"""

from crawler.core.soft_errors.recognise import (
    LOOKS_UNTIL_GONE,
    LOOKS_UNTIL_REAL,
    MAX_WITHHELD,
    NO_SOFT_ERRORS,
    SharedText,
    SoftError,
    SoftErrorMemory,
    SoftErrorSignals,
    after_good,
    after_replaced,
    is_probe_due,
    is_shared,
    probe_answered,
    probe_sent,
    recognise,
    remember_shared,
)
from crawler.core.soft_errors.sketch import (
    NOTHING,
    TextReplacement,
    TextSketch,
    alike,
    boilerplate_text,
    differs_in_numbers_only,
    keeps_frame,
    own_text,
    replacement_of,
    sketch,
    sketch_of_target,
    sketch_of_url,
)
