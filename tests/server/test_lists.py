"""Lists of domains and pages can be sorted, filtered and read part by part; pages can be selected for actions."""

import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from crawler.server.ui.domain_pages import PAGES_PER_PART
from crawler.server.ui.overview_pages import DOMAINS_PER_PAGE
from crawler.store.report import page_list
from crawler.store.report.freshness import MAX_SMALL_PAGES
from crawler.store.report.page_list import PageOrder
from tests.commands import Answer, Recrawl, Site
from tests.databases import execute
from tests.patience import until
from tests.server.conftest import Visitor
from tests.server.test_pages import edited

PATHS = [f"/{first}{second}" for first in "abcdefgh" for second in "stuvwx"]


def crawl_many(site: Site, recrawl: Recrawl) -> None:
    """Crawl a site with PATHS, of which one fails, and a root."""
    site.page("/", *PATHS, text="All letters that stand here lead to a page of their own.")
    for path in PATHS:
        site.page(path, text=f"The letters {path[1]} and {path[2]} stand for a word that begins {path[1] * 3}.")
    site.answers["/as"] = Answer(b"broken", status=500)
    assert recrawl("crawl", site.url, "--allow-private").code == 0


@pytest.fixture(scope="module")
def many(read: Recrawl, shared_site: Site) -> Site:
    """Return a site with many pages, for tests that only read."""
    crawl_many(shared_site, read)
    return shared_site


def list_paths(visitor: Visitor, path: str) -> tuple[list[str], str]:
    """Return the pages of a part of a list, and the path of the next part."""
    seen = visitor.get(path)
    assert seen.status == 200, seen.words
    more = re.search(r'<a href="([^"]*)">More pages</a>', seen.text)
    return re.findall(r'<span class="path">([^<]*)</span>', seen.text), html.unescape(more[1]) if more else ""


def list_all_paths(visitor: Visitor, path: str) -> list[str]:
    """Return the pages of all parts of a list."""
    paths = list[str]()
    while path:
        part, path = list_paths(visitor, path)
        assert len(part) <= PAGES_PER_PART
        paths += part
    return paths


@pytest.mark.parametrize("order", PageOrder)
def test_parts_of_a_list_have_each_page_once_in_each_order(many: Site, reader: Visitor, order: PageOrder) -> None:
    paths = list_all_paths(reader, f"/domain?name={many.name}&tab=pages&sort={order}")
    assert sorted(paths) == sorted(["/", *PATHS]), "URLs where a sitemap is searched are not pages"
    if order is PageOrder.URL:
        assert paths == sorted(paths)
    if order is PageOrder.FAILURES:
        assert paths[0] == "/as"


def test_lists_by_state_and_words(many: Site, reader: Visitor) -> None:
    path = f"/domain?name={many.name}&tab=pages"
    assert list_all_paths(reader, f"{path}&list=failing") == ["/as"]
    assert list_all_paths(reader, f"{path}&list=gone") == []
    assert sorted(list_all_paths(reader, f"{path}&q=%2Fb")) == [each for each in PATHS if each[1] == "b"]
    assert list_all_paths(reader, f"{path}&q=%25") == [], "a percent sign is no wildcard"
    assert "No page of this list has" in reader.get(f"{path}&q=nowhere").words


@pytest.fixture
def large(site: Site, recrawl: Recrawl, visitor: Visitor, database_url: str) -> Site:
    """Return a site whose domain counts as large, and was counted."""
    crawl_many(site, recrawl)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE domain_state SET tracked = %s", (MAX_SMALL_PAGES + 1,))
    until(lambda: "for the first time" not in visitor.get(f"/domain?name={site.name}").words)
    return site


def test_large_domain_is_listed_by_next_visit_from_the_index(large: Site, visitor: Visitor) -> None:
    path = f"/domain?name={large.name}&tab=pages"
    seen = visitor.get(f"{path}&sort=next").words
    assert "pages, sorted by" not in seen
    assert "Sorted by next visit" in seen, "they are not counted"
    listed = list_all_paths(visitor, f"{path}&sort=next")
    assert sorted(set(listed) & {"/", *PATHS}) == sorted(["/", *PATHS])
    assert len(listed) == len(set(listed))
    assert sorted(list_all_paths(visitor, f"{path}&sort=importance")) == sorted(["/", *PATHS])
    assert sorted(list_all_paths(visitor, f"{path}&q=%2Fb")) == [each for each in PATHS if each[1] == "b"]
    assert list_all_paths(visitor, f"{path}&list=failing&sort=next") == ["/as"]


