"""A new user of a running stack, only in the browser: a site, its first crawl, and its settings."""

import functools
import http.server
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from crawler.fetch.browser import BrowserMissing, find_browser
from crawler.runtime.host_check import LOGIN_PATH
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.stack import Stack
from crawler.runtime.web_ui import create_login_link
from crawler.settings import Settings
from tests.patience import PATIENCE_S, SLOW, until

pytestmark = [pytest.mark.xdist_group("stack"), SLOW]

TEXTS = {
    "index": "The mill by the river opens at nine and sells flour to whoever asks.",
    "mill": "Rye is sown in autumn.</p><p>It is cut in July.</p><p class=clock>It is 10:15:30 now",
    "oven": "Bread keeps for a week in a linen bag, longer where the pantry is warm.",
}


@dataclass(slots=True)
class Folder:
    """Files that a server serves. url: the URL of the server."""

    place: Path
    url: str = ""

    @property
    def name(self) -> str:
        return self.url.removeprefix("http://").rstrip("/")

    def write(self, name: str, text: str) -> None:
        links = "".join(f"<a href=/{each}.html>{each}</a> " for each in TEXTS)
        file = self.place / f"{name}.html"
        is_new = not file.exists()
        file.write_text(f"<title>{name}</title><h1>{name}</h1><p>{text}</p><p>{links}</p>")
        if is_new:  # an hour ago: a date has no more than seconds, and the next change comes in one of its own
            os.utime(file, (time.time() - 3600,) * 2)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path / "site")
    folder.place.mkdir()
    for name, text in TEXTS.items():
        folder.write(name, text)
    serves = functools.partial(Handler, directory=str(folder.place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serves) as server:
        folder.url = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder
        server.shutdown()


@pytest.fixture
def settings() -> Iterator[Settings]:
    home = Path(tempfile.mkdtemp(prefix="recrawl-newcomer-"))
    home.chmod(0o755)
    yield Settings(home=home, database_url=None, PREFECT_API_URL=None)
    shutil.rmtree(home)


@pytest.fixture
def stack(settings: Settings) -> Iterator[Stack]:
    yield start_stack(settings, report=print)
    stop_stack(settings, report=print)


@pytest.fixture
def page(stack: Stack, tmp_path: Path) -> Iterator[Page]:  # after the stack, because it runs an event loop here
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(PATIENCE_S * 1000)
        yield page
        page.screenshot(path=tmp_path / "last.png")
        browser.close()


def completes(page: Page, *, auth: str | None = None) -> None:
    """Follow the link to a run into the Prefect UI, and wait there until it is completed.

    auth: the auth string that Prefect asks for; None if the browser has sent it before.
    """
    pages, gone_through = page.url, []
    page.on("framenavigated", lambda frame: gone_through.append(frame.url))
    page.get_by_role("status").get_by_role("link").click()
    if auth is not None:
        page.get_by_label("Auth string").fill(auth)
        page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/runs/flow-run/*")
    page.get_by_text("Completed", exact=True).first.wait_for()
    assert not any("/login" in url for url in gone_through)  # Prefect's own
    assert not any("Basic" in url or (auth or "recrawl:") in url for url in gone_through)
    page.goto(pages)


def shows(page: Page, words: str) -> None:
    """Reload until the figures of the page contain the text."""

    def is_there() -> bool:
        page.reload()
        return words in " ".join(page.locator("dl.figures").inner_text().split())

    until(is_there)


@pytest.mark.soak
def test_a_new_user_with_a_stack_needs_nothing_but_a_browser(
    settings: Settings, stack: Stack, folder: Folder, page: Page
) -> None:
    entrance = create_login_link(settings.home)
    assert entrance is not None
    page.goto(entrance)
    page.get_by_label("Web address").fill(folder.url)
    page.get_by_label("Allow private addresses").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("its first crawl has started")
    completes(page, auth=stack.api.auth)
    shows(page, "Pages fetched 4")

    folder.write("mill", TEXTS["mill"].replace("July", "August").replace("10:15:30", "11:42:07"))
    folder.write("oven", TEXTS["oven"].replace("warm", "cold"))
    page.get_by_text("Revisit now").first.click()
    page.get_by_role("button", name="Revisit now").click()
    expect(page.get_by_role("status")).to_contain_text("the local stack fetches them")
    completes(page)

    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.locator(".change")).to_have_count(2)
    expect(page.locator(".change del").filter(has_text="July")).to_have_text("July")
    expect(page.locator(".change ins").filter(has_text="August")).to_have_text("August")
    expect(page.locator(".change del").filter(has_text="warm")).to_have_text("warm")
    page.locator(".change").filter(has_text="August").get_by_role("link", name="mill").first.click()
    page.get_by_role("link", name="Ignore or watch an element").click()
    page.get_by_label("It is 11:42:07 now").check()
    page.get_by_role("button", name="Preview the rule").click()
    page.get_by_role("button", name="Add this rule").click()
    expect(page.get_by_role("status")).to_contain_text("The rule was added")

    folder.write("mill", TEXTS["mill"].replace("July", "August").replace("10:15:30", "12:30:00"))
    page.goto(page.url.partition("/page")[0] + "/")
    page.get_by_role("link", name=folder.name).first.click()
    page.get_by_text("Budget and freshness target").click()
    page.get_by_label("Freshness target").fill("97%")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".figure")).to_contain_text("target 97%")
    page.get_by_text("Revisit now").first.click()
    page.get_by_role("button", name="Revisit now").click()
    completes(page)
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.locator(".change")).to_have_count(2)  # the clock is not a change


@pytest.mark.soak
def test_an_outdated_auth_string_is_asked_for_again(
    settings: Settings, stack: Stack, folder: Folder, page: Page
) -> None:
    entrance = create_login_link(settings.home)
    assert entrance is not None
    page.goto(f"{stack.api.ui_url}{LOGIN_PATH}")
    page.evaluate("localStorage.setItem('prefect-password', btoa('recrawl:of another day'))")
    page.goto(entrance)
    page.get_by_label("Web address").fill(folder.url)
    page.get_by_label("Allow private addresses").check()
    page.get_by_role("button", name="Add").click()
    completes(page, auth=stack.api.auth)
