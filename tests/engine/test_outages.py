"""Server errors: when the whole domain is at fault, and when a page."""

from itertools import cycle

import pytest

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, coins_missing, rows
from tests.engine.scripted import Said, events, scripted, states, text
from tests.engine.test_lifecycle import HOUR, learnt

LEAVES = [f"/leaf{n}" for n in range(20)]
SITE = {"/": text("the front page", *LEAVES)} | {path: text(f"leaf {path}") for path in LEAVES}
SOON = START + HOUR / 12  # before any page is due
FAILING = {status: Said(status, "<p>sorry") for status in (500, 502, 504)}


async def failures(db: Database, domain: Domain) -> dict[str, int]:
    found = await rows(db, "SELECT url, failures FROM page WHERE domain_id = %s AND failures > 0", domain.id)
    return {f"/{url.removeprefix(domain.root)}": many for url, many in found}


async def test_an_error_on_every_page_holds_the_domain_whose_pages_learn_nothing_and_come_back(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        before = await learnt(db)
        statuses = cycle([500, 502, 504])
        site.asked.clear()
        site.trouble = lambda path: FAILING[next(statuses)] if path != "/robots.txt" else None

        held = await site.recrawl(db, domain, at=START + DAY)
        first = site.asked.copy()
        site.asked.clear()
        again = await site.recrawl(db, domain, at=START + DAY + HOUR)
        second = [path for path, _ in site.asked if path != "/robots.txt"]
        kept, waits = await learnt(db), [shift.suspensions[domain.authority] for shift in (held, again)]
        failing = await failures(db, domain)
        site.trouble = lambda _path: None
        await site.recrawl(db, domain, at=START + 3 * DAY)

        assert len(first) <= 5 + 8 + 1  # in a row, in progress beside them, and the front page as a check
        assert len(second) <= 2  # half open: one page and the front page, unless it was that page
        assert second[-1] == "/"
        assert [hold.rejections for hold in waits] == [1, 2]
        assert (kept, failing, await events(db, domain)) == (before, {}, [])
        assert set((await states(db, domain)).values()) == {"fetched"}
        assert await rows(db, "SELECT count(*) FROM page WHERE last_good_at < %s", START + 3 * DAY) == [(0,)]
        assert await rows(db, "SELECT rejections FROM domain_state") == [(0,)]
        assert await coins_missing(db) == 0


@pytest.mark.parametrize("robots", ["", "User-agent: *\nDisallow: /$"], ids=["all allowed", "front page excluded"])
async def test_broken_pages_of_a_living_site_are_their_own_fault_however_many_come_in_a_row(
    db: Database, robots: str
) -> None:
    broken = LEAVES[2:9]  # prefixes of no other pages, so that only they are due
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/robots.txt"] = Said(body=robots)
        await site.recrawl(db, domain, at=START + 2 * DAY)
        site.trouble = lambda path: FAILING[500] if path in broken else None
        for path in broken:
            await domains.request_refresh(db, domain, prefix=Url(domain.root + path[1:]), at=START + 2 * DAY + HOUR)

        shift = await site.crawl(db, at=START + 2 * DAY + HOUR)

        assert not shift.suspensions
        assert set(await failures(db, domain)) >= set(broken)
        assert {path for path, _ in await events(db, domain)} <= {"/"}


async def test_one_broken_page_costs_no_request_beside_its_own(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: FAILING[502] if path == "/leaf3" else None
        await domains.request_refresh(db, domain, prefix=Url(f"{domain.root}leaf3"), at=SOON)
        site.asked.clear()

        shift = await site.crawl(db, at=SOON)

        assert not shift.suspensions
        assert [path for path, _ in site.asked] == ["/leaf3"]
        assert await failures(db, domain) == {"/leaf3": 1}


async def test_a_domain_that_is_well_again_is_crawled_whole_by_the_first_lease_after_the_hold(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: FAILING[500] if path != "/robots.txt" else None
        await site.recrawl(db, domain, at=START + DAY)
        site.trouble = lambda _path: None

        shift = await site.recrawl(db, domain, at=START + 2 * DAY)

        assert not shift.suspensions
        assert shift.stats.visits == len(SITE)


FAR_OFF = Said(503, "<p>later", wait="Fri, 31 Dec 2100 23:59:59 GMT")


async def test_one_page_that_asks_for_a_century_does_not_silence_its_domain(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        site.settings = site.settings.model_copy(update={"private_parallelism": 1})
        await site.crawl(db, at=START)
        site.trouble = lambda path: FAR_OFF if path == "/leaf3" else None

        held = await site.recrawl(db, domain, at=START + DAY)
        rest = await site.crawl(db, at=START + DAY + 2 * HOUR)

        hold = held.suspensions[domain.authority]
        assert hold.until < START + DAY + 1.1 * HOUR
        assert not rest.suspensions
        assert await rows(db, "SELECT count(*) FROM page WHERE last_good_at < %s", START + DAY) == [(1,)]
        ((due,),) = await rows(
            db, "SELECT due_at FROM frontier f JOIN page p USING (domain_id, key) WHERE failures > 0"
        )
        assert due > START + 30 * DAY


async def test_a_domain_whose_pages_ask_for_a_long_wait_gets_it(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: FAR_OFF if path != "/robots.txt" else None

        first = (await site.recrawl(db, domain, at=START + DAY)).suspensions[domain.authority].until
        again = await site.recrawl(db, domain, at=START + DAY + 2 * HOUR)

        assert max([first, *(hold.until for hold in again.suspensions.values())]) > START + 30 * DAY
