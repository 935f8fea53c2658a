"""A repaired receiver gets waiting messages at once after a redelivery or a successful test."""

from datetime import datetime, timedelta

import pytest

from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify.subscription_delivery import DeliveryContext, send_test
from crawler.store import outbox, subscriptions
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answering, register
from tests.notify.receivers import (
    Receiver,
    Shop,
    changes_of,
    deliver_at,
    delivered_changes,
    first_crawl,
    receiving,
    recrawl_at,
    subscribe,
)
from tests.notify.test_services_and_commands import mail_server

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
CHANGED = START + DAY


@pytest.mark.soak
async def test_redelivery_sends_dead_and_waiting_messages_at_once(db: Database) -> None:
    shop, receiver = Shop(), Receiver(lambda _: (503, ""))
    async with answering(shop.respond) as url, receiving(receiver):
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, receiver.url)
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        now = CHANGED
        while not await outbox.list_dead_letters(db):
            await deliver_at(db, at=now)
            now += HOUR
        shop.day = 2
        await recrawl_at(db, domain, at=now)
        await deliver_at(db, at=now)
        receiver.answer = lambda _: (204, "")
        left_alone = await deliver_at(db, at=now + MINUTE)
        (waiting,) = await subscriptions.list_subscriptions(db)
        redelivered = await outbox.redeliver_letters(db, None, at=now + MINUTE)
        done = await deliver_at(db, at=now + MINUTE)
        known = await changes_of(db)
        after = await subscriptions.find_subscription(db, one.id)

    assert (left_alone.messages, waiting.reason) == (0, "status 503")
    assert waiting.get_next_retry(at=now + MINUTE) is not None
    assert redelivered > 0
    assert (done.messages, done.undelivered) == (12, {})
    assert sorted(delivered_changes(receiver)) == known
    assert after is not None
    assert (after.failures, after.dead, after.waiting, after.last_error) == (0, 0, 0, "")


async def try_target(db: Database, number: int, *, at: datetime) -> str:
    """Send a test message at an instant."""

    async def nowhere(_: object) -> str | None:
        return None

    found = await subscriptions.find_subscription(db, number)
    assert found is not None
    async with ParserPool(0) as readers:
        context = DeliveryContext(db, readers, find_secret=nowhere, user_agent="recrawl-test", now=lambda: at)
        return await send_test(context, found)


@pytest.mark.soak
async def test_failed_mail_is_sent_after_a_successful_test(db: Database) -> None:
    shop = Shop()
    async with answering(shop.respond) as url, mail_server() as server:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, f"mailto://127.0.0.1:{server.port}?from=recrawl@example.com&to=me@example.com")
        shop.day, server.refuses = 1, True
        await recrawl_at(db, domain, at=CHANGED)
        for n in range(6):
            await deliver_at(db, at=CHANGED + n * HOUR)
        mended_at = CHANGED + 5 * HOUR + MINUTE
        refused = await try_target(db, one.id, at=mended_at)
        still_waits = await deliver_at(db, at=mended_at)
        server.refuses = False
        taken = await try_target(db, one.id, at=mended_at)
        done = await deliver_at(db, at=mended_at)

    assert (bool(refused), still_waits.messages, taken) == (True, 0, "")
    assert (done.messages, done.changes) == (1, 6)
    assert [mail["subject"] for mail in server.mails] == ["recrawl: test message", f"{domain.authority}: 6 changed"]
