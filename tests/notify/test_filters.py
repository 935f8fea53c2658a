"""The filters of subscriptions, and notifications of failures."""

from datetime import timedelta
from typing import Any

import pytest

from crawler.core.domain import Domain
from crawler.notify.message_text import format_changes, format_headline
from crawler.store.database import Database
from crawler.store.report import EventKind
from tests.engine.crawls import START, answered, answering, register
from tests.notify.receivers import Receiver, Shop, deliver_at, first_crawl, receiving, recrawl_at, subscribe

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("wish", "paths"),
    [
        ({"page": "p3"}, ["p3"]),
        ({"prefix": "p"}, ["p1", "p2", "p3", "p4", "p5"]),
        ({"prefix": "p4"}, ["p4"]),
        ({"pattern": "/p[0-9]"}, []),
        ({"min_magnitude": 0.9}, []),
        ({"min_magnitude": 0.001, "prefix": "p5"}, ["p5"]),
    ],
    ids=["page", "prefix", "longer-prefix", "pattern", "large-changes", "small-changes"],
)
async def test_only_selected_changes_are_sent(db: Database, wish: dict[str, Any], paths: list[str]) -> None:
    shop = Shop()
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register_site(db, url)
        urls = {name: f"{url}{path}" for name, path in wish.items() if name in {"page", "prefix"}}
        await subscribe(db, receiver.url, **(wish | urls))
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)

        assert sorted(change["url"] for change in receiver.changes) == [f"{url}{path}" for path in paths]


async def register_site(db: Database, url: str) -> Domain:
    domain = await register(db, url)
    await first_crawl(db)
    return domain


async def test_failures_are_sent_once_each_and_those_of_a_domain_whatever_the_filter(db: Database) -> None:
    shop, trouble = Shop(), set[str]()
    kinds = frozenset({EventKind.FAILING, EventKind.RECOVERED})

    def respond(path: str) -> bytes:
        is_down = path in trouble or ("/" in trouble and path != "/robots.txt")
        return answered(500, b"sorry") if is_down else shop.respond(path)

    async with answering(respond) as url, receiving(Receiver()) as all_pages, receiving(Receiver()) as one_page:
        domain = await register_site(db, url)
        await subscribe(db, all_pages.url, kinds=kinds)
        await subscribe(db, one_page.url, kinds=kinds, page=f"{url}p2")
        for n, path in enumerate(["/p1"] * 4 + [""] + ["/"] * 4 + [""] * 2, 1):
            trouble.clear()
            trouble.add(path)
            at = START + n * DAY
            await recrawl_at(db, domain, at=at)
            await deliver_at(db, at=at)

    sent = [(change["change"], change["url"].removeprefix(url), change["reason"]) for change in all_pages.changes]
    assert sent == [
        ("failing", "p1", "http_500"),
        ("recovered", "p1", None),
        ("failing", "", "http_500"),
        ("recovered", "", None),
    ]
    assert [(change["change"], change["url"]) for change in one_page.changes] == [("failing", url), ("recovered", url)]
    page, _, whole, _ = all_pages.changes
    assert format_headline([page]) == f"Failing: birch ({domain.authority})"
    assert format_headline([whole]) == f"Domain failing: {domain.authority}"
    assert "500 Internal Server Error" in format_changes([page])
