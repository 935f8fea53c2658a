"""Healthy, slow, broken and unreachable webhooks get all changes in order and do not delay each other."""

import asyncio
import base64
import hashlib
import hmac
import logging
from datetime import datetime, timedelta

import pytest

from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Url
from crawler.json_lines import get_field_values
from crawler.store import domains, outbox, report, subscriptions
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind
from tests.engine.crawls import DAY, START, answering, register
from tests.notify.receivers import (
    Got,
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

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def per_page(told: list[tuple[int, str, str]]) -> dict[str, list[tuple[int, str]]]:
    """Return the changes of each page in the order of their messages."""
    found: dict[str, list[tuple[int, str]]] = {}
    for position, url, kind in told:
        found.setdefault(url, []).append((position, kind))
    return found


async def test_each_later_change_is_sent_once_and_in_order(db: Database) -> None:
    shop = Shop()
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        for day in range(1, 4):
            shop.day = day
            await recrawl_at(db, domain, at=START + day * DAY)
            await deliver_at(db, at=START + day * DAY)
        again = await deliver_at(db, at=START + 4 * DAY)
        known = await changes_of(db)

    assert again.messages == 0
    assert len(known) == 3 * 6
    assert delivered_changes(receiver) == known
    assert len(receiver.got) == len(known)  # one message per change
    first = receiver.got[0].document["changes"][0]
    assert any("Today it says" in edit["now"] for edit in first["blocks"])
    assert "[-amber" in receiver.got[0].document["text"]
    (one,) = await subscriptions.list_subscriptions(db)
    assert (one.delivered, one.waiting, one.failures) == (18, 0, 0)


async def test_message_is_signed_with_both_keys_during_a_rotation(db: Database) -> None:
    shop, keys = Shop(), [base64.b64encode(word * 8).decode() for word in (b"new.", b"old.")]
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, secret="env:KEY")
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY, secrets={"env:KEY": " ".join(f"whsec_{key}" for key in keys)})

    got = receiver.got[0]
    said = b".".join([got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body])
    made = [base64.b64encode(hmac.new(base64.b64decode(key), said, hashlib.sha256).digest()).decode() for key in keys]
    assert got.headers["webhook-signature"] == " ".join(f"v1,{each}" for each in made)


async def test_signature_covers_id_time_and_body_and_retries_keep_the_id(db: Database) -> None:
    shop, key = Shop(), base64.b64encode(b"a key of thirty-two bytes or so.").decode()

    def is_signed(got: Got) -> bool:
        # Independent verification (standardwebhooks.com, "Verifying signatures").
        said = b".".join([got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body])
        made = base64.b64encode(hmac.new(base64.b64decode(key), said, hashlib.sha256).digest()).decode()
        return hmac.compare_digest(f"v1,{made}", got.headers["webhook-signature"])

    tries = 0

    def answer(got: Got) -> tuple[int, str]:
        nonlocal tries
        tries += 1
        return (401, "") if not is_signed(got) else (500, "") if tries <= 2 else (200, "")

    async with answering(shop.respond) as url, receiving(Receiver(answer)) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, secret="env:KEY")
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        for n in range(0, 40, 4):
            await deliver_at(db, at=START + DAY + n * MINUTE, secrets={"env:KEY": f"whsec_{key}"})
        known = await changes_of(db)

    assert all(map(is_signed, receiver.got))
    assert sorted(delivered_changes(receiver)) == known
    ids = [got.headers["webhook-id"] for got in receiver.got]
    assert len(set(ids)) == len(known) == len(ids) - 2
    tried_again = [got for got in receiver.got if ids.count(got.headers["webhook-id"]) > 1]
    assert {got.body for got in tried_again if got.headers["webhook-id"] == ids[0]} == {receiver.got[0].body}
    assert len({got.headers["webhook-timestamp"] for got in receiver.got}) > 1
    assert all(got.headers["idempotency-key"] == f'"{got.headers["webhook-id"]}"' for got in receiver.got)


