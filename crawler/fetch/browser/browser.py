"""One browser for all domains, started when the first page needs it, and a tab of it for each lease that renders.

Playwright drives it; no address is ever asked by it (proxy.py). A page can crash, hang or fill its tab: that is a
finding, and where the browser itself may have taken harm another takes its place, which takes a tenth of a second.
While pages are rendered the memory of all its processes is watched, and what takes too much is ended.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeVar

from playwright.async_api import Browser as DrivenBrowser
from playwright.async_api import BrowserContext, CDPSession, Page, Playwright
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from crawler.core.http.urls import Url, normalise
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.fetch.browser import process
from crawler.fetch.browser.process import BEST_SANDBOX, BrowserMissing, DriverLost, Sandbox, driver_running, launch
from crawler.fetch.browser.proxy import LOGIN_URL, USERNAME, AnswerRequest, LoopbackProxy

T = TypeVar("T")

log = logging.getLogger("recrawl.browser")

FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--dns-prefetch-disable",
    "--no-first-run",
    "--no-pings",
    "--ignore-certificate-errors",  # of our own proxy; the server's are checked behind it
    "--blink-settings=imagesEnabled=false",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # names are looked up by us alone
    "--js-flags=--max-old-space-size=256",
)
MEMORY_CHECK_SECONDS = 0.1  # a hostile page takes up to 2 GB a second
IDLE_CHECK_SECONDS = 1
REPLACE_SHARE = 0.7  # of its bound: a browser that holds more after a render is replaced, before its pages suffer
STARTS = 2  # a browser or driver that ends while it starts is started once more
VIEWPORT = (1280, 900)
MAX_CHALLENGES = 10  # each can add a password to the 20 that Chromium remembers, of which the proxy's is one
MOST_URLS = 500  # that scripts name outside of the document
_SCRIPTS = {
    name: files(__package__).joinpath(f"{name}.js").read_text(encoding="utf-8")
    for name in ("prepare", "read_dom", "scroll", "settle")
}


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Bounds of renders.

    longest: for one page, from its tab to its document.  quiet: how long nothing changes in a page that is done.
    settle: how long a page may take until then.  scrolls: windows that it is scrolled down.
    html_chars: of the document.  tabs: at a time, in all.  page_bytes: private memory of one process of the browser.
    tree_bytes: memory of all its processes, above which the page that takes the most is ended, or the browser.
    most_renders: after which another browser takes its place.  tab_renders: after which a tab is opened anew.
    """

    longest: timedelta = timedelta(seconds=20)
    quiet: timedelta = timedelta(milliseconds=550)
    settle: timedelta = timedelta(seconds=6)
    scrolls: int = 8
    html_chars: int = 8_000_000
    tabs: int = 4
    page_bytes: int = 1 << 30
    tree_bytes: int = 3 << 29  # 1.5 GiB; four tabs of ordinary pages take a third of it
    most_renders: int = 500
    tab_renders: int = 50


RENDER_LIMITS = RenderLimits()


@dataclass(eq=False)
class _Running:
    """A browser that runs.

    session: with the browser itself.  driver: the process that drives it.  stack: what ends both.
    ended: processes that took too much memory.
    """

    driven: DrivenBrowser
    session: CDPSession
    pid: int | None
    driver: int | None
    stack: AsyncExitStack
    renders: int = 0
    tabs: int = 0  # that are open
    pages: int = 0  # that are being rendered
    is_stale: bool = False  # no further tab is opened in it
    is_above_bound: bool = False  # its processes took more memory than they may
    ended: set[int] = field(default_factory=set)


