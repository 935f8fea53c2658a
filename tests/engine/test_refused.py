"""Fetched pages that may not be fetched any longer are reported once, and again when they are back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.core.visit.state import State
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.report import check_invariants, list_pages_at, read_version
from tests.engine.crawls import DAY, START, coins_missing, page, rows
from tests.engine.scripted import Said, Scripted, events, scripted, states, text

OPEN = Said(body="User-agent: *\nAllow: /\n")
CLOSED = Said(body="User-agent: *\nDisallow: /cellar\n")
PAGES = {
    "/": text("the front page of an inn", "/cellar", "/cellar/door", "/kitchen"),
    "/cellar": text("barrels that stand below the house"),
    "/kitchen": text("pots that hang above the fire"),
    "/robots.txt": OPEN,
}


@asynccontextmanager
async def inn(db: Database) -> AsyncIterator[tuple[Scripted, Domain]]:
    async with scripted(db, PAGES) as (site, domain):
        await site.crawl(db, at=START)
        yield site, domain
        assert await check_invariants(db) == []
        assert await coins_missing(db) == 0


async def test_what_robots_txt_refuses_later_is_told_once_and_again_when_it_is_back(db: Database) -> None:
    async with inn(db) as (site, domain):
        site.pages["/robots.txt"] = CLOSED
        for day in (2, 4):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert await events(db, domain) == [("/cellar", "excluded")]
        assert (await states(db, domain))["/cellar"] == "excluded"
        site.pages["/robots.txt"] = OPEN
        for day in (6, 8):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert await events(db, domain) == [("/cellar", "excluded"), ("/cellar", "restored")]
        assert (await states(db, domain))["/cellar"] == "fetched"


@pytest.mark.parametrize("is_new", [False, True], ids=["as it was", "other words"])
async def test_the_return_is_told_at_the_first_good_answer(db: Database, *, is_new: bool) -> None:
    async with inn(db) as (site, domain):
        site.pages["/robots.txt"] = CLOSED
        await site.recrawl(db, domain, at=START + 2 * DAY)
        site.pages |= {"/robots.txt": OPEN, "/cellar": Said(503)}
        await site.recrawl(db, domain, at=START + 4 * DAY)
        assert await events(db, domain) == [("/cellar", "excluded")]
        site.pages["/cellar"] = text("casks of another vintage") if is_new else PAGES["/cellar"]
        await site.recrawl(db, domain, at=START + 6 * DAY)
        assert await events(db, domain) == [("/cellar", "excluded"), ("/cellar", "restored")]
        there = await read_version(db, domain, Url(f"{domain.root}cellar"))
        assert there is not None
        assert there.version.number == 1 + is_new
        known = await page(db, domain, "cellar")
        assert (known["changes"], known["rate_b"] > 0) == (int(is_new), True), "its change rate learns from it"
        assert await rows(db, "SELECT magnitude > 0 FROM event WHERE change = 'restored'") == [(is_new or None,)]


@pytest.mark.soak
async def test_a_page_without_text_that_is_as_it_was_makes_no_version(db: Database) -> None:
    async with scripted(db, PAGES | {"/cellar": Said(body="<script>barrels()</script>")}) as (site, domain):
        await site.crawl(db, at=START)
        wished = replace(domain.settings, exclude=("/cellar",))
        excluding = await domains.change_settings(db, domain, wished, at=START + DAY)
        await site.recrawl(db, domain, at=START + 2 * DAY)
        await domains.change_settings(db, excluding, domain.settings, at=START + 3 * DAY)
        await site.recrawl(db, domain, at=START + 4 * DAY)
        assert await events(db, domain) == [("/cellar", "excluded"), ("/cellar", "restored")]
        assert (await page(db, domain, "cellar"))["version"] == 1


async def test_what_is_refused_and_then_gone_is_told_of_both(db: Database) -> None:
    async with inn(db) as (site, domain):
        site.pages["/robots.txt"] = CLOSED
        await site.recrawl(db, domain, at=START + 2 * DAY)
        site.pages |= {"/robots.txt": OPEN, "/cellar": Said(410)}
        await site.recrawl(db, domain, at=START + 4 * DAY)
        assert await events(db, domain) == [("/cellar", "excluded"), ("/cellar", "gone")]


async def test_what_the_scope_leaves_out_later_is_told(db: Database) -> None:
    async with inn(db) as (site, domain):
        await domains.change_settings(db, domain, replace(domain.settings, exclude=("/cellar",)), at=START + DAY)
        asked = len(site.asked)
        await site.recrawl(db, domain, at=START + 2 * DAY)
        assert await events(db, domain) == [("/cellar", "excluded")]
        assert "/cellar" not in {path for path, _ in site.asked[asked:]}


async def test_a_page_that_was_never_read_is_no_news(db: Database) -> None:
    async with scripted(db, PAGES | {"/robots.txt": CLOSED}) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/robots.txt"] = OPEN
        await site.recrawl(db, domain, at=START + 2 * DAY)
        assert await events(db, domain) == []
        assert (await states(db, domain))["/cellar"] == "fetched"


async def test_the_pages_of_an_instant_say_which_were_refused_then(db: Database) -> None:
    async with inn(db) as (site, domain):
        site.pages["/robots.txt"] = CLOSED
        await site.recrawl(db, domain, at=START + 2 * DAY)
        was = {page.url: page.state for page in await list_pages_at(db, domain, at=START + DAY)}
        now = {page.url: page.state for page in await list_pages_at(db, domain, at=START + 3 * DAY)}
        cellar = Url(f"{domain.root}cellar")
        assert (was[cellar], now[cellar]) == (State.FETCHED, State.EXCLUDED)