async def test_changes_during_an_outage_are_sent_afterwards_in_order(db: Database) -> None:
    shop, down_until = Shop(), START + DAY + HOUR
    now = START + DAY

    def answer(_: Got) -> tuple[int, str]:
        return (503, "") if now < down_until else (204, "")

    async with answering(shop.respond) as url, receiving(Receiver(answer)) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        for n in range(0, 150, 2):  # two and a half hours, a delivery every two minutes
            now = START + DAY + n * MINUTE
            if n in {0, 20, 40}:
                shop.day += 1
                await recrawl_at(db, domain, at=now)
            await deliver_at(db, at=now)
        known = await changes_of(db)

    refused = len(receiver.got) - len(receiver.taken)
    assert refused <= 9  # back-off: 30 s, doubling
    assert len(known) == 18
    assert sorted(delivered_changes(receiver)) == known
    assert per_page(delivered_changes(receiver)) == per_page(known)
    assert len({got.headers["webhook-id"] for got in receiver.taken}) == len(receiver.taken)  # nothing twice
    assert not await outbox.list_dead_letters(db)


async def test_slow_and_dead_receivers_do_not_delay_others(db: Database) -> None:
    shop = Shop()
    async with (
        answering(shop.respond) as url,
        receiving(Receiver(lambda _: None)) as slow,
        receiving(Receiver()) as well,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, slow.url)
        dead = await subscribe(db, "http://127.0.0.1:9/hook")  # nothing listens on the discard port
        await subscribe(db, well.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        telling = asyncio.create_task(deliver_at(db, at=START + DAY))
        found = await subscriptions.find_subscription(db, dead.id)
        while len(well.taken) < 6 or not (found and found.failures):
            await asyncio.sleep(0.01)
            assert not telling.done()  # still waits for the slow one
            found = await subscriptions.find_subscription(db, dead.id)
        known = await changes_of(db)
        assert delivered_changes(well) == known
        telling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await telling

    assert found is not None
    assert (found.failures, found.waiting) == (1, 6)
    assert "cannot be reached" in found.last_error


async def test_rejected_message_delays_only_its_page(db: Database) -> None:
    shop = Shop()

    def answer(got: Got) -> tuple[int, str]:
        return (422, "") if got.document["changes"][0]["url"].endswith("/p5") else (204, "")

    async with answering(shop.respond) as url, receiving(Receiver(answer)) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        subscription = await subscribe(db, receiver.url)
        for day in (1, 2):
            shop.day = day
            await recrawl_at(db, domain, at=START + day * DAY)
            await deliver_at(db, at=START + day * DAY)
        known = await changes_of(db)
        first = next(kind for kind in known if kind[1].endswith("/p5"))
        for n in range(40):
            await deliver_at(db, at=START + 2 * DAY + n * HOUR)
        letters = await outbox.list_dead_letters(db, subscription.id)
        receiver.answer = lambda _: (204, "")
        await outbox.redeliver_letters(db, None, at=START + 9 * DAY)
        await deliver_at(db, at=START + 9 * DAY)

    assert next(letter.changes[0]["position"] for letter in letters) == first[0]
    assert letters[0].tries == 16
    assert letters[0].error == "status 422"
    assert sorted(delivered_changes(receiver)) == known
    others = [change for change in delivered_changes(receiver) if not change[1].endswith("/p5")]
    assert per_page(others) == per_page([change for change in known if not change[1].endswith("/p5")])
    assert not await outbox.list_dead_letters(db)


async def test_retry_after_of_a_receiver_is_respected(db: Database) -> None:
    shop = Shop(2)
    async with (
        answering(shop.respond) as url,
        receiving(Receiver(lambda _: (429, "Retry-After: 7200\r\n"))) as receiver,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        for n in range(0, 119, 7):
            await deliver_at(db, at=START + DAY + n * MINUTE)
        tried = len(receiver.got)
        await deliver_at(db, at=START + DAY + 2 * HOUR)

    assert (tried, len(receiver.got)) == (1, 2)


@pytest.mark.soak
async def test_receiver_that_returns_after_days_gets_all_changes(db: Database) -> None:
    shop, is_away = Shop(), True
    async with (
        answering(shop.respond) as url,
        receiving(Receiver(lambda _: (500, "") if is_away else (200, ""))) as receiver,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        for n in range(24 * 5):
            await deliver_at(db, at=START + DAY + n * HOUR)
        letters = await outbox.list_dead_letters(db)
        is_away = False
        many = await outbox.redeliver_letters(db, None, at=START + 7 * DAY)
        for n in range(3):
            await deliver_at(db, at=START + 7 * DAY + n * HOUR)
        known = await changes_of(db)
        (after,) = await subscriptions.list_subscriptions(db)

    assert len(receiver.got) - len(receiver.taken) < 24 * 4  # hourly attempts, not one per message
    assert len(letters) == many == 6
    assert sorted(delivered_changes(receiver)) == known
    assert (after.failures, after.resume_at, after.dead, after.waiting) == (0, None, 0, 0)


@pytest.mark.soak
async def test_digest_joins_the_changes_of_its_hour_and_quiet_hours_those_of_the_night(db: Database) -> None:
    shop = Shop()
    async with (
        answering(shop.respond) as url,
        receiving(Receiver()) as hourly,
        receiving(Receiver()) as quiet,
        receiving(Receiver()) as daily,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, hourly.url, digest="1h")
        await subscribe(db, quiet.url, quiet="22-07", zone="Europe/Vienna")
        await subscribe(db, daily.url, digest="daily", zone="Europe/Vienna")
        when: dict[str, list[datetime]] = {"hourly": [], "quiet": [], "daily": []}
        begin = datetime.fromisoformat("2026-01-05T19:00+00:00")  # 20:00 in Vienna
        for n in range(0, 16 * 60, 10):
            now = begin + n * MINUTE
            if n in {10, 50, 130, 190}:  # 20:10, 20:50, 22:10, 23:10
                shop.day += 1
                await recrawl_at(db, domain, at=now)
            before = [len(each.got) for each in (hourly, quiet, daily)]
            await deliver_at(db, at=now)
            for name, each, had in zip(when, (hourly, quiet, daily), before, strict=True):
                when[name] += [now] * (len(each.got) - had)
        known = await changes_of(db)

    assert [delivered_changes(each) for each in (hourly, quiet, daily)] == [known] * 3
    assert [len(got.document["changes"]) for got in hourly.got] == [12, 6, 6]
    assert when["hourly"] == [begin + n * MINUTE for n in (60, 180, 240)]
    assert [len(got.document["changes"]) for got in quiet.got] == [1] * 12 + [12]
    assert when["quiet"][-1] == datetime.fromisoformat("2026-01-06T06:00+00:00")  # 07:00
    assert not [at for at in when["quiet"] if begin + 2 * HOUR <= at < begin + 11 * HOUR]
    assert ([len(got.document["changes"]) for got in daily.got], when["daily"]) == ([24], [begin + 12 * HOUR])


async def test_failed_message_is_not_retried_in_quiet_hours(db: Database) -> None:
    shop, is_well = Shop(2), False
    async with (
        answering(shop.respond) as url,
        receiving(Receiver(lambda _: (204, "") if is_well else (500, ""))) as receiver,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, quiet="22-07")
        shop.day = 1
        evening = START + DAY + timedelta(hours=21, minutes=58)
        await recrawl_at(db, domain, at=evening)
        await deliver_at(db, at=evening)
        is_well = True
        for n in range(1, 9):
            await deliver_at(db, at=evening + n * HOUR)
        tried = len(receiver.got)
        await deliver_at(db, at=evening + 10 * HOUR)
        known = await changes_of(db)

    assert tried == 1
    assert sorted(delivered_changes(receiver)) == known


async def test_subscription_filters_by_domain_pattern_and_kinds(db: Database) -> None:
    shop, other = Shop(), Shop(3)
    async with (
        answering(shop.respond) as url,
        answering(other.respond) as other_url,
        receiving(Receiver()) as some,
        receiving(Receiver()) as gone,
    ):
        domain, second = await register(db, url), await register(db, other_url)
        await first_crawl(db)
        await subscribe(db, some.url, domain_id=domain.id, pattern="re:/p[12]$", kinds=frozenset({EventKind.CHANGED}))
        await subscribe(db, gone.url, kinds=frozenset({EventKind.GONE, EventKind.ADDED}))
        shop.day, other.day = 1, 1
        shop.gone = {4}
        shop.pages += 1  # one more page
        for day in range(1, 6):
            await recrawl_at(db, domain, at=START + day * DAY)
            await recrawl_at(db, second, at=START + day * DAY)
        await deliver_at(db, at=START + 6 * DAY)

    assert {(change[1].removeprefix(domain.root), change[2]) for change in delivered_changes(some)} == {
        ("p1", "changed"),
        ("p2", "changed"),
    }
    assert {(change[1].removeprefix(domain.root), change[2]) for change in delivered_changes(gone)} == {
        ("p4", "gone"),
        ("p6", "added"),
    }


async def test_private_address_needs_permission(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, allow_private=False)
        await subscribe(db, "http://169.254.169.254/latest", allow_private=True)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + DAY)

    assert not receiver.got
    assert "private address" in done.failed[1]
    assert "serves no websites" in done.failed[2]


async def test_broken_subscription_does_not_delay_others_and_is_logged(
    db: Database, request: pytest.FixtureRequest
) -> None:
    log: list[logging.LogRecord] = request.getfixturevalue("told")
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver()) as broken, receiving(Receiver()) as well:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, broken.url, digest="1h", zone="Mars/Phobos")  # a time zone that this machine does not know
        await subscribe(db, well.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + DAY)
        known = await changes_of(db)
        # as in the web UI
        untold = [each.get_overdue_since(at=START + DAY) for each in await subscriptions.list_subscriptions(db)]

    assert delivered_changes(well) == known
    assert len(untold) == 2
    assert done.failed.keys() == {1}
    assert "an unexpected error occurred (ValueError)" in done.failed[1]
    assert [record.msg for record in log if record.exc_info] == ["subscription.broken"]


