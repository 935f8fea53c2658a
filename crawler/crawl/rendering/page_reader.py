"""A fetched page as it is judged and kept: read without its scripts and, where that says less, in a browser."""

from dataclasses import dataclass, field, replace
from html import escape

from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness import template_of
from crawler.core.http import Fetched, Url
from crawler.core.page import Parsed, kind_of
from crawler.core.page_rules import PageRules
from crawler.core.rendering import (
    NO_RENDERING,
    NotRendered,
    RenderChoice,
    Rendered,
    RenderFailure,
    RenderGain,
    Rendering,
    RenderMemory,
    choice_of,
    gain_of,
    memory_after,
)
from crawler.core.visit import Known, Target, needs_parsing, wants_blocks
from crawler.crawl.parsing import DomainParser
from crawler.crawl.rendering.browsers import PageRenderer

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
    is_fault_of_page: that nothing came of its render.
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

    @property
    def is_switch(self) -> bool:
        return self.kept is not self.judged


class PageReader:
    """Reads the pages of one lease. domain_settings: of its domain.  takes_pictures: of what is rendered."""

    def __init__(
        self,
        parser: DomainParser,
        renderer: PageRenderer,
        domain_settings: DomainSettings,
        *,
        takes_pictures: bool = False,
    ) -> None:
        self._parser, self._renderer, self._takes_pictures = parser, renderer, takes_pictures
        self._rules, self._mode = PageRules(domain_settings.rules), domain_settings.render

    async def read(self, target: Target, answer: Fetched, known: Known) -> PageRead:
        """Read what a look has brought."""
        is_new = needs_parsing(target, answer)
        if not 200 <= answer.status < 300:
            return _unrendered(answer, None)
        is_html = kind_of(answer.body, answer.content_type) == "html"
        choice = self._choice(target, answer, None, known) if is_html else RenderChoice.NO_SCRIPTS
        if choice is RenderChoice.NO_BROWSER and _is_rendered(target):
            return replace(_unrendered(answer, None, choice=choice), failure=RenderFailure.NO_BROWSER)
        if not is_new and not choice.is_yes:
            return _unrendered(answer, None, choice=choice if is_html else None)
        is_first = target.version is None
        plain = await self._parser.parse(answer, target.url, outlined=wants_blocks(target, known), sampled=is_first)
        if plain is None:
            return replace(_unrendered(answer, None), is_readable=False)
        if choice is RenderChoice.NO_GAIN:  # it may be a shell
            choice = self._choice(target, answer, plain, known)
        if not choice.is_yes or plain.content.is_passed_on:
            return _unrendered(answer, plain, choice=choice if is_html else None)
        return await self._read_rendered(target, answer, plain, known, choice)

    async def read_again(self, target: Target, answer: Fetched, known: Known, *, is_rendered: bool) -> Parsed | None:
        """Read a second answer for a page in the way in which the first was read; None where that cannot be done."""
        if not is_rendered:
            return await self._parser.parse(answer, target.url, outlined=True)
        outcome = await self._renderer.render(target.url, answer, known)
        if isinstance(outcome, NotRendered):
            return None
        _, parsed = await self._parsed(target, answer, outcome)
        return parsed

    def learnt(self, memory: RenderMemory, target: Target, read: PageRead) -> RenderMemory:
        """What renders have brought, with this look. One that failed for no fault of the page's was none."""
        if read.choice.is_yes and read.gain is None and not read.is_fault_of_page:
            return memory
        return memory_after(memory, template_of(target.url), target.url, read.choice, read.gain)

    def _choice(self, target: Target, answer: Fetched, plain: Parsed | None, known: Known) -> RenderChoice:
        choice = choice_of(
            answer.body,
            plain,
            template=template_of(target.url),
            mode=self._rules.render(target.url) or self._mode,
            memory=known.renders,
            is_kept_rendered=_is_rendered(target),
        )
        return RenderChoice.NO_BROWSER if choice.is_yes and not self._renderer.is_possible else choice

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
                choice=choice,
                rendering=Rendering(word=failure.value, requests=outcome.requests),
                failure=failure if _is_rendered(target) else None,
                plain=plain,
                received_bytes=outcome.received_bytes,
                is_fault_of_page=failure.is_its_own,
            )
        gain = gain_of(plain, parsed, usual=known.renders.usual_beside(target.url))
        before, rendered = PageReading(answer, plain), PageReading(reading, parsed)
        is_kept = gain.is_worth_it or parsed.content.is_passed_on or choice is RenderChoice.ALWAYS
        kept = rendered if is_kept else before
        judged = kept
        if target.version is not None and target.version.is_rendered is not is_kept:
            judged = rendered if target.version.is_rendered else before
        return PageRead(
            kept=kept,
            judged=judged,
            choice=choice,
            rendering=Rendering(word=choice.value, words=gain.words, links=gain.links, requests=outcome.requests),
            plain=plain,
            gain=gain,
            screenshot=outcome.screenshot if isinstance(outcome, Rendered) else None,
            received_bytes=outcome.received_bytes,
        )

    async def _parsed(self, target: Target, answer: Fetched, rendered: Rendered) -> tuple[Fetched, Parsed | None]:
        """The answer as the browser has it, and what it says."""
        body = _body_of(rendered, target.url)
        reading = replace(answer, body=body, content_type=RENDERED_TYPE)
        parsed = await self._parser.parse(reading, target.url, outlined=True, sampled=target.version is None)
        if parsed is None:
            return reading, None
        return reading, replace(parsed, version=replace(parsed.version, is_rendered=True))


def _unrendered(answer: Fetched, plain: Parsed | None, *, choice: RenderChoice | None = None) -> PageRead:
    reading = PageReading(answer, plain)
    if choice is None:
        return PageRead(kept=reading, judged=reading)
    return PageRead(kept=reading, judged=reading, choice=choice, rendering=Rendering(word=choice.value))


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
