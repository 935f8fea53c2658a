"""What a tab returns of a page, and what a page cannot do to it, with a real browser and simulated responses."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.core.http.response import BrowserRequest, BrowserResponse
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.fetch.browser import Browser, RenderLimits
from crawler.fetch.browser.process import list_process_tree
from tests.patience import until

SITE = "https://site.example"
LINK = "(() => {const a = document.createElement('a'); a.href = '/found'; a.textContent = 'go'; return a})()"
# Ways in which scripts create links.
WAYS = {
    "fetch": f"fetch('/data').then(() => document.body.append({LINK}))",
    "document.write": "document.write('<a href=/found>go</a>')",
    "createElement": f"document.body.append({LINK})",
    "pushState": "history.pushState(null, '', '/found')",
    "shadow root": f"document.getElementById('x').attachShadow({{mode: 'closed'}}).append({LINK})",
    "delayed 400 ms": f"setTimeout(() => document.body.append({LINK}), 400)",
    "on scroll": f"addEventListener('scroll', () => document.body.append({LINK}), {{once: true}})",
    "JSON state": '/* nothing */</script><script type=\'application/json\'>{"props": {"next": "/found"}}',
    "frame": "document.getElementById('x').innerHTML = '<iframe src=/frame></iframe>'",
    "template of a component": (
        "customElements.define('x-y', class extends HTMLElement {connectedCallback() "
        "{this.innerHTML = '<a href=/found>go</a>'}}); document.body.append(document.createElement('x-y'))"
    ),
}
FRAME = "<a href=/found>go</a>"


class Pages:
    """The responses to a tab's requests by path; requests are recorded."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.pages = dict(pages)
        self.asked: list[BrowserRequest] = []

    async def answer(self, request: BrowserRequest) -> BrowserResponse:
        self.asked.append(request)
        body = self.pages.get(request.url.removeprefix(SITE))
        if body is None:
            return BrowserResponse(404)
        return BrowserResponse(200, (("Content-Type", "text/html; charset=utf-8"),), body.encode())


async def rendered(browser: Browser, pages: Mapping[str, str], path: str = "/") -> tuple[RenderOutcome, Pages]:
    site = Pages(pages)
    async with browser, browser.open_tab(site.answer) as tab:
        return await tab.render(Url(SITE + path)), site


def page_of(script: str) -> str:
    tall = "<div style='height: 3000px'></div>"
    return f"<!doctype html><title>t</title><body><div id=x></div>{tall}<script>{script}</script>"


@pytest.mark.soak
async def test_a_link_is_found_regardless_of_how_a_script_creates_it(browser: Browser) -> None:
    missed = []
    async with browser:
        for way, script in WAYS.items():
            async with browser.open_tab(Pages({"/": page_of(script), "/data": "{}", "/frame": FRAME}).answer) as tab:
                outcome = await tab.render(Url(f"{SITE}/"))
            assert isinstance(outcome, Rendered), way
            assert outcome.url == f"{SITE}/"
            if b'href="/found"' not in outcome.html and f"{SITE}/found" not in outcome.links:
                missed.append(way)

    assert missed == []


async def test_the_document_is_kept_without_scripts_and_with_all_content(browser: Browser) -> None:
    page = (
        "<!doctype html><html lang=de><title>Über &amp; unter</title><style>p {color: red}</style>"
        "<p title='a \"b\"'>1 &lt; 2<br><noscript>enable scripts</noscript><template><i>no</i></template>"
        "<script>document.querySelector('p').append(' & 3')</script>"
    )
    outcome, _ = await rendered(browser, {"/": page})

    assert isinstance(outcome, Rendered)
    html = outcome.html.decode()
    assert html == (
        '<!DOCTYPE html><html lang="de"><head><title>Über &amp; unter</title></head>'
        '<body><p title="a &quot;b&quot;">1 &lt; 2<br> &amp; 3</p></body></html>'
    )


@pytest.mark.soak
async def test_the_page_is_where_a_script_navigates(browser: Browser) -> None:
    outcome, _ = await rendered(browser, {"/": "<script>location.replace('/new')</script>", "/new": "<p>here"})

    assert isinstance(outcome, Rendered)
    assert outcome.url == f"{SITE}/new"


