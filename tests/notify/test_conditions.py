"""Conditions on a watched block notify when they become true, and not when something else changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify.feed_reader import CONDITION_BATCH_SIZE, ConditionChecker, queue_notifications
from crawler.store import domains, report, subscriptions
from crawler.store.database import Database
from crawler.store.report import EventKind
from tests.engine.crawls import DAY, START, answering, register, rows
from tests.notify.receivers import Receiver, Shop, deliver_at, first_crawl, receiving, recrawl_at, subscribe

STANDING = frozenset({EventKind.ADDED, EventKind.CHANGED, EventKind.MOVED, EventKind.GONE, EventKind.RESTORED})


def said(receiver: Receiver) -> list[tuple[str, Any, Any]]:
    """Return the received changes: the last path segment, and the number before and after."""
    return [
        (change["url"].rpartition("/")[2], change["condition"]["was"], change["condition"]["now"])
        for change in receiver.changes
    ]


async def test_price_below_the_bound_notifies_once_until_it_was_above_again(db: Database) -> None:
    shop = Shop(4)
    shop.prices = {1: "EUR 60", 2: "EUR 30", 3: "EUR 1,060.00"}
    below = Condition(ConditionKind.BELOW, bound=50)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver, receiving(Receiver()) as above:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, condition=below, place=".price", kinds=STANDING)
        await subscribe(
            db, above.url, condition=Condition(ConditionKind.ABOVE, bound=1000), place=".price", kinds=STANDING
        )
        days = [
            {1: "EUR 49.50", 2: "EUR 29", 3: "EUR 999.00"},  # 1 falls below; 2 was below
            {1: "EUR 45", 2: "EUR 52", 3: "EUR 1,001.00"},  # 1 is below already; 3 rises
            {1: "EUR 55", 2: "EUR 48", 3: "EUR 1,002.00"},  # 2 falls below again
            {1: "sold out", 2: "EUR 48", 3: "EUR 1,003.00"},
            {1: "EUR 44", 2: "EUR 48", 3: "EUR 1,004.00"},  # 1 is back, below
        ]
        for n, prices in enumerate(days, start=1):
            shop.prices, shop.day = prices, n
            await recrawl_at(db, domain, at=START + n * DAY)
            await deliver_at(db, at=START + n * DAY)

    assert said(receiver) == [("p1", 60, 49.5), ("p2", 52, 48), ("p1", None, 44)]
    assert said(above) == [("p3", 999, 1001)]
    assert receiver.got[0].document["text"].startswith("49.5, below 50 (it was 60): birch")


async def test_text_that_appears_or_disappears_notifies_also_with_its_page(db: Database) -> None:
    shop = Shop(4)
    shop.prices = {1: "out of stock", 2: "in stock", 3: "in stock"}
    async with answering(shop.respond) as url, receiving(Receiver()) as appears, receiving(Receiver()) as goes:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(
            db, appears.url, condition=Condition(ConditionKind.APPEARS, "re:^in stock|\nin stock"), kinds=STANDING
        )
        await subscribe(
            db, goes.url, condition=Condition(ConditionKind.DISAPPEARS, "In stock"), place=".price", kinds=STANDING
        )
        shop.prices, shop.day = {1: "in stock now", 2: "in stock", 3: "out of stock"}, 1
        await recrawl_at(db, domain, at=START + DAY)
        shop.gone = {2}
        for n in range(2, 6):
            await recrawl_at(db, domain, at=START + n * DAY)
        await deliver_at(db, at=START + 6 * DAY)

    assert [page for page, _, _ in said(appears)] == ["p1"]
    assert [page for page, _, _ in said(goes)] == ["p3", "p2"]


async def test_condition_without_selector_uses_the_watched_block_of_a_rule(db: Database) -> None:
    shop = Shop(2)
    shop.prices = {1: "EUR 60"}
    rules = (PageRule(pattern="/p", view=View(watch=(".price",))),)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url, rules=rules)
        await first_crawl(db)
        await subscribe(db, receiver.url, condition=Condition(ConditionKind.BELOW, bound=50), kinds=STANDING)
        shop.prices = {1: "EUR 40"}
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)

    assert said(receiver) == [("p1", 60, 40)]


@pytest.mark.soak
async def test_feed_is_read_in_parts_until_the_deadline(db: Database) -> None:
    shop = Shop(6)
    condition = Condition(ConditionKind.APPEARS, "today")
    async with answering(shop.respond) as url, ParserPool(0) as readers:
        domain = await register(db, url)
        made = await subscribe(db, "http://127.0.0.1:9/hook", condition=condition, kinds=STANDING)
        await first_crawl(db)
        for day in range(1, 7):
            shop.day = day
            await recrawl_at(db, domain, at=START + day * DAY)
        await report.append_to_feed(db, at=START)
        end = await report.read_feed_end(db)
        time_left = iter((True, False))
        for _ in range(2):
            await queue_notifications(
                ConditionChecker(db, readers), made, end=end, now=START, may_continue=lambda: next(time_left, False)
            )
        found = await subscriptions.find_subscription(db, made.id)

    assert found is not None
    assert end == 42
    assert (found.position, found.waiting) == (CONDITION_BATCH_SIZE, 6)


async def test_excluded_page_keeps_its_last_text(db: Database) -> None:
    shop = Shop(4)
    shop.prices = {1: "sold out", 2: "sold out"}
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, condition=Condition(ConditionKind.DISAPPEARS, "sold out"), place=".price")
        wished = replace(domain.settings, exclude=("/p1", "/p2"))
        excluding = await domains.change_settings(db, domain, wished, at=START + DAY)
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)
        assert receiver.changes == []
        shop.prices[1], shop.day = "EUR 12", 2
        await domains.change_settings(db, excluding, domain.settings, at=START + 2 * DAY)
        await recrawl_at(db, domain, at=START + 2 * DAY)
        await deliver_at(db, at=START + 2 * DAY)

    kinds = [change for (change,) in await rows(db, "SELECT change FROM event WHERE url LIKE '%%/p1' ORDER BY number")]
    assert kinds == ["added", "excluded", "restored"]
    assert [page for page, _, _ in said(receiver)] == ["p1"]
