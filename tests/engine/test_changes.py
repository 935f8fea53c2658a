"""What counts as a change, from the server's bytes to the feed, in cases that other crawlers miss."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, pairwise
from random import Random

import pytest

from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, answered, answering, crawl, page, recrawl, register, rows
from tests.engine.scripted import Said, events, scripted

HOUR = timedelta(hours=1)
PARAGRAPHS = "".join(
    f"<p>Paragraph {n} says at some length what there is to be said about number {n}." for n in range(9)
)
SECTIONS = ("<h2>Apples</h2><p>Red ones, and green ones.", "<h2>Pears</h2><p>Yellow ones, and brown ones.")


def body(*, title: str = "Fruit", price: str = "19.99", sections: tuple[str, ...] = SECTIONS) -> Said:
    said = f"<h1>Fruit</h1>{PARAGRAPHS}<p>A crate is {price} today.{''.join(sections)}"
    return Said(body=f"<head><title>{title}</title><meta name=description content=fruit></head><main>{said}</main>")


@dataclass(frozen=True, slots=True)
class Edit:
    name: str
    said: Said


EDITS = [
    Edit("a digit of a price", body(price="19.98")),
    Edit("the same digits in another order", body(price="99.19")),
    Edit("a section that moved", body(sections=SECTIONS[::-1])),
    Edit("the body alone", body(sections=(SECTIONS[0], SECTIONS[1].replace("brown", "black")))),
    Edit("the title alone", body(title="Vegetables")),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
async def test_an_edit_that_others_miss_is_one_version_more_and_one_event(db: Database, edit: Edit) -> None:
    async with scripted(db, {"/": body()}) as (site, domain):
        await site.crawl(db, at=START)
        site.pages["/"] = edit.said
        await site.recrawl(db, domain, at=START + DAY)
        await site.recrawl(db, domain, at=START + 2 * DAY)

        assert await events(db, domain) == [("/", "changed")]
        assert (await page(db, domain, "/"))["version"] == 2


async def test_a_server_whose_clock_is_wrong_gets_its_own_date_back(db: Database) -> None:
    wrong = "Tue, 05 Feb 2041 07:00:00 GMT"  # the server's own value, fifteen years in the future
    async with scripted(db, {"/": body()}) as (site, domain):
        site.modified = wrong
        await site.crawl(db, at=START)
        await site.recrawl(db, domain, at=START + DAY)

        assert site.dates == {wrong}


async def test_an_etag_goes_back_as_it_came_whatever_it_looks_like(db: Database) -> None:
    odd = 'W/"Ab, b;  /\\ c"'
    async with scripted(db, {"/": body()}) as (site, domain):
        site.etag = odd
        await site.crawl(db, at=START)
        for day in range(1, 4):  # one may be a validator check
            await site.recrawl(db, domain, at=START + day * DAY)

        assert site.tags == {odd}
        assert (304,) in await rows(db, "SELECT status FROM visit")


@pytest.mark.soak
async def test_a_known_page_that_changed_is_asked_for_by_its_schedule_and_told(db: Database) -> None:
    async with scripted(db, {"/": body()}) as (site, domain):
        for day in range(20):
            await site.crawl(db, at=START + day * DAY)  # only what is due
        assert await events(db, domain) == []
        assert 1 < len([path for path, _ in site.asked if path == "/"]) < 20

        site.pages["/"] = body(price="19.98")
        for day in range(20, 60):
            await site.crawl(db, at=START + day * DAY)
        assert await events(db, domain) == [("/", "changed")]


@pytest.mark.soak
async def test_a_year_of_a_static_page_stays_conditional_and_keeps_what_was_learnt(db: Database) -> None:
    longest = 10 * DAY
    async with scripted(db, {"/": body()}) as (site, domain):
        site.modified = "Thu, 01 Jan 2026 00:00:00 GMT"
        site.settings = QUICK.model_copy(update={"max_interval": longest})
        await site.crawl(db, at=START)
        first, at = await page(db, domain, "/"), START
        while at < START + 365 * DAY:
            at = (await rows(db, "SELECT due_at FROM frontier"))[0][0] + HOUR
            await site.crawl(db, at=at)

        kept = await page(db, domain, "/")
        assert [kept[name] for name in LEARNT_ONCE] == [first[name] for name in LEARNT_ONCE]
        visits = await rows(db, "SELECT due_at - at, conditional, status FROM visit ORDER BY at")
        assert all(status == (304 if conditional else 200) for _, conditional, status in visits)
        at_the_ceiling = [conditional for (gap, *_), (_, conditional, _) in pairwise(visits) if gap == longest]
        assert len(at_the_ceiling) > 10
        assert sum(at_the_ceiling) >= 0.7 * len(at_the_ceiling)  # all others are validator checks


LEARNT_ONCE = ("etag", "last_modified", "version", "body_digest", "text_digest", "main_digest", "fingerprint")


# What a page contains beside its text at its n-th request.
NOISES: dict[str, Callable[[int], str]] = {
    "clock": lambda n: f"<p class=clock>Generated at 10:{n:02}:07 in 0.{n % 90 + 10} s",
    "token": lambda n: (
        f"<form action=/order><input type=hidden name=csrf value={n * 7919:x}><button>Order</button></form>"
    ),
    "session": lambda n: f"<p><a href=/terms?sid={n * 104729:x}>Terms</a>",
    "ad": lambda n: (
        f"<div class=box>{('Buy boots', 'Visit Rome', 'Try our tea', 'Win a car', 'Learn to sail')[n % 5]}</div>"
    ),
    "counter": lambda n: f"<p>{1000 + n * 3} people have seen this page",
    "attributes": lambda n: ("<p class=note id=a>Washed and sorted", '<p  id="a"  class="note" >Washed and sorted')[
        n % 2
    ],
    "space": lambda n: f"<p>Delivered{' ' * (1 + n % 3)}on{chr(10) * (1 + n % 2)}Mondays",
}


async def test_what_differs_at_every_request_is_no_change_and_an_edit_beside_it_is(db: Database) -> None:
    numbers = {f"/{noise}": count() for noise in NOISES}
    pages = {f"/{noise}": body(title=noise, price=f"{n}9.90") for n, noise in enumerate(NOISES, 1)}
    links = "".join(f"<p><a href={path}>{path}</a>" for path in pages)
    async with scripted(db, pages | {"/": beside(body(), links)}) as (site, domain):
        site.trouble = lambda path: (
            beside(site.pages[path], NOISES[path[1:]](next(numbers[path]))) if path in pages else None
        )
        await site.crawl(db, at=START)
        for day in range(1, 6):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert await events(db, domain) == []

        site.pages |= {f"/{noise}": body(title=noise, price=f"{n}9.80") for n, noise in enumerate(NOISES, 1)}
        for day in range(6, 8):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert sorted(await events(db, domain)) == [(path, "changed") for path in sorted(pages)]


def beside(said: Said, more: str) -> Said:
    return Said(body=said.body.replace("</main>", f"{more}</main>"))


HALVES = ("<p class=offer>Free delivery this week, order now", "<p class=offer>Spring sale: all crates at half price")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
async def test_a_variant_that_was_seen_before_is_no_change_and_an_edit_beside_it_is(db: Database, seed: int) -> None:
    draw = Random(seed)
    async with scripted(db, {"/": body()}) as (site, domain):
        site.trouble = lambda path: beside(site.pages[path], draw.choice(HALVES)) if path == "/" else None
        await site.crawl(db, at=START)
        await site.recrawl(db, domain, at=START + DAY)
        await site.recrawl(db, domain, at=START + 2 * DAY)
        known = await events(db, domain)
        assert len(known) <= 1  # the other variant is reported once, if all simultaneous visits get the same
        for day in range(3, 9):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert await events(db, domain) == known

        site.pages["/"] = body(price="19.98")
        for day in range(9, 12):
            await site.recrawl(db, domain, at=START + day * DAY)
        assert await events(db, domain) == [*known, ("/", "changed")]


@pytest.mark.soak
async def test_a_variant_that_holds_for_a_day_is_told_until_it_was_back_twice_and_an_edit_beside_it_is(
    db: Database,
) -> None:
    async with scripted(db, {"/": body()}) as (site, domain):

        async def look(*days: int) -> None:
            for day in days:
                half = HALVES[day % 2]
                site.trouble = lambda path: beside(site.pages[path], half) if path == "/" else None  # noqa: B023
                await site.recrawl(db, domain, at=START + day * DAY)

        await look(0, 1, 2, 3)
        told = await events(db, domain)
        await look(*range(4, 12))
        assert await events(db, domain) == told == [("/", "changed")] * 3

        site.pages["/"] = body(price="19.98")
        await look(12, 13, 14)
        assert await events(db, domain) == [*told, ("/", "changed")]


async def test_one_second_look_at_a_wall_hides_no_change_of_any_page(db: Database) -> None:
    paths = [f"/{word}" for word in ("apples", "pears", "plums", "figs")]
    shop = {path: body(title=path[1:], price="19.99") for path in paths}
    links = "".join(f"<p><a href={path}>{path}</a>" for path in paths)
    blocked = Said(body="<title>Checking</title><div class=box><h1>One moment</h1><p>You are asking too fast.</div>")
    asked: Counter[str] = Counter()
    async with scripted(db, shop | {"/": beside(body(), links)}) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: (
            blocked if path in shop and asked.update([path]) is None and asked[path] > 1 else None
        )
        site.pages["/figs"] = body(title="figs", price="24.99")
        await site.recrawl(db, domain, at=START + DAY)
        assert asked["/figs"] > 1
        assert await events(db, domain) == [("/figs", "changed")]

        site.trouble = lambda _path: None
        site.pages |= {path: body(title=path[1:], price=f"{n}99.00") for n, path in enumerate(paths, 1)}
        await site.recrawl(db, domain, at=START + 2 * DAY)
        found = [(path, kind) for path, kind in await events(db, domain) if kind == "changed"]
        assert sorted(found) == sorted([("/figs", "changed"), *((path, "changed") for path in paths)])


async def test_what_a_look_received_counts_the_page_a_moment_later_too(db: Database) -> None:
    """A changed page is fetched again to see what differs without an edit; its bytes are received as well."""
    async with answering(lambda target: answered(404, b"") if target == "/robots.txt" else said[0]) as url:
        said = [answered(200, body().body.encode())]
        domain = await register(db, url)
        await crawl(db, at=START)
        said[0] = answered(200, body(price="20.99").body.encode())
        shift = await recrawl(db, domain, at=START + DAY)

    ((received, requests),) = await rows(
        db, "SELECT received_bytes, requests FROM visit WHERE change = 'changed' AND domain_id = %s", domain.id
    )
    spent = await rows(db, "SELECT spent_bytes FROM domain_state")
    one = len(body(price="20.99").body)
    assert received in {2 * one, 3 * one}
    assert shift.stats.received_bytes == received
    assert requests >= 1
    assert spent == [(received,)]
