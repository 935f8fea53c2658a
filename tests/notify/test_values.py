"""Thresholds on values: each crossing is told once, also if deliveries fail or the process is killed."""

import asyncio
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.notify.message_text import format_changes, format_headline
from crawler.store.database import Database
from crawler.store.report import EventKind
from tests.engine.crawls import START, answering, environ, register
from tests.notify.receivers import Got, Receiver, Shop, deliver_at, first_crawl, receiving, recrawl_at, subscribe
from tests.patience import PATIENCE_S

DAY = timedelta(days=1)
VALUE = frozenset({EventKind.VALUE})
BELOW = Condition(ConditionKind.BELOW, bound=40)
RULES = (PageRule(pattern="/p", view=View(values=("price:EUR .price",))),)


def said(receiver: Receiver) -> list[tuple[float | None, float]]:
    return [(change["condition"]["was"], change["condition"]["now"]) for change in receiver.changes]


@pytest.mark.parametrize(
    ("condition", "prices", "expected"),
    [
        (BELOW, ["44.90", "39.90", "38", "41", "39.90"], [(44.9, 39.9), (41, 39.9)]),
        (BELOW, ["44.90", "", "39.90", "", "39"], [(44.9, 39.9)]),  # sold out in between is no crossing
        (BELOW, ["39", "38", "41", "39"], [(41, 39)]),  # it was below when the subscription was added
        (BELOW, ["", "39"], [(None, 39)]),
        (Condition(ConditionKind.ABOVE, bound=40), ["39", "40", "41", "42"], [(40, 41)]),
        # Against the last number that was notified: a drift is told, and what goes back and forth is not.
        (
            Condition(ConditionKind.DIFFERS, bound=0.1),
            ["100", "95", "100", "94", "89", "95", "98"],
            [(100, 89), (89, 98)],
        ),
        (Condition(ConditionKind.DIFFERS, bound=0.1), ["100", "109", "118", "119.90"], [(100, 118)]),
        (Condition(ConditionKind.DIFFERS, bound=0.1), ["0", "1", "1.05"], [(0, 1)]),
    ],
)
async def test_crossing_of_a_threshold_is_told_once(
    db: Database, condition: Condition, prices: list[str], expected: list[tuple[float | None, float]]
) -> None:
    shop, refused = Shop(2), set[str]()
    shop.prices = {1: f"€ {prices[0]}"}

    def refuse_first(got: Got) -> tuple[int, str]:
        """Accept a message only when it comes again."""
        token = got.headers["webhook-id"]
        is_again = token in refused
        refused.add(token)
        return (204, "") if is_again else (503, "")

    async with answering(shop.respond) as url, receiving(Receiver(refuse_first)) as receiver:
        domain = await register(db, url, rules=RULES)
        await first_crawl(db)
        await subscribe(db, receiver.url, condition=condition, value_name="price", kinds=VALUE)
        for n, price in enumerate(prices[1:], start=1):
            shop.prices, shop.day = {1: f"€ {price}"}, n
            await recrawl_at(db, domain, at=START + n * DAY)
            await deliver_at(db, at=START + n * DAY)
            await deliver_at(db, at=START + n * DAY + timedelta(hours=2))

    assert said(receiver) == expected
    assert len(receiver.got) == 2 * len(expected)  # each was refused once


async def test_message_shows_old_and_new_value(db: Database) -> None:
    shop = Shop(3)
    shop.prices = {1: "44,90 €", 2: "10 €"}
    async with answering(shop.respond) as url, receiving(Receiver()) as below, receiving(Receiver()) as all_values:
        domain = await register(db, url, rules=(*RULES, PageRule(pattern="/p2", view=View(values=("other .price",)))))
        await first_crawl(db)
        await subscribe(db, below.url, condition=BELOW, value_name="price", kinds=VALUE)
        await subscribe(db, all_values.url, kinds=VALUE)
        shop.prices = {1: "39,90 €", 2: "9 €"}
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)

    (change,) = below.changes
    assert change["value"] == {"name": "price", "unit": "EUR", "was": 44.9, "now": 39.9, "finding": ""}
    assert change["condition"] == {"kind": "below", "text": "price", "bound": 40.0, "was": 44.9, "now": 39.9}
    assert format_headline([change]) == f"price 39.90 EUR, below 40 (it was 44.90 EUR): birch ({domain.authority})"
    assert "price: [-44.90-]{+39.90+} EUR" in format_changes([change])
    assert sorted(each["value"]["name"] for each in all_values.changes) == ["other", "price", "price"]
    assert format_headline(all_values.changes[:1]).startswith("Value changed: ")


async def test_crossing_is_told_once_although_the_process_is_killed(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    shop, kills = Shop(2), 3
    shop.prices = {1: "44,90 €"}
    async with answering(shop.respond) as url, receiving(Receiver(lambda _: None)) as receiver:
        domain = await register(db, url, rules=RULES)
        await first_crawl(db)
        await subscribe(db, receiver.url, condition=BELOW, value_name="price", kinds=VALUE)
        shop.prices = {1: "39,90 €"}
        await recrawl_at(db, domain, at=START + DAY)
        for n in range(1, kills + 1):
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "crawler", "notify", "run", "--json"),
                env=environ(database_url, tmp_path),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            async with asyncio.timeout(PATIENCE_S):
                while len(receiver.got) < n:
                    await asyncio.sleep(0.005)
            child.send_signal(signal.SIGKILL)  # the receiver has the message, but its response never came
            await child.wait()
        receiver.answer = lambda _: (204, "")
        await deliver_at(db, at=datetime.now(UTC))
        await deliver_at(db, at=datetime.now(UTC))

    assert said(receiver) == [(44.9, 39.9)]
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
