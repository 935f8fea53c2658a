"""All reports agree after a crawl of a site with gone pages, dead links, excluded pages and missing sitemaps."""

import asyncio
import re
from datetime import UTC, datetime

import psycopg
import pytest

from crawler.runtime.metrics.families import MAX_DOMAINS, build_domain_families
from crawler.store import report
from crawler.store.database import open_database
from tests.commands import Answer, Recrawl, Site
from tests.server.api.test_api import Program
from tests.server.conftest import Visitor

ROBOTS = b"User-agent: *\nDisallow: /private\n"
RECEIVED = re.compile(r"Received +\S+ \S+ in (\d+) requests")
COUNTED = {"fetched": 3, "gone": 1, "dead_link": 1, "excluded": 1}
COUNTS = {"unfetched": 0, "fetched": 3, "gone": 1, "dead_links": 1, "moved": 0, "excluded": 1, "withheld": 0}


@pytest.fixture
def outputs(recrawl: Recrawl, site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Crawl twice, remove a page in between, and return the output of `refresh` and of the second crawl."""
    monkeypatch.setenv("RECRAWL_PROBE_SITEMAPS", "true")
    site.answers["/robots.txt"] = Answer(ROBOTS)
    texts = {
        "/": "The mill by the river opens at nine and sells flour to whoever asks.",
        "/one": "Rye is sown in autumn and cut in July, before the wheat of the lower fields.",
        "/two": "Bread keeps for a week in a linen bag, longer where the pantry is cold.",
        "/three": "Oats need less sun than barley and are cut when the straw is still green.",
    }
    for path, text in texts.items():
        site.page(path, *(texts if path != "/" else (*texts, "/nowhere", "/private/page")), text=text)
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    for _ in range(2):
        assert recrawl("notify", "add", "command:true").code == 0
    site.answers["/two"] = Answer(b"gone", status=410)
    site.asked.clear()
    said = [recrawl("refresh", site.name).out, recrawl("crawl", site.name, "--dry-run").out]
    done = recrawl("crawl", site.name)
    assert done.code == 0, done.err
    return [*said, done.out, done.err]


def test_all_reports_give_the_same_page_counts(
    outputs: list[str], recrawl: Recrawl, site: Site, database_url: str, visitor: Visitor
) -> None:
    refreshed, previewed, summary, beside = outputs

    assert "5 pages whose URL starts with" in refreshed
    assert re.search(r"Due pages +5 ", previewed)
    assert re.search(r"Sitemaps +\d default locations will be requested", previewed)
    assert re.search(r"Visited +5 pages", summary)
    assert re.search(r"Gone +1\n", summary)
    assert re.search(r"Dead links +1 ", summary)
    received = RECEIVED.search(summary)
    assert received is not None
    assert int(received[1]) == len(site.asked) - ("/robots.txt" in site.asked)
    assert "Notified: 1 change in 2 messages" in beside

    [listed] = recrawl("domains", "list", "--json").json["domains"]
    assert listed["pages"] == COUNTS
    [reported] = recrawl("report", site.name, "--json").json["domains"]
    assert {name: reported[name] for name in COUNTS} == COUNTS
    shown = recrawl("report", site.name).out
    assert re.search(r"Gone +1\n", shown)
    assert re.search(r"Dead links +1\n", shown)

    views = recrawl("db", "sql", "SELECT category, count(*)::int AS n FROM report_page GROUP BY 1", "--json")
    by_page = {row["category"]: row["n"] for row in views.json["rows"]}
    assert {name: n for name, n in by_page.items() if name != "unread_list"} == COUNTED
    assert by_page["unread_list"] >= 2
    [row] = recrawl("db", "sql", "SELECT * FROM report_domain", "--json").json["rows"]
    assert (row["pages_fetched"], row["pages_gone"], row["dead_links"], row["pages_excluded"]) == (3, 1, 1, 1)
    for state, n in COUNTED.items():
        assert len(recrawl("pages", site.name, "--state", state, "--json").json["pages"]) == n

    token = recrawl("tokens", "add", "figures").out.strip()
    [item] = Program(visitor, token).json("freshness")["items"]
    assert {name: item[name] for name in COUNTS} == COUNTS
    page = visitor.get(f"/domain?name={site.name}&tab=pages").words
    assert "Pages fetched 3 " in page
    assert " Fetched 3 Unfetched 0 Failing 0 Gone 1 Dead links 1 Moved 0 Excluded 1 " in page
    assert "1 page, sorted by" in visitor.get(f"/domain?name={site.name}&tab=pages&list=dead_link").words
    assert "6 pages, sorted by" in visitor.get(f"/domain?name={site.name}&tab=pages").words

    metrics = asyncio.run(gauges(database_url))
    assert metrics["recrawl_domain_fetched_pages"] == [3]
    assert metrics["recrawl_domain_gone_pages"] == [1]
    assert metrics["recrawl_domain_dead_links"] == [1]
    assert metrics["recrawl_domain_withheld_pages"] == [0]


async def gauges(database_url: str) -> dict[str, list[float]]:
    """Return the values of each metric family."""
    async with open_database(database_url) as db:
        domains, calibration = await report.read_domain_gauges(db, at=datetime.now(UTC), max_domains=MAX_DOMAINS)
    families = build_domain_families(domains, calibration)
    return {family.name: [sample.value for sample in family.samples] for family in families}


def test_withheld_pages_are_counted_on_the_domains_page_and_in_the_report(
    recrawl: Recrawl, crawled: Site, database_url: str, visitor: Visitor
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE page SET withheld_since = now() WHERE right(url, 3) = 'one'")

    assert "Withheld 1 page" in visitor.get(f"/domain?name={crawled.name}").words
    assert re.search(r"Withheld +1 page with new content", recrawl("report", crawled.name).out)
    assert recrawl("domains", "list", "--json").json["domains"][0]["pages"]["withheld"] == 1
