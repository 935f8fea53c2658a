"""The outcome of a render, and its gain over the script-free read (the same page read without its scripts)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from crawler.core.http.urls import Url
from crawler.core.page.script_signs import ScriptSign

if TYPE_CHECKING:
    from crawler.core.page.snapshot import Parsed

MAX_ADDITIONS = 256  # additions of one page that are remembered, because scripts may add them to other pages too
# A render without new links has a gain if it adds this many words (or more than the page had), and this share of the
# page's words: for "3 comments" alone, no browser is needed.
MIN_NEW_WORDS = 8
MIN_NEW_PART = 0.05


class RenderEvidence(StrEnum):
    """The evidence in a page's HTML that its scripts write a part of it."""

    NONE = ""
    PARTIAL = "partial"  # a part may be missing
    SHELL = "shell"  # almost no text without scripts


def find_render_evidence(plain: "Parsed") -> RenderEvidence:
    """Return the evidence of a page that was read without its scripts."""
    signs = plain.content.script_signs
    if ScriptSign.SHELL in signs:
        return RenderEvidence.SHELL
    return RenderEvidence.PARTIAL if signs else RenderEvidence.NONE


class RenderChoice(StrEnum):
    """The reason why a page is rendered or not."""

    ALWAYS = "always"  # the user's setting
    PROBE = "probe"  # tests whether such pages need a browser
    NEEDED = "needed"  # renders of such pages have a gain
    NEVER = "never"  # the user's setting
    NO_SCRIPTS = "no_scripts"
    NO_SIGNS = "no_signs"  # its HTML shows no missing part
    AWAITED = "awaited"  # stored without scripts until a probe shows what such pages need
    NO_GAIN = "no_gain"  # renders of such pages have no gain
    NO_BROWSER = "no_browser"  # should be rendered, but no browser is available

    @property
    def is_rendered(self) -> bool:
        return self in _RENDERED


_RENDERED = frozenset({RenderChoice.ALWAYS, RenderChoice.PROBE, RenderChoice.NEEDED})


class RenderFailure(StrEnum):
    """The reason why a render failed."""

    NO_BROWSER = "no_browser"  # none was found, or it does not start
    CRASHED = "crashed"  # the tab or the browser ended, for example by endless allocation
    HUNG = "hung"  # the page did not respond, for example in an endless loop
    INCOMPLETE = "incomplete"  # a request to the page's own server failed or timed out
    TOO_LARGE = "too_large"  # the document exceeds the size limit of a body
    NO_PAGE = "no_page"  # the browser showed no page: a download, or an error
    ENDING = "ending"  # the domain's lease or the lease's budget ended before the page had loaded everything

    @property
    def is_page_fault(self) -> bool:
        """Return whether the failure is caused by the page, not by its server or the crawler."""
        return self in _PAGE_FAULTS


_PAGE_FAULTS = frozenset({RenderFailure.CRASHED, RenderFailure.HUNG, RenderFailure.TOO_LARGE, RenderFailure.NO_PAGE})


class Rendered(Struct, frozen=True):
    """A page after its scripts ran.

    html: the resulting document, including shadow trees and frames of the same origin, without scripts.
    url: the final URL; it differs from the requested one if a script navigated.
    links: links that scripts named outside of the document, by history.pushState or in JSON data of the page.
    requests, received_bytes: the numbers without those of the document, which was fetched before.
    blocked: the number of blocked requests, by kind.  screenshot: a PNG, if requested.
    """

    html: bytes
    url: Url
    elapsed: timedelta
    links: tuple[Url, ...] = ()
    requests: int = 0
    received_bytes: int = 0
    blocked: Mapping[str, int] = field(default_factory=dict)
    screenshot: bytes | None = None


class NotRendered(Struct, frozen=True):
    """A failed render. detail: one line for users."""

    reason: RenderFailure
    elapsed: timedelta = timedelta(0)
    detail: str = ""
    requests: int = 0
    received_bytes: int = 0
    blocked: Mapping[str, int] = field(default_factory=dict)


RenderOutcome = Rendered | NotRendered


class RenderRecord(Struct, frozen=True):
    """The rendering part of a visit, as recorded.

    outcome: a RenderChoice or, if the render failed, a RenderFailure; empty for anything but web pages.
    added_words, added_links: the number that the render added; None without a render.
    requests: the number sent in addition to the visit's own.
    """

    outcome: str = ""
    added_words: int | None = None
    added_links: int | None = None
    requests: int = 0


NO_RENDERING = RenderRecord()


class RenderGain(Struct, frozen=True):
    """What a rendered page adds to the script-free read.

    words_before, links_before: the number of words and links in the script-free read.
    words, links: the number that the render adds, without what scripts add to other pages too.
    additions: hashes of all lines and links added, at most MAX_ADDITIONS.
    """

    words_before: int
    links_before: int
    words: int
    links: int
    additions: tuple[int, ...] = ()

    @property
    def is_sufficient(self) -> bool:
        """Return whether the gain is large enough to store the page as rendered."""
        min_words = max(min(MIN_NEW_WORDS, self.words_before + 1), MIN_NEW_PART * self.words_before)
        return self.links > 0 or self.words >= min_words


NO_GAIN = RenderGain(words_before=0, links_before=0, words=0, links=0)


def compute_gain(plain: "Parsed", rendered: "Parsed", *, common_additions: frozenset[int]) -> RenderGain:
    """Return what the render added to the script-free read.

    common_additions: hashes of what scripts add to other pages.
    """
    lines, lines_after = (dict.fromkeys(each.content.main.splitlines()) for each in (plain, rendered))
    added_lines = [line for line in lines_after if line not in lines]
    links = set(plain.content.links)
    added_links = [link for link in rendered.content.links if link not in links]
    hashes = [hash_addition(each) for each in (*added_links, *added_lines)]
    is_new = [each not in common_additions for each in hashes]
    new_links, new_lines = sum(is_new[: len(added_links)]), compress(added_lines, is_new[len(added_links) :])
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
    """Return a 48-bit hash that identifies a line or a link."""
    return int.from_bytes(blake2b(addition.encode("utf-8", "replace"), digest_size=6).digest())
