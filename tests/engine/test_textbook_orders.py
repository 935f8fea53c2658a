"""Depth-first and breadth-first order as in textbooks, compared with the log of a real server."""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.opic.order import Order, Ordering
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import QUICK, START, coins_missing
from tests.engine.scripted import Said, scripted, text

NO_PAGE = re.compile(r"/robots\.txt|/sitemap\.xml|.*/0[0-9a-f]{32}")  # requested for the domain
Site = Mapping[str, Sequence[str]]

# Four children of the root with three or four each, and some of those with their own. Some links cross: up, to
# siblings, to unfetched pages that an earlier page linked to, to the page itself, and twice to one page.
TREE: Site = {
    "/": ["/d", "/a", "/c", "/b"],
    "/d": ["/d/3", "/d/1", "/", "/d/2"],
    "/a": ["/a/1", "/b", "/a/3", "/a/2", "/a/1"],
    "/c": ["/c/1", "/c/2", "/c/3", "/c/4", "/a/2/x"],
    "/b": ["/b/2", "/b", "/b/1", "/d/2", "/b/3"],
    "/d/3": ["/c", "/d/1"],
    "/d/1": [],
    "/d/2": ["/d/2/y", "/d/2/x", "/b/3"],
    "/d/2/y": ["/a"],
    "/d/2/x": [],
    "/a/1": ["/a/1/y", "/a/1/x"],
    "/a/1/y": [],
    "/a/1/x": ["/a/1/y", "/a/2"],
    "/a/2": ["/a/2/x", "/"],
    "/a/2/x": [],
    "/a/3": [],
    "/b/1": ["/b/2"],
    "/b/2": ["/b/2/z"],
    "/b/2/z": ["/b/2/z/deep"],
    "/b/2/z/deep": ["/c/4"],
    "/b/3": [],
    "/c/1": [],
    "/c/2": [],
    "/c/3": ["/c/3/1", "/c/3/2"],
    "/c/3/1": [],
    "/c/3/2": [],
    "/c/4": ["/c/1"],
}


def depth_first(site: Site) -> list[str]:
    """Visit a page, then recursively the pages that it links to, one after the other."""
    read: dict[str, None] = {}

    def visit(page: str) -> None:
        if page not in read:
            read[page] = None
            for link in site[page]:
                visit(link)

    visit("/")
    return list(read)


def breadth_first(site: Site) -> list[str]:
    """Visit pages from a queue."""
    found, waiting = {"/": None}, deque(["/"])
    while waiting:
        for link in site[waiting.popleft()]:
            if link not in found:
                found[link] = None
                waiting.append(link)
    return list(found)


TEXTBOOK = {Order.DEPTH: depth_first, Order.BREADTH: breadth_first}


def pages_of(site: Site) -> dict[str, Said]:
    return {path: text(f"page {path}", *links) for path, links in site.items()}


async def requests(db: Database, site: Site, ordering: Ordering, *, batch: int, pages: int | None = None) -> list[str]:
    """Return the pages that the server was requested one at a time, in order, in as many shifts as needed."""
    async with scripted(db, pages_of(site)) as (server, domain):
        wished = replace(domain.settings, parallelism=1, ordering=ordering)
        await domains.change_settings(db, domain, wished, at=START)
        server.settings = QUICK.model_copy(update={"max_batch_size": batch})
        at = START
        while (await server.crawl(db, at=at, pages=pages)).stats.visits:
            at += timedelta(minutes=1)
        return [path for path, _ in server.asked if not NO_PAGE.fullmatch(path)]


@pytest.mark.parametrize(
    ("order", "batch"),
    [
        (Order.BREADTH, 1),
        (Order.DEPTH, 4),
        (Order.BREADTH, 50),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in ((Order.DEPTH, 1), (Order.BREADTH, 4), (Order.DEPTH, 50))
        ),
    ],
)
async def test_pages_are_asked_for_exactly_as_in_the_textbook(db: Database, order: Order, batch: int) -> None:
    """The batch size does not matter: one page, a few, or more than the site has."""
    asked = await requests(db, TREE, Ordering(order), batch=batch)

    assert asked == TEXTBOOK[order](TREE)
    assert sorted(asked) == sorted(TREE)
    assert await coins_missing(db) == 0


@pytest.mark.parametrize("order", [Order.BREADTH, pytest.param(Order.DEPTH, marks=pytest.mark.soak)])
async def test_a_crawl_that_stops_after_every_few_pages_goes_on_where_it_was(db: Database, order: Order) -> None:
    asked = await requests(db, TREE, Ordering(order), batch=50, pages=3)

    assert asked == TEXTBOOK[order](TREE)


@pytest.mark.parametrize("order", [Order.BREADTH, pytest.param(Order.DEPTH, marks=pytest.mark.soak)])
async def test_what_a_user_favours_keeps_its_place(db: Database, order: Order) -> None:
    asked = await requests(db, TREE, Ordering(order, boost=("/b", "/a/2"), boost_factor=50.0), batch=4)

    assert asked == TEXTBOOK[order](TREE)
