"""The outcome of a render as values, and what it says beyond the script-free read of the same page."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b

from crawler.core.http.urls import Url
from crawler.core.page.script_signs import ScriptSign
from crawler.core.page.snapshot import Parsed

MAX_ADDITIONS = 256  # of one page that are remembered as what scripts add everywhere
MIN_NEW_WORDS = 8  # that are new, for a gain by text alone, or more than there were: "3 comments" needs no browser
MIN_NEW_PART = 0.05  # of the words that were there without scripts


class RenderEvidence(StrEnum):
    """Evidence, in a page's HTML, that its scripts write a part of it. Renders are judged apart by it."""

    NONE = ""
    PARTIAL = "partial"  # a part may be missing
    SHELL = "shell"  # the page says next to nothing without its scripts


def find_render_evidence(plain: Parsed) -> RenderEvidence:
    """Return the evidence of a page that was read without its scripts."""
    signs = plain.content.script_signs
    if ScriptSign.SHELL in signs:
        return RenderEvidence.SHELL
    return RenderEvidence.PARTIAL if signs else RenderEvidence.NONE


class RenderChoice(StrEnum):
    """Reason why a page is rendered, or why it is not."""

    ALWAYS = "always"  # its user wants it
    PROBE = "probe"  # to see whether pages like it need a browser
    NEEDED = "needed"  # renders of such pages bring something
    NEVER = "never"  # its user does not want it
    NO_SCRIPTS = "no_scripts"
    NO_SIGNS = "no_signs"  # nothing in its HTML says that a part of it is missing
    AWAITED = "awaited"  # it is stored as it is until a probe of such a page shows what they need
    NO_GAIN = "no_gain"  # renders of such pages bring nothing
    NO_BROWSER = "no_browser"  # it would be rendered, and there is none

    @property
    def is_rendered(self) -> bool:
        return self in _RENDERED


_RENDERED = frozenset({RenderChoice.ALWAYS, RenderChoice.PROBE, RenderChoice.NEEDED})


class RenderFailure(StrEnum):
    """Reason why a render gave nothing. The script-free read of the page stands."""

    NO_BROWSER = "no_browser"  # none was found, or it does not start
    CRASHED = "crashed"  # the tab, or the browser under it, ended: endless allocation is one cause
    HUNG = "hung"  # the page did not answer: endless loops
    INCOMPLETE = "incomplete"  # something that it asked its own server for did not come, or not in time
    TOO_LARGE = "too_large"  # what it wrote is above the bound of a body
    NO_PAGE = "no_page"  # the browser made no page of it: a download, or an error
    ENDING = "ending"  # the lease ended, or its budget, before the page had all that it asked for

    @property
    def is_page_fault(self) -> bool:
        """Whether it says something of the page, and not of its server or of us."""
        return self in _PAGE_FAULTS


_PAGE_FAULTS = frozenset({RenderFailure.CRASHED, RenderFailure.HUNG, RenderFailure.TOO_LARGE, RenderFailure.NO_PAGE})


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page after its scripts.

    html: the document as they left it, shadow trees and frames of the same origin put in, scripts taken out.
    url: where the page ended; another one than was asked for where a script led there.
    links: that scripts named outside of the document: by history.pushState, or in JSON that the page carries.
    requests, received_bytes: that it sent and received beside the document, which was in hand.
    blocked: how often something was not let through, by what it was.  screenshot: a PNG, where one was asked for.
    """

    html: bytes = field(repr=False)
    url: Url
    elapsed: timedelta
    links: tuple[Url, ...] = ()
    requests: int = 0
    received_bytes: int = 0
    blocked: Mapping[str, int] = field(default_factory=dict)
    screenshot: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class NotRendered:
    """A render that gave nothing. detail: one line for a person."""

    reason: RenderFailure
    elapsed: timedelta = timedelta(0)
    detail: str = ""
    requests: int = 0
    received_bytes: int = 0
    blocked: Mapping[str, int] = field(default_factory=dict)


RenderOutcome = Rendered | NotRendered


@dataclass(frozen=True, slots=True)
class RenderRecord:
    """What a look did about rendering, as it is recorded.

    outcome: a RenderChoice or, where it failed, a RenderFailure; empty for what is no web page.
    added_words, added_links: that the render added; None where there was none.  requests: that it sent beside the
    look's own.
    """

    outcome: str = ""
    added_words: int | None = None
    added_links: int | None = None
    requests: int = 0


NO_RENDERING = RenderRecord()


@dataclass(frozen=True, slots=True)
class RenderGain:
    """What a rendered page says beside the script-free read of it.

    words_before, links_before: of the script-free read.  words, links: that the render added, those aside that scripts
    add to every page of the site.  additions: hashes of all that was added.
    """

    words_before: int
    links_before: int
    words: int
    links: int
    additions: tuple[int, ...] = field(default=(), repr=False)

    @property
    def is_sufficient(self) -> bool:
        """Whether the page is kept as it was rendered."""
        if not (self.words or self.links):
            return False
        min_words = max(min(MIN_NEW_WORDS, self.words_before + 1), MIN_NEW_PART * self.words_before)
        return self.links > 0 or self.words >= min_words


NO_GAIN = RenderGain(words_before=0, links_before=0, words=0, links=0)


def compute_gain(plain: Parsed, rendered: Parsed, *, common_additions: frozenset[int]) -> RenderGain:
    """What the render added to the script-free read.

    common_additions: hashes of what scripts add to every page of the site.
    """
    lines, lines_after = (dict.fromkeys(each.content.main.splitlines()) for each in (plain, rendered))
    added_lines = [line for line in lines_after if line not in lines]
    links = set(plain.content.links)
    added_links = [link for link in rendered.content.links if link not in links]
    hashes = [hash_addition(each) for each in (*added_links, *added_lines)]
    new_links = sum(each not in common_additions for each in hashes[: len(added_links)])
    new_lines = [
        line for line, each in zip(added_lines, hashes[len(added_links) :], strict=True) if each not in common_additions
    ]
    lost_lines = [line for line in lines if line not in lines_after]  # some of them may only have grown
    return RenderGain(
        words_before=sum(len(line.split()) for line in lines),
        links_before=len(links),
        words=(_count_words(new_lines) - _count_words(lost_lines)).total(),
        links=new_links,
        additions=tuple(hashes[:MAX_ADDITIONS]),
    )


def _count_words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def hash_addition(addition: str) -> int:
    """A number of 48 bits by which a line or a link is known again."""
    return int.from_bytes(blake2b(addition.encode("utf-8", "replace"), digest_size=6).digest())
