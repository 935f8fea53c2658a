"""Consumers of the feed by SQL: the recipe of docs/feed.md, notifications by NOTIFY, and hints."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import psycopg

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Authority
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from crawler.store.report import EventKind
from crawler.store.retention import changes
from tests.store.conftest import START
from tests.store.made_up import TERM, USUAL, crawl, html, look, targets, url

DOCS = Path(__file__).parents[3] / "docs" / "feed.md"
LISTEN, ONCE, AGAIN = re.findall(r"^```sql\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
(OF_ONE,) = re.findall(r"^-- for one domain: (.*;)$", ONCE, re.MULTILINE)
WRITERS, PAGES = 4, 60
DAY = timedelta(days=1)


async def leased(db: Database, name: str) -> Lease:
    domain = await domains.register(db, Authority(name), scheme="http", domain_settings=DomainSettings(), at=START)
    lease = await claim.claim(db, at=START, holder=name, term=TERM, only=[domain])
    assert lease is not None
    while await record.drain_inbox(db, lease, at=START):
        pass
    return lease


async def consume(database_url: str, is_over: asyncio.Event) -> None:
    """Run the recipe until no more changes can arrive, and once more."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        while True:
            was_over = is_over.is_set()
            await connection.execute(AGAIN.encode())
            if was_over:
                return


async def test_the_recipe_reads_each_event_once_in_order_with_four_writers(db: Database, database_url: str) -> None:
    leases = [await leased(db, f"{name}.test") for name in ("apple", "birch", "cedar", "damson")]
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(ONCE.encode())
    is_over = asyncio.Event()

    async def write(lease: Lease) -> None:
        await crawl(db, lease, {0: list(range(1, PAGES)), **{n: [0] for n in range(1, PAGES)}}, START)

    async def stamp() -> None:
        while not is_over.is_set():
            await report.append_to_feed(db, at=START)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(consume(database_url, is_over))
            tasks.create_task(stamp())
        await asyncio.gather(*(write(lease) for lease in leases))
        await report.append_to_feed(db, at=START)
        is_over.set()

    async with db.transaction() as connection:
        taken = await (await connection.execute("SELECT position, url FROM my_change ORDER BY position")).fetchall()
        there = await (await connection.execute("SELECT position, url FROM report_change ORDER BY position")).fetchall()
        cursor = await (await connection.execute("SELECT position FROM feed_reader")).fetchall()
    assert taken == there
    assert [position for position, _ in taken] == list(range(1, WRITERS * PAGES + 1))
    assert cursor == [(WRITERS * PAGES,)]


async def test_a_reader_of_one_domain_reads_and_retains_only_its_events(db: Database, database_url: str) -> None:
    leases = [await leased(db, f"{name}.test") for name in ("apple", "birch", "cedar")]
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        everything, table = ONCE.split(OF_ONE)
        await connection.execute((OF_ONE.replace("docs.example.com", "birch.test") + table).encode())
        assert "INSERT INTO feed_reader" in everything  # instead of that
        for lease in leases:
            await crawl(db, lease, {0: [1, 2], 1: [0], 2: [0]}, START)
            await report.append_to_feed(db, at=START)
        held = await (await connection.execute("SELECT position FROM feed_reader")).fetchone()
        await connection.execute(AGAIN.encode())
        await connection.execute(AGAIN.encode())

    async with db.transaction() as connection:
        taken = await (await connection.execute("SELECT position, url FROM my_change ORDER BY position")).fetchall()
        cursor = await (await connection.execute("SELECT position FROM feed_reader")).fetchone()
    assert held == (0,)
    assert [await changes.find_slowest_reader(db, lease.domain) for lease in leases] == [
        None,
        changes.SlowestReader(position=6, name="mine"),
        None,
    ]
    assert [position for position, _ in taken] == [4, 5, 6]
    assert all(url.startswith("http://birch.test/") for _, url in taken)
    assert cursor == (6,)


async def test_listeners_are_notified_once_of_the_end_of_the_feed(db: Database, database_url: str) -> None:
    lease = await leased(db, "apple.test")
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as listening:
        await listening.execute(LISTEN.encode())
        await crawl(db, lease, {0: [1, 2, 3], 1: [0], 2: [0], 3: [0]}, START)
        await report.append_to_feed(db, at=START)
        await report.append_to_feed(db, at=START)  # no new events
        told = [found.payload async for found in listening.notifies(timeout=1, stop_after=2)]

    assert told == ["4"]


async def test_a_waiting_reader_is_woken_by_new_and_earlier_changes(db: Database) -> None:
    lease = await leased(db, "apple.test")
    async with report.listen_to_feed(db) as announced:
        await asyncio.wait_for(announced.wait(), 5)  # it is listening now
        waiting = asyncio.create_task(announced.wait())
        await crawl(db, lease, {0: []}, START)
        began = asyncio.get_running_loop().time()
        await report.append_to_feed(db, at=START)
        await waiting
        assert asyncio.get_running_loop().time() - began < 3  # before the next poll after five seconds


async def hinted(db: Database, domain: Domain, lease: Lease, *numbers: int, source: str, days: int) -> None:
    at = START + days * DAY
    signals = [ChangeSignal(url=url(domain, n), source=source, at=at) for n in numbers]
    await domains.add_signals(db, domain, signals, at=at)
    while await record.drain_inbox(db, lease, at=at, defaults=USUAL):
        pass


async def test_a_hint_is_reported_once_until_the_next_visit_and_never_for_sitemap_dates(db: Database) -> None:
    lease = await leased(db, "apple.test")
    domain = lease.domain
    await crawl(db, lease, {0: [1, 2], 1: [0], 2: [0]}, START)
    await hinted(db, domain, lease, 1, 2, source="cms", days=1)
    await hinted(db, domain, lease, 1, source="cms", days=2)  # a second signal
    await hinted(db, domain, lease, 2, source="sitemap", days=2)
    later = START + 3 * DAY
    await domains.request_refresh(db, domain, prefix=url(domain, 1), at=later)
    while await record.drain_inbox(db, lease, at=later, defaults=USUAL):
        pass
    [target] = [each for each in await targets(db, lease, later) if each.url == url(domain, 1)]
    visit = look(target, html(domain, [0], words="what b has to say"), later, domain)
    await record.record_visits(db, lease, record.Batch([visit], max_pages=100))
    await hinted(db, domain, lease, 1, source="push", days=4)
    await report.append_to_feed(db, at=later)
    items = await report.read_feed(db)

    hints = [(item.url, item.source) for item in items if item.change is EventKind.HINT]
    assert sorted(hints[:2]) == [(url(domain, 1), "cms"), (url(domain, 2), "cms")]
    assert hints[2:] == [(url(domain, 1), "push")]
    assert await report.check_invariants(db) == []
