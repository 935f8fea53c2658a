"""Ten tasks of somebody who lives in the web UI, each in a real browser, on one server and one crawled site."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from crawler.fetch.browser import BrowserMissing, find_browser
from crawler.runtime.machine import get_search_file
from tests.cli.test_notify import Hook, hooking
from tests.commands import Answer, Recrawl, Site
from tests.databases import execute
from tests.patience import PATIENCE_S
from tests.server.conftest import Visitor

GRAIN = "Rye is sown in autumn and cut in"
CLOCK = "Now it is"


def write_pages(site: Site, *, month: str, clock: str) -> None:
    site.page("/", "/mill", "/oven", "/guide/rye", "/private/plan", text="The mill by the river opens at nine.")
    site.page("/mill", "/", text=f"{CLOCK} {clock}")
    site.page("/oven", "/", text="Bread keeps for a week in a linen bag, longer where the pantry is cold.")
    site.page("/guide/rye", "/", text=f"{GRAIN} {month}, before the wheat of the lower fields is ripe.")
    site.page("/private/plan", text="Nobody reads this.")
    site.answers["/robots.txt"] = Answer(b"User-agent: *\nDisallow: /private/")


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with hooking() as found:
        yield found


@pytest.fixture(scope="module")
def site(shared_site: Site, shared_database_url: str, shared_home: Path, read: Recrawl, hook: Hook) -> Site:
    """Return a site that was crawled before and after an edit, with a dead letter about it and a search index.

    The commands run in this process, so this comes before the browser, whose event loop runs here, too.
    """
    write_pages(shared_site, month="July", clock="10:15:30")
    assert read("crawl", shared_site.url, "--allow-private", "--delay", "0").code == 0
    assert read("notify", "add", hook.url, "--page", f"{shared_site.url}guide/rye", "--allow-private").code == 0
    write_pages(shared_site, month="August", clock="11:42:07")
    hook.status = 400
    assert read("refresh", shared_site.name).code == 0
    read("crawl", shared_site.name)
    execute(shared_database_url, "UPDATE message SET state = 'dead'")
    hook.status = 200
    assert read("sync", str(get_search_file(shared_home))).code == 0
    return shared_site


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        program = find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser: Browser, shared_anonymous: Visitor) -> Page:
    """Return a tab that is logged in."""
    tab = browser.new_page()
    tab.set_default_timeout(PATIENCE_S * 1000)
    tab.goto(shared_anonymous.login_link)
    return tab


@pytest.fixture
def page(site: Site, tab: Page, shared_anonymous: Visitor) -> Page:
    """Return the tab with the overview, where each task begins."""
    assert site.name
    tab.goto(shared_anonymous.address)
    return tab


def open_domain(page: Page, site: Site, part: str) -> None:
    page.get_by_role("link", name=site.name).first.click()
    page.get_by_label("Parts of this domain").get_by_role("link", name=part).click()


def open_main(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name=name).click()


def test_1_add_twenty_sites_from_a_list(page: Page, site: Site) -> None:
    names = [f"shop{n}.example" for n in range(19)]
    open_main(page, "Domains")
    page.get_by_text("Add many from a list").click()
    page.get_by_label("One domain or URL per line").fill("\n".join([*names, f"{site.url}new", "ftp://wrong.example"]))
    page.get_by_label("Do not request the sites now").check()
    page.get_by_role("button", name="Add all").click()

    expect(page.get_by_role("status")).to_contain_text("19 domains registered; 1 page added; ftp://wrong.example: ")
    expect(page.get_by_role("heading", level=1)).to_have_text("20 domains")


def test_2_find_what_changed_yesterday_about_a_word(page: Page) -> None:
    open_main(page, "Changes")
    page.get_by_label("Changed words").fill("august wheat")
    page.get_by_label("Period").select_option("1d")
    page.get_by_role("button", name="Filter").click()

    expect(page.locator(".change")).to_have_count(1)
    expect(page.locator(".change ins").first).to_have_text("August")
    page.get_by_label("Changed words").fill("september")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No changes match this filter")).to_be_visible()


def test_3_ignore_a_clock(page: Page, site: Site) -> None:
    open_domain(page, site, "Pages")
    page.get_by_role("link", name="/mill").click()
    page.get_by_role("link", name="Ignore or watch an element").click()
    page.get_by_label(f"{CLOCK} 11:42:07").check()
    page.get_by_role("button", name="Preview the rule").click()
    expect(page.locator(".left-out", has_text=CLOCK)).to_have_text(f"{CLOCK} 11:42:07")
    page.get_by_role("button", name="Add this rule").click()

    expect(page.get_by_role("status")).to_contain_text("The rule was added")
    write_pages(site, month="August", clock="12:01:59")
    page.get_by_role("button", name="Test fetch (not recorded)").click()
    expect(page.get_by_text("A crawl would record: only ignored differences")).to_be_visible()


def test_4_see_why_a_page_was_not_fetched(page: Page, site: Site) -> None:
    open_domain(page, site, "Pages")
    page.get_by_label("Lists of pages").get_by_role("link", name="Excluded").click()
    page.locator("tbody a", has_text="No title").click()

    expect(page.locator("dl.facts").first).to_contain_text("robots.txt forbids it")


def test_5_pause_and_resume_a_domain(page: Page, site: Site) -> None:
    page.get_by_role("link", name=site.name).first.click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_have_text(f"{site.name} is paused.")
    expect(page.locator(".lead")).to_contain_text("Paused.")
    page.get_by_role("button", name="Resume").click()

    expect(page.get_by_role("status")).to_have_text(f"{site.name} is active.")


def test_6_change_a_budget(page: Page, site: Site) -> None:
    open_domain(page, site, "Settings")
    page.get_by_label("Budget per day", exact=True).fill("750")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("status")).to_contain_text("-> 750")
    expect(page.locator("dl.figures")).to_contain_text("750")


def test_7_add_a_notification_and_test_it(page: Page, site: Site, hook: Hook) -> None:
    open_main(page, "Notifications")
    page.get_by_role("link", name="Add a subscription").click()
    page.get_by_label("Target").fill(hook.url)
    page.get_by_label("Private addresses").select_option("yes")
    page.get_by_label("Domain", exact=True).fill(site.name)
    page.get_by_role("button", name="Add this subscription").click()
    page.get_by_role("button", name="Send a test message").click()

    expect(page.get_by_role("status")).to_have_text(f"A test message was sent to {hook.url}.")


def test_8_send_a_dead_letter_again(page: Page, site: Site, hook: Hook) -> None:
    open_main(page, "Notifications")
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("group", name="Dead letters")).to_contain_text("status 400")
    page.get_by_role("button", name="Send again").click()

    expect(page.get_by_role("status")).to_contain_text("1 dead letter queued again. 1 change sent in 1 message")
    assert hook.got[-1]["changes"][0]["url"] == f"{site.url}guide/rye"


def test_9_boost_a_section(page: Page, site: Site) -> None:
    open_domain(page, site, "Rules")
    form = page.locator("details", has_text="Add a rule")
    if form.get_attribute("open") is None:  # it is open if there are no rules
        form.locator("summary").click()
    form.get_by_label("Pages", exact=True).fill("/guide/")
    form.get_by_label("Weight").fill("4")
    page.get_by_role("button", name="Add this rule").click()

    expect(page.get_by_role("status")).to_contain_text("The rule was added: /guide/")
    expect(page.get_by_label("Rules", exact=True).get_by_role("row", name="/guide/")).to_be_visible()


def test_10_find_a_page_by_its_text_and_see_its_difference(page: Page) -> None:
    page.get_by_role("searchbox", name="Search pages").fill("lower fields")
    page.get_by_role("button", name="Search").click()
    page.locator(".results a").first.click()

    expect(page.get_by_role("heading", name="Changes from version 1 to version 2")).to_be_visible()
    expect(page.locator(".diff del").first).to_have_text("July")
    expect(page.locator(".diff ins").first).to_have_text("August")
