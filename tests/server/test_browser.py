"""The web UI in a real browser, from adding the first site to ignoring a clock and setting a freshness target."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect, sync_playwright

from crawler.fetch.browser import BrowserMissing, find_browser
from crawler.store.report.freshness import MAX_SMALL_PAGES
from tests.cli.test_notify import hooking
from tests.commands import Done, Recrawl, Site, command
from tests.patience import PATIENCE_S
from tests.server.conftest import Visitor

MAX_SCREENS = 3
SEVERE = {"serious", "critical"}
PICTURES = os.environ.get("RECRAWL_PICTURES")  # a folder for screenshots of the pages


@pytest.fixture
def tab() -> Iterator[Page]:
    """Open a tab; skip the test without a browser."""
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        tab.set_default_timeout(PATIENCE_S * 1000)
        yield tab
        browser.close()


@pytest.fixture
def page(tab: Page, anonymous: Visitor) -> Iterator[Page]:
    """Log in; check at the end that there were no errors and no requests to other sites."""
    messages: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    requested: list[str] = []
    tab.on("request", lambda request: requested.append(request.url))
    tab.goto(anonymous.login_link)
    yield tab
    assert all(url.startswith(anonymous.address) for url in requested), "the page requested another site"
    rejected = [each for each in messages if "status of 400" in each]  # a form that is shown again
    assert messages == rejected, "the browser reports errors, such as violations of the content security policy"


@pytest.fixture
def run_recrawl(database_url: str, tmp_path: Path) -> Recrawl:
    """Run the command as a process, because the event loop of the browser runs in this one."""

    def run(*arguments: str) -> Done:
        return command(*arguments, database_url=database_url, home=tmp_path)

    return run


def list_violations(tab: Page) -> list[dict[str, Any]]:
    """Return what axe finds on a page. It is loaded once per page, and hands over nothing else; both save seconds."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(AXE_SCRIPT)
    run = "axe.run({resultTypes: ['violations'], iframes: false}).then(all => all.violations)"
    found: list[dict[str, Any]] = tab.evaluate(run)
    return found


def check_usable(tab: Page, name: str) -> None:
    """Check that a page is accessible and fits, in light on a wide screen and in dark on a phone."""
    for scheme, width in (("light", 1200), ("dark", 360)):
        tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        tab.set_viewport_size({"width": width, "height": 900})
        found = [each for each in list_violations(tab) if each["impact"] in SEVERE]
        violations = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
        assert not violations, f"{name}, {scheme}, {width}"
        height = tab.evaluate("document.documentElement.scrollHeight")
        assert height <= MAX_SCREENS * 900, f"{name} is {height} pixels long, {scheme}, {width}"
        excess = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert excess <= 0, f"{name} is wider than {width} pixels"
        assert not tab.evaluate("[...document.querySelectorAll('.rows')].some(e => e.scrollWidth > e.clientWidth)"), (
            name
        )
        if PICTURES:
            tab.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{width}.png", full_page=True)
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size({"width": 1200, "height": 900})


