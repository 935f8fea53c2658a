"""Sitemaps and feeds in whole crawls: where they are found, what they add, and what they cost."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawler.core.domain import Domain
from crawler.core.freshness.visit_value import compute_phase
from crawler.store.database import Database
from crawler.store.report import check_invariants
from labs.demo.server import LivingServer
from tests.engine.crawls import DAY, QUICK, START, coins_missing, command, crawl, json_of, rows
from tests.engine.scripted import NOT_THERE, Said, events, scripted, states, text

MINUTE = timedelta(minutes=1)
GUESSING = QUICK.model_copy(update={"probe_sitemaps": True})
HOME = text("the front page of a harbour town", "/ships")
SHIPS = text("ships that lie in the harbour")
ISLAND = text("an island to which no road leads")
LIGHT = text("a lighthouse that nobody links to")


def robots(*maps: str) -> Said:
    return Said(body="User-agent: *\nDisallow: /closed\n" + "".join(f"Sitemap: {each}\n" for each in maps))


def sitemap(*entries: tuple[str, str] | str) -> Said:
    lines = (entry if isinstance(entry, tuple) else (entry, "") for entry in entries)
    inside = "".join(
        f"<url><loc>{path}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>" for path, date in lines
    )
    return Said(body=f"<?xml version='1.0'?><urlset>{inside}</urlset>")


def index(*paths: str) -> Said:
    return Said(
        body=f"<sitemapindex>{''.join(f'<sitemap><loc>{path}</loc></sitemap>' for path in paths)}</sitemapindex>"
    )


def feed(*paths: str) -> Said:
    items = "".join(f"<item><title>news of {path}</title><link>{path}</link></item>" for path in paths)
    return Said(body=f"<?xml version='1.0'?><rss><channel><title>Harbour news</title>{items}</channel></rss>")


async def lists(db: Database, domain: Domain) -> dict[str, dict[str, Any]]:
    found = await rows(
        db,
        "SELECT p.url, to_jsonb(l) FROM url_list l JOIN page p USING (domain_id, key) WHERE l.domain_id = %s",
        domain.id,
    )
    return {f"/{url.removeprefix(domain.root)}": row for url, row in found}


async def holds(db: Database) -> None:
    assert await check_invariants(db) == []
    assert await coins_missing(db) == 0


async def test_pages_that_only_a_sitemap_names_are_found(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/island": ISLAND, "/light": LIGHT}) as (site, domain):
        site.pages |= {
            "/robots.txt": robots(f"{domain.root}maps.xml", "https://elsewhere.test/maps.xml"),
            "/maps.xml": index("/one.xml", "/two.xml", "http://elsewhere.test/three.xml"),
            "/one.xml": sitemap("/", "/island", "http://elsewhere.test/other", "/closed/door"),
            "/two.xml": sitemap("/light", "/ships"),
        }
        done = await site.crawl(db, at=START)
        known = await states(db, domain)
        assert {path for path, state in known.items() if state == "fetched"} == {
            *("/", "/ships", "/island", "/light"),
            *("/maps.xml", "/one.xml", "/two.xml"),
        }
        assert known["/closed/door"] == "excluded"
        assert "/closed/door" not in [path for path, _ in site.asked]
        found = await lists(db, domain)
        assert {path: (row["kind"], row["found_by"]) for path, row in found.items()} == {
            "/maps.xml": ("index", "robots"),
            "/one.xml": ("sitemap", "list"),
            "/two.xml": ("sitemap", "list"),
        }
        assert found["/one.xml"] | {"new_pages": 1, "others": 1, "excluded": 1, "entries": 4} == found["/one.xml"]
        assert found["/maps.xml"]["others"] == 1
        assert done.stats.new_pages == 3  # ships from the root; the island and the light from the lists
        await holds(db)


async def test_the_usual_places_are_asked_once_and_rarely_again(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS}) as (site, domain):
        site.settings = GUESSING
        for day in range(0, 28, 3):
            await site.crawl(db, at=START + day * DAY)
        asked = [path for path, _ in site.asked if "sitemap" in path]
        assert sorted(asked) == ["/sitemap.xml", "/sitemap_index.xml"]
        assert await events(db, domain) == []
        site.pages["/sitemap.xml"] = sitemap("/light")
        site.pages["/light"] = LIGHT
        await site.crawl(db, at=START + 40 * DAY)
        assert (await states(db, domain))["/light"] == "fetched"
        await holds(db)


async def test_where_robots_txt_names_a_sitemap_nobody_guesses(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/maps.xml": sitemap("/ships")}) as (site, domain):
        site.settings = GUESSING
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        assert "/sitemap.xml" not in [path for path, _ in site.asked]


async def test_a_page_in_place_of_a_sitemap_is_no_list_and_no_page(db: Database) -> None:
    front = text("the front page that answers whatever is asked for")
    async with scripted(db, {"/": front, "/sitemap.xml": front, "/sitemap_index.xml": front}) as (site, domain):
        site.settings = GUESSING
        await site.crawl(db, at=START)
        await site.crawl(db, at=START + 20 * DAY)
        assert sum("sitemap" in path for path, _ in site.asked) == 2
        assert (await states(db, domain))["/sitemap.xml"] == "gone"
        await holds(db)


@pytest.mark.parametrize("status", [301, 302])
async def test_a_list_that_has_moved_is_a_list_where_it_stands_now(db: Database, status: int) -> None:
    there = {"/": HOME, "/ships": SHIPS, "/light": LIGHT, "/deep.xml": sitemap("/light")}
    async with scripted(db, there | {"/sitemap.xml": Said(status, location="/deep.xml")}) as (site, domain):
        site.settings = GUESSING
        await site.crawl(db, at=START)
        assert (await lists(db, domain))["/deep.xml"]["kind"] == "sitemap"
        assert (await states(db, domain))["/light"] == "fetched"
        await holds(db)


async def test_a_sitemap_is_asked_for_conditionally_and_a_304_reads_nothing(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/maps.xml": sitemap("/ships")}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        site.asked.clear()
        await site.recrawl(db, domain, at=START + DAY, prefix="/maps.xml")
        assert ("/maps.xml", True) in site.asked
        row = (await lists(db, domain))["/maps.xml"]
        assert row["reads"] == 1
        visits = await rows(db, "SELECT evidence, received_bytes FROM visit ORDER BY at DESC LIMIT 1")
        assert visits == [("not_modified", 0)]
        await holds(db)


async def test_dates_that_move_are_hints_and_looks_tell_which_were_true(db: Database) -> None:
    old = "2025-06-01T00:00:00Z"
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/island": ISLAND}) as (site, domain):
        site.settings = QUICK.model_copy(update={"min_interval": timedelta(hours=1)})
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        site.pages["/maps.xml"] = sitemap(("/ships", old), ("/island", old))
        await site.crawl(db, at=START)
        assert (await lists(db, domain))["/maps.xml"]["hints"] == 0

        new = (START + MINUTE).isoformat()
        site.pages["/ships"] = text("other ships have come, and the old ones have left")
        site.pages["/maps.xml"] = sitemap(("/ships", new), ("/island", new))
        await site.recrawl(db, domain, at=START + 2 * MINUTE, prefix="/maps.xml")
        row = (await lists(db, domain))["/maps.xml"]
        assert (row["hints"], row["hints_checked"], row["informative_reads"]) == (2, 0, 1)

        await site.recrawl(
            db, domain, at=START + 3 * MINUTE, prefix="/maps.xml"
        )  # unchanged entries are no new signals
        assert (await lists(db, domain))["/maps.xml"]["hints"] == 2

        await site.recrawl(db, domain, at=START + 4 * MINUTE)
        row = (await lists(db, domain))["/maps.xml"]
        assert (row["hints_checked"], row["hints_true"]) == (2, 1)
        await holds(db)


@pytest.mark.soak
async def test_a_list_that_tells_something_is_asked_more_often_than_one_that_does_not(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}news.xml", f"{domain.root}old.xml")
        site.pages["/old.xml"] = sitemap("/ships")
        paths: list[str] = []
        for step in range(120):  # eight per day
            if step % 2 == 0:
                paths.append(f"/{'abcdefghijklmnopqrstuvwxyz'[step // 2 % 26] * (1 + step // 52)}")
                site.pages["/news.xml"] = sitemap(*paths)
                site.pages[paths[-1]] = text(f"story {paths[-1]} of the day")
            site.pages["/old.xml"] = Said(body=site.pages["/old.xml"].body + "<!-- today -->")
            await site.crawl(db, at=START + step * DAY / 8)
        asked = [path for path, _ in site.asked]
        found = await lists(db, domain)
        assert found["/news.xml"]["informative_reads"] > 10
        assert found["/old.xml"]["informative_reads"] <= 1
        assert asked.count("/news.xml") > 1.5 * asked.count("/old.xml")
        assert asked.count("/old.xml") >= 13, "once in each of fifteen days"
        await holds(db)


@pytest.mark.soak
async def test_a_link_that_led_nowhere_is_tried_again_once_a_sitemap_names_it(db: Database) -> None:
    front = text("the front page of a harbour town", "/ships", "/island", "/light")
    async with scripted(db, {"/": front, "/ships": SHIPS, "/maps.xml": sitemap("/ships")}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        for day in range(30):
            await site.crawl(db, at=START + day * DAY)
        site.pages |= {"/island": ISLAND, "/maps.xml": sitemap("/ships", "/island", "/light")}
        site.asked.clear()

        await site.crawl(db, at=START + 31 * DAY)
        assert (await states(db, domain))["/island"] == "fetched"

        for day in range(32, 47):
            site.pages["/maps.xml"] = sitemap("/ships", "/island", "/light", f"/{day}")
            await site.crawl(db, at=START + day * DAY)
        asked = [path for path, _ in site.asked]
        assert asked.count("/maps.xml") > 10
        assert asked.count("/light") <= 3, "it is named every day, and never is there"
        await holds(db)


async def test_a_dead_link_is_tried_again_soon_though_the_sitemap_named_it_earlier(db: Database) -> None:
    front = text("the front page of a harbour town", "/island")
    async with scripted(db, {"/": front, "/maps.xml": sitemap("/ships"), "/ships": SHIPS}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        site.pages["/maps.xml"] = sitemap("/ships", "/island")
        await site.crawl(db, at=START + 2 * DAY)
        site.pages["/island"] = ISLAND
        await site.crawl(db, at=START + 3 * DAY)
        too_early = (await states(db, domain))["/island"]

        await site.crawl(db, at=START + 14 * DAY)

        assert (too_early, (await states(db, domain))["/island"]) == ("gone", "fetched")
        await holds(db)


async def test_lists_keep_to_the_limits_of_the_domain(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        site.pages["/maps.xml"] = sitemap(*(f"/page/{n}" for n in range(3000)))
        stored = "max_pages = 1500, own_settings = array_append(own_settings, 'max_pages')"
        await rows(db, f"UPDATE domain SET {stored} WHERE id = %s RETURNING 1", domain.id)
        await site.crawl(db, at=START, pages=2)
        assert await rows(db, "SELECT count(*) FROM page") == [(1500,)]
        await holds(db)


@pytest.mark.parametrize(("setting", "pattern"), [("include", "/light"), ("exclude", "/maps")])
async def test_include_says_nothing_of_lists_and_exclude_does(db: Database, setting: str, pattern: str) -> None:
    async with scripted(db, {"/": HOME, "/light": LIGHT, "/maps.xml": sitemap("/light")}) as (site, domain):
        stored = f"{setting} = %s, own_settings = array_append(own_settings, '{setting}')"
        await rows(db, f"UPDATE domain SET {stored} WHERE id = %s RETURNING 1", [pattern], domain.id)
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        asked = {path for path, _ in site.asked}
        assert {"/maps.xml", "/light"} <= asked if setting == "include" else not {"/maps.xml", "/light"} & asked


async def test_a_feed_that_a_page_names_is_found_and_is_a_page_of_its_own(db: Database) -> None:
    head = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    home = text("a front page with news", head=head)
    async with scripted(db, {"/": home, "/feed.xml": feed("/light"), "/light": LIGHT}) as (site, domain):
        await site.crawl(db, at=START)
        row = (await lists(db, domain))["/feed.xml"]
        assert (row["kind"], row["found_by"], row["new_pages"]) == ("feed", "page", 1)
        assert (await states(db, domain))["/light"] == "fetched"
        site.pages |= {"/feed.xml": feed("/island", "/light"), "/island": ISLAND}
        await site.recrawl(db, domain, at=START + DAY, prefix="/feed.xml")
        assert (await states(db, domain))["/island"] == "fetched"
        assert ("/feed.xml", "changed") in await events(db, domain)
        await holds(db)


@pytest.mark.soak
async def test_no_more_feeds_are_followed_than_a_site_has(db: Database) -> None:
    def post(n: int) -> Said:
        head = f'<link rel="alternate" type="application/rss+xml" href="/feed/{n}">'
        return text(f"post number {'x' * n} of a blog", f"/post/{n + 1}", head=head)

    async with scripted(db, {"/": post(0)} | {f"/post/{n}": post(n) for n in range(40)}) as (site, domain):
        await site.crawl(db, at=START)
        assert len(await lists(db, domain)) == 16
        await holds(db)


@pytest.mark.parametrize(
    "body",
    [
        '<!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>/&b;</loc></url></urlset>',
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&x;</loc></url></urlset>',
    ],
)
async def test_a_list_that_declares_entities_is_refused_as_a_finding(db: Database, body: str) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/maps.xml": Said(body=body)}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        found = await rows(db, "SELECT reason FROM page WHERE url LIKE %s", "%maps.xml")
        assert found == [("declares_entities",)]
        assert set(await states(db, domain)) == {"/", "/ships", "/maps.xml"}
        await holds(db)


async def test_a_sitemap_that_a_page_links_to_is_known_by_what_it_says(db: Database) -> None:
    home = text("a front page that links to its map", "/map.xml")
    async with scripted(db, {"/": home, "/map.xml": sitemap("/light"), "/light": LIGHT}) as (site, domain):
        await site.crawl(db, at=START)
        row = (await lists(db, domain))["/map.xml"]
        assert (row["kind"], row["found_by"], row["new_pages"]) == ("sitemap", "body", 1)
        assert (await states(db, domain))["/light"] == "fetched"
        assert await rows(db, "SELECT count(*) FROM event WHERE url LIKE %s", "%map.xml") == [(0,)]
        await holds(db)


async def test_a_sitemap_that_is_gone_says_nothing_of_its_pages(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/light": LIGHT}) as (site, domain):
        site.pages |= {"/robots.txt": robots(f"{domain.root}maps.xml"), "/maps.xml": sitemap("/light")}
        await site.crawl(db, at=START)
        site.pages["/maps.xml"] = NOT_THERE
        for day in (10, 11, 12):
            await site.recrawl(db, domain, at=START + day * DAY, prefix="/maps.xml")
        assert (await states(db, domain)) | {"/light": "fetched", "/maps.xml": "gone"} == await states(db, domain)
        assert await events(db, domain) == []
        await holds(db)


async def first_wait(db: Database, freq: str) -> timedelta:
    """Return the wait after the first visit of a page before it is shortened by its phase."""
    listed = Said(body=f"<urlset><url><loc>/light</loc><changefreq>{freq}</changefreq></url></urlset>")
    async with scripted(db, {"/": HOME, "/light": LIGHT, "/maps.xml": listed}) as (site, domain):
        site.pages["/robots.txt"] = robots(f"{domain.root}maps.xml")
        await site.crawl(db, at=START)
        due = await rows(
            db,
            "SELECT f.key, f.due_at FROM frontier f JOIN page p USING (domain_id, key)"
            " WHERE f.domain_id = %s AND p.url LIKE %s",
            domain.id,
            "%light",
        )
        key, due_at = due[0]
        return (due_at - START) / compute_phase(key)  # type: ignore[no-any-return]


async def test_what_changefreq_says_moves_the_first_gap_and_little_else(db: Database) -> None:
    hourly, yearly, nothing = [await first_wait(db, freq) for freq in ("hourly", "yearly", "")]
    assert nothing / 10 < hourly < nothing
    assert hourly < yearly < nothing * 10


@pytest.mark.soak
async def test_a_living_site_says_truly_what_has_changed(db: Database, living: LivingServer, domain: Domain) -> None:
    wanted = QUICK.model_copy(update={"probe_sitemaps": True})
    for day in range(8):
        living.set_instant(START + day * DAY)
        await crawl(db, at=START + day * DAY, settings=wanted)
    found = await lists(db, domain)
    assert {path: row["kind"] for path, row in found.items() if row["reads"]} == {
        "/sitemap.xml": "index",
        "/pages.xml": "sitemap",
        "/feed.xml": "feed",
    }
    assert found["/pages.xml"]["hints"] > 5
    assert found["/pages.xml"]["hints_checked"] > 5
    assert found["/pages.xml"]["hints_true"] > found["/pages.xml"]["hints_checked"] / 2
    await holds(db)


@pytest.mark.soak
async def test_reports_say_what_lists_are_and_what_they_brought(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    async with scripted(db, {"/": HOME, "/ships": SHIPS, "/light": LIGHT}) as (site, domain):
        site.pages |= {"/robots.txt": robots(f"{domain.root}maps.xml"), "/maps.xml": sitemap(("/light", "2025-06-01"))}
        await site.crawl(db, at=START)

        def shown(*arguments: str) -> str:
            done = command(*arguments, "--at", "2026-01-01T01:00:00Z", database_url=database_url, home=tmp_path)
            assert done.returncode == 0, done.stderr
            return " ".join(done.stdout.split())

        assert "Sitemaps and feeds 1 sitemap: 1 page found, 0 changes signaled" in shown("report", domain.authority)
        of_list = shown("explain", f"{domain.root}maps.xml")
        assert "List sitemap, listed in robots.txt: 1 URL" in of_list
        assert "a read with new entries has the value of 1 page visits" in of_list
        assert "Dates 2025-06-01" in shown("explain", f"{domain.root}light")
        assert "fetched (sitemap)" in shown("pages", domain.authority)
        document = json_of(command("report", domain.authority, "--json", database_url=database_url, home=tmp_path))
        assert document["domains"][0]["lists"][0]["new_pages"] == 1
        found = await rows(db, "SELECT domain, kind, entries, new_pages FROM report_list")
        assert found == [(domain.authority, "sitemap", 1, 1)]
