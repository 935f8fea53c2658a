"""The browser of a crawling process, started by the first page that needs it, and the tabs that a lease has of it."""

import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.core.visit.visit import Known

if TYPE_CHECKING:  # what drives the browser takes a while to import, and most crawls need none
    from crawler.engine.rendering.page_requests import AskForPage, PageRequests, ScriptMemo
    from crawler.fetch.browser import Browser, Tab

log = logging.getLogger("recrawl.browser")


class BrowserSource:
    """Finds the browser when it is wanted, and says once if there is none.

    named: by the user.  user_agent: that pages see.  longest: a page's whole time in it.
    """

    def __init__(self, *, named: str | None, user_agent: str, longest: timedelta) -> None:
        self._named, self._user_agent, self._longest = named, user_agent, longest
        self._browser: Browser | None = None
        self.missing = ""  # why there is none, a sentence

    def browser(self) -> "Browser | None":
        """The browser, which starts with its first tab; None where none is found."""
        from crawler.fetch.browser import Browser, BrowserMissing, RenderLimits, find_browser  # noqa: PLC0415  half a second

        if self._browser is None and not self.missing:
            try:
                program = find_browser(self._named)
            except BrowserMissing as error:
                self.lose(str(error))
            else:
                self._browser = Browser(
                    program, user_agent=self._user_agent, limits=RenderLimits(longest=self._longest)
                )
        return None if self.missing else self._browser

    def lose(self, why: str) -> None:
        """There is none, or it does not start: from now on nothing is rendered."""
        if not self.missing:
            log.warning("browser.missing", extra={"error": why})
        self.missing = why

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.__aexit__(None, None, None)


class PageRenderer:
    """Renders the pages of one lease, each in a tab of its own. source: of its browser.  ask: sends what they ask."""

    def __init__(self, source: BrowserSource, ask: "AskForPage", domain: Domain) -> None:
        self.source, self._ask, self._domain = source, ask, domain
        self._stack = AsyncExitStack()
        self._idle: list[tuple[Tab, PageRequests]] = []
        self._memo: ScriptMemo | None = None

    async def render(self, url: Url, document: Fetched, known: Known, *, screenshot: bool = False) -> RenderOutcome:
        """The page as its scripts leave it, from the document that was just fetched."""
        browser = self.source.browser()
        if browser is None:
            return NotRendered(RenderFailure.NO_BROWSER, detail=self.source.missing)
        tab, requests = self._idle.pop() if self._idle else await self._opened(browser, known.agent)
        requests.begin(url, document, known.rules)
        try:
            outcome = await tab.render(url, screenshot=screenshot)
        finally:
            self._idle.append((tab, requests))
        if isinstance(outcome, NotRendered) and outcome.reason is RenderFailure.NO_BROWSER:
            self.source.lose(outcome.detail)
        if isinstance(outcome, Rendered) and requests.refused["budget"]:
            outcome = NotRendered(RenderFailure.ENDING, outcome.elapsed, "not all that it asked for could be had")
        elif isinstance(outcome, Rendered) and requests.missing:
            outcome = NotRendered(RenderFailure.INCOMPLETE, outcome.elapsed, "its server did not answer all of it")
        return replace(
            outcome,
            requests=requests.requests,
            received_bytes=requests.received_bytes,
            refused={**outcome.refused, **requests.refused},
        )

    async def aclose(self) -> None:
        """Close the tabs."""
        self._idle.clear()
        await self._stack.aclose()

    async def _opened(self, browser: "Browser", agent: str) -> "tuple[Tab, PageRequests]":
        from crawler.engine.rendering.page_requests import PageRequests, ScriptMemo  # noqa: PLC0415  likewise

        self._memo = self._memo or ScriptMemo()
        own = {self._domain.authority, *self._domain.aliases}
        requests = PageRequests(self._ask, own=own, agent=agent, memo=self._memo)
        tab = await self._stack.enter_async_context(
            browser.tab(requests.answer, language=self._domain.settings.language)
        )
        return tab, requests
