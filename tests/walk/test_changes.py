"""What a change is, from the server's bytes to the feed, where other crawlers have missed it."""

from dataclasses import dataclass

import pytest

from crawler.store.database import Database
from tests.walk.crawls import DAY, START, page
from tests.walk.scripted import Said, events, scripted

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
    wrong = "Tue, 05 Feb 2041 07:00:00 GMT"  # its own words, fifteen years ahead of anybody's clock
    async with scripted(db, {"/": body()}) as (site, domain):
        site.modified = wrong
        await site.crawl(db, at=START)
        await site.recrawl(db, domain, at=START + DAY)

        assert site.dates == {wrong}