def test_new_user_adds_site_sees_change_ignores_clock_and_sets_target(
    site: Site, page: Page, run_recrawl: Recrawl
) -> None:
    site.page("/", "/mill", "/oven", text="The mill by the river opens at nine and sells flour to whoever asks.")
    site.page("/mill", "/", text="Rye is sown in autumn.</p><p>It is cut in July.</p><p class=clock>It is 10:15:30 now")
    site.page("/oven", "/", text="Bread keeps for a week in a linen bag, longer where the pantry is cold.")
    check_usable(page, "empty")

    page.get_by_label("Web address").fill(site.url)
    page.get_by_label("Allow private addresses").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text(f"{site.name} is registered")
    expect(page.get_by_role("heading", level=1)).to_have_text(site.name)
    assert run_recrawl("crawl", site.name).code == 0  # no local stack runs here that would crawl it

    page.reload()
    expect(page.locator("dl.figures")).to_contain_text("Pages fetched 3", use_inner_text=True)
    site.page(
        "/mill", "/", text="Rye is sown in autumn.</p><p>It is cut in August.</p><p class=clock>It is 11:42:07 now"
    )
    page.get_by_text("Revisit now").first.click()
    page.get_by_role("button", name="Revisit now").click()
    expect(page.get_by_role("status")).to_contain_text("3 pages whose URL starts with")
    assert run_recrawl("crawl", site.name).code == 0

    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Changes").click()
    change = page.locator(".change").first
    expect(change.locator("del").filter(has_text="July").first).to_have_text("July")
    expect(change.locator("ins").filter(has_text="August").first).to_have_text("August")
    check_usable(page, "changes")
    change.get_by_role("link", name="/mill").first.click()
    expect(page.get_by_role("heading", name="Changes from version 1 to version 2")).to_be_visible()
    page.get_by_text("Response headers").click()
    expect(page.locator("details dl.facts")).to_contain_text("text/html")
    check_usable(page, "page")
    page.get_by_role("link", name="Side by side").click()
    expect(page.locator(".sides")).to_contain_text("It is cut in July.")
    check_usable(page, "sides")

    page.get_by_role("link", name="Ignore or watch an element").click()
    check_usable(page, "blocks")
    page.get_by_text("Pick from a list of all texts").click()
    check_usable(page, "texts")
    page.get_by_label("It is 11:42:07 now").check()
    page.get_by_role("button", name="Preview the rule").click()
    expect(page.get_by_label("Regular expression (RE2)")).to_have_value("It is [0-9]+:[0-9]+:[0-9]+ now")
    expect(page.locator(".left-out")).to_have_text(["It is 11:42:07 now"])
    check_usable(page, "preview")
    page.get_by_role("button", name="Add this rule").click()
    expect(page.get_by_role("status")).to_contain_text("The rule was added")
    site.page(
        "/mill", "/", text="Rye is sown in autumn.</p><p>It is cut in August.</p><p class=clock>It is 12:01:59 now"
    )
    page.get_by_role("button", name="Test fetch (not recorded)").click()
    expect(page.get_by_text("A crawl would record: only ignored differences")).to_be_visible()
    check_usable(page, "try")

    page.goto(page.url.partition("/try")[0])
    expect(page.get_by_role("heading", name="1 new change")).to_be_visible()
    check_usable(page, "overview")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("heading", name="Recent changes")).to_be_visible()
    expect(page.get_by_text("new", exact=True)).to_have_count(0)
    page.get_by_role("link", name=site.name).click()
    tabs = page.get_by_label("Parts of this domain")
    for tab in ("Pages", "Freshness", "Traffic", "Rules", "Settings"):
        tabs.get_by_role("link", name=tab).click()
        check_usable(page, tab.lower())
    page.get_by_label("Freshness target").fill("97%")
    page.get_by_label("Maximum age").fill("soon")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("'soon' is not a time span")).to_be_visible()
    expect(page.get_by_label("Freshness target")).to_have_value("97%")
    check_usable(page, "rejected")
    page.get_by_label("Maximum age").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Freshness target: default -> 97% fresh")
    expect(page.locator("dl.figures")).to_contain_text("target 97%")
    page.get_by_role("link", name="Scope").click()
    page.get_by_label("Browser rendering").select_option("never")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(re.compile("Browser rendering: .+ -> never"))
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Domains").click()
    expect(page.locator("tbody tr")).to_contain_text("97%")
    check_usable(page, "domains")
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="System").click()
    expect(page.get_by_text("Not built yet. The first search builds it.")).to_be_visible()
    check_usable(page, "system")


