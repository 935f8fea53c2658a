"""One browser for all domains, started when the first page needs it.

Playwright drives the browser, which never connects to the network itself (see proxy.py). A page that crashes, hangs or
exceeds a limit is an outcome, not an error. If the browser itself may be damaged, another one replaces it. The memory
of all its processes is watched, and processes that take too much are killed.
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

from msgspec import Struct
from playwright.async_api import Browser as DrivenBrowser
from playwright.async_api import BrowserContext, CDPSession, FloatRect, Page, Playwright, ViewportSize
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from crawler.core.http.urls import Url, normalize_url
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.fetch.browser import process
from crawler.fetch.browser.process import BEST_SANDBOX, BrowserMissing, DriverLost, Sandbox, launch, run_driver
from crawler.fetch.browser.proxy import LOGIN_URL, USERNAME, HandleRequest, LoopbackProxy

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
    "--ignore-certificate-errors",  # certificates of our own proxy; the HTTP client checks those of servers
    "--blink-settings=imagesEnabled=false",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # only the HTTP client resolves names
    "--js-flags=--max-old-space-size=256",
)
VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
MAX_SCREENSHOT_HEIGHT = 4000  # pixels; a picture of these takes 15 MB before it is compressed
REPLACE_SHARE = 0.7  # of the memory limit: a browser that uses more after a render is replaced
MAX_STARTS = 2  # attempts to start a browser or driver
MAX_CHALLENGES = 10  # responses with status 401: for each, Chromium may store a password, and it keeps only 20
MAX_URLS = 500  # links that are found in a page's scripts and their data, in addition to those of the document
_SCRIPT_NAMES = ("prepare", "read_dom", "scroll", "settle")
_SCRIPTS = {name: files(__package__).joinpath(f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPT_NAMES}


class RenderLimits(Struct, frozen=True):
    """Limits of rendering.

    timeout: for opening a tab, with the browser's start, and again for loading and reading the page.  quiet_time: a
    page is done when nothing changes for this time.  max_settle_time: maximum wait for that if no request is in flight.
    max_scrolls: how often to scroll down by the height of the window.  max_html_chars: size of the document.
    max_tabs: simultaneous renders.  max_process_bytes: private memory of one browser process.  max_total_bytes: memory
    of all browser processes; above it, the largest page or the browser is killed.  max_renders, max_tab_renders:
    renders after which the browser or a tab is replaced.
    """

    timeout: timedelta = timedelta(seconds=20)
    quiet_time: timedelta = timedelta(milliseconds=550)
    max_settle_time: timedelta = timedelta(seconds=6)
    max_scrolls: int = 8
    max_html_chars: int = 8_000_000
    max_tabs: int = 4
    max_process_bytes: int = 1 << 30
    max_total_bytes: int = 3 << 29  # 1.5 GiB; four tabs of ordinary pages take a third of it
    max_renders: int = 500
    max_tab_renders: int = 50


RENDER_LIMITS = RenderLimits()


@dataclass(eq=False)
class _RunningBrowser:
    """A running browser.

    session: the CDP session with the browser.  driver_pid: the process of its driver.  stack: ends browser and driver.
    killed_pids: processes that were killed because they took too much memory.
    """

    driven: DrivenBrowser
    session: CDPSession
    pid: int | None
    driver_pid: int | None
    stack: AsyncExitStack
    renders: int = 0
    tabs: int = 0  # open ones
    pages: int = 0  # being rendered
    is_stale: bool = False  # no more tabs are opened in it
    is_above_limit: bool = False  # its processes exceeded the memory limit
    killed_pids: set[int] = field(default_factory=set)


class Browser:
    """A browser for any number of domains, as a context manager.

    program: the executable, started when the first page needs it.  user_agent: the User-Agent that pages see.
    """

    def __init__(self, program: Path, *, user_agent: str, limits: RenderLimits = RENDER_LIMITS) -> None:
        self.program, self.user_agent, self.limits = program, user_agent, limits
        self._running: _RunningBrowser | None = None  # where new tabs are opened
        self._instances: list[_RunningBrowser] = []  # including replaced ones that still have tabs
        self._start_lock = asyncio.Lock()
        self.slots = asyncio.Semaphore(limits.max_tabs)  # for simultaneous renders
        self._is_warned = False  # whether the missing sandbox was logged

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for running in list(self._instances):
            await self._end(running)

    @asynccontextmanager
    async def open_tab(self, handle_request: HandleRequest, *, language: str = "") -> AsyncIterator["Tab"]:
        """Open a tab whose requests `handle_request` handles. language: the Accept-Language header."""
        proxy = LoopbackProxy(handle_request)
        async with proxy.listen():
            tab = Tab(self, proxy, language=language)
            try:
                yield tab
            finally:
                await tab.close()

    async def ensure_running(self) -> _RunningBrowser:
        """Return the browser for new tabs; start one if there is none or it is stale. Raise BrowserMissing."""
        async with self._start_lock:
            previous = self._running
            if previous is not None and not previous.driven.is_connected():
                previous.is_stale = True
            if previous is None or previous.is_stale:
                self._running = await self._start()
                self._instances.append(self._running)
            if previous is not None and previous.is_stale and previous.tabs <= 0:
                await self._end(previous)
            assert self._running is not None
            return self._running

    async def count_render(self, running: _RunningBrowser) -> None:
        """Count a render; mark the browser for replacement if it has rendered enough pages or uses much memory."""
        running.renders += 1
        tree = process.list_process_tree(running.pid) if running.pid is not None else []
        is_large = process.sum_tree_memory(tree) > REPLACE_SHARE * self.limits.max_total_bytes
        if is_large or running.renders >= self.limits.max_renders:
            running.is_stale = True

    async def release_tab(self, running: _RunningBrowser) -> None:
        """Note a closed tab; end a stale browser with its last tab."""
        running.tabs -= 1
        if running.is_stale and running.tabs <= 0:
            await self._end(running)

    async def _start(self) -> _RunningBrowser:
        for attempt in range(1, MAX_STARTS + 1):
            async with AsyncExitStack() as stack:
                try:
                    driven = await self._launch(await stack.enter_async_context(run_driver()))
                    stack.push_async_callback(_finish_quietly, driven.close())
                    session = await driven.new_browser_cdp_session()
                    process_info = await session.send("SystemInfo.getProcessInfo")
                except (DriverLost, PlaywrightError, OSError) as error:
                    if attempt == MAX_STARTS:
                        raise BrowserMissing(f"{self.program} does not start: {_get_first_line(error)}") from error
                    continue
                pid = next((int(each["id"]) for each in process_info["processInfo"] if each["type"] == "browser"), None)
                driver_pid = None if pid is None else process.find_ancestor_child(pid)
                running = _RunningBrowser(driven=driven, session=session, pid=pid, driver_pid=driver_pid, stack=stack)
                if pid is not None:
                    process.limit_memory(process.list_process_tree(pid), self.limits.max_process_bytes)
                    stack.callback(asyncio.create_task(self._watch_memory(running, pid), name="browser-memory").cancel)
                running.stack = stack.pop_all()
                return running
        raise AssertionError

    async def _launch(self, driver: Playwright) -> DrivenBrowser:
        """Start the browser in its sandbox; if that is impossible, start it without a sandbox and warn once."""
        try:
            return await launch(driver, self.program, FLAGS, BEST_SANDBOX)
        except PlaywrightTimeout:
            raise  # the machine is busy; this says nothing about the sandbox
        except PlaywrightError as error:
            driven = await launch(driver, self.program, FLAGS, Sandbox.NONE)
            if not self._is_warned:
                log.warning("browser.no_sandbox", extra={"error": _get_first_line(error)})
                self._is_warned = True
            return driven

    async def _watch_memory(self, running: _RunningBrowser, pid: int) -> None:
        """Enforce the memory limit of all browser processes while the browser runs.

        Kill the largest renderer process if it uses more than its share, else the whole browser.
        """
        share = self.limits.max_total_bytes // (self.limits.max_tabs + 1)  # one share for the common processes
        while True:
            await asyncio.sleep(0.1 if running.pages else 1)  # a hostile page may allocate 2 GB per second
            pids = [each for each in process.list_process_tree(pid) if each not in running.killed_pids]
            used_bytes = process.sum_tree_memory(pids)
            if used_bytes <= self.limits.max_total_bytes:
                continue
            running.is_stale = running.is_above_limit = True
            log.warning("browser.memory", extra={"bytes": used_bytes, "most": self.limits.max_total_bytes})
            largest = max(filter(process.is_renderer, pids), key=lambda each: process.read_memory(each)[0], default=pid)
            if largest == pid or process.read_memory(largest)[0] <= share:
                process.kill_tree(pid)
                return
            running.killed_pids.add(largest)
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)

    async def _end(self, running: _RunningBrowser) -> None:
        if running not in self._instances:
            return
        self._instances.remove(running)
        try:
            async with asyncio.timeout(5):
                await running.stack.aclose()
        except TimeoutError:
            for pid in filter(None, (running.pid, running.driver_pid)):
                process.kill_tree(pid)


class Tab:
    """A tab that renders pages of one domain, one at a time."""

    def __init__(self, browser: Browser, proxy: LoopbackProxy, *, language: str) -> None:
        self._browser, self._proxy, self._language = browser, proxy, language
        self._running: _RunningBrowser | None = None
        self._context: BrowserContext | None = None
        self._renders = 0  # in this context
        self._challenges = 0  # the proxy's count when the context logged in to the proxy
        self._began = 0.0  # when the current page began, in monotonic seconds
        self._events: Counter[str] = Counter()  # of the current page

    async def render(self, url: Url, *, screenshot: bool = False) -> RenderOutcome:
        """Render the page. Never raise because of what a page does."""
        began = time.monotonic()
        async with self._browser.slots:
            self._began = began
            outcome = await self._try_render(url, screenshot=screenshot)
            if isinstance(outcome, NotRendered) and outcome.reason is RenderFailure.CRASHED and self._running is None:
                # The browser has ended, perhaps because of another page, so try again.
                outcome = await self._try_render(url, screenshot=screenshot)
            return outcome

    async def close(self) -> None:
        """Close the tab."""
        context, self._context = self._context, None
        running, self._running = self._running, None
        if context is not None:
            await _finish_quietly(context.close())
        if running is not None:
            await self._browser.release_tab(running)

    async def _try_render(self, url: Url, *, screenshot: bool) -> RenderOutcome:
        self._events = Counter()
        try:
            async with asyncio.timeout(self._browser.limits.timeout.total_seconds()):
                context, running = await self._prepare_context()
                page = await context.new_page()
        except BrowserMissing as error:
            return self._build_not_rendered(RenderFailure.NO_BROWSER, str(error))
        except (TimeoutError, PlaywrightError) as error:
            await self._discard_browser()
            return self._build_not_rendered(RenderFailure.CRASHED, _get_first_line(error))
        crashed = asyncio.Event()
        page.on("crash", lambda _: crashed.set())
        self._renders += 1
        running.pages += 1
        try:
            outcome = await self._render_watched(page, url, crashed, screenshot=screenshot)
        finally:
            running.pages -= 1
            is_closed = await _finish_quietly(page.close())
        reason = outcome.reason if isinstance(outcome, NotRendered) else None
        is_damaged = not is_closed or reason is RenderFailure.HUNG
        if not is_damaged and reason is RenderFailure.CRASHED:
            is_damaged = not await _finish_quietly(running.session.send("Browser.getVersion"))
        if is_damaged:
            await self._discard_browser()
        else:
            await self._browser.count_render(running)
        return outcome

    async def _prepare_context(self) -> tuple[BrowserContext, _RunningBrowser]:
        """Return a context in a running browser: the current one, or a new one if it must be replaced."""
        running = await self._browser.ensure_running()
        if self._context is not None and (
            running is not self._running
            or self._renders >= self._browser.limits.max_tab_renders
            or self._proxy.challenges - self._challenges >= MAX_CHALLENGES
        ):
            await self.close()
        if self._context is None:
            self._context = await running.driven.new_context(
                proxy={"server": f"http://127.0.0.1:{self._proxy.port}", "bypass": "<-loopback>"},
                user_agent=self._browser.user_agent,
                viewport=VIEWPORT,
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
        """Give the context the proxy's password, which it then sends with each request, also from workers.

        Playwright's option for credentials would pause each request of each page and disable the cache.
        """
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        response = {"response": "ProvideCredentials", "username": USERNAME, "password": self._proxy.password}

        async def resume(method: str, event: dict[str, Any], **options: object) -> None:
            await _finish_quietly(session.send(method, {"requestId": event["requestId"], **options}))

        session.on("Fetch.requestPaused", partial(resume, "Fetch.continueRequest"))
        session.on("Fetch.authRequired", partial(resume, "Fetch.continueWithAuth", authChallengeResponse=response))
        await session.send("Fetch.enable", {"handleAuthRequests": True})
        await page.goto(LOGIN_URL)
        await page.close()

    async def _discard_browser(self) -> None:
        """Kill a browser that may not respond any longer. Pages in its other tabs are tried again."""
        if self._running is not None:
            self._running.is_stale = True
            if self._running.pid is not None:
                process.kill_tree(self._running.pid)
        await self.close()

    async def _render_watched(self, page: Page, url: Url, crash: asyncio.Event, *, screenshot: bool) -> RenderOutcome:
        """Render the page and return its outcome, also if it crashes or hangs."""
        rendering = asyncio.create_task(self._load_and_read(page, url, screenshot=screenshot))
        watching = asyncio.create_task(crash.wait())
        seconds = self._browser.limits.timeout.total_seconds()
        try:
            await asyncio.wait((rendering, watching), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if rendering.done():
                return rendering.result()
            if crash.is_set():
                detail = "the tab crashed"
                if self._running is not None and self._running.is_above_limit:
                    detail += f": the browser used more than {self._browser.limits.max_total_bytes:,} bytes of memory"
                return self._build_not_rendered(RenderFailure.CRASHED, detail)
            if self._proxy.in_flight:
                return self._build_incomplete()
            return self._build_not_rendered(RenderFailure.HUNG, f"rendering took longer than {seconds:g} s")
        finally:
            for each in (rendering, watching):
                each.cancel()
            await asyncio.gather(rendering, watching, return_exceptions=True)

    async def _load_and_read(self, page: Page, url: Url, *, screenshot: bool) -> RenderOutcome:
        milliseconds = self._browser.limits.timeout.total_seconds() * 1000
        try:
            await page.goto(url, wait_until="domcontentloaded", timeout=milliseconds)
            await self._wait_until_settled(page)
            for _ in range(self._browser.limits.max_scrolls):
                if not await page.evaluate(_SCRIPTS["scroll"]):
                    break
                await self._wait_until_settled(page, quiet=0.1)
            else:
                await self._wait_until_settled(page)
            await self._wait_until_settled(page)
            if self._proxy.in_flight:
                return self._build_incomplete()
            document = await page.evaluate(_SCRIPTS["read_dom"], [self._browser.limits.max_html_chars, MAX_URLS])
            png = await _take_screenshot(page) if screenshot else None
        except PlaywrightError as error:
            return self._build_not_rendered(_classify_failure(error), _get_first_line(error))
        return self._build_outcome(document, png)

    @property
    def _elapsed(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    def _build_not_rendered(self, reason: RenderFailure, detail: str) -> NotRendered:
        return NotRendered(reason, self._elapsed, detail, blocked=self._events)

    def _build_incomplete(self) -> NotRendered:
        detail = f"{self._proxy.in_flight} of its requests got no response in time"
        return self._build_not_rendered(RenderFailure.INCOMPLETE, detail)

    def _build_outcome(self, document: object, png: bytes | None) -> RenderOutcome:
        """Convert what was read from the document, which the page's scripts may have tampered with."""
        match document:
            case {"isCut": True}:
                detail = f"the document has more than {self._browser.limits.max_html_chars:,} characters"
                return self._build_not_rendered(RenderFailure.TOO_LARGE, detail)
            case {"html": str(html), "url": str(url), "urls": [*urls]}:
                links = [link for each in urls[:MAX_URLS] if isinstance(each, str) and (link := normalize_url(each))]
                return Rendered(
                    html=html.encode("utf-8", "replace"),
                    url=normalize_url(url) or Url(url),
                    elapsed=self._elapsed,
                    links=tuple(dict.fromkeys(links)),
                    blocked=self._events,
                    screenshot=png,
                )
            case _:
                return self._build_not_rendered(RenderFailure.NO_PAGE, "its scripts prevent reading the document")

    async def _wait_until_settled(self, page: Page, quiet: float | None = None) -> None:
        """Wait until the page has not changed for a while, or max_settle_time is over, and no request is in flight.

        Requests may wait for the domain's delay, so while any is in flight only the page's timeout ends the wait.
        """
        quiet_seconds = self._browser.limits.quiet_time.total_seconds() if quiet is None else quiet
        until = time.monotonic() + self._browser.limits.max_settle_time.total_seconds()
        while (seconds_left := until - time.monotonic()) > 0 or self._proxy.in_flight:
            await page.evaluate(_SCRIPTS["settle"], [1000 * quiet_seconds, 1000 * max(seconds_left, quiet_seconds)])
            if self._proxy.in_flight == 0:
                return

    def _on_page(self, page: Page) -> None:
        page.on("dialog", lambda dialog: self._refuse("dialog", dialog.dismiss()))
        page.on("popup", lambda popup: self._refuse("popup", popup.close()))
        page.on("download", lambda _: self._events.update(("download",)))

    async def _refuse(self, event: str, action: Awaitable[None]) -> None:
        self._events[event] += 1
        await _finish_quietly(action)


def _classify_failure(error: PlaywrightError) -> RenderFailure:
    message = str(error)
    if "crash" in message.lower() or "closed" in message:
        return RenderFailure.CRASHED
    if "Timeout" in message:
        return RenderFailure.HUNG
    return RenderFailure.NO_PAGE


async def _finish_quietly(action: Awaitable[T]) -> bool:
    """Await an action for a few seconds; return whether it succeeded. Errors of a closed browser do not matter."""
    try:
        async with asyncio.timeout(3):
            await action
    except (PlaywrightError, TimeoutError):
        return False
    return True


async def _take_screenshot(page: Page) -> bytes:
    """Return a PNG of the page from its top, with animations at their end, so that two of one page are alike."""
    height = await page.evaluate("document.documentElement.scrollHeight")  # of an untrusted page: it may be anything
    height = min(max(height, VIEWPORT["height"]), MAX_SCREENSHOT_HEIGHT) if isinstance(height, int) else 900
    area: FloatRect = {"x": 0, "y": 0, "width": VIEWPORT["width"], "height": height}
    return await page.screenshot(type="png", full_page=True, clip=area, animations="disabled")


def _get_first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
