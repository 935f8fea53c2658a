"""Values over time: what rules read from the pages of a real site, what is recorded, and what becomes an event."""

import subprocess
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.prune import prune_domain
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.record.clocks import reset_clock
from tests.commands import RECRAWL, Answer, Site, environ, in_this_process, serving
from tests.databases import execute
from tests.engine.crawls import DAY, START, rows
from tests.engine.scripted import Said, events, scripted
from tests.patience import until

HOUR = timedelta(hours=1)
KILLS = 5
WORDS = "".join(
    f"<p>Paragraph {n} says at some length what a kettle is good for, and why number {n}." for n in range(9)
)

HOME = Said(body="<a href=/kettle>Kettle</a>")


def shop(price: str, *, json_price: str = "0", language: str = "de") -> Said:
    script = f'<script type="application/ld+json">{{"@type":"Product","offers":{{"price":{json_price}}}}}</script>'
    body = f"<h1>Kettle</h1>{WORDS}{price and f'<p class=price>{price}</p>'}"
    return Said(body=f"<html lang='{language}'><head><title>Kettle</title>{script}</head><main>{body}</main>")


async def track(db: Database, domain: Domain, *values: str, pattern: str = "/kettle$", **others: Any) -> Domain:
    rule = PageRule(pattern, view=View(values=values))
    return await domains.change_settings(db, domain, replace(domain.settings, rules=(rule,), **others), at=START)


async def series(db: Database) -> list[tuple[str, float | None, str, str, int]]:
    return await rows(db, "SELECT name, number, unit, finding, version FROM page_value ORDER BY at, name")


async def reported(db: Database) -> list[tuple[float | None, float | None]]:
    return await rows(db, "SELECT value->'was', value->'now' FROM event WHERE change = 'value' ORDER BY number")


async def test_each_number_that_differs_is_one_row_and_one_event(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("1.299,00 €")}) as (
        site,
        domain,
    ):
        await track(db, domain, "price .price")
        for day, price in enumerate(("1.299,00 €", "1.299,00 €", "1.199,50 €", "", "1.199,50 €", "1.099,00 €")):
            site.pages["/kettle"] = shop(price)
            await site.recrawl(db, domain, at=START + day * DAY)

        assert await series(db) == [
            ("price", 1299.0, "€", "", 1),
            ("price", 1199.5, "€", "", 2),
            ("price", None, "", "not_found", 3),
            ("price", 1199.5, "€", "", 4),
            ("price", 1099.0, "€", "", 5),
        ]
        assert await reported(db) == [
            (None, 1299.0),
            (1299.0, 1199.5),
            (1199.5, None),
            (1199.5, 1199.5),
            (1199.5, 1099.0),
        ]
        blocks = await rows(db, "SELECT blocks->0 FROM event WHERE change = 'value' ORDER BY number")
        assert [block for (block,) in blocks][:3] == [
            ["text", None, "price: 1299 €"],
            ["text", "price: 1299 €", "price: 1199.50 €"],
            ["text", "price: 1199.50 €", "price: not found"],
        ]


async def test_number_in_json_ld_is_read_although_the_text_is_unchanged(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("", json_price="44.9")}) as (
        site,
        domain,
    ):
        await track(db, domain, "price:EUR jsonld:offers.price")
        await site.crawl(db, at=START)
        site.pages["/kettle"] = shop("", json_price='"39.90"')
        await site.recrawl(db, domain, at=START + DAY)

        assert await series(db) == [("price", 44.9, "EUR", "", 1), ("price", 39.9, "EUR", "", 1)]
        assert await events(db, domain) == [("/kettle", "value"), ("/kettle", "value")]


async def test_new_rule_reads_pages_that_did_not_change(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("12,5 %")}) as (
        site,
        domain,
    ):
        await site.crawl(db, at=START)
        await track(db, domain, "share .price")
        await site.crawl(db, at=START + HOUR)

        assert await series(db) == [("share", 12.5, "%", "", 1)]


async def test_number_that_is_ambiguous_is_a_finding_until_the_rule_says_more(db: Database) -> None:
    page = shop("1.299", language="")
    async with scripted(db, {"/": HOME, "/kettle": page}) as (site, domain):
        tracked = await track(db, domain, "price .price")
        await site.crawl(db, at=START)
        await track(db, tracked, "price::, .price")
        await site.crawl(db, at=START + DAY)

        assert await series(db) == [("price", None, "", "ambiguous", 1), ("price", 1299.0, "", "", 1)]
        assert await reported(db) == [(None, 1299.0)]