async def test_change_signal_is_sent_like_other_changes(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url, kinds=frozenset({EventKind.HINT}))
        page = Url(f"{domain.root}p1")
        await domains.add_signals(db, domain, [ChangeSignal(url=page, source="cms", at=START + DAY)], at=START + DAY)
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)
        (item,) = await report.read_feed(db, ChangeFilter(kinds=frozenset({EventKind.HINT})))

    (got,) = receiver.got
    (change,) = got.document["changes"]
    assert (change["change"], change["source"], change["url"]) == ("hint", "cms", page)
    assert change.keys() == get_field_values(item).keys()
    assert got.document["text"].startswith("Change signal: birch")


@pytest.mark.soak
async def test_paused_subscription_sends_waiting_changes_once_it_is_resumed(db: Database) -> None:
    shop, is_well = Shop(2), False
    async with (
        answering(shop.respond) as url,
        receiving(Receiver(lambda _: (204, "") if is_well else (500, ""))) as some,
        receiving(Receiver()) as all_of_it,
    ):
        domain = await register(db, url)
        await first_crawl(db)
        ours, other = await subscribe(db, some.url), await subscribe(db, all_of_it.url)
        changes: list[list[tuple[int, str, str]]] = []
        for day in (1, 2, 3, 12):
            now = START + day * DAY
            shop.day = day
            await recrawl_at(db, domain, at=now)
            changes.append((await changes_of(db))[sum(map(len, changes)) :])
            if day == 2:  # found before the pause, not yet read from the feed
                assert await subscriptions.pause_subscription(db, ours.id, at=now)
                assert await subscriptions.pause_subscription(db, other.id, at=now)
                assert not await subscriptions.pause_subscription(db, ours.id, at=now)
            if day < 12:
                await deliver_at(db, at=now)
        tried = len(some.got)
        is_well = True
        await deliver_at(db, at=START + 11 * DAY)
        paused = await subscriptions.find_subscription(db, ours.id)
        later = START + 12 * DAY
        assert await subscriptions.resume_subscription(db, ours.id, include_missed=False, at=later)
        assert await subscriptions.resume_subscription(db, other.id, include_missed=True, at=later)
        assert not await subscriptions.resume_subscription(db, ours.id, include_missed=False, at=later)
        shop.day = 13
        await recrawl_at(db, domain, at=START + 13 * DAY)
        changes.append((await changes_of(db))[sum(map(len, changes)) :])
        await deliver_at(db, at=START + 13 * DAY)

    assert [len(each) for each in changes] == [2] * 5
    assert (tried, len(all_of_it.got)) == (1, 10)
    assert paused is not None
    assert (paused.waiting, paused.pause_position) == (4, changes[1][-1][0])
    assert sorted(delivered_changes(some)) == sorted(changes[0] + changes[1] + changes[4])
    assert delivered_changes(all_of_it) == [change for day in changes for change in day]