class Browser:
    """A browser for any number of domains, one tab for each lease; a context manager.

    program: what is started, when the first page needs it.  user_agent: that pages see.
    """

    def __init__(self, program: Path, *, user_agent: str, limits: RenderLimits = RENDER_LIMITS) -> None:
        self.program, self.user_agent, self.limits = program, user_agent, limits
        self._running: _Running | None = None  # the one in which tabs are opened
        self._all: list[_Running] = []  # with those that have tabs left
        self._starting = asyncio.Lock()
        self.turns = asyncio.Semaphore(limits.tabs)  # of the few renders at a time
        self._is_warned = False  # that there is no sandbox

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for running in list(self._all):
            await self._end(running)

    @asynccontextmanager
    async def tab(self, answer: AnswerRequest, *, language: str = "") -> AsyncIterator["Tab"]:
        """A tab whose requests `answer` answers. language: Accept-Language."""
        proxy = LoopbackProxy(answer)
        async with proxy.listening():
            tab = Tab(self, proxy, language=language)
            try:
                yield tab
            finally:
                await tab.close()

    async def running(self) -> _Running:
        """The browser, started if there is none. Raises BrowserMissing where it does not start."""
        async with self._starting:
            before = self._running
            if before is not None and not before.driven.is_connected():
                before.is_stale = True
            if before is None or before.is_stale:
                self._running = await self._start()
                self._all.append(self._running)
            if before is not None and before.is_stale and before.tabs <= 0:
                await self._end(before)
            assert self._running is not None
            return self._running

    async def rendered(self, running: _Running) -> None:
        """Count a render, and let another browser take the place of one that has had enough."""
        running.renders += 1
        is_large = (
            running.pid is not None
            and process.tree_memory(process.tree_of(running.pid)) > REPLACE_SHARE * self.limits.tree_bytes
        )
        if is_large or running.renders >= self.limits.most_renders:
            running.is_stale = True

    async def let_go(self, running: _Running) -> None:
        """One tab less; the last one of a browser that nobody uses any more ends it."""
        running.tabs -= 1
        if running.is_stale and running.tabs <= 0:
            await self._end(running)

    async def _start(self) -> _Running:
        for attempt in range(1, STARTS + 1):
            async with AsyncExitStack() as stack:
                try:
                    driven = await self._launched(await stack.enter_async_context(driver_running()))
                    stack.push_async_callback(_quietly, driven.close())
                    session = await driven.new_browser_cdp_session()
                    told = await session.send("SystemInfo.getProcessInfo")
                except (DriverLost, PlaywrightError, OSError) as error:
                    if attempt == STARTS:
                        raise BrowserMissing(f"{self.program} does not start: {_first_line(error)}") from error
                    continue
                pid = next((int(each["id"]) for each in told["processInfo"] if each["type"] == "browser"), None)
                driver = None if pid is None else process.child_above(pid)
                running = _Running(driven=driven, session=session, pid=pid, driver=driver, stack=stack)
                if pid is not None:
                    process.bind_memory(process.tree_of(pid), self.limits.page_bytes)
                    stack.callback(asyncio.create_task(self._watch_memory(running, pid), name="browser-memory").cancel)
                running.stack = stack.pop_all()
                return running
        raise AssertionError

    async def _launched(self, driver: Playwright) -> DrivenBrowser:
        """Start the browser, in its sandbox if that can run here; if not, say so once."""
        try:
            return await launch(driver, self.program, FLAGS, BEST_SANDBOX)
        except PlaywrightTimeout:
            raise  # a busy machine: no word about the sandbox
        except PlaywrightError as error:
            driven = await launch(driver, self.program, FLAGS, Sandbox.NONE)
            if not self._is_warned:
                log.warning("browser.no_sandbox", extra={"error": _first_line(error)})
                self._is_warned = True
            return driven

    async def _watch_memory(self, running: _Running, pid: int) -> None:
        """End what makes the browser's processes take more memory than they may together, as long as it runs.

        That is the largest process that runs pages, if it holds more than its share; if not, all of the browser.
        """
        share = self.limits.tree_bytes // (self.limits.tabs + 1)  # one for the processes that all pages use
        while True:
            await asyncio.sleep(MEMORY_CHECK_SECONDS if running.pages else IDLE_CHECK_SECONDS)
            pids = [each for each in process.tree_of(pid) if each not in running.ended]
            held_bytes = process.tree_memory(pids)
            if held_bytes <= self.limits.tree_bytes:
                continue
            running.is_stale = running.is_above_bound = True
            log.warning("browser.memory", extra={"bytes": held_bytes, "most": self.limits.tree_bytes})
            largest = max(filter(process.is_renderer, pids), key=lambda each: process.memory_of(each)[0], default=pid)
            if largest == pid or process.memory_of(largest)[0] <= share:
                process.kill_tree(pid)
                return
            running.ended.add(largest)
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)

    async def _end(self, running: _Running) -> None:
        if running not in self._all:
            return
        self._all.remove(running)
        try:
            async with asyncio.timeout(5):
                await running.stack.aclose()
        except TimeoutError:
            for pid in filter(None, (running.pid, running.driver)):
                process.kill_tree(pid)


