"""Repeatedly killing the delivery process loses no change and keeps the order of each page."""

import asyncio
import json
import os
import random
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.store import subscriptions
from crawler.store.database import Database
from tests.engine.crawls import START, answering, environ, register
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
from tests.patience import PATIENCE_S

KILLS = int(os.environ.get("RECRAWL_TEST_KILLS", "3"))
LOOKS = max(3, KILLS // 3)


async def killed_after(messages: int, pause: float, receiver: Receiver, database_url: str, home: Path) -> bool:
    """Run `recrawl notify run`, kill it after some messages, and return whether it finished before."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crawler", "notify", "run", "--json"),
        env=environ(database_url, home),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    begun = len(receiver.got)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while len(receiver.got) < begun + messages and child.returncode is None:
                await asyncio.sleep(0.001)
            await asyncio.sleep(pause)
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGKILL)
        await child.wait()
    return child.returncode == 0


async def test_all_changes_arrive_in_order_despite_kills(db: Database, database_url: str, tmp_path: Path) -> None:
    shop, chance = Shop(), random.Random(5)
    seen: list[str] = []

    def answer(_: object) -> tuple[int, str]:
        return (200, "") if chance.random() < 0.9 else (400, "")  # sometimes rejects a message

    async with answering(shop.respond) as url, receiving(Receiver(answer)) as receiver:
        domain = await register(db, url)
        await first_crawl(db)
        await subscribe(db, receiver.url)
        for n in range(1, LOOKS + 1):
            shop.day = n
            await recrawl_at(db, domain, at=START + timedelta(days=n))
        kills = 0
        while kills < KILLS:
            ended = await killed_after(chance.randint(1, 4), chance.random() * 0.02, receiver, database_url, tmp_path)
            kills += 1
            if ended and not (await subscriptions.list_subscriptions(db))[0].waiting:
                break
        receiver.answer = lambda _: (200, "")
        async with db.transaction() as connection:  # skip the wait until the retry
            await connection.execute("UPDATE message SET next_try_at = created_at")
            await connection.execute("UPDATE subscription SET resume_at = NULL")
        for _ in range(3):
            await deliver_at(db, at=datetime.now(UTC))
        known = await changes_of(db)
        (after,) = await subscriptions.list_subscriptions(db)

    assert kills >= min(KILLS, 3)
    seen = [got.headers["webhook-id"] for got in receiver.taken]
    assert sorted(delivered_changes(receiver)) == known  # nothing lost; a message that came twice has the same token
    places = {(change["url"], change["position"]) for change in receiver.changes}
    assert len(places) == len(receiver.changes) == len(set(seen))
    for page in {url for _, url, _ in known}:
        order = [position for position, url, _ in delivered_changes(receiver) if url == page]
        assert order == sorted(order), json.dumps(order)
    assert (after.waiting, after.dead) == (0, 0)
    print(f"{kills} kills, {len(known)} changes, {len(seen) - len(set(seen))} came twice")  # noqa: T201
