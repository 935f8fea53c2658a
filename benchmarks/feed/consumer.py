"""A process that copies the feed into its own store and commits the cursor together with the changes."""

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from crawler.store import report
from crawler.store.database import open_database
from crawler.store.report import ChangeFilter, FeedItem

# The store has no uniqueness constraint: the trial checks that changes arrive once and in order.
TABLES = """
    CREATE TABLE taken (n INTEGER PRIMARY KEY AUTOINCREMENT, position, domain, url, change, version);
    CREATE TABLE cursor (position INTEGER NOT NULL);
    INSERT INTO cursor VALUES (0);
"""
Taken = tuple[int, str, str, str, int]  # position, domain, URL, change, version


def make_store(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.executescript(TABLES)


def taken_in(file: Path) -> list[Taken]:
    """Return all changes of the store, in the order of arrival."""
    with closing(sqlite3.connect(file)) as db:
        return db.execute("SELECT position, domain, url, change, version FROM taken ORDER BY n").fetchall()


def main(url: str, file: Path, seed: int, *, to_the_end: bool) -> None:
    """Read changes until killed. to_the_end: stop when there are no more changes."""
    asyncio.run(take(url, file, random.Random(seed), to_the_end=to_the_end))


async def take(url: str, file: Path, chance: random.Random, *, to_the_end: bool) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as store:
        async with open_database(url, max_connections=2) as db, report.listen_to_feed(db) as announced:
            while True:
                (cursor,) = store.execute("SELECT position FROM cursor").fetchone()
                await report.append_to_feed(db, at=datetime.now(UTC))
                wanted = replace(ChangeFilter(), after=cursor)
                items = await report.read_feed(db, wanted, max_count=chance.randint(1, 40))
                if items:
                    keep(store, items)
                elif to_the_end:
                    return
                else:
                    await announced.wait()


def keep(store: sqlite3.Connection, items: Sequence[FeedItem]) -> None:
    """Store the items and the cursor in one commit."""
    store.execute("BEGIN IMMEDIATE")
    store.executemany(
        "INSERT INTO taken (position, domain, url, change, version) VALUES (?, ?, ?, ?, ?)",
        [(item.position, item.domain, item.url, item.change.value, item.version) for item in items],
    )
    store.execute("UPDATE cursor SET position = ?", (items[-1].position,))
    store.execute("COMMIT")
