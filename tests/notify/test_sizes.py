"""Large messages are split without losing, duplicating or reordering changes."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from crawler.notify.payload import compute_part_sizes, encode_body
from crawler.store import outbox, subscriptions
from crawler.store.database import Database
from crawler.store.outbox import Message
from crawler.store.subscriptions import MAX_BYTES
from tests.engine.crawls import DAY, START, answered, answering, register
from tests.notify.receivers import (
    WORDS,
    Got,
    Receiver,
    changes_of,
    deliver_at,
    delivered_changes,
    first_crawl,
    receiving,
    recrawl_at,
    subscribe,
)
from tests.notify.test_webhooks import per_page

HOUR = timedelta(hours=1)
MB = 1_000_000
PAGES = 40


class Library:
    """Long pages whose paragraphs all change daily."""

    def __init__(self) -> None:
        self.day = 0

    def respond(self, target: str) -> bytes:
        number = int(target[2:]) if target.startswith("/p") and target[2:].isdigit() else 0 if target == "/" else PAGES
        if number >= PAGES:
            return answered(404, b"nothing here")
        links = "".join(f"<a href=/p{n}>{n}</a> " for n in range(1, PAGES)) if number == 0 else ""
        shelves = "".join(f"<p>{self.paragraph(number, place)}</p>" for place in range(30))
        return answered(200, f"<title>{WORDS[number % 12]} {number}</title>{shelves}{links}".encode())

    def paragraph(self, number: int, place: int) -> str:
        words = [f"{WORDS[(n * 5 + place) % 12]}{number}{chr(97 + place % 26)}{n % 7}" for n in range(40)]
        return f"{' '.join(words)} on {WORDS[(self.day + place) % 12]}{self.day}"


def refusing(beyond: int) -> Callable[[Got], tuple[int, str]]:
    return lambda got: (413, "") if len(got.body) > beyond else (204, "")


@pytest.mark.soak
async def test_large_digest_is_split_for_a_receiver_with_a_limit_of_1_mb(db: Database) -> None:
    library = Library()
    async with answering(library.respond) as url, receiving(Receiver(refusing(MB))) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, receiver.url, digest="daily@07:30")
        library.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        done = await deliver_at(db, at=START + 2 * DAY)
        known = await changes_of(db)
        after = await subscriptions.find_subscription(db, one.id)

    sizes = [len(got.body) for got in receiver.got]
    assert sum(sizes) > MB  # a single message would have been rejected
    assert len(receiver.taken) == len(receiver.got) > 4
    assert max(sizes) <= MAX_BYTES
    assert done.undelivered == {}
    assert delivered_changes(receiver) == known
    assert len({got.headers["webhook-id"] for got in receiver.got}) == len(receiver.got)
    assert all("blocks_left_out" not in change for change in receiver.changes)
    assert after is not None
    assert (after.max_bytes, after.waiting, after.dead) == (MAX_BYTES, 0, 0)


@pytest.mark.soak
async def test_receiver_with_a_lower_limit_gets_smaller_messages_in_order(db: Database) -> None:
    library, limit = Library(), 20_000
    async with answering(library.respond) as url, receiving(Receiver(lambda _: (400, ""))) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, receiver.url, digest="1h")
        for day in (1, 2):  # messages of the second day are made while those of the first wait
            library.day = day
            await recrawl_at(db, domain, at=START + day * DAY)
            await deliver_at(db, at=START + day * DAY + HOUR)
        receiver.answer, before = refusing(limit), len(receiver.got)
        for n in range(3):
            await deliver_at(db, at=START + 2 * DAY + (n + 2) * HOUR)
        refused = [got for got in receiver.got[before:] if len(got.body) > limit]
        library.day, before = 3, len(receiver.got)
        await recrawl_at(db, domain, at=START + 3 * DAY)
        await deliver_at(db, at=START + 3 * DAY + HOUR)
        known = await changes_of(db)
        after = await subscriptions.find_subscription(db, one.id)

    assert len(refused) == 2  # 256 kB, then a quarter of it, and a quarter of that fits
    assert max(len(got.body) for got in receiver.got[before:]) <= limit  # the limit was learned
    assert sorted(delivered_changes(receiver)) == known
    assert per_page(delivered_changes(receiver)) == per_page(known)
    assert max(Counter(got.headers["webhook-id"] for got in receiver.taken).values()) == 1
    shown = receiver.changes[0]
    assert len(shown["blocks"]) > 3
    assert len(shown["blocks"]) + shown["blocks_left_out"] == 30
    assert after is not None
    assert (after.waiting, after.dead) == (0, 0)
    assert after.max_bytes <= limit


@pytest.mark.soak
async def test_receiver_that_rejects_every_size_is_given_up_in_time(db: Database) -> None:
    library = Library()
    async with answering(library.respond) as url, receiving(Receiver(refusing(0))) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        one = await subscribe(db, receiver.url, pattern="/p7", digest="1h")
        library.day = 1
        await recrawl_at(db, domain, at=START + DAY)
        for n in range(20):
            await deliver_at(db, at=START + DAY + (n + 1) * HOUR)
        (letter,) = await outbox.list_dead_letters(db, one.id)

    assert (letter.error, letter.tries) == ("status 413", 16)
    assert len(receiver.got) < 16 + 4


def change(position: int, *, blocks: int, chars: int = 100) -> dict[str, Any]:
    edits = [{"part": "text", "was": "a" * chars, "now": "b" * chars} for _ in range(blocks)]
    about = {"domain": "shop.test", "url": f"https://shop.test/{position}", "change": "changed", "title": "A page"}
    return {"position": position, **about, "moved_to": None, "pages": None, "blocks": edits}


def message(*changes: dict[str, Any]) -> Message:
    return Message(id=1, subscription_id=1, token=uuid4(), tries=0, created_at=START, changes=changes)


@pytest.mark.parametrize("max_bytes", [5_000, 9_999, 19_000, 10**6])
def test_body_has_as_many_blocks_as_fit_and_counts_the_others(max_bytes: int) -> None:
    body = encode_body(message(change(1, blocks=40), change(2, blocks=40)), text="Two pages", max_bytes=max_bytes)

    assert len(body) <= max_bytes
    assert (b"blocks_left_out" in body) == (max_bytes < 10**6)


def test_parts_have_all_changes_in_order_and_a_too_large_one_alone() -> None:
    changes = [change(n, blocks=1) for n in range(10)] + [change(10, blocks=50, chars=1000), change(11, blocks=1)]

    assert sum(compute_part_sizes(message(*changes), max_bytes=8000)) == 12
    assert compute_part_sizes(message(*changes), max_bytes=8000)[-2:] == [1, 1]
    assert compute_part_sizes(message(*changes), max_bytes=10**6) == [12]
    assert compute_part_sizes(message(), max_bytes=8000) == [0]
