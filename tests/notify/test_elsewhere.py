"""Each command runs only in its own RECRAWL_HOME; other homes report it once it is long overdue."""

from datetime import timedelta
from pathlib import Path

import pytest

from crawler.store import subscriptions
from crawler.store.database import Database
from crawler.store.rows import execute
from tests.engine.crawls import DAY, START, answering, register
from tests.notify.receivers import Receiver, Shop, deliver_at, first_crawl, receiving, recrawl_at, subscribe

HOUR = timedelta(hours=1)
CHANGED = START + DAY


async def test_command_of_another_home_is_reported_after_hours(db: Database, tmp_path: Path) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, f"command:tee -a {tmp_path / 'inbox'}", signature="of the other")
        none_yet = await deliver_at(db, at=START + DAY / 2)
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        soon = await deliver_at(db, at=CHANGED + HOUR)
        late = await deliver_at(db, at=CHANGED + 3 * HOUR)
        by_its_own = await deliver_at(db, at=CHANGED + 3 * HOUR, signature="of the other")
        afterwards = await deliver_at(db, at=CHANGED + 9 * HOUR)

    assert (none_yet.elsewhere, soon.elsewhere) == ({}, {})
    assert late.elsewhere.keys() == {one.id}
    assert "added with another RECRAWL_HOME" in late.elsewhere[one.id]
    assert "it has not run since" in late.elsewhere[one.id]
    assert f"recrawl notify remove {one.id}" in late.elsewhere[one.id]
    assert (late.failed, by_its_own.messages, by_its_own.undelivered) == ({}, 2, {})
    assert afterwards.elsewhere == {}  # nothing waits


async def test_failing_command_is_not_reported_by_another_home(db: Database) -> None:
    shop = Shop(1)
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, "command:false", signature="of the other")
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        others = []
        for n in range(5):
            await deliver_at(db, at=CHANGED + n * HOUR, signature="of the other")
            others.append(await deliver_at(db, at=CHANGED + n * HOUR + HOUR / 2))
        found = await subscriptions.find_subscription(db, one.id)
        gone = await deliver_at(db, at=CHANGED + 9 * HOUR)

    assert [other.undelivered for other in others] == [{}] * 5
    assert found is not None
    assert (found.failures, found.last_error) == (
        5,
        "the program failed with exit code 1",
    )  # as recorded by its own home
    assert "it has not run since" in gone.elsewhere[one.id]


async def test_view_has_a_row_with_the_reason(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, "http://127.0.0.1:9/hook")
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        await deliver_at(db, at=CHANGED)
        (failing,) = await subscriptions.list_subscriptions(db)
        await subscriptions.pause_subscription(db, failing.id, at=CHANGED)
        (paused,) = await subscriptions.list_subscriptions(db)

    assert (failing.waiting, failing.failures, failing.waiting_since) == (2, 1, CHANGED)
    assert "cannot be reached" in failing.reason
    assert failing.get_next_retry(at=CHANGED) == failing.next_try_at == CHANGED + timedelta(seconds=30)
    assert failing.get_overdue_since(at=CHANGED + HOUR) == CHANGED
    assert (paused.paused_at, paused.get_overdue_since(at=CHANGED + HOUR)) == (CHANGED, None)


async def test_each_round_reads_only_the_numbers_of_subscriptions(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(db, "http://127.0.0.1:9/hook")
    monkeypatch.delattr(subscriptions, "list_subscriptions")  # counts all waiting changes

    assert (await deliver_at(db, at=START)).undelivered == {}


async def test_subscription_of_a_later_version_is_not_delivered(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        later, other = await subscribe(db, receiver.url), await subscribe(db, receiver.url)
        await execute(db, "UPDATE subscription SET kinds = '{changed,renamed}' WHERE id = %s", (later.id,))
        shop.day = 1
        await recrawl_at(db, domain, at=CHANGED)
        delivered = await deliver_at(db, at=CHANGED)
        shown, _ = await subscriptions.list_subscriptions(db)

    assert (delivered.messages, delivered.elsewhere) == (2, {later.id: shown.unknown})
    assert "does not know its kind (renamed)" in shown.unknown
    assert other.unknown == ""
