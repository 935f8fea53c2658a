"""Whether a page is rendered: by its user's word, by whether it has scripts, and by what renders have brought."""

import re
from typing import Literal, assert_never

from crawler.core.page import Parsed
from crawler.core.rendering.memory import RenderMemory
from crawler.core.rendering.outcome import RenderChoice

RenderMode = Literal["auto", "always", "never"]

SAMPLES = 3  # pages of a template that are rendered before its renders are judged
NEEDED_SHARE = 0.2  # of a template's renders that bring something, for all of its pages to be rendered
RETEST_AFTER = 50  # pages passed by for each render so far and one more, before the next test: after three, 200
MOST_SHELL_CHARS = 200  # of text, in a page that leaves the rest to its scripts
SHELL_PART = 8  # such pages are so many times as often a test as others

# What a browser runs; data in script elements (JSON, templates) is not.
_SCRIPT = re.compile(
    rb"""<script(?=[\s/>])(?![^>]{0,300}\stype\s*=\s*["']?\s*(?:application/(?:ld\+)?json|text/(?:x-)?template|text/html))"""
    rb"""|<(?:body|svg|img|iframe|link)(?=\s)[^>]{0,300}?\son(?:load|error)\s*=""",
    re.IGNORECASE,
)


def has_scripts(body: bytes) -> bool:
    """Whether a page has anything that a browser would run at once."""
    return _SCRIPT.search(body) is not None


def choice_of(
    body: bytes,
    parsed: Parsed | None,
    *,
    template: str,
    mode: RenderMode,
    memory: RenderMemory,
    is_kept_rendered: bool = False,
) -> RenderChoice:
    """Whether a web page that was read without its scripts is rendered as well, and why.

    parsed: None where the body is the last one, byte for byte.  mode: what its user said.
    is_kept_rendered: its last Snapshot is of a rendered page, which the next is compared with.
    """
    match mode:
        case "always":
            return RenderChoice.ALWAYS
        case "never":
            return RenderChoice.NEVER
        case "auto":
            pass
        case _:
            assert_never(mode)
    if not has_scripts(body):
        return RenderChoice.NO_SCRIPTS
    known = memory.of(template)
    if known.tests < SAMPLES:
        return RenderChoice.SAMPLE
    if known.gain_share >= NEEDED_SHARE or is_kept_rendered:
        return RenderChoice.NEEDED
    wanted = RETEST_AFTER * (known.tests + 1)
    if known.passed >= wanted:
        return RenderChoice.RETEST
    if parsed is not None and len(parsed.content.main) <= MOST_SHELL_CHARS and known.passed >= wanted // SHELL_PART:
        return RenderChoice.SHELL
    return RenderChoice.NO_GAIN
