"""Read a fetched page for comparison and storage: without its scripts and, if that misses content, in a browser."""

from html import escape

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.prior import derive_template
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.response import Fetched
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.media_type import detect_kind
from crawler.core.page.snapshot import Parsed
from crawler.core.page_rules import PageRules
from crawler.core.rendering import memory as render_memory
from crawler.core.rendering import outcome as outcomes
from crawler.core.rendering.memory import ReadPage, RenderMemory
from crawler.core.rendering.outcome import NotRendered, RenderChoice, Rendered, RenderEvidence, RenderFailure
from crawler.core.visit.decide import needs_blocks, needs_forms, needs_parsing
from crawler.core.visit.visit import DomainKnowledge, Target
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.rendering.browsers import PageRenderer


class PageReading(Struct, frozen=True):
    """A response with the body that was read. parsed: the page; None if its body is unchanged or was not parsed."""

    response: Fetched
    parsed: Parsed | None


class PageResult(Struct, frozen=True):
    """The result of reading a page in one visit.

    stored: the reading to store.  compared: the reading to compare with the last snapshot; it differs from `stored`
    only if the page switches to being rendered or back.  choice: why the page was rendered or not.  rendering: what to
    record about that.  failure: why a page that is stored rendered could not be rendered, so that its state is unknown.
    without_scripts: the page without scripts, if a browser rendered it or failed.  gain: what rendering added.
    screenshot: a PNG, if requested.  received_bytes: bytes received by the page's requests in the browser.
    is_readable: whether parsing succeeded.  is_page_fault: whether the page itself is to blame for a failed rendering.
    evidence: evidence that scripts write a part of the page; None if unknown.
    """

    stored: PageReading
    compared: PageReading
    choice: RenderChoice = RenderChoice.NO_SCRIPTS
    rendering: outcomes.RenderRecord = outcomes.NO_RENDERING
    failure: RenderFailure | None = None
    without_scripts: Parsed | None = None
    gain: outcomes.RenderGain | None = None
    screenshot: bytes | None = None
    received_bytes: int = 0
    is_readable: bool = True
    is_page_fault: bool = False
    evidence: RenderEvidence | None = None

    @property
    def is_switch(self) -> bool:
        return self.stored is not self.compared

    @property
    def is_provisional(self) -> bool:
        """Return whether the reading is only an application shell, and the page waits to be rendered."""
        return self.choice is RenderChoice.AWAITED and self.evidence is RenderEvidence.SHELL