SCENES: dict[str, tuple[str, RenderFailure | None]] = {
    "an endless loop": ("<script>for (;;);</script>", RenderFailure.HUNG),
    "an endless loop later": ("<p>x<script>setTimeout(() => {for (;;);}, 50)</script>", RenderFailure.HUNG),
    "endless objects": (
        "<script>const a = []; for (;;) a.push({x: a.length + 'x'.repeat(99)})</script>",
        RenderFailure.CRASHED,  # or hung, on a busy machine
    ),
    "endless nodes": ("<script>for (;;) document.body.append('x'.repeat(9999))</script><body>", None),
    "dialogs": ("<p>x<script>alert(1); confirm(2); prompt(3)</script>", None),
    "a question at leaving": ("<p>x<script>onbeforeunload = () => 'stay'</script>", None),
    "pop-ups": ("<p>x<script>for (let i = 0; i < 9; i++) open('/pop' + i)</script>", None),
    "an endless worker": (
        "<p>x<script>new Worker(URL.createObjectURL(new Blob(['for (;;);'])))</script>",
        None,
    ),
    "a service worker": ("<p>x<script>navigator.serviceWorker.register('/sw.js').catch(() => 0)</script>", None),
    "endless changes": ("<p>x<script>setInterval(() => document.title += 'x', 5)</script>", None),
    "endless reloads": ("<p>x<script>location.reload()</script>", None),
    "endless frames": ("<p>x<iframe src=/></iframe>", None),
    "its tools replaced": (
        "<p>x<script>JSON.stringify = JSON.parse = Array.from = Object.keys = () => {throw 1}; Set = null</script>",
        None,
    ),
}


QUICK_SCENES = ("dialogs", "a service worker")


async def test_address_of_a_frame_stays_a_link_beside_its_content(browser: Browser) -> None:
    outcome, _ = await rendered(browser, {"/": "<p>x<iframe src=/frame></iframe>", "/frame": FRAME})

    assert isinstance(outcome, Rendered)
    assert f'href="{SITE}/frame"'.encode() in outcome.html
    assert b'href="/found"' in outcome.html


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "scene", [pytest.param(scene, marks=() if scene in QUICK_SCENES else pytest.mark.soak) for scene in SCENES]
)
async def test_what_a_page_does_to_its_tab_is_a_finding_and_the_next_page_is_rendered(
    browser: Browser, scene: str
) -> None:
    page, failure = SCENES[scene]
    browser.limits = RenderLimits(timeout=timedelta(seconds=10), max_settle_time=timedelta(seconds=2))
    site = Pages({"/": page, "/well": "<p><script>document.querySelector('p').append('well')</script>"})
    async with browser, browser.open_tab(site.answer) as tab:
        outcome = await tab.render(Url(f"{SITE}/"))
        after = await tab.render(Url(f"{SITE}/well"))

    if failure is not None:
        assert isinstance(outcome, NotRendered)
        assert outcome.reason in {failure, RenderFailure.HUNG}
    assert isinstance(after, Rendered)
    assert b"<p>well</p>" in after.html
    assert not {"/pop0", "/sw.js"} & {request.url.removeprefix(SITE) for request in site.asked}


def pids_of(browser: Browser) -> list[int]:
    """Return the processes of the running browser."""
    assert browser._running is not None
    assert browser._running.pid is not None
    return list_process_tree(browser._running.pid)


async def test_a_killed_browser_affects_no_other_page(browser: Browser) -> None:
    site = Pages({"/": "<p>x<script>fetch('/slow')</script>", "/well": "<p>well"})
    waiting = asyncio.Event()

    async def answer(request: BrowserRequest) -> BrowserResponse:
        if request.url.endswith("/slow") and not waiting.is_set():
            waiting.set()
            for pid in pids_of(browser):
                os.kill(pid, 9)
        return await site.answer(request)

    async with browser, browser.open_tab(answer) as tab:
        first = await tab.render(Url(f"{SITE}/"))
        second = await tab.render(Url(f"{SITE}/well"))

    assert waiting.is_set()
    assert isinstance(first, Rendered) or first.reason is RenderFailure.CRASHED
    assert isinstance(second, Rendered)


def is_running(pid: int) -> bool:
    """Return whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # also one that ends meanwhile
        return False


async def test_a_browser_that_has_ended_leaves_no_process(browser: Browser) -> None:
    async with browser, browser.open_tab(Pages({"/": "<p>x"}).answer) as tab:
        await tab.render(Url(f"{SITE}/"))
        pids = pids_of(browser)

    assert pids
    assert not [pid for pid in pids if is_running(pid)]


KILLED = """
import asyncio, sys
from pathlib import Path
from crawler.core.http.urls import Url
from crawler.fetch.browser import Browser
from crawler.fetch.browser.process import list_process_tree

async def main():
    browser = Browser(Path(sys.argv[1]), user_agent="test")
    async def answer(request):
        print(*list_process_tree(browser._running.pid), flush=True)
        await asyncio.Event().wait()
    async with browser, browser.open_tab(answer) as tab:
        await tab.render(Url("https://site.example/"))

asyncio.run(main())
"""


def test_a_killed_worker_leaves_no_browser(browser: Browser) -> None:
    worker = subprocess.Popen([sys.executable, "-c", KILLED, str(browser.program)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    pids = [int(pid) for pid in worker.stdout.readline().split()]
    assert len(pids) > 1
    worker.kill()
    worker.wait()
    worker.stdout.close()

    until(lambda: not any(map(is_running, pids)))
