"""The browser of a crawling process, started by the first page that needs it, and the tabs of a lease."""

import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.core.visit.visit import DomainKnowledge
from crawler.extras import explain_missing_extra

if TYPE_CHECKING:  # Playwright takes half a second to import, and most crawls need no browser
    from crawler.engine.rendering.page_requests import PageRequests, RelaySender, ScriptCache
    from crawler.fetch.browser import Browser, Tab

log = logging.getLogger("recrawl.browser")


class BrowserSource:
    """The source of the browser: finds it on first use, and logs once if there is none.

    browser_name: the user's setting.  user_agent: the User-Agent that pages see.  timeout: as in RenderLimits.
    """

    def __init__(self, *, browser_name: str | None, user_agent: str, timeout: timedelta) -> None:
        self._browser_name, self._user_agent, self._timeout = browser_name, user_agent, timeout
        self._browser: Browser | None = None
        self.missing_reason = ""  # why there is no browser, as a sentence

    def get_browser(self) -> "Browser | None":
        """Return the browser, which starts with its first page; None if none is installed, or if it did not start."""
        if self._browser is None and not self.missing_reason:
            if problem := explain_missing_extra("browser", "A browser"):
                self.mark_missing(problem)
            else:
                self._find_browser()
        return None if self.missing_reason else self._browser

    def _find_browser(self) -> None:
        from crawler.fetch.browser import Browser, BrowserMissing, RenderLimits, find_browser  # noqa: PLC0415  half a second

        try:
            program = find_browser(self._browser_name)
        except BrowserMissing as error:
            self.mark_missing(str(error))
        else:
            self._browser = Browser(program, user_agent=self._user_agent, limits=RenderLimits(timeout=self._timeout))

    def mark_missing(self, reason: str) -> None:
        """Note that the browser is missing or does not start: from now on nothing is rendered."""
        if not self.missing_reason:
            log.warning("browser.missing", extra={"error": reason})
        self.missing_reason = reason

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.__aexit__(None, None, None)


class PageRenderer:
    """The renderer of one lease's pages, with a tab for each concurrent page. sender: sends the requests of pages."""

    def __init__(self, source: BrowserSource, sender: "RelaySender", domain: Domain) -> None:
        self.source, self._sender, self._domain = source, sender, domain
        self._stack = AsyncExitStack()
        self._idle: list[tuple[Tab, PageRequests]] = []
        self._script_cache: ScriptCache | None = None

    async def render(
        self, url: Url, document: Fetched, knowledge: DomainKnowledge, *, screenshot: bool = False
    ) -> RenderOutcome:
        """Render the page in a browser, starting from the document that was just fetched."""
        browser = self.source.get_browser()
        if browser is None:
            return NotRendered(RenderFailure.NO_BROWSER, detail=self.source.missing_reason)
        tab, requests = self._idle.pop() if self._idle else await self._open_tab(browser, knowledge.agent)
        requests.begin_page(url, document, knowledge.rules)
        try:
            outcome = await tab.render(url, screenshot=screenshot)
        finally:
            self._idle.append((tab, requests))
        if isinstance(outcome, NotRendered) and outcome.reason is RenderFailure.NO_BROWSER:
            self.source.mark_missing(outcome.detail)
        if isinstance(outcome, Rendered) and requests.refused["budget"]:
            outcome = NotRendered(RenderFailure.ENDING, outcome.elapsed, "the budget did not allow all its requests")
        elif isinstance(outcome, Rendered) and requests.missing_responses:
            outcome = NotRendered(RenderFailure.INCOMPLETE, outcome.elapsed, "some requests to its server failed")
        received_bytes, blocked = requests.received_bytes, {**outcome.blocked, **requests.refused}
        return replace(outcome, requests=requests.requests, received_bytes=received_bytes, blocked=blocked)

    async def aclose(self) -> None:
        """Close the tabs."""
        self._idle.clear()
        await self._stack.aclose()

    async def _open_tab(self, browser: "Browser", agent: str) -> "tuple[Tab, PageRequests]":
        from crawler.engine.rendering.page_requests import PageRequests, ScriptCache  # noqa: PLC0415  rarely needed

        self._script_cache = self._script_cache or ScriptCache()
        own_authorities = {self._domain.authority, *self._domain.aliases}
        requests = PageRequests(self._sender, own_authorities=own_authorities, agent=agent, cache=self._script_cache)
        tab = browser.open_tab(requests.handle_request, language=self._domain.settings.language)
        return await self._stack.enter_async_context(tab), requests
