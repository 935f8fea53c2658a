"""The life of pages over months: nothing is considered gone without proof."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRule
from crawler.store import domains, report
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, coins_missing, page, rows
from tests.engine.scripted import HUNG_UP, NOT_THERE, Said, events, scripted, states, text

LEAVES = tuple(f"/leaf{n}" for n in range(8))
HOUR = timedelta(hours=1)
SITE = {
    "/": text("home", "/list"),
    "/list": text("list", *LEAVES),
    **{path: text(f"leaf {path}") for path in LEAVES},
}
WHO_ARE_YOU = Said(body="<title>Welcome</title><form><p>Who are you? <input name=n><input type=password name=p></form>")
SORRY = Said(body="<title>Sorry</title><main><p>Nothing is to be found under this address, now or ever.</main>")
LEARNT = "key, version, etag, rate_a, rate_b, last_good_at"


async def learnt(db: Database) -> list[object]:
    return await rows(db, f"SELECT {LEARNT} FROM page ORDER BY key")


async def all_known(db: Database, domain: Domain) -> bool:
    return set((await states(db, domain)).values()) == {"fetched"}


@pytest.mark.soak
async def test_half_a_year_with_every_trouble_tells_what_became_of_pages_and_nothing_else(
    db: Database,
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)

        async def look(*days: int) -> None:
            for day in days:
                await site.recrawl(db, domain, at=START + day * DAY)

        await look(20, 40, 60)
        site.is_named = False
        await look(61, 62, 63)
        site.is_named, site.trouble = True, lambda _path: Said(503, "<p>back soon")
        await look(70, 71)
        site.trouble = lambda _path: None
        site.pages["/leaf0"] = NOT_THERE
        await look(80)
        site.pages |= {"/leaf0": SITE["/leaf0"], "/leaf1": Said(410)}
        site.move("/leaf2", "/new")
        await look(90, 91, 92)
        site.trouble = to_home
        await look(110, 111, 112)
        site.trouble = lambda _path: None
        site.pages |= {"/leaf1": text("another leaf"), "/leaf3": NOT_THERE}
        await look(130, 131, 132, 133)
        site.trouble = lambda path: None if path == "/robots.txt" else WHO_ARE_YOU
        await look(140, 141)  # after two days it would count as the pages' content
        site.trouble = lambda path: None if path == "/robots.txt" or path in site.pages else SORRY
        site.pages["/leaf4"] = SORRY
        await look(150, 151, 152, 153)

        told = await events(db, domain)
        assert sorted(told[:2]) == [("/leaf1", "gone"), ("/leaf2", "moved")]
        assert told[2:] == [("/leaf1", "restored"), ("/leaf3", "gone"), ("/leaf4", "gone")]
        assert (await page(db, domain, "/leaf1"))["version"] == 2
        found = await states(db, domain)
        assert {path: state for path, state in found.items() if state != "fetched"} == {
            "/leaf2": "moved", "/leaf3": "gone", "/leaf4": "gone"
        }  # fmt: skip
        stood_by = [path for path in SITE if path not in {"/leaf1", "/leaf2", "/leaf3", "/leaf4"}]
        assert {(await page(db, domain, path))["version"] for path in stood_by} == {1}
        assert await coins_missing(db) == 0


async def test_months_of_304_from_the_parents_and_skips_of_them_touch_no_child(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        links = await rows(db, "SELECT key, targets FROM page_links ORDER BY key")
        at = START
        for _ in range(6):
            at += 20 * DAY
            await site.crawl(db, at=at)  # only what is due: most pages are skipped
            await site.crawl(db, at=at + HOUR)  # too early: nothing is due

        assert await all_known(db, domain)
        assert await events(db, domain) == []
        assert await rows(db, "SELECT key, targets FROM page_links ORDER BY key") == links
        assert {path for path, conditional in site.asked if conditional} >= {"/", "/list"}
        assert await rows(db, "SELECT count(*) FROM visit WHERE change NOT IN ('added', 'unchanged')") == [(0,)]


async def test_a_name_that_does_not_resolve_for_three_days_says_nothing_about_pages(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before, asked = await learnt(db), len(site.asked)
        site.is_named = False
        spent = 0
        for hours in range(0, 72, 8):
            spent += (await site.recrawl(db, domain, at=START + DAY + hours * HOUR)).stats.requests
        reasons = await rows(db, "SELECT DISTINCT reason FROM visit WHERE change = 'unknown'")
        kept = await learnt(db)
        site.is_named = True
        after = await site.recrawl(db, domain, at=START + 10 * DAY)

    assert (kept, await events(db, domain)) == (before, [])
    assert reasons == [("dns",)]
    assert spent < 30  # nine attempts, of which only some were allowed, and fewer than ten pages each
    assert len(site.asked) > asked
    assert after.stats.changes == {Change.UNCHANGED: len(SITE)}  # found by a 304, or by a validator check


async def test_maintenance_with_503_holds_the_domain_and_its_pages_stay_as_they_were(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before = await learnt(db)
        site.trouble = lambda _path: Said(503, "<p>back soon")
        held = await site.recrawl(db, domain, at=START + DAY)
        kept = await learnt(db)
        site.trouble = lambda _path: None
        await site.recrawl(db, domain, at=START + 3 * DAY)

        assert set(held.suspensions) == {domain.authority}
        assert (kept, await events(db, domain)) == (before, [])
        assert await all_known(db, domain)


async def test_404_once_is_an_accident_and_twice_a_tombstone_of_which_there_is_one(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages |= {"/leaf0": NOT_THERE, "/leaf1": NOT_THERE}
        await site.recrawl(db, domain, at=START + DAY)
        site.pages["/leaf0"] = SITE["/leaf0"]
        accident = await events(db, domain)
        for n in range(2, 8):
            await site.recrawl(db, domain, at=START + n * DAY)

        assert accident == []
        assert await events(db, domain) == [("/leaf1", "gone")]
        assert (await page(db, domain, "/leaf0"))["version"] == 1
        assert await coins_missing(db) == 0


async def test_404_410_500_and_429_are_four_things_in_states_events_and_waits(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        holds, at = {}, START + DAY
        for path, said in zip(LEAVES, (NOT_THERE, Said(410), Said(500), Said(429, wait="7200")), strict=False):
            site.pages[path] = said
            at += timedelta(minutes=2)  # the 404 is not confirmed within ten minutes
            holds[path] = (await site.recrawl(db, domain, at=at, prefix=path)).suspensions
        waits = await rows(
            db,
            "SELECT p.url, f.state, p.reason, f.due_at - p.last_visit_at FROM page p JOIN frontier f"
            " USING (domain_id, key) WHERE p.failures > 0 OR f.state <> 'fetched' ORDER BY p.url",
        )

        assert [(f"/{url.removeprefix(domain.root)}", *found) for url, *found in waits] == [
            ("/leaf0", "fetched", "http_404", timedelta(minutes=10)),
            ("/leaf1", "gone", "http_410", 30 * DAY),
            ("/leaf2", "fetched", "http_500", HOUR),
            ("/leaf3", "fetched", "http_429", timedelta(minutes=1)),  # after its domain's suspension of two hours
        ]
        assert {path for path, held in holds.items() if held} == {"/leaf3"}
        assert await events(db, domain) == [("/leaf1", "gone")]
        held = await rows(db, "SELECT resume_at FROM domain_state")
        assert at + 2 * HOUR <= held[0][0] < at + 3 * HOUR


@pytest.mark.parametrize(
    "trouble",
    [pytest.param(HUNG_UP, marks=pytest.mark.soak), Said(500), pytest.param(Said(403), marks=pytest.mark.soak)],
    ids=["no answer", "500", "403"],
)
async def test_a_page_that_alone_fails_for_half_a_year_is_no_tombstone(db: Database, trouble: Said) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        learnt_of = f"SELECT {LEARNT} FROM page WHERE url LIKE '%%/leaf0'"
        before = await rows(db, learnt_of)
        site.pages["/leaf0"] = trouble
        for day in range(1, 180, 22):
            await site.crawl(db, at=START + day * DAY)

        kept = await page(db, domain, "/leaf0")
        assert (kept["state"], kept["failures"] > 5) == ("fetched", True)
        assert await rows(db, learnt_of) == before
        assert await events(db, domain) == []


async def test_what_is_gone_and_comes_back_as_it_was_is_told_of_though_a_304_may_be_all_that_comes(
    db: Database,
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = Said(410)
        await site.recrawl(db, domain, at=START + DAY)
        site.pages["/leaf0"] = SITE["/leaf0"]
        site.asked.clear()
        await site.recrawl(db, domain, at=START + 2 * DAY)

        assert "/leaf0" in {path for path, _ in site.asked}
        assert await events(db, domain) == [("/leaf0", "gone"), ("/leaf0", "restored")]
        assert (await page(db, domain, "/leaf0"))["version"] == 1
        assert await coins_missing(db) == 0


async def test_a_tombstone_that_robots_txt_hides_for_a_while_stays_one_and_its_return_is_told(
    db: Database,
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = Said(410)
        await site.recrawl(db, domain, at=START + DAY)
        site.pages["/robots.txt"] = Said(body="User-agent: *\nDisallow: /leaf0")
        await site.recrawl(db, domain, at=START + 9 * DAY)
        hidden = await page(db, domain, "/leaf0")
        site.pages |= {"/robots.txt": NOT_THERE, "/leaf0": SITE["/leaf0"]}
        await site.recrawl(db, domain, at=START + 18 * DAY)

        assert (hidden["state"], hidden["reason"]) == ("gone", "robots")
        assert await events(db, domain) == [("/leaf0", "gone"), ("/leaf0", "restored")]


async def test_a_page_that_moves_is_told_of_over_a_chain_of_redirects(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        for n in range(1, 4):
            site.move("/leaf0" if n == 1 else f"/moved{n - 1}", f"/moved{n}")
        await site.recrawl(db, domain, at=START + DAY)

        found = await states(db, domain)
        assert [found[path] for path in ("/leaf0", "/moved1", "/moved2", "/moved3")] == ["moved"] * 3 + ["fetched"]
        assert await events(db, domain) == [("/leaf0", "moved")]  # the others were never known
        assert await coins_missing(db) == 0


async def test_redirects_in_a_circle_are_a_failure_and_the_pages_keep_what_they_were(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before = await learnt(db)
        site.pages |= {
            "/leaf0": Said(301, location="/leaf1"),
            "/leaf1": Said(308, location="/leaf2"),
            "/leaf2": Said(301, location="/leaf0"),
        }
        await site.recrawl(db, domain, at=START + DAY)

        circle = [await page(db, domain, f"/leaf{n}") for n in range(3)]
        assert {(each["state"], each["reason"], each["version"]) for each in circle} == {
            ("fetched", "redirects_in_a_circle", 1)
        }
        assert len(await learnt(db)) == len(before)
        assert await events(db, domain) == []
        assert await coins_missing(db) == 0


@pytest.mark.parametrize("status", [302, *(pytest.param(status, marks=pytest.mark.soak) for status in (303, 307))])
async def test_redirects_for_now_in_a_circle_are_found_out(db: Database, status: int) -> None:
    async with scripted(db, {**SITE, "/": text("home", "/leaf0", "/a", "/x")}) as (site, domain):
        await site.crawl(db, at=START)
        site.pages |= {
            "/leaf0": Said(status, location="/a"),
            "/a": Said(status, location="/b"),
            "/b": Said(status, location="/leaf0"),
            "/x": Said(status, location="/leaf1"),
        }
        for day in range(1, 6):
            await site.recrawl(db, domain, at=START + day * DAY)

        circle = [await page(db, domain, path) for path in ("/leaf0", "/a", "/b")]
        assert {each["reason"] for each in circle} == {"redirects_in_a_circle"}
        assert [each["version"] for each in circle] == [1, 0, 0]
        assert min(each["failures"] for each in circle) >= 2
        assert (await page(db, domain, "/x"))["reason"] == f"http_{status}"
        assert await events(db, domain) == []
        assert await coins_missing(db) == 0
        due = dict(await rows(db, "SELECT p.url, f.due_at FROM page p JOIN frontier f USING (domain_id, key)"))
        assert due[f"{domain.root}a"] - START - 5 * DAY > 7 * DAY  # there never was a page


async def test_a_page_that_moves_onto_another_is_asked_twice_before_it_is_believed(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        await site.recrawl(db, domain, at=START + DAY)
        site.pages |= {"/leaf0": Said(301, location="/leaf1"), "/leaf2": Said(301, location="/leaf3")}
        await site.recrawl(db, domain, at=START + 2 * DAY)
        once = await states(db, domain)
        site.pages["/leaf2"] = SITE["/leaf2"]
        await site.recrawl(db, domain, at=START + 3 * DAY)

        assert (once["/leaf0"], once["/leaf2"]) == ("fetched", "fetched")
        assert await events(db, domain) == [("/leaf0", "moved")]


def to_home(path: str) -> Said | None:
    """Redirect every page except the root to the root."""
    return None if path in {"/", "/robots.txt"} else Said(301, location="/")


async def test_all_pages_to_the_home_page_for_days_are_an_outage(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before = await rows(db, f"SELECT {LEARNT} FROM page WHERE url <> %s ORDER BY key", domain.root)
        site.trouble = to_home
        for day in range(2, 5):
            await site.recrawl(db, domain, at=START + day * DAY)
        during = await rows(db, f"SELECT {LEARNT} FROM page WHERE url <> %s ORDER BY key", domain.root)
        reason = (await page(db, domain, "/leaf3"))["reason"]
        site.trouble = lambda _path: None
        after = await site.recrawl(db, domain, at=START + 6 * DAY)

        assert (during, reason) == (before, "bulk_redirect")
        assert after.stats.changes == {Change.UNCHANGED: len(SITE)}  # found by a 304, or by a validator check
        assert await all_known(db, domain)
        assert await events(db, domain) == []
        assert await coins_missing(db) == 0


async def test_all_pages_to_the_home_page_for_good_are_gone_once_each_and_none_has_moved(
    db: Database,
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = to_home
        site.settings = QUICK.model_copy(update={"max_batch_size": 2})  # small batches: no batch contains all pages
        await site.recrawl(db, domain, at=START + 2 * DAY)
        for day in range(3, 16):
            await site.crawl(db, at=START + day * DAY)  # when they are due

        told = await events(db, domain)
        assert sorted(told) == sorted((path, "gone") for path in SITE if path != "/")
        visits = await rows(db, "SELECT count(*) FROM visit WHERE status = 301 GROUP BY key")
        assert max(many for (many,) in visits) <= 5
        assert await coins_missing(db) == 0


async def test_all_pages_to_another_host_for_a_day_are_an_outage(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before = await rows(db, f"SELECT {LEARNT} FROM page ORDER BY key")
        site.trouble = lambda path: (
            None if path == "/robots.txt" else Said(301, location=f"http://park.invalid/?from={path}")
        )
        site.settings = QUICK.model_copy(update={"max_batch_size": 3})
        await site.recrawl(db, domain, at=START + 2 * DAY)
        await site.recrawl(db, domain, at=START + 3 * DAY)
        during = await rows(db, f"SELECT {LEARNT} FROM page ORDER BY key")
        site.trouble = lambda _path: None
        for day in range(4, 8):
            await site.crawl(db, at=START + day * DAY)

        assert await all_known(db, domain)
        assert [each[:2] for each in during] == [each[:2] for each in before]
        told = await events(db, domain)
        assert {change for _, change in told} <= {"moved", "restored"}
        assert len(told) <= 2 * 4  # the first four cannot be recognized yet
        assert await coins_missing(db) == 0


async def test_of_a_crowd_that_comes_page_by_page_to_an_unknown_place_only_the_first_four_are_believed(
    db: Database,
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        for n, path in enumerate(LEAVES):
            site.pages[path] = Said(301, location="/closed")  # a missing page
            await site.recrawl(db, domain, at=START + DAY + n * HOUR, prefix=path)
        found = await states(db, domain)
        site.pages |= {path: SITE[path] for path in LEAVES}
        for day in range(2, 9):
            await site.crawl(db, at=START + day * DAY)

        first, others = LEAVES[:4], LEAVES[4:]
        assert {found[path] for path in others} == {"fetched"}
        told = await events(db, domain)
        assert told[:4] == [(path, "moved") for path in first]
        assert sorted(told[4:]) == [(path, "restored") for path in first]
        assert {(await page(db, domain, path))["version"] for path in LEAVES} == {1}


async def test_a_temporary_redirect_takes_no_links_from_the_page_that_stands_behind_it(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        links = await rows(db, "SELECT key, targets FROM page_links ORDER BY key")
        site.pages |= {"/list": Said(302, location="/login"), "/login": text("who are you")}
        await site.recrawl(db, domain, at=START + DAY)
        kept = await rows(db, "SELECT key, targets FROM page_links ORDER BY key")
        site.pages["/list"] = SITE["/list"]
        await site.crawl(db, at=START + DAY + 2 * HOUR)

        assert set(links) <= set(kept)
        assert (await page(db, domain, "/login"))["version"] == 1
        listed = await page(db, domain, "/list")
        assert (listed["status"], listed["failures"], listed["version"]) == (304, 0, 1)
        assert await events(db, domain) == []


async def test_a_page_that_asks_not_to_be_listed_is_kept_and_that_is_no_event(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = text("leaf /leaf0", head="<meta name=robots content=noindex>")
        await site.recrawl(db, domain, at=START + DAY)

        assert await events(db, domain) == []
        kept = await page(db, domain, "/leaf0")
        assert (kept["state"], kept["version"]) == ("fetched", 1)


async def test_a_page_that_no_page_links_to_any_more_is_told_of_and_kept(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/list"] = Said(500)  # unavailable
        await site.recrawl(db, domain, at=START + DAY)
        silent = await is_orphan(db, domain, "/leaf0")
        site.pages["/list"] = text("list", *LEAVES[1:])
        site.move("/leaf1", "/moved")
        await site.recrawl(db, domain, at=START + 2 * DAY)

        assert not silent
        orphans = {path: await is_orphan(db, domain, path) for path in ("/", "/list", "/leaf0", "/leaf2", "/moved")}
        assert [path for path, alone in orphans.items() if alone] == ["/leaf0"]
        assert ("/leaf0", "gone") not in await events(db, domain)
        assert (await page(db, domain, "/leaf0"))["state"] == "fetched"


async def test_children_of_a_page_that_is_gone_are_orphans_and_are_kept(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/list"] = Said(410)
        await site.recrawl(db, domain, at=START + DAY)

        assert all([await is_orphan(db, domain, path) for path in LEAVES])
        assert await events(db, domain) == [("/list", "gone")]
        assert {(await states(db, domain))[path] for path in LEAVES} == {"fetched"}


async def is_orphan(db: Database, domain: Domain, path: str) -> bool:
    url = Url(f"{domain.root}{path.removeprefix('/')}")
    return (await report.explain_url(db, domain, url, at=START, defaults=QUICK.defaults)).is_orphan


@pytest.mark.parametrize(
    "interval",
    [*(pytest.param(timedelta(minutes=n), marks=pytest.mark.soak) for n in (10, 30)), DAY],
    ids=["10 min", "30 min", "a day"],
)
async def test_a_deleted_page_is_reported_within_two_hours_of_its_first_404(db: Database, interval: timedelta) -> None:
    async with scripted(db, SITE) as (site, domain):
        await domains.change_settings(
            db, domain, replace(domain.settings, rules=(PageRule("/leaf0", max_interval=interval),)), at=START
        )
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = NOT_THERE
        deleted, at = START + interval, START + interval
        while not await events(db, domain) and at < deleted + DAY:
            await site.crawl(db, at=at)
            at += timedelta(minutes=5)  # the interval at which the local stack checks for due domains
        first, last = await visits_of_404(db, "/leaf0")

    assert await events(db, domain) == [("/leaf0", "gone")]
    assert timedelta(minutes=10) <= last - first <= HOUR


async def test_a_404_is_confirmed_ahead_of_a_paced_budget_and_of_all_that_is_overdue(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=24), at=START)
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = NOT_THERE
        at = START + 60 * DAY + 12 * HOUR
        await site.recrawl(db, domain, at=at, prefix="/leaf0")
        # All other pages are overdue, and the day's budget is ahead of its pace by two hours.
        await rows(db, "UPDATE frontier SET due_at = %s WHERE request_reason = 0 RETURNING 1", START)
        await rows(db, "UPDATE domain_state SET wake_at = %s, spent_requests = 14 RETURNING 1", at)
        site.asked.clear()
        site.settings = QUICK.model_copy(update={"pace": True})
        for minutes in range(5, 65, 5):
            await site.crawl(db, at=at + timedelta(minutes=minutes))

        assert await events(db, domain) == [("/leaf0", "gone")]
        assert [path for path, _ in site.asked] == ["/leaf0"]


async def test_a_page_refreshed_by_hand_again_and_again_is_gone_ten_minutes_after_its_first_404(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/leaf0"] = NOT_THERE
        told = []
        for minutes in range(0, 20, 4):
            await site.recrawl(db, domain, at=START + DAY + timedelta(minutes=minutes), prefix="/leaf0")
            told.append(await events(db, domain))

    assert told == [[], [], [], [("/leaf0", "gone")], [("/leaf0", "gone")]]


async def visits_of_404(db: Database, path: str) -> tuple[datetime, datetime]:
    """Return the times of the first and the last 404 of a page."""
    found = await rows(
        db, "SELECT min(v.at), max(v.at) FROM visit v JOIN page p USING (domain_id, key)"
        " WHERE v.status = 404 AND p.url LIKE %s", f"%{path}"
    )  # fmt: skip
    first, last = found[0]
    return first, last