class PageReader:
    """The reader of one lease's pages.

    takes_screenshots: take a screenshot of each rendered page.
    is_trial: nothing is stored, so a rendering probe (RenderChoice.PROBE) need not wait until the page is stored. All
    blocks are read, to be explained.
    """

    def __init__(
        self,
        parser: DomainParser,
        renderer: PageRenderer,
        domain_settings: DomainSettings,
        *,
        takes_screenshots: bool = False,
        is_trial: bool = False,
    ) -> None:
        self.parser, self._renderer, self._takes_screenshots = parser, renderer, takes_screenshots
        self._rules, self._mode = PageRules(domain_settings.rules), domain_settings.render
        self._is_trial = is_trial
        self._active_probes: set[str] = set()  # names of rendering probes in progress

    async def read_page(self, target: Target, response: Fetched, knowledge: DomainKnowledge) -> PageResult:
        """Read the page that a visit has fetched."""
        has_new_body = needs_parsing(target, response)
        if not 200 <= response.status < 300:
            return _build_unrendered(response, None)
        is_html, choice = detect_kind(response.body, response.content_type) == "html", RenderChoice.NO_SCRIPTS
        if is_html and (not has_new_body or _is_rendered(target)):
            choice = self._choose_rendering(target, response, None, knowledge)
        if choice is RenderChoice.NO_BROWSER and _is_rendered(target):
            return replace(_build_unrendered(response, None, choice=choice), failure=RenderFailure.NO_BROWSER)
        template = derive_template(target.url)
        is_requested = target.requested is RequestReason.TO_RENDER or knowledge.renders.may_be_needed(template)
        if not has_new_body and not choice.is_rendered and not (is_html and is_requested):
            return _build_unrendered(response, None, choice=choice if choice in _FIXED_CHOICES else None)
        self.parser.learn_shared_lines(knowledge.mask.boilerplate)
        plain = await self.parser.parse(
            response,
            target.url,
            with_blocks=self._is_trial or needs_blocks(target, knowledge),
            with_forms=not self._is_trial and needs_forms(target, knowledge),
        )
        if plain is None:
            return replace(_build_unrendered(response, None), is_readable=False)
        new_plain = plain if has_new_body else None
        if is_html:
            choice = self._choose_rendering(target, response, plain, knowledge)
        if not choice.is_rendered or plain.content.is_instant_refresh:
            return _build_unrendered(response, new_plain, choice=choice if is_html else None, parsed=plain)
        if choice is not RenderChoice.PROBE:
            return await self._read_rendered(target, response, plain, knowledge, choice)
        name = knowledge.renders.build_name(template, outcomes.find_render_evidence(plain))
        if name in self._active_probes:  # wait for the outcome of that probe
            return _build_unrendered(response, new_plain, choice=RenderChoice.AWAITED, parsed=plain)
        self._active_probes.add(name)
        try:
            return await self._read_rendered(target, response, plain, knowledge, choice)
        finally:
            self._active_probes.discard(name)

    async def reread_page(
        self, target: Target, response: Fetched, knowledge: DomainKnowledge, *, is_rendered: bool
    ) -> Parsed | None:
        """Read a second response for a page in the same way as the first; return None if that fails."""
        if not is_rendered:
            return await self.parser.parse(response, target.url, with_blocks=True)
        outcome = await self._renderer.render(target.url, response, knowledge)
        if isinstance(outcome, NotRendered):
            return None
        _, parsed = await self._parse_rendered(target, response, outcome)
        return parsed

    def update_memory(self, memory: RenderMemory, target: Target, result: PageResult) -> RenderMemory:
        """Return the rendering memory with this visit. Failures that are not the page's fault count if repeated."""
        if result.evidence is None:
            return memory
        page = ReadPage(target.url, target.key, derive_template(target.url), result.evidence, result.choice)
        if result.choice.is_rendered and result.gain is None and not result.is_page_fault:
            is_expected = _is_rendered(target) or result.choice is RenderChoice.ALWAYS
            return memory if is_expected else render_memory.record_render_failure(memory, page)
        return render_memory.update_render_memory(memory, page, result.gain)

    def _choose_rendering(
        self, target: Target, response: Fetched, plain: Parsed | None, knowledge: DomainKnowledge
    ) -> RenderChoice:
        # Requested by select_pages_to_render, which limits the number of probes itself.
        is_requested = target.requested is RequestReason.TO_RENDER
        choice = render_memory.choose_rendering(
            response.body,
            plain,
            template=derive_template(target.url),
            mode=self._rules.get_render_mode(target.url) or self._mode,
            memory=knowledge.renders,
            is_stored=target.version is not None or is_requested or self._is_trial,
            is_stored_rendered=_is_rendered(target),
            running=0 if is_requested else len(self._active_probes),
        )
        is_shell = plain is not None and outcomes.find_render_evidence(plain) is RenderEvidence.SHELL
        # Searching for the browser takes half a second, so do it only if a page is or will be rendered.
        needs_browser = choice.is_rendered or (choice is RenderChoice.AWAITED and is_shell)
        return RenderChoice.NO_BROWSER if needs_browser and self._renderer.source.get_browser() is None else choice

    def select_pages_to_render(
        self, memory: RenderMemory, *, is_exhausted: bool
    ) -> tuple[tuple[PageKey, ...], RenderMemory]:
        """Return the stored pages that a browser should render now (without one: none), and the memory after that."""
        if self._renderer.source.missing_reason:
            return (), memory
        return render_memory.select_pages_to_render(memory, is_exhausted=is_exhausted)

    async def _read_rendered(
        self, target: Target, response: Fetched, plain: Parsed, knowledge: DomainKnowledge, choice: RenderChoice
    ) -> PageResult:
        outcome = await self._renderer.render(target.url, response, knowledge, screenshot=self._takes_screenshots)
        rendered_response = parsed = None
        if isinstance(outcome, Rendered):
            rendered_response, parsed = await self._parse_rendered(target, response, outcome)
        if parsed is None or rendered_response is None:
            failure = outcome.reason if isinstance(outcome, NotRendered) else RenderFailure.TOO_LARGE
            return replace(
                _build_unrendered(response, plain),
                evidence=outcomes.find_render_evidence(plain),
                choice=choice,
                rendering=outcomes.RenderRecord(outcome=failure.value, requests=outcome.requests),
                failure=failure if _is_rendered(target) else None,
                without_scripts=plain,
                received_bytes=outcome.received_bytes,
                is_page_fault=failure.is_page_fault,
            )
        common_additions = knowledge.renders.list_common_additions(target.url)
        gain = outcomes.compute_gain(plain, parsed, common_additions=common_additions)
        unrendered, rendered = PageReading(response, plain), PageReading(rendered_response, parsed)
        is_moved = parsed.content.is_instant_refresh
        uses_rendered = gain.is_sufficient or is_moved or choice is RenderChoice.ALWAYS
        stored = rendered if uses_rendered else unrendered
        compared = stored
        if target.version is not None and target.version.is_rendered is not uses_rendered and not is_moved:
            compared = rendered if target.version.is_rendered else unrendered
        counts = {"added_words": gain.words, "added_links": gain.links, "requests": outcome.requests}
        record = outcomes.RenderRecord(choice.value, **counts)
        return PageResult(
            stored=stored,
            compared=compared,
            choice=choice,
            rendering=record,
            evidence=outcomes.find_render_evidence(plain),
            without_scripts=plain,
            gain=gain,
            screenshot=outcome.screenshot if isinstance(outcome, Rendered) else None,
            received_bytes=outcome.received_bytes,
        )

    async def _parse_rendered(self, target: Target, fetched: Fetched, page: Rendered) -> tuple[Fetched, Parsed | None]:
        """Return the response with the rendered body, and the parsed page."""
        response = replace(fetched, body=_build_body(page, target.url), content_type="text/html; charset=utf-8")
        parsed = await self.parser.parse(response, target.url)
        if parsed is None:
            return response, None
        return response, replace(parsed, version=replace(parsed.version, is_rendered=True))