def test_filter_of_a_large_domain_searches_within_the_list(
    large: Site, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_list, "MAX_CANDIDATES", 1)

    path = f"/domain?name={large.name}&tab=pages&q=%2F"
    assert list_all_paths(visitor, f"{path}&list=failing") == ["/as"]
    assert len(list_all_paths(visitor, path)) == 1
    assert list_all_paths(visitor, f"{path}&list=gone") == []


def test_selected_pages_are_recrawled_boosted_and_excluded(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    name, one, two = crawled.name, f"{crawled.url}one", f"{crawled.url}two"
    back = f"/domain?name={name}&tab=pages&sort=url"

    def act(action: str, *urls: str) -> str:
        seen = visitor.send("/pages/act", name=name, action=action, url="\n".join(urls), back=back)
        return seen.words

    asked = len(crawled.asked)
    assert "2 pages are due now" in act("recrawl", one, two)
    assert recrawl("crawl", name).code == 0
    assert sorted(crawled.asked[asked:]) == ["/one", "/two"]

    assert "1 page is now 4 times as important" in act("boost", one)
    assert "2 pages are now revisited only on request" in act("once", one, two)
    rules = {
        each["pattern"]: (each["weight"], each["once"])
        for each in recrawl("rules", "list", name, "--json").json["rules"]
    }
    assert rules == {"/one$": (4.0, True), "/two$": (None, True)}

    assert "1 page is now excluded" in act("exclude", two)
    assert recrawl("domains", "show", name, "--json").json["settings"]["exclude"] == ["/two$"]
    assert recrawl("crawl", name).code == 0
    assert list_all_paths(visitor, f"/domain?name={name}&tab=pages&list=excluded") == ["/two"]

    assert "/two is not a page that may be fetched" in act("recrawl", one, two), "excluded"
    assert "/oen is not a page that may be fetched" in act("recrawl", f"{crawled.url}oen")
    asked = len(crawled.asked)
    assert recrawl("crawl", name).code == 0
    assert crawled.asked[asked:] == []
    assert "is not a URL of" in act("boost", "http://evil.example/")
    assert "select 1 to 200 pages" in act("boost")
    assert "select 1 to 200 pages" in act("boost", *(f"{one}{n}" for n in range(201)))
    assert "choose an action" in act("paint", one)


def test_domains_are_sorted_filtered_and_read_part_by_part(visitor: Visitor, database_url: str) -> None:
    names = [f"d{n:03}.example" for n in range(1000)]
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO domain (authority, scheme, registered_at) SELECT unnest(%s::text[]), 'https', now()", (names,)
        )
        connection.execute("""
            INSERT INTO domain_state (domain_id, total_cash, dormant, spent_requests, rejections, spent_floor, wake_at)
            SELECT id, 0, 0, 0, 0, 0, now() - id * interval '1 minute' FROM domain
        """)

    def listed(path: str) -> list[str]:
        return re.findall(r'<a href="/domain\?name=[^"]*"><bdi>([^<]*)</bdi>', visitor.get(path).text)

    assert listed("/domains") == names[:DOMAINS_PER_PAGE]
    assert listed(f"/domains?skip={DOMAINS_PER_PAGE}") == names[DOMAINS_PER_PAGE : 2 * DOMAINS_PER_PAGE]
    assert listed("/domains?sort=next")[0] == names[-1]
    assert listed("/domains?name=99&sort=name") == [each for each in names if "99" in each]
    assert listed("/domains?name=%25") == []
    assert "1,000 domains those that need attention first" in visitor.get("/").words


def test_suspended_domain_needs_attention_first(recrawl: Recrawl, visitor: Visitor, database_url: str) -> None:
    for name in ("a.example", "b.example", "c.example"):
        assert recrawl("domains", "add", name, "--offline").code == 0
    execute(
        database_url,
        "UPDATE domain_state SET resume_at = now() + interval '1 day', resume_reason = 'unreachable' WHERE domain_id = "
        "(SELECT id FROM domain WHERE authority = 'c.example')",
    )
    assert re.findall(r"<bdi>([a-c]\.example)</bdi>", visitor.get("/").text) == ["c.example", "a.example", "b.example"]