def test_pages_are_found_selected_and_searched(crawled: Site, page: Page, run_recrawl: Recrawl, tmp_path: Path) -> None:
    page.goto(page.url)
    page.get_by_role("link", name=crawled.name).click()
    page.get_by_label("Parts of this domain").get_by_role("link", name="Pages").click()
    page.get_by_role("searchbox", name="Filter pages").fill("o")
    page.get_by_label("Sort by").select_option("url")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody .path")).to_have_text(["/one", "/two"])
    page.get_by_label("Select /two").check()
    page.get_by_role("button", name="Boost").click()
    expect(page.get_by_role("status")).to_contain_text("1 page is now 4 times as important")
    expect(page.locator("tbody .path")).to_have_text(["/one", "/two"])
    page.get_by_label("Select /one").check()
    page.get_by_label("Select /two").check()
    page.get_by_role("button", name="Revisit now").last.click()
    expect(page.get_by_role("status")).to_contain_text("2 pages are due now")
    page.get_by_label("Parts of this domain").get_by_role("link", name="Rules").click()
    expect(page.locator("tbody tr")).to_contain_text("/two$")

    page.get_by_role("searchbox", name="Search pages").fill("linen bag")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("The index of page texts is being built.")).to_be_visible()
    check_usable(page, "search-without-index")
    assert run_recrawl("sync", str(tmp_path / "search" / "pages.sqlite")).code == 0
    page.get_by_role("link", name="Search again").click()
    expect(page.get_by_role("heading", name="In the text")).to_be_visible()
    expect(page.locator(".results strong")).to_have_text(["linen", "bag"])
    check_usable(page, "search")
    page.locator(".results a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("/two")


def test_price_is_tracked_and_notified_below_forty(site: Site, page: Page, run_recrawl: Recrawl) -> None:
    site.page("/", "/kettle", text="The shop by the river opens at nine and sells kettles to whoever asks.")
    kettle = "It boils a liter of water in two minutes, whistles when it is done, and keeps the water hot for an hour."
    site.page("/kettle", "/", text=f"{kettle}</p><p class=price>44.90 EUR")
    assert run_recrawl("crawl", site.url, "--allow-private").code == 0
    page.goto(f"{page.url}page?url={site.url}kettle")

    page.get_by_role("link", name="Track a value").click()
    check_usable(page, "value-form")
    page.get_by_label("Source").fill(".price")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("status")).to_contain_text("The stored version of the page has: 44.90 EUR")
    check_usable(page, "value-preview")
    page.get_by_role("button", name="Track this value").click()
    expect(page.get_by_role("status")).to_contain_text("The value price is read from now on")
    assert run_recrawl("crawl", site.name).code == 0

    page.reload()
    page.get_by_role("link", name="Notify me").click()
    with hooking() as hook:
        page.get_by_label("Target").fill(hook.url)
        page.get_by_label("Private addresses").select_option("yes")
        page.get_by_label("Text or number").fill("40")
        page.get_by_role("button", name="Add this subscription").click()
        expect(page.get_by_role("status")).to_contain_text(f"changes of {site.url}kettle: when price is below 40")
        for price in ("39.90", "39.50"):
            site.page("/kettle", "/", text=f"{kettle}</p><p class=price>{price} EUR")
            assert run_recrawl("refresh", site.name).code == 0
            run_recrawl("crawl", site.name)
        assert [each["changes"][0]["value"]["now"] for each in hook.got] == [39.9]
    page.goto(f"{page.url.partition('/notifications')[0]}/page?url={site.url}kettle")
    expect(page.get_by_text("39.50 EUR since")).to_contain_text("before that 39.90 EUR")
    check_usable(page, "value")
    page.get_by_text("3 readings as a table").click()
    expect(page.get_by_role("group", name="Readings of price").locator("tbody tr")).to_have_count(3)


@pytest.mark.soak
def test_large_domain_is_shown_as_being_counted(crawled: Site, page: Page, database_url: str) -> None:
    with psycopg.connect(database_url) as blocker:
        blocker.execute("LOCK TABLE domain_figures IN EXCLUSIVE MODE")  # blocks the count
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE domain_state SET tracked = %s", (MAX_SMALL_PAGES + 1,))
        page.reload()
        expect(page.locator("tbody tr")).to_contain_text("being counted")
        check_usable(page, "counted-home")
        page.get_by_role("link", name=crawled.name).first.click()
        expect(page.locator(".note")).to_contain_text(re.compile("Counting .* pages for the first time"))
        check_usable(page, "counted-domain")
    page.get_by_role("link", name="Reload").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(crawled.name)


@pytest.mark.soak
def test_web_ui_can_be_used_by_keyboard(crawled: Site, page: Page) -> None:
    page.goto(page.url)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "Filter domains by name")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.locator(":focus").inner_text() == crawled.name:
            break
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text(f"{crawled.name} is paused.")


