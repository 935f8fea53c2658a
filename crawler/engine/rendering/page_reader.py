"""A fetched page as it is judged and kept: read without its scripts and, where that says less, in a browser."""

from dataclasses import dataclass, field, replace
from html import escape

from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.prior import template_of
from crawler.core.freshness.terms import Wanted
from crawler.core.http.response import Fetched
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.media_type import kind_of
from crawler.core.page.snapshot import Parsed
from crawler.core.page_rules import PageRules
from crawler.core.rendering.memory import (
    ReadPage,
    RenderMemory,
    choice_of,
    memory_after,
    memory_after_failure,
    pages_to_render,
)
from crawler.core.rendering.outcome import (
    NO_RENDERING,
    NotRendered,
    RenderChoice,
    Rendered,
    RenderEvidence,
    RenderFailure,
    RenderGain,
    Rendering,
    evidence_of,
    gain_of,
)
from crawler.core.visit.decide import needs_parsing, wants_blocks
from crawler.core.visit.visit import Known, Target
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.rendering.browsers import PageRenderer

RENDERED_TYPE = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PageReading:
    """A reading of a page: the answer with the body that was read, and what it says; None where that is known."""

    answer: Fetched
    parsed: Parsed | None


@dataclass(frozen=True, slots=True)
class PageRead:
    """What was read of a page in one look.

    kept: how it is kept.  judged: how it is compared with its last Snapshot, which is another reading only where a page
    begins to be rendered, or is rendered no more.  rendering: what is recorded of that.
    failure: why a page that is kept rendered could not be, so that nothing is known of it.
    plain, gain: of a page that was rendered, the script-free reading, and what the render added to it.
    screenshot: a PNG of it, where one was wanted.
    received_bytes: by requests of the page in the browser.  is_readable: the parser has not failed.
    is_fault_of_page: that nothing came of its render.  evidence: that scripts write a part of it; None where its
    script-free reading is not known.
    """

    kept: PageReading
    judged: PageReading
    choice: RenderChoice = RenderChoice.NO_SCRIPTS
    rendering: Rendering = NO_RENDERING
    failure: RenderFailure | None = None
    plain: Parsed | None = None
    gain: RenderGain | None = None
    screenshot: bytes | None = field(default=None, repr=False)
    received_bytes: int = 0
    is_readable: bool = True
    is_fault_of_page: bool = False
    evidence: RenderEvidence | None = None

    @property
    def is_switch(self) -> bool:
        return self.kept is not self.judged

    @property
    def is_provisional(self) -> bool:
        """Whether what was read is next to nothing of the page, which waits for a browser."""
        return self.choice is RenderChoice.AWAITED and self.evidence is RenderEvidence.SHELL