def test_changes_are_new_until_this_browser_marks_them_as_read(
    crawled: Site, recrawl: Recrawl, visitor: Visitor
) -> None:
    edited(crawled, recrawl)
    seen = visitor.get("/")
    assert "3 new changes" in seen.words
    assert seen.text.count('<span class="unread">') == 3
    position = re.search(r'name="position" value="(\d+)"', seen.text)
    assert position is not None

    marked = visitor.post("/changes/read", {"csrf_token": visitor.find_csrf_token(), "position": position[1]})
    cookie = marked.headers["set-cookie"].partition(";")[0]
    assert marked.status == 303
    assert "HttpOnly" in marked.headers["set-cookie"]

    def look(path: str) -> str:
        return visitor.get(path, Cookie=f"{visitor.cookie}; {cookie}").text

    for path in ("/", "/changes", f"/domain?name={crawled.name}"):
        assert 'class="unread"' not in look(path), path
    assert "3 new changes" in visitor.get("/").words, "another browser has its own mark"
    crawled.page(
        "/one", "/two", text="Rye is sown in autumn and cut in September, before the wheat of the lower fields."
    )
    assert recrawl("refresh", crawled.name).code == 0
    assert recrawl("crawl", crawled.name).code == 0
    assert "1 new change<" in look("/")
    assert look("/changes").count('class="unread"') == 1


def test_changes_of_a_page_are_grouped(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    edited(crawled, recrawl)
    crawled.page(
        "/one", "/two", text="Rye is sown in autumn and cut in September, before the wheat of the lower fields."
    )
    assert recrawl("refresh", crawled.name).code == 0
    assert recrawl("crawl", crawled.name).code == 0
    seen = visitor.get(f"/domain?name={crawled.name}")
    assert seen.text.count("<article ") == 3
    assert "1 earlier change" in seen.words
    assert "<del>August</del><ins>September</ins>" in seen.text
    assert "<del>July</del><ins>August</ins>" in seen.text
    only = visitor.get(f"/domain?name={crawled.name}&kind=gone")
    assert only.text.count("<article ") == 1


def test_history_of_freshness_has_the_chosen_range(many: Site, reader: Visitor) -> None:
    for value, words in (("1d", "24 hours"), ("365d", "a year")):
        seen = reader.get(f"/domain?name={many.name}&tab=freshness&range={value}").text
        assert f'aria-current="true">{words}</a>' in seen
        assert "Values as a table" in seen


def test_pages_are_found_by_url_and_title_before_the_index_exists(many: Site, reader: Visitor) -> None:
    seen = reader.get("/search?q=ht")
    assert "is being built" in seen.words
    assert "No page was found" in reader.get("/search?q=no+such+words").words
    found = re.findall(r'<a href="/page\?url=([^"]*)">', reader.get(f"/search?q={quote(many.url)}bs").text)
    assert found == [quote(f"{many.url}bs", safe="")]
    assert "search for at most 16 words" in reader.get(f"/search?q={'+'.join('abcdefghijklmnopq')}").words.lower()


def test_system_page_shows_stack_database_and_versions(many: Site, reader: Visitor) -> None:
    words = reader.get("/system").words
    for part in ("Worker not running", "Database running", "Domains 1", "Python 3.", "Not built yet"):
        assert part in words, part
    assert re.search(r"Postgres \d+\.\d+", words)


def test_old_visits_are_not_counted_as_recent_changes(site: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    site.page("/", text="Whoever comes by the lower road sees the mill before the church.")
    ten_days_ago = datetime.now(UTC) - timedelta(days=10)
    assert recrawl("crawl", site.url, "--allow-private", "--at", ten_days_ago.isoformat()).code == 0
    site.page("/", text="Whoever comes by the upper road sees the church before the mill.")
    assert recrawl("refresh", site.name, "--at", (ten_days_ago + timedelta(days=1)).isoformat()).code == 0
    at = (ten_days_ago + timedelta(days=1)).isoformat()
    assert recrawl("crawl", site.name, "--at", at).code == 0
    words = visitor.get(f"/domain?name={site.name}").words
    assert "Changes in 24 hours 0" in words
    assert "lower upper road" in words


def test_pages_are_found_by_title_with_and_without_the_index(
    site: Site, recrawl: Recrawl, visitor: Visitor, tmp_path: Path
) -> None:
    site.answers["/"] = Answer(b"<html><title>Quinces of this garden</title><p>Whoever comes in June sees none.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    for has_index in (False, True):
        if has_index:
            assert recrawl("sync", str(tmp_path / "search" / "pages.sqlite")).code == 0
        words = visitor.get("/search?q=GARDEN+quinces").words
        assert "In the URL or title Quinces of this garden" in words, has_index
        assert "In the text" not in words
    assert "In the text Quinces of this garden" in visitor.get("/search?q=whoever+june").words
    assert re.search(r"Pages 1 Size \S+ kB Last written", visitor.get("/system").words)
