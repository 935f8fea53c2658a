"""The proxy of a tab serves only that tab, and all requests that its pages start reach it."""

import asyncio
import os
import subprocess
import sys

import pytest

from crawler.core.http.response import BrowserRequest, BrowserResponse
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import Rendered
from crawler.fetch.browser import Browser
from crawler.fetch.browser.proxy import MAX_UNAUTHENTICATED, LoopbackProxy

SITE = "https://site.example"
NOBODY = 65534

# Another account, which connects from a port number that the crawl's account uses, at its own address.
STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
with socket.socket() as own:
    own.bind(("127.0.0.77", {port}))
    own.connect(("127.0.0.1", {port}))
    own.sendall({request!r})
    own.shutdown(socket.SHUT_WR)
    print(own.makefile("rb").read().decode())
"""
ATTEMPTS = {
    "no password": b"GET http://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n",
    "a guessed password": (
        b"GET http://site.example/ HTTP/1.1\r\nHost: site.example\r\nProxy-Authorization: Basic dGFiOnRhYg==\r\n\r\n"
    ),
    "a tunnel": b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example\r\n\r\n",
    "the login page": b"GET http://recrawl.invalid/ HTTP/1.1\r\nHost: recrawl.invalid\r\n\r\n",
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_another_account_gets_nothing_from_a_tab_and_sends_nothing_through_it(attempt: str) -> None:
    asked: list[BrowserRequest] = []

    async def answer(request: BrowserRequest) -> BrowserResponse:
        asked.append(request)
        return BrowserResponse(200, body=b"private")

    async with LoopbackProxy(answer).listen() as proxy:
        program = STRANGER.format(nobody=NOBODY, port=proxy.port, request=ATTEMPTS[attempt])
        run = (sys.executable, "-c", program)
        done = await asyncio.to_thread(subprocess.run, run, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("HTTP/1.1 407 ")
    assert "private" not in done.stdout
    assert not asked


PAGE = """<!doctype html><p>x<iframe src=/frame></iframe><script>
new Worker('/worker.js'); new SharedWorker('/shared.js'); fetch('/fetched');
new WebSocket('wss://site.example/socket');
</script>"""
WORKER = "fetch('/by-' + self.constructor.name)"
PATHS = {
    *("/", "/frame", "/worker.js", "/shared.js", "/fetched", "/by-SharedWorkerGlobalScope", "/socket"),
    "/by-DedicatedWorkerGlobalScope",
}


@pytest.mark.soak
async def test_all_requests_of_parallel_tabs_have_the_password_from_the_first_on(
    browser: Browser,
) -> None:
    async def render_in_a_tab(scheme: str) -> tuple[set[str], int]:
        root = f"{scheme}://site.example"
        asked: set[str] = set()

        async def answer(request: BrowserRequest) -> BrowserResponse:
            assert not request.get_header("proxy-authorization")
            asked.add(request.url.partition("site.example")[2])
            if request.url.endswith(".js"):
                return BrowserResponse(200, (("Content-Type", "text/javascript"),), WORKER.encode())
            if request.url != f"{root}/":
                return BrowserResponse(404)
            return BrowserResponse(200, (("Content-Type", "text/html"),), PAGE.encode())

        async with browser.open_tab(answer) as tab:
            for _ in range(3):
                assert isinstance(await tab.render(Url(f"{root}/")), Rendered)
            return asked, tab._proxy.refusals

    async with browser:
        first, second, third = await asyncio.gather(*map(render_in_a_tab, ("https", "http", "https")))

    assert first[0] == second[0] == third[0] == PATHS
    assert first[1] == second[1] == third[1] == 1  # one round trip per tab, none per page


@pytest.mark.soak
async def test_silent_connections_of_others_prevent_no_rendering(browser: Browser) -> None:
    async def answer(_: BrowserRequest) -> BrowserResponse:
        return BrowserResponse(200, (("Content-Type", "text/html"),), b"<p>x")

    async with browser, browser.open_tab(answer) as tab:
        idle = [await asyncio.open_connection("127.0.0.1", tab._proxy.port) for _ in range(2 * MAX_UNAUTHENTICATED)]
        outcome = await tab.render(Url(f"{SITE}/"))
        closed = [await reader.read() for reader, _ in idle[:MAX_UNAUTHENTICATED]]
        for _, writer in idle:
            writer.close()

    assert isinstance(outcome, Rendered)
    assert closed == [b""] * MAX_UNAUTHENTICATED


@pytest.mark.soak
async def test_a_page_that_makes_the_browser_forget_the_password_affects_no_other_page(browser: Browser) -> None:
    """The browser keeps few passwords: logins of many frames displace the proxy's."""
    frames = "".join(f"<iframe src=https://h{n}.example/login></iframe>" for n in range(60))
    login = "<script>const x = new XMLHttpRequest; x.open('GET', '/in', true, 'a', 'b'); x.send()</script>"

    async def answer(request: BrowserRequest) -> BrowserResponse:
        if request.url.endswith("/in") and not request.get_header("authorization"):
            return BrowserResponse(401, (("WWW-Authenticate", 'Basic realm="x"'),))
        page = {"/many": frames, "/login": login}.get(request.url.partition(".example")[2], "<p>well")
        return BrowserResponse(200, (("Content-Type", "text/html"),), page.encode())

    async with browser, browser.open_tab(answer) as tab:
        await tab.render(Url(f"{SITE}/many"))
        outcome = await tab.render(Url("https://other.example/"))

    assert isinstance(outcome, Rendered)
    assert b"well" in outcome.html