def test_subscription_is_added_tested_and_its_dead_letter_sent_again(
    site: Site, page: Page, run_recrawl: Recrawl, database_url: str
) -> None:
    flour = "The mill by the river opens at nine and sells flour to whoever asks for it on a"
    site.page("/", text=f"{flour} Monday.")
    assert run_recrawl("crawl", site.url, "--allow-private").code == 0
    page.get_by_role("link", name="Notifications", exact=True).click()
    check_usable(page, "notifications-empty")

    with hooking() as hook:
        page.get_by_role("link", name="Add a subscription").click()
        page.get_by_label("Target").fill(hook.url)
        page.get_by_label("Domain", exact=True).fill(site.name)
        page.get_by_text("Digest and quiet hours").click()
        page.get_by_label("Digest", exact=True).fill("hourly")
        page.get_by_label("hint (change signal)").check()
        page.get_by_role("button", name="Add this subscription").click()
        expect(page.locator(".setting.bad")).to_contain_text(
            "Messages to 127.0.0.1 are not allowed, since it is a private address"
        )
        expect(page.get_by_label("Domain", exact=True)).to_have_value(site.name)
        expect(page.get_by_label("hint (change signal)")).to_be_checked()
        check_usable(page, "subscription-form-rejected")
        expect(page.get_by_label("Target")).to_have_value(hook.url)
        page.get_by_label("Private addresses").select_option("yes")
        page.get_by_role("button", name="Add this subscription").click()
        expect(page.locator(".setting.bad")).to_contain_text("'hourly' is not a digest")
        expect(page.get_by_label("Target")).to_have_value(hook.url)
        page.get_by_label("Digest", exact=True).fill("")
        page.get_by_role("button", name="Add this subscription").click()
        expect(page.get_by_role("status")).to_contain_text(f"{hook.url} receives changes of {site.name}")

        page.get_by_role("button", name="Send a test message").click()
        expect(page.get_by_role("status")).to_contain_text("A test message was sent")
        hook.status = 400
        page.get_by_role("button", name="Send a test message").click()
        expect(page.get_by_role("status")).to_contain_text("failed: status 400")

        site.page("/", text=f"{flour} Friday.")
        assert run_recrawl("refresh", site.name).code == 0
        run_recrawl("crawl", site.name)
        page.reload()
        expect(page.locator("dl.facts")).to_contain_text("a message was rejected: status 400; next try")
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE message SET tries = 15, next_try_at = created_at")
        page.get_by_role("button", name="Send due messages").click()
        expect(page.get_by_role("status")).to_contain_text("The delivery failed: status 400")
        expect(page.get_by_role("group", name="Dead letters")).to_contain_text("status 400")
        check_usable(page, "subscription")
        page.get_by_role("link", name="Notifications", exact=True).last.click()
        check_usable(page, "notifications")
        page.get_by_role("cell", name="1", exact=True).last.get_by_role("link").click()

        hook.status = 200
        page.get_by_role("button", name="Send again").click()
        expect(page.get_by_role("status")).to_contain_text("1 dead letter queued again. 1 change sent in 1 message")
        expect(page.get_by_role("heading", name="0 dead letters")).to_be_visible()
        assert hook.got[-1]["changes"][0]["url"] == site.url

        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("paused")
        check_usable(page, "subscription-paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("working")
        page.get_by_role("link", name="Edit").click()
        expect(page.get_by_label("hint (change signal)")).to_be_checked()
        page.get_by_label("URL prefix").fill(f"{site.url}guide/")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("dl.facts")).to_contain_text(f"changes of {site.url}guide/*")
        page.get_by_text("Remove this subscription").click()
        page.get_by_role("button", name="Remove the subscription").click()
        expect(page.get_by_text("No subscriptions yet")).to_be_visible()


def test_administrator_gives_a_colleague_read_only_access(crawled: Site, page: Page, anonymous: Visitor) -> None:
    page.get_by_role("link", name="System", exact=True).click()
    page.get_by_role("link", name="Users", exact=True).click()
    check_usable(page, "users-empty")
    page.get_by_label("Name or email address").fill("alice@example.com")
    page.get_by_role("button", name="Add user").click()
    message = page.get_by_role("status")
    expect(message).to_contain_text("alice@example.com was added. This link is shown once")
    check_usable(page, "users")
    link = re.search(r"http://\S+", message.inner_text())
    assert link is not None
    page.get_by_role("link", name="Access tokens").click()
    page.get_by_label("Name", exact=True).fill("nightly report")
    page.get_by_role("button", name="Add token").click()
    expect(page.get_by_role("status")).to_contain_text("It is shown once: recrawl_")
    check_usable(page, "tokens")
    page.get_by_role("link", name="Log of actions").click()
    expect(page.get_by_role("group", name="Actions")).to_contain_text("add token")
    check_usable(page, "actions")
    page.get_by_label("Account of local").click()
    check_usable(page, "account-menu")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="You are not logged in")).to_be_visible()
    check_usable(page, "login")

    page.goto(link[0])
    check_usable(page, "invitation")
    page.get_by_label("New password", exact=True).fill("a mill by the river")
    page.get_by_label("New password again").fill("a mill by the river")
    page.get_by_role("button", name="Set the password and log in").click()
    page.get_by_role("link", name=crawled.name).first.click()
    expect(page.get_by_role("heading", name=crawled.name)).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_label("Budget per day")).to_be_disabled()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    check_usable(page, "settings-of-a-viewer")
    page.get_by_label("Account of alice@example.com").click()
    page.get_by_role("link", name="Your account").click()
    check_usable(page, "account")
    page.get_by_label("Account of alice@example.com").click()
    page.get_by_role("button", name="Log out").click()

    page.get_by_label("Name").fill("Alice@example.com")
    page.get_by_label("Password").fill("a mill by the river")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="1 domain")).to_be_visible()
    assert page.url.startswith(anonymous.address)