async def test_resume_without_missed_changes_needs_the_earlier_ones_read(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        made = await subscribe(db, receiver.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        await report.append_to_feed(db, at=START + DAY)
        await subscriptions.pause_subscription(db, made.id, at=START + DAY)
        assert not await subscriptions.resume_subscription(db, made.id, include_missed=False, at=START + 2 * DAY)
        await deliver_at(db, at=START + 2 * DAY)  # reads the earlier changes and sends nothing
        assert receiver.got == []
        assert await subscriptions.resume_subscription(db, made.id, include_missed=False, at=START + 2 * DAY)
        await deliver_at(db, at=START + 2 * DAY)

    assert len(receiver.changes) == 2


async def test_message_that_waited_during_a_pause_is_retried(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver(lambda _: (500, ""))) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        made = await subscribe(db, receiver.url)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        await deliver_at(db, at=START + DAY)
        await subscriptions.pause_subscription(db, made.id, at=START + DAY)
        await subscriptions.resume_subscription(db, made.id, include_missed=False, at=START + 30 * DAY)
        await deliver_at(db, at=START + 30 * DAY)
        found = await subscriptions.find_subscription(db, made.id)

    assert found is not None
    assert (found.dead, found.waiting, found.failures) == (0, 2, 1)


async def test_dead_letters_are_deleted_after_ninety_days(db: Database) -> None:
    shop = Shop(2)
    async with answering(shop.respond) as url, receiving(Receiver(lambda _: (410, ""))) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        kept: list[set[int]] = []
        for day in (1, 6, 94, 99):
            shop.day = day
            await recrawl_at(db, domain, at=START + day * DAY)
            for hour in range(3):
                await deliver_at(db, at=START + day * DAY + hour * HOUR)
            letters = await outbox.list_dead_letters(db)
            kept.append({(letter.created_at - START).days for letter in letters})

    # They are given up at the first failure after three days and deleted ninety days later.
    assert kept == [set(), {1}, {1, 6}, {6, 94}]
    assert all("blocks" not in change for letter in letters for change in letter.changes)


async def test_target_is_resolved_only_when_messages_are_due(db: Database) -> None:
    shop, asked = Shop(2), list[str]()

    class Secrets(dict[str, str]):
        def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
            asked.append(name)
            return super().get(name, default)

    async with answering(shop.respond) as url, receiving(Receiver()) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, "block:hook", secret="env:KEY")
        secrets = Secrets({"block:hook": receiver.url, "env:KEY": "whsec_"})
        await deliver_at(db, at=START, secrets=secrets)
        before = list(asked)
        shop.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + DAY, secrets=secrets)

    assert before == []
    assert set(asked) == {"block:hook", "env:KEY"}
    assert not receiver.got
    assert done.failed == {1: "env:KEY holds no key after whsec_: an empty key cannot sign messages"}
