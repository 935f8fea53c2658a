"""Measure the cost of rendering against plain Playwright, and how many renders `--render auto` avoids.

Pages of an application (Vue, from Debian's package) are rendered one at a time from one server. Plain Playwright opens
a new page per URL, waits until the network is idle, as is common, and blocks images. recrawl uses a tab, its proxy,
waiting for a quiet document, and scrolling. Then a site, one fifth application and the rest documentation with a
script, is crawled with `--render auto` and `--render always`. CPU time includes the browser.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic

from playwright.async_api import async_playwright

from benchmarks.harness.command import cpu_of_tree, measured, resident_bytes
from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.table import table
from crawler.core.http.response import BrowserRequest, BrowserResponse, Fetched, Unreached
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import Authority, Url
from crawler.core.rendering.outcome import Rendered
from crawler.engine.rendering.page_requests import PageRequests, ScriptCache
from crawler.fetch import Http
from crawler.fetch.browser import Browser, BrowserMissing, find_browser
from crawler.fetch.browser.process import list_process_tree
from tests.engine.corpus import CorpusError, unpacked
from tests.engine.static import StaticServer

HEAD = ("one page", "renders", "seconds", "CPU ms", "requests", "MB of all processes, first 20 and last")
SITE_HEAD = ("a site", "pages", "rendered", "seconds", "CPU s")
DEADLINE = timedelta(seconds=20)
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu")
APP = """
const path = location.pathname.split('/')[2];
const app = new Vue({el: '#app', data: {title: '', text: '', links: []},
  template: '<main><h1>{{ title }}</h1><p>{{ text }}</p><a v-for="l in links" :href="l">{{ l }}</a></main>'});
