"""Stored pages in a frame: changes marked in place, elements to pick, and nothing of the page that acts."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

from playwright.sync_api import Dialog, Page, Route, expect

from crawler.server.access import PICK_SANDBOX, build_frame_headers
from tests.commands import Answer, Recrawl, Site
from tests.hostile_html import ATTACKS
from tests.server.test_browser import check_usable, page, run_recrawl, tab

__all__ = ["page", "run_recrawl", "tab"]  # fixtures
STORED = "http://127.0.0.1:9/stored"
ADD_FRAME = """([address, sandbox]) => {
    const frame = document.createElement('iframe');
    frame.setAttribute('sandbox', sandbox);
    frame.src = address;
    document.body.append(frame);
}"""
HTML = (("Content-Type", "text/html; charset=utf-8"),)
SHOP = """<title>Mill shop</title><nav><ul><li><a href=/>Home</a></li><li><a href=/help>Help</a></li></ul></nav>
<main><h1>Rye flour</h1><p>Ground <em>every</em> {day} by the river.</p><ul><li>Stock: {stock} bags</li></ul>
<div class=box><p class=price>{price} EUR</p><p class=clock>It is {clock} now.</p></div></main>"""


def serve_shop(site: Site, **values: str) -> None:
    site.answers["/"] = Answer(SHOP.format(**values).encode(), headers=HTML)


def recrawl_site(site: Site, run: Recrawl) -> None:
    assert run("refresh", site.name).code == 0
    assert run("crawl", site.name).code == 0


def test_changes_are_marked_in_the_page_and_a_clock_is_ignored_by_clicking_it(
    site: Site, page: Page, run_recrawl: Recrawl
) -> None:
    serve_shop(site, day="Monday", stock="40", price="3.50", clock="10:15:30")
    assert run_recrawl("crawl", site.url, "--allow-private").code == 0
    serve_shop(site, day="Tuesday", stock="41", price="3.70", clock="11:42:07")
    recrawl_site(site, run_recrawl)

    page.goto(f"{page.url.rstrip('/')}/page?url={quote(site.url)}")
    page.get_by_role("link", name="In the page").click()
    frame = page.frame_locator("iframe[title='Version 2 with its changes']")
    expect(frame.locator("ins")).to_have_text(["Tuesday", "41", "3.70", "11:42:07"])
    expect(frame.locator("p del").first).to_have_text("Monday")
    expect(frame.locator("[href], script, img, form")).to_have_count(0)
    check_usable(page, "changes-in-page")
    page.get_by_role("link", name="Inline").click()
    for name in ("Changes only", "Whole page", "With context"):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("link", name=name)).to_have_attribute("aria-current", "true")
    page.get_by_text("Page without its styles and images").click()
    expect(page.frame_locator("iframe[title='Version 2']").get_by_role("heading")).to_have_text("Rye flour")
    expect(page.frame_locator("iframe[title='Version 2']").locator("ins")).to_have_count(0)

    page.get_by_role("link", name="Ignore or watch an element").click()
    check_usable(page, "pick")
    page.frame_locator("iframe.pick").get_by_role("link", name="It is 11:42:07 now.").click()
    expect(page.locator(".picked")).to_have_text("It is 11:42:07 now.")
    expect(page.get_by_label("body > main > div.box > p.clock")).to_be_checked()
    check_usable(page, "picked")
    page.get_by_label("Ignore this element of the page").check()
    page.get_by_role("button", name="Preview the rule").first.click()
    expect(page.get_by_label("CSS selector")).to_have_value("body > main > div.box > p.clock")
    expect(page.locator(".left-out")).to_have_text(["It is 11:42:07 now."])
    check_usable(page, "picked-preview")
    page.get_by_role("button", name="Preview again").click()
    expect(page.locator(".left-out")).to_have_text(["It is 11:42:07 now."])
    page.get_by_role("button", name="Add this rule").click()
    expect(page.get_by_role("status")).to_contain_text("The rule was added")
    (rule,) = run_recrawl("rules", "list", site.name, "--json").json["rules"]
    assert rule["ignore"] == ["body > main > div.box > p.clock"]


def test_what_is_around_a_clicked_element_can_be_watched(site: Site, page: Page, run_recrawl: Recrawl) -> None:
    serve_shop(site, day="Monday", stock="40", price="3.50", clock="10:15:30")
    assert run_recrawl("crawl", site.url, "--allow-private").code == 0
    page.goto(f"{page.url.rstrip('/')}/blocks?url={quote(site.url)}")
    link = page.frame_locator("iframe.pick").get_by_role("link", name="3.50 EUR")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".picked")).to_have_text("3.50 EUR")
    page.get_by_role("radio", name="body > main > div.box around it").check()
    page.get_by_label("Watch only this element of the page").check()
    page.get_by_label("Only this page").first.check()
    page.get_by_role("button", name="Preview the rule").first.click()
    expect(page.locator(".blocks li .plain:not(:has(.left-out))")).to_have_text(["3.50 EUR", "It is 10:15:30 now."])


@contextmanager
def attacker() -> Iterator[tuple[str, list[str]]]:
    """Serve anything, and note what was requested."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_POST = do_GET  # noqa: N815  the name is that of the base class

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requested
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def note_dialogs(tab: Page) -> list[str]:
    """Return a list to which what scripts say is added."""
    messages: list[str] = []

    def note(dialog: Dialog) -> None:
        messages.append(dialog.message)
        dialog.dismiss()

    tab.on("dialog", note)
    return messages


