"""Traps, which have no end, do not starve the pages of a site, and are deferred once they are recognized."""

from datetime import timedelta

import pytest

from crawler.core.domain import Domain
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answered, answering, coins_missing, crawl, page, register, rows
from tests.engine.endless import name_of
from tests.engine.traps import REAL, TRAPS, TrappedSite, trapped_site

WITHIN = 2000  # requests
HOUR = timedelta(hours=1)
HELD_BACK = """
    SELECT url FROM page JOIN frontier USING (domain_id, key) WHERE state = 'unfetched' AND due_at > %s LIMIT 1
"""


async def trapped_crawl(db: Database, url: str) -> Domain:
    domain = await register(db, url, seeds=(url,))
    await crawl(db, at=START, pages=WITHIN)
    return domain


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "calendar" else pytest.mark.soak) for kind in TRAPS]
)
async def test_real_pages_are_found_beside_a_trap_which_is_left_alone(db: Database, kind: str) -> None:
    async with trapped_site(kind) as (url, site):
        await trapped_crawl(db, url)

    assert site.found_within(WITHIN) >= 0.95 * REAL
    assert await coins_missing(db) == 0
    if kind in {"none", "prose"}:  # whose pages have something new each time
        return
    assert len(site.asked) < 1.3 * REAL
    waiting = await rows(db, "SELECT count(*) FROM frontier WHERE state = 'unfetched' AND due_at > %s", START)
    # A soft 404 that the first not-found probe recognizes has no links: then no page of the trap waits.
    assert waiting[0][0] > 0 or kind == "soft 404"


@pytest.mark.soak
async def test_pages_of_a_trap_are_asked_for_once_a_day_each_template(db: Database) -> None:
    async with trapped_site("calendar") as (url, site):
        domain = await trapped_crawl(db, url)
        before = trap_requests(site)
        for day in range(1, 6):
            await crawl(db, at=START + day * DAY + HOUR)

    templates = await rows(
        db, "SELECT count(*) FROM prior WHERE domain_id = %s AND deferred_until IS NOT NULL", domain.id
    )
    assert 3 <= len(trap_requests(site) - before) <= 5 * (templates[0][0] + 1)


@pytest.mark.soak
async def test_a_template_that_says_something_new_again_is_let_go(db: Database) -> None:
    async with trapped_site("calendar") as (url, site):
        await trapped_crawl(db, url)
        site.has_events = True
        before = len(trap_requests(site))
        for day in range(1, 5):
            await crawl(db, at=START + day * DAY + HOUR, pages=WITHIN)

    assert len(trap_requests(site)) > before + 100


@pytest.mark.soak
async def test_a_page_that_is_held_back_is_looked_at_when_its_user_names_it(db: Database) -> None:
    async with trapped_site("calendar") as (url, site):
        domain = await trapped_crawl(db, url)
        held = (await rows(db, HELD_BACK, START + DAY))[0][0]
        await domains.add_seeds(db, domain, [held], at=START + HOUR)
        await crawl(db, at=START + HOUR, pages=1)

    assert site.asked[-1] == "/" + held.removeprefix(domain.root)
    assert (await page(db, domain, held.removeprefix(domain.root)))["state"] == "fetched"


@pytest.mark.soak
async def test_what_a_wall_before_a_whole_site_holds_back_is_let_go_within_days(db: Database) -> None:
    async with trapped_site("none") as (url, site):
        domain = await register(db, url, seeds=(url,))
        await crawl(db, at=START, pages=150)
        site.is_walled = True
        await crawl(db, at=START + HOUR, pages=200)
        site.is_walled = False
        for day in range(1, 6):
            await crawl(db, at=START + day * DAY)

    held = await rows(db, "SELECT count(*) FROM prior WHERE domain_id = %s AND deferred_until IS NOT NULL", domain.id)
    assert held[0][0] == 0
    assert len(site.real & set(site.asked)) == REAL


def trap_requests(site: TrappedSite) -> set[str]:
    return set(site.asked) - site.real


async def test_dead_seeds_hold_back_no_page_that_links_lead_to(db: Database) -> None:
    """An old list of pages says nothing about the current site."""
    well = [f"/{name_of(n)}" for n in range(60)]

    def respond(target: str) -> bytes:
        if target == "/":
            return answered(200, "".join(f"<a href={path}>{path}</a> " for path in well).encode())
        if target not in well:
            return answered(404, b"")
        own = " ".join(name_of(7 * n + 1000 * well.index(target)) for n in range(60))
        return answered(200, f"<title>{target}</title><p>{own}</p>".encode())

    async with answering(respond) as url:
        await register(db, url, seeds=(url, *(f"{url}gone-{name_of(n)}" for n in range(170))))
        await crawl(db, at=START)

    assert await rows(db, "SELECT count(*) FROM page WHERE version > 0") == [(1 + len(well),)]