fetch('/data/' + path + '.json').then(r => r.json()).then(d => Object.assign(app, d));
"""
SHELL = (
    "<!doctype html><title>An app</title><div id=app></div><script src=/vue.js></script><script src=/app.js></script>"
)

Render = Callable[[Url], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Rendering:
    """Renders of one kind. memory: MB of the browser's processes after each render."""

    kind: str
    renders: int
    seconds: float
    cpu_s: float
    requests: int
    memory: list[float]

    def row(self) -> tuple[object, ...]:
        per_page = 1000 / self.renders
        first, last = max(self.memory[:20]), self.memory[-1]
        return (
            self.kind,
            self.renders,
            self.seconds / self.renders,
            self.cpu_s * per_page,
            self.requests / self.renders,
            f"{first:.0f} and {last:.0f}",
        )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        find_browser()
        vue = unpacked("libjs-vue") / "usr/share/javascript/vue/vue.min.js"
    except (BrowserMissing, CorpusError) as reason:
        print(reason, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_site(root, vue, pages=given.pages)
        urls = [f"app/{name(n)}/" for n in range(given.pages // 5)]
        kinds = {"plain Playwright": plain_playwright, "recrawl": our_tab}
        done = [asyncio.run(rendered(kind, root, urls, given.renders, opened)) for kind, opened in kinds.items()]
        print(table(HEAD, [each.row() for each in done]))
        print(f"\nrecrawl takes {done[1].cpu_s / done[0].cpu_s:.2f} times the CPU time of plain Playwright\n")
        rows = [crawled(root, mode, home=given.home) for mode in ("never", "auto", "always")]
        print(table(SITE_HEAD, rows))
        avoided = 1 - int(str(rows[1][2])) / max(1, int(str(rows[2][2])))
        print(f"\nauto avoids {avoided:.0%} of the renders; a fifth of the pages needs rendering")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rendering", description=__doc__)
    parser.add_argument(
        "--renders", type=int, default=60, help="renders of each kind; 500 shows whether memory use is constant"
    )
    parser.add_argument("--pages", type=int, default=100, help="number of pages of the crawled site")
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    return parser


def name(n: int) -> str:
    """Return a word for a number."""
    return "".join(SYLLABLES[int(digit)] for digit in f"{n:03}")


def say(n: int, many: int) -> str:
    return " ".join(f"Of {name(n)} it is told that {name(n * 7 + k)} is like {name(k)}." for k in range(many))


def write_site(root: Path, vue: Path, *, pages: int) -> None:
    """Write the site: a fifth of the pages is an application, the rest documentation with a script."""
    shutil.copy(vue, root / "vue.js")
    (root / "app.js").write_text(APP, encoding="utf-8")
    (root / "nice.js").write_text("document.body.classList.add('nice')", encoding="utf-8")
    (root / "data").mkdir()
    (root / "doc").mkdir()
    (root / "index.html").write_text(f"<a href=/app/{name(0)}/>app</a> <a href=/doc/{name(0)}.html>doc</a>")
    apps = pages // 5
    for n in range(apps):
        (root / "app" / name(n)).mkdir(parents=True)
        (root / "app" / name(n) / "index.html").write_text(SHELL, encoding="utf-8")
        links = [f"/app/{name(other)}/" for other in (n + 1, n + 2) if other < apps]
        data = {"title": name(n), "text": say(n, 20), "links": links}
        (root / "data" / f"{name(n)}.json").write_text(json.dumps(data), encoding="utf-8")
    for n in range(pages - apps):
        following = "".join(f"<a href={name((n + k) % (pages - apps))}.html>next</a>" for k in (1, 2))
        text = f"<title>{name(n)}</title><main><p>{say(n, 60)}</p>{following}</main><script src=/nice.js></script>"
        (root / "doc" / f"{name(n)}.html").write_text(text, encoding="utf-8")


@asynccontextmanager
async def plain_playwright(_root: Url) -> AsyncIterator[Render]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_browser(), args=["--blink-settings=imagesEnabled=false", "--disable-gpu"]
        )
        context = await browser.new_context()

        async def render(url: Url) -> str:
            page = await context.new_page()
            await page.goto(url, wait_until="networkidle")
            html = await page.content()
            await page.close()
            return html

        yield render
        await browser.close()


@asynccontextmanager
async def our_tab(root: Url) -> AsyncIterator[Render]:
    async with Http(user_agent="bench", allow_private=True) as http:

        class Asking:
            async def relay(self, request: BrowserRequest, *, is_own: bool) -> BrowserResponse | Unreached | None:  # noqa: ARG002
                return await http.relay(request, deadline=DEADLINE)

        own = Authority(root.split("/")[2])
        requests = PageRequests(Asking(), own_authorities=[own], agent="bench", cache=ScriptCache())
        async with (
            Browser(find_browser(), user_agent="bench") as browser,
            browser.open_tab(requests.handle_request) as tab,
        ):

            async def render(url: Url) -> str:
                document = await http.fetch(url, deadline=DEADLINE)
                assert isinstance(document, Fetched)
                requests.begin_page(url, document, ALLOW_ALL)
                outcome = await tab.render(url)
                return outcome.html.decode() if isinstance(outcome, Rendered) else ""

            yield render


async def rendered(
    kind: str,
    root: Path,
    paths: Sequence[str],
    renders: int,
    opened: Callable[[Url], AbstractAsyncContextManager[Render]],
) -> Rendering:
    """Render the pages in turn and check that each has its text."""
    with StaticServer(root) as server:
        async with opened(Url(f"{server.url}/")) as render:
            await render(Url(f"{server.url}/{paths[0]}"))  # includes the start of the browser
            server.clear()
            began, before, memory = monotonic(), cpu_of_tree(os.getpid()), []
            for n in range(renders):
                text = await render(Url(f"{server.url}/{paths[n % len(paths)]}"))
                assert say(n % len(paths), 2) in text, f"{kind} did not render {paths[n % len(paths)]}"
                memory.append(
                    resident_bytes([each for each in list_process_tree(os.getpid()) if each != os.getpid()]) / 1e6
                )
            seconds, cpu_s = monotonic() - began, cpu_of_tree(os.getpid()) - before
            return Rendering(kind, renders, seconds, cpu_s, server.counts["requests"], memory)


def crawled(root: Path, mode: str, *, home: Path) -> tuple[object, ...]:
    """Crawl the whole site into an empty database and return a table row."""
    recrawl = str(Path(sys.executable).with_name("recrawl"))
    with new_database(home) as url, tempfile.TemporaryDirectory() as folder, StaticServer(root) as server:
        environment = os.environ | {"RECRAWL_DATABASE_URL": url, "RECRAWL_HOME": folder}
        command = [recrawl, "crawl", server.url, "--allow-private", "--delay", "0", "--render", mode, "--json"]
        done = measured(command, environment)
    assert done.code == 0, done.errors
    summary = json.loads(done.output)
    return f"--render {mode}", summary["visits"], summary["rendered"], done.ended - done.began, done.cpu_s