def test_nothing_of_a_stored_page_runs_or_is_requested(site: Site, page: Page, run_recrawl: Recrawl) -> None:
    dialogs = note_dialogs(page)
    with attacker() as (origin, requested):
        paths = [f"/{name}" for name in ATTACKS]
        site.page("/", *paths, text="The mill by the river opens at nine and sells flour to whoever asks.")
        for season in ("summer", "winter"):
            for path, attack in zip(paths, ATTACKS.values(), strict=True):
                text = (
                    f"<title>{path}</title><p>Rye is sown in {season} {path}.</p>{attack.format(origin=origin)}<p>End."
                )
                site.answers[path] = Answer(text.encode(), headers=HTML)
            assert run_recrawl("crawl", site.url, "--allow-private", "--render", "never").code == 0
            assert run_recrawl("refresh", site.name).code == 0
        assert requested == []
        base, crawled = page.url.rstrip("/"), len(site.asked)
        page.goto(base)
        shown = 0
        for n, path in enumerate(paths):
            url = quote(f"{site.url}{path[1:]}")
            address, sandbox = (f"/page/pick?url={url}", PICK_SANDBOX) if n % 2 else (f"/page/view?url={url}", "")
            page.evaluate(ADD_FRAME, [address, sandbox])
            frame = page.frame_locator("iframe").nth(n)
            expect(frame.locator("body")).to_contain_text(re.compile("Rye is sown in|this version does not exist"))
            shown += "Rye" in frame.locator("body").inner_text()
        assert shown >= len(paths) - 3, "an instant refresh is a move, which stores no version"
        page.wait_for_load_state("networkidle")
        assert page.url.startswith(base)
        assert requested == []
        assert len(site.asked) == crawled
        assert dialogs == []


def test_frame_policy_alone_stops_scripts_and_requests(tab: Page) -> None:
    """Each of the two protections suffices: here the page is not sanitized."""
    dialogs = note_dialogs(tab)
    with attacker() as (origin, requested):
        for sandbox in ("", PICK_SANDBOX):
            headers = build_frame_headers(style_hash="none", sandbox=sandbox)
            for attack in ATTACKS.values():
                body = f"<body><p>shown</p>{attack.format(origin=origin)}"
                tab.unroute_all()
                tab.route(STORED, respond_with(body, headers))
                tab.goto(STORED)
                expect(tab.get_by_text("shown", exact=True)).to_be_visible()
        assert requested == []
        assert dialogs == []


def respond_with(body: str, headers: Mapping[str, str]) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=body, headers={**headers, "content-type": "text/html"})