# Choices that follow from the user's rules or the media type, regardless of the HTML.
_FIXED_CHOICES = frozenset({RenderChoice.NEVER, RenderChoice.NO_SCRIPTS})


def _build_unrendered(
    response: Fetched, plain: Parsed | None, *, choice: RenderChoice | None = None, parsed: Parsed | None = None
) -> PageResult:
    """Return the page as read without scripts.

    plain: the parsed page; None if its body is unchanged or not parsed.  choice: what to record; None: nothing.
    parsed: the parsed page, also if its body is unchanged.
    """
    reading = PageReading(response, plain)
    if choice is None:
        return PageResult(reading, reading)
    evidence = outcomes.find_render_evidence(parsed) if parsed is not None else None
    return PageResult(reading, reading, choice, outcomes.RenderRecord(outcome=choice.value), evidence=evidence)


def _is_rendered(target: Target) -> bool:
    return target.version is not None and target.version.is_rendered


def _build_body(rendered: Rendered, url: Url) -> bytes:
    """Return the document to store. Append links that only scripts use.

    If a script navigated to another page at once, return a redirect in the page's markup instead.
    """
    if rendered.url != url:
        return f'<meta http-equiv="refresh" content="0; url={escape(rendered.url)}">'.encode()
    links = "".join(f'<a href="{escape(link)}"></a>' for link in rendered.links if link != url)
    return rendered.html + f"<nav hidden>{links}</nav>".encode() if links else rendered.html