async def test_value_of_a_page_that_is_gone_is_gone(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("44,90 €")}) as (
        site,
        domain,
    ):
        await track(db, domain, "price .price", pattern="/")
        await site.crawl(db, at=START)
        site.pages["/kettle"] = Said(410)
        await site.recrawl(db, domain, at=START + DAY)

        assert await series(db) == [("price", 44.9, "€", "", 1), ("price", None, "", "gone", 1)]
        assert await reported(db) == [(None, 44.9), (44.9, None)]


async def test_pruning_keeps_the_last_number(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("44,90 €")}) as (
        site,
        domain,
    ):
        tracked = await track(db, domain, "price .price", keep_changes=3 * DAY)
        for day, price in enumerate(("44,90 €", "39,90 €")):
            site.pages["/kettle"] = shop(price)
            await site.recrawl(db, domain, at=START + day * DAY)
        await site.recrawl(db, domain, at=START + 9 * DAY)  # nothing new
        await prune_domain(db, tracked, at=START + 9 * DAY)

        assert await series(db) == [("price", 39.9, "€", "", 2)]


HOSTILE = {
    "a number that is not finite": ("NaN", "jsonld:offers.price", "no_number"),
    "an exponent": ("1e400", "jsonld:offers.price", "ambiguous"),
    "a huge number": ("9" * 30, "jsonld:offers.price", "too_large"),
    "a number without end": ("1" + "0" * 5000, "jsonld:offers.price", ""),
    "a deep object": ("[" * 5000 + "1" + "]" * 5000, "jsonld:offers.price", ""),
}


@pytest.mark.parametrize(("json_price", "source", "finding"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_number_is_a_finding(db: Database, json_price: str, source: str, finding: str) -> None:
    pages = {"/": HOME, "/kettle": shop("5", json_price=json_price)}
    async with scripted(db, pages) as (site, domain):
        await track(db, domain, f"price {source}", "other .price")
        await site.crawl(db, at=START)

        assert ("other", 5.0, "", "", 1) in await series(db)
        assert [row[3] for row in await series(db) if row[0] == "price"] == [finding] * bool(finding)


async def test_series_keeps_its_order_when_the_clock_is_reset(db: Database) -> None:
    async with scripted(db, {"/": HOME, "/kettle": shop("44,90 €")}) as (site, domain):
        await track(db, domain, "price .price", "same .price")
        for day, price in enumerate(("44,90 €", "39,90 €", "41,90 €")):
            site.pages["/kettle"] = shop(price)
            await site.recrawl(db, domain, at=START + day * DAY)
        await reset_clock(db, domain, at=START + HOUR)

        assert [row[1] for row in await series(db) if row[0] == "price"] == [44.9, 39.9, 41.9]
        assert await rows(db, "SELECT max(at) FROM page_value") == [(START + HOUR,)]


def test_killed_crawls_record_each_value_once(database_url: str, tmp_path: Path) -> None:
    with serving() as site, in_this_process(database_url, tmp_path) as recrawl:
        crawl = ("crawl", site.url, "--allow-private", "--delay", "0")
        sell(site, 0)
        assert recrawl(*crawl).code == 0
        recrawl("rules", "add", site.name, "/one$", "--value", "price .price")
        for n in range(1, KILLS + 1):
            sell(site, n)
            recrawl("refresh", site.name)
            kill_after(n, site, subprocess.Popen([RECRAWL, *crawl], env=environ(database_url, tmp_path), stderr=PIPE))
            # Otherwise the lease of the killed process would end in a minute.
            execute(database_url, "UPDATE domain_state SET leased_until = now()")
            execute(database_url, "UPDATE address_slot SET held_until = now()")
        recrawl("refresh", site.name)
        assert recrawl(*crawl).code == 0
        readings = recrawl("values", f"{site.url}one", "--json").json["values"]
        changes = recrawl("changes", site.name, "--kind", "value", "--json").json["changes"]

    numbers = [each["number"] for each in reversed(readings)]
    assert numbers == sorted(set(numbers))  # each once; what no visit read before the kill was never recorded
    assert numbers[-1] == KILLS
    assert [change["value"]["now"] for change in changes] == numbers


def kill_after(requests: int, site: Site, child: subprocess.Popen[bytes]) -> None:
    """Kill a crawl after some requests, or at its end."""
    before = len(site.asked)
    until(lambda: len(site.asked) >= before + requests or child.poll() is not None, poll_s=0.001)
    child.kill()
    child.communicate()


def sell(site: Site, price: int) -> None:
    site.answers["/one"] = Answer(shop(f"{price} \u20ac").body.encode())