class PageReader:
    """Reads the pages of one lease. domain_settings: of its domain.  takes_pictures: of what is rendered.

    is_trial: nothing is stored, so that a probe waits for nothing.
    """

    def __init__(
        self,
        parser: DomainParser,
        renderer: PageRenderer,
        domain_settings: DomainSettings,
        *,
        takes_pictures: bool = False,
        is_trial: bool = False,
    ) -> None:
        self.parser, self._renderer, self._takes_pictures = parser, renderer, takes_pictures
        self._rules, self._mode = PageRules(domain_settings.rules), domain_settings.render
        self._is_trial = is_trial
        self._probed: set[str] = set()  # names under which a probe is under way

    async def read(self, target: Target, answer: Fetched, known: Known) -> PageRead:
        """Read what a look has brought."""
        is_new = needs_parsing(target, answer)
        if not 200 <= answer.status < 300:
            return _unrendered(answer, None)
        is_html = kind_of(answer.body, answer.content_type) == "html"
        choice = self._choice(target, answer, None, known) if is_html else RenderChoice.NO_SCRIPTS
        if choice is RenderChoice.NO_BROWSER and _is_rendered(target):
            return replace(_unrendered(answer, None, choice=choice), failure=RenderFailure.NO_BROWSER)
        is_requested = target.wanted is Wanted.TO_RENDER or known.renders.may_be_needed(template_of(target.url))
        if not is_new and not choice.is_yes and not (is_html and is_requested):
            return _unrendered(answer, None, choice=choice if choice in _BY_WORD else None)
        is_first = target.version is None
        plain = await self.parser.parse(answer, target.url, outlined=wants_blocks(target, known), sampled=is_first)
        if plain is None:
            return replace(_unrendered(answer, None), is_readable=False)
        if is_html:
            choice = self._choice(target, answer, plain, known)
        if not choice.is_yes or plain.content.is_passed_on:
            return _unrendered(answer, plain if is_new else None, choice=choice if is_html else None, read=plain)
        if choice is not RenderChoice.PROBE:
            return await self._read_rendered(target, answer, plain, known, choice)
        name = known.renders.name_of(template_of(target.url), evidence_of(plain))
        if name in self._probed:  # its outcome is waited for
            return _unrendered(answer, plain if is_new else None, choice=RenderChoice.AWAITED, read=plain)
        self._probed.add(name)
        try:
            return await self._read_rendered(target, answer, plain, known, choice)
        finally:
            self._probed.discard(name)

    async def read_again(self, target: Target, answer: Fetched, known: Known, *, is_rendered: bool) -> Parsed | None:
        """Read a second answer for a page in the way in which the first was read; None where that cannot be done."""
        if not is_rendered:
            return await self.parser.parse(answer, target.url, outlined=True)
        outcome = await self._renderer.render(target.url, answer, known)
        if isinstance(outcome, NotRendered):
            return None
        _, parsed = await self._parsed(target, answer, outcome)
        return parsed

    def learnt(self, memory: RenderMemory, target: Target, read: PageRead) -> RenderMemory:
        """What renders have brought, with this look. One that failed for no fault of the page's was none."""
        if read.evidence is None:
            return memory
        page = ReadPage(target.url, target.key, template_of(target.url), read.evidence, read.choice)
        if read.choice.is_yes and read.gain is None and not read.is_fault_of_page:
            is_expected = _is_rendered(target) or read.choice is RenderChoice.ALWAYS
            return memory if is_expected else memory_after_failure(memory, page)
        return memory_after(memory, page, read.gain)

    def _choice(self, target: Target, answer: Fetched, plain: Parsed | None, known: Known) -> RenderChoice:
        is_named = target.wanted is Wanted.TO_RENDER  # by pages_to_render, which bounds the probes that it names
        choice = choice_of(
            answer.body,
            plain,
            template=template_of(target.url),
            mode=self._rules.render(target.url) or self._mode,
            memory=known.renders,
            is_stored=target.version is not None or is_named or self._is_trial,
            is_kept_rendered=_is_rendered(target),
            running=0 if is_named else len(self._probed),
        )
        is_shell = plain is not None and evidence_of(plain) is RenderEvidence.SHELL
        # To look for the browser takes half a second: not before a page is rendered, or is sure to be.
        is_wanted = choice.is_yes or (choice is RenderChoice.AWAITED and is_shell)
        return RenderChoice.NO_BROWSER if is_wanted and self._renderer.source.browser() is None else choice

    def pages_to_render(self, memory: RenderMemory, *, is_dry: bool) -> tuple[tuple[PageKey, ...], RenderMemory]:
        """Return the stored pages that a browser should read now, with the memory; none without a browser."""
        return ((), memory) if self._renderer.source.missing else pages_to_render(memory, is_dry=is_dry)

    async def _read_rendered(
        self, target: Target, answer: Fetched, plain: Parsed, known: Known, choice: RenderChoice
    ) -> PageRead:
        outcome = await self._renderer.render(target.url, answer, known, screenshot=self._takes_pictures)
        reading = parsed = None
        if isinstance(outcome, Rendered):
            reading, parsed = await self._parsed(target, answer, outcome)
        if parsed is None or reading is None:
            failure = outcome.reason if isinstance(outcome, NotRendered) else RenderFailure.TOO_LARGE
            return replace(
                _unrendered(answer, plain),
                evidence=evidence_of(plain),
                choice=choice,
                rendering=Rendering(word=failure.value, requests=outcome.requests),
                failure=failure if _is_rendered(target) else None,
                plain=plain,
                received_bytes=outcome.received_bytes,
                is_fault_of_page=failure.is_its_own,
            )
        gain = gain_of(plain, parsed, usual=known.renders.usual_beside(target.url))
        before, rendered = PageReading(answer, plain), PageReading(reading, parsed)
        is_moved = parsed.content.is_passed_on
        is_kept = gain.is_worth_it or is_moved or choice is RenderChoice.ALWAYS
        kept = rendered if is_kept else before
        judged = kept
        if target.version is not None and target.version.is_rendered is not is_kept and not is_moved:
            judged = rendered if target.version.is_rendered else before
        return PageRead(
            kept=kept,
            judged=judged,
            choice=choice,
            rendering=Rendering(word=choice.value, words=gain.words, links=gain.links, requests=outcome.requests),
            evidence=evidence_of(plain),
            plain=plain,
            gain=gain,
            screenshot=outcome.screenshot if isinstance(outcome, Rendered) else None,
            received_bytes=outcome.received_bytes,
        )

    async def _parsed(self, target: Target, answer: Fetched, rendered: Rendered) -> tuple[Fetched, Parsed | None]:
        """The answer as the browser has it, and what it says."""
        body = _body_of(rendered, target.url)
        reading = replace(answer, body=body, content_type=RENDERED_TYPE)
        parsed = await self.parser.parse(reading, target.url, outlined=True, sampled=target.version is None)
        if parsed is None:
            return reading, None
        return reading, replace(parsed, version=replace(parsed.version, is_rendered=True))


# What a page's user or its body say, whatever its HTML shows.
_BY_WORD = frozenset({RenderChoice.NEVER, RenderChoice.NO_SCRIPTS})


def _unrendered(
    answer: Fetched, plain: Parsed | None, *, choice: RenderChoice | None = None, read: Parsed | None = None
) -> PageRead:
    """The page without its scripts. read: the same reading as `plain`, where that is not a new one."""
    reading = PageReading(answer, plain)
    if choice is None:
        return PageRead(kept=reading, judged=reading)
    evidence = evidence_of(read) if read is not None else None
    return PageRead(
        kept=reading, judged=reading, choice=choice, rendering=Rendering(word=choice.value), evidence=evidence
    )


def _is_rendered(target: Target) -> bool:
    return target.version is not None and target.version.is_rendered


def _body_of(rendered: Rendered, url: Url) -> bytes:
    """The document that is kept, with the links that scripts named outside of it.

    Where a script led to another page at once, it is kept as what that is: a redirect in the page's markup.
    """
    if rendered.url != url:
        return f'<meta http-equiv="refresh" content="0; url={escape(rendered.url)}">'.encode()
    links = "".join(f'<a href="{escape(link)}"></a>' for link in rendered.links if link != url)
    return rendered.html + f"<nav hidden>{links}</nav>".encode() if links else rendered.html
