"""Screenshots are taken on request, kept within bounds, and two of them are compared."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from pydantic import SecretStr

from crawler.app.database import open_configured_database
from crawler.app.registration import get_domain
from crawler.core.http.urls import Url
from crawler.fetch.browser import BrowserMissing, find_browser
from crawler.settings import Settings
from crawler.store.screenshots import MAX_SCREENSHOTS, Screenshot, add_screenshot, list_screenshots, read_picture
from tests.commands import Answer, Recrawl, Site
from tests.server.conftest import Visitor
from tests.server.test_browser import check_usable, page, run_recrawl, tab

__all__ = ["page", "run_recrawl", "tab"]  # fixtures
PRICE = """<title>Mill</title><body style="background: #def"><h1>Rye flour</h1><p id=p></p>
<script>p.append('{} EUR')</script>"""
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_two_screenshots_are_taken_and_compared(site: Site, page: Page, run_recrawl: Recrawl) -> None:
    site.answers["/"] = Answer(PRICE.format("3.50").encode())
    assert run_recrawl("crawl", site.url, "--allow-private", "--delay", "0").code == 0
    base = page.url.rstrip("/")
    page.goto(f"{base}/page?url={quote(site.url)}")
    page.get_by_role("link", name="Screenshots").click()
    expect(page.get_by_text("There is no screenshot of this page yet.")).to_be_visible()
    check_usable(page, "no-screenshots")
    visits = run_recrawl("explain", site.url, "--json").json["visits"]
    page.get_by_role("button", name="Take a screenshot").click()
    expect(page.get_by_role("status")).to_have_text("The screenshot was taken.")
    expect(page.get_by_role("img")).to_have_count(1)

    site.answers["/"] = Answer(PRICE.format("3.70").encode())
    kept = run_recrawl("try", site.url, "--keep-screenshot")
    assert kept.code == 0, kept.err
    page.reload()
    share = re.compile(r"The marked parts are (less than 0\.1|0\.\d+)% of the picture")
    expect(page.get_by_text(share)).to_be_visible()
    expect(page.get_by_role("img")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    sizes = page.evaluate("[...document.images].map(image => [image.naturalWidth, image.naturalHeight])")
    assert sizes == [[1280, 900], [1280, 900]]
    check_usable(page, "screenshots")
    page.get_by_role("button", name="Compare screenshots").click()
    expect(page.get_by_text(share)).to_be_visible()
    assert run_recrawl("explain", site.url, "--json").json["visits"] == visits, "a screenshot records no visit"


def test_why_no_screenshot_can_be_taken_is_shown(crawled: Site, visitor: Visitor, recrawl: Recrawl) -> None:
    try:
        find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    crawled.answers["/one"] = Answer(b"plain", headers=(("Content-Type", "text/plain"),))
    seen = visitor.send("/screenshots/take", url=f"{crawled.url}one", back="/domains")
    assert "no screenshot could be taken: it is not a web page" in seen.words
    lost = recrawl("try", f"{crawled.url}one", "--keep-screenshot")
    assert lost.code != 0
    assert "no screenshot could be taken: it is not a web page" in lost.err
    url = quote(crawled.url)
    for path in (f"/screenshots?url={url}&from=x", f"/screenshots/picture?url={url}&at=2026-01-01"):
        assert visitor.get(path).status == 400, path
    missing_time = quote(AT.isoformat())
    assert "there is no screenshot" in visitor.get(f"/screenshots/picture?url={url}&at={missing_time}").words
    assert Visitor(visitor.address, "").get(f"/screenshots/picture?url={url}&at={missing_time}").status == 401


async def test_screenshots_that_cannot_be_compared_are_shown(
    crawled: Site, visitor: Visitor, database_url: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, database_url=SecretStr(database_url), PREFECT_API_URL=None)
    async with open_configured_database(settings, connections=1) as db:
        domain = await get_domain(db, crawled.name)
        for n in range(2):
            taken = Screenshot(AT + timedelta(days=n), version=1, width=2, height=3, picture_bytes=1)
            await add_screenshot(db, domain, Url(crawled.url), taken, b"no picture")
    seen = visitor.get(f"/screenshots?url={quote(crawled.url)}")
    assert (seen.status, seen.text.count("<img")) == (200, 2)
    assert "cannot be compared" in seen.words


async def test_oldest_screenshots_are_deleted_and_all_with_their_domain(
    crawled: Site, run_recrawl: Recrawl, database_url: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, database_url=SecretStr(database_url), PREFECT_API_URL=None)
    async with open_configured_database(settings, connections=1) as db:
        domain, url = await get_domain(db, crawled.name), Url(crawled.url)
        for n in range(MAX_SCREENSHOTS + 3):
            taken = Screenshot(AT + timedelta(days=n), version=1, width=2, height=3, picture_bytes=1)
            await add_screenshot(db, domain, url, taken, bytes([n]))
            await add_screenshot(db, domain, Url(f"{crawled.url}one"), taken, b"other")
        found = await list_screenshots(db, domain, url)
        assert [each.at for each in found] == [AT + timedelta(days=n) for n in range(MAX_SCREENSHOTS + 2, 2, -1)]
        assert await read_picture(db, domain, url, found[0].at) == bytes([MAX_SCREENSHOTS + 2])
        assert await read_picture(db, domain, url, AT) is None
        assert run_recrawl("domains", "remove", crawled.name, "--yes").code == 0
        assert await list_screenshots(db, domain, url) == []