class Tab:
    """A tab for the pages of one domain, one at a time."""

    def __init__(self, browser: Browser, proxy: LoopbackProxy, *, language: str) -> None:
        self._browser, self._proxy, self._language = browser, proxy, language
        self._running: _Running | None = None
        self._context: BrowserContext | None = None
        self._renders = 0  # in this context
        self._challenges = 0  # that the proxy had passed on when the context logged in
        self._began = 0.0  # the page that is rendered
        self._events: Counter[str] = Counter()  # of it

    async def render(self, url: Url, *, screenshot: bool = False) -> RenderOutcome:
        """The page as its scripts leave it. Never raises for what a page does."""
        began = time.monotonic()
        async with self._browser.turns:
            self._began = began
            outcome = await self._tried(url, screenshot=screenshot)
            if isinstance(outcome, NotRendered) and outcome.reason is RenderFailure.CRASHED and self._running is None:
                # The browser has ended: it was perhaps another page that took it along.
                outcome = await self._tried(url, screenshot=screenshot)
            return outcome

    async def close(self) -> None:
        """Let go of the browser."""
        context, self._context = self._context, None
        running, self._running = self._running, None
        if context is not None:
            await _quietly(context.close())
        if running is not None:
            await self._browser.let_go(running)

    async def _tried(self, url: Url, *, screenshot: bool) -> RenderOutcome:
        self._events = Counter()
        try:
            async with asyncio.timeout(self._browser.limits.longest.total_seconds()):
                context, running = await self._ready()
                page = await context.new_page()
        except BrowserMissing as error:
            return self._not_rendered(RenderFailure.NO_BROWSER, str(error))
        except (TimeoutError, PlaywrightError) as error:
            await self._lose()
            return self._not_rendered(RenderFailure.CRASHED, _first_line(error))
        crashed = asyncio.Event()
        page.on("crash", lambda _: crashed.set())
        self._renders += 1
        running.pages += 1
        try:
            outcome = await self._watched(page, url, crashed, screenshot=screenshot)
        finally:
            running.pages -= 1
            is_closed = await _quietly(page.close())
        reason = outcome.reason if isinstance(outcome, NotRendered) else None
        if (
            not is_closed
            or reason is RenderFailure.HUNG
            or (reason is RenderFailure.CRASHED and not await _quietly(running.session.send("Browser.getVersion")))
        ):
            await self._lose()
        else:
            await self._browser.rendered(running)
        return outcome

    async def _ready(self) -> tuple[BrowserContext, _Running]:
        """A context in a browser that runs, the one at hand or another."""
        running = await self._browser.running()
        if self._context is not None and (
            running is not self._running
            or self._renders >= self._browser.limits.tab_renders
            or self._proxy.challenges - self._challenges >= MAX_CHALLENGES
        ):
            await self.close()
        if self._context is None:
            self._context = await running.driven.new_context(
                proxy={"server": f"http://127.0.0.1:{self._proxy.port}", "bypass": "<-loopback>"},
                user_agent=self._browser.user_agent,
                viewport={"width": VIEWPORT[0], "height": VIEWPORT[1]},
                accept_downloads=False,
                service_workers="block",
                extra_http_headers={"Accept-Language": self._language} if self._language else {},
            )
            self._running, self._renders = running, 0
            running.tabs += 1
            await self._log_in(self._context)
            self._challenges = self._proxy.challenges
            await self._context.add_init_script(_SCRIPTS["prepare"])
            self._context.on("page", self._on_page)
        return self._context, running

    async def _log_in(self, context: BrowserContext) -> None:
        """Give the context the proxy's password, which it shows by itself from then on, its workers too.

        Playwright's own credentials would pause each request of each page, and switch the cache off.
        """
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        response = {"response": "ProvideCredentials", "username": USERNAME, "password": self._proxy.password}

        async def resume(method: str, event: dict[str, Any], **how: object) -> None:
            await _quietly(session.send(method, {"requestId": event["requestId"], **how}))

        session.on("Fetch.requestPaused", partial(resume, "Fetch.continueRequest"))
        session.on("Fetch.authRequired", partial(resume, "Fetch.continueWithAuth", authChallengeResponse=response))
        await session.send("Fetch.enable", {"handleAuthRequests": True})
        await page.goto(LOGIN_URL)
        await page.close()

    async def _lose(self) -> None:
        """End a browser that may not answer any more. Its other tabs lose their pages, which are tried once more."""
        if self._running is not None:
            self._running.is_stale = True
            if self._running.pid is not None:
                process.kill_tree(self._running.pid)
        await self.close()

    async def _watched(self, page: Page, url: Url, crashed: asyncio.Event, *, screenshot: bool) -> RenderOutcome:
        """The outcome of a page, however it ends."""
        rendering = asyncio.create_task(self._read(page, url, screenshot=screenshot))
        watching = asyncio.create_task(crashed.wait())
        try:
            await asyncio.wait(
                (rendering, watching),
                timeout=self._browser.limits.longest.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if rendering.done():
                return rendering.result()
            if crashed.is_set():
                detail = "the tab crashed"
                if self._running is not None and self._running.is_above_bound:
                    detail += f": the browser's processes took more than {self._browser.limits.tree_bytes:,} bytes"
                return self._not_rendered(RenderFailure.CRASHED, detail)
            if self._proxy.in_flight:
                return self._incomplete()
            detail = f"no answer within {self._browser.limits.longest.total_seconds():g} s"
            return self._not_rendered(RenderFailure.HUNG, detail)
        finally:
            for each in (rendering, watching):
                each.cancel()
            await asyncio.gather(rendering, watching, return_exceptions=True)

    async def _read(self, page: Page, url: Url, *, screenshot: bool) -> RenderOutcome:
        try:
            await page.goto(
                url, wait_until="domcontentloaded", timeout=self._browser.limits.longest.total_seconds() * 1000
            )
            await self._settled(page)
            for _ in range(self._browser.limits.scrolls):
                if not await page.evaluate(_SCRIPTS["scroll"]):
                    break
                await self._settled(page, quiet=0.1)
            else:
                await self._settled(page)
            await self._settled(page)
            if self._proxy.in_flight:
                return self._incomplete()
            found = await page.evaluate(_SCRIPTS["read_dom"], [self._browser.limits.html_chars, MOST_URLS])
            picture = await page.screenshot(type="png") if screenshot else None
        except PlaywrightError as error:
            return self._not_rendered(_failure(error), _first_line(error))
        return self._outcome(found, picture)

    @property
    def _elapsed(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    def _not_rendered(self, reason: RenderFailure, detail: str) -> NotRendered:
        return NotRendered(reason, self._elapsed, detail, refused=self._events)

    def _incomplete(self) -> NotRendered:
        detail = f"{self._proxy.in_flight} of its requests were not answered in time"
        return self._not_rendered(RenderFailure.INCOMPLETE, detail)

    def _outcome(self, found: object, picture: bytes | None) -> RenderOutcome:
        """What was read of the document, in which its scripts may have had a hand."""
        match found:
            case {"isCut": True}:
                detail = f"a document of more than {self._browser.limits.html_chars:,} characters"
                return self._not_rendered(RenderFailure.TOO_LARGE, detail)
            case {"html": str(html), "url": str(url), "urls": [*urls]}:
                links = [link for each in urls[:MOST_URLS] if isinstance(each, str) and (link := normalise(each))]
                return Rendered(
                    html=html.encode("utf-8", "replace"),
                    url=normalise(url) or Url(url),
                    elapsed=self._elapsed,
                    links=tuple(dict.fromkeys(links)),
                    refused=self._events,
                    screenshot=picture,
                )
            case _:
                detail = "its scripts have changed what the document is read with"
                return self._not_rendered(RenderFailure.NO_PAGE, detail)

    async def _settled(self, page: Page, quiet: float | None = None) -> None:
        """Wait until the page has been left alone for a while, and nothing that it asked for is outstanding.

        What is outstanding may wait for its turn in the domain's delay: that alone ends no wait but the page's last.
        """
        wanted = self._browser.limits.quiet.total_seconds() if quiet is None else quiet
        until = time.monotonic() + self._browser.limits.settle.total_seconds()
        while (left := until - time.monotonic()) > 0 or self._proxy.in_flight:
            await page.evaluate(_SCRIPTS["settle"], [1000 * wanted, 1000 * max(left, wanted)])
            if self._proxy.in_flight == 0:
                return

    def _on_page(self, page: Page) -> None:
        page.on("dialog", lambda dialog: self._refuse("dialog", dialog.dismiss()))
        page.on("popup", lambda popup: self._refuse("popup", popup.close()))
        page.on("download", lambda _: self._events.update(("download",)))

    async def _refuse(self, event: str, doing: Awaitable[None]) -> None:
        self._events[event] += 1
        await _quietly(doing)


def _failure(error: PlaywrightError) -> RenderFailure:
    said = str(error)
    if "crash" in said.lower() or "closed" in said:
        return RenderFailure.CRASHED
    if "Timeout" in said:
        return RenderFailure.HUNG
    return RenderFailure.NO_PAGE


async def _quietly(doing: Awaitable[T]) -> bool:
    """Whether it was done in a moment; what a browser says that has gone already does not matter."""
    try:
        async with asyncio.timeout(3):
            await doing
    except (PlaywrightError, TimeoutError):
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
