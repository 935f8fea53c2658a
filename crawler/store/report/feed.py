"""The change feed: every domain's events in one order, for any number of readers with cursors."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crawler.core.domain import Domain
from crawler.core.http import Url, key_of
from crawler.core.page import BlockKind
from crawler.store.database import Database

FEED_LOCK = 0x66656564  # "feed": one stamper at a time
CHANNEL = "recrawl_changes"

# Positions are counted, not drawn from a sequence: no gaps, and a dump and restore goes on where it ended.
STAMP = """
    WITH fresh AS (
        SELECT e.domain_id, e.number
          FROM domain_state s
          JOIN LATERAL (SELECT * FROM event e
                         WHERE e.domain_id = s.domain_id AND e.number > s.stamped_event
                         ORDER BY e.number LIMIT %(most)s) e ON true
         WHERE s.next_event > s.stamped_event + 1
         ORDER BY e.domain_id, e.number LIMIT %(most)s),
    appended AS (
        INSERT INTO feed (position, domain_id, number, appended_at)
        SELECT coalesce((SELECT max(position) FROM feed), 0) + row_number() OVER (ORDER BY domain_id, number),
               domain_id, number, %(at)s
          FROM fresh RETURNING domain_id, number)
    UPDATE domain_state s SET stamped_event = greatest(s.stamped_event, a.number)
      FROM (SELECT domain_id, max(number) AS number, count(*) AS many FROM appended GROUP BY domain_id) a
     WHERE s.domain_id = a.domain_id
 RETURNING a.many
"""
CHUNK = 10_000
READ = """
    SELECT f.position, d.authority, e.at, e.url, e.change, e.version, e.distance_bits, e.amount, e.parts, e.pages,
           CASE WHEN %(blocks)s THEN e.blocks END
      FROM feed f
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
      JOIN domain d ON d.id = f.domain_id
     WHERE f.position > %(after)s AND (%(since)s::timestamptz IS NULL OR e.at >= %(since)s)
       AND (%(domain_id)s::bigint IS NULL OR f.domain_id = %(domain_id)s)
     ORDER BY f.position LIMIT %(most)s
"""
LAST = """
    SELECT 0, d.authority, e.at, e.url, e.change, e.version, e.distance_bits, e.amount, e.parts, e.pages, e.blocks
      FROM event e JOIN domain d ON d.id = e.domain_id
     WHERE e.domain_id = %s AND e.key = %s AND e.change = 'changed' ORDER BY e.number DESC LIMIT 1
"""


class EventKind(StrEnum):
    """The kind of an event."""

    FIRST = "first"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"
    BOILERPLATE = "boilerplate"  # the site changed a block of nearly all its pages: one event, at its root
    HELD_BACK = "held_back"  # pages like this one say nothing new: no more of them are fetched but one a day
    LET_GO = "let_go"  # and now they do again


@dataclass(frozen=True, slots=True)
class Edit:
    """One block that changed. was, now: its text, cut where it is long; None for a block that came or went."""

    part: BlockKind
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One change. position: the cursor from which to read on.

    amount: the part of the page that changed, 0 to 1; None where nobody can tell.
    parts: what changed: text, link, image, title, meta; empty where the blocks were not compared.
    blocks: the first blocks that changed, if they were asked for.  pages: of a change of the boilerplate, on how many
    pages it had been seen.
    """

    position: int
    domain: str
    at: datetime
    url: Url
    change: EventKind
    version: int
    distance_bits: int | None
    amount: float | None
    parts: tuple[BlockKind, ...] = ()
    blocks: tuple[Edit, ...] = ()
    pages: int | None = None


async def stamp_feed(db: Database, *, at: datetime) -> int:
    """Append all recorded events to the feed, in one order; gives how many. One stamper works at a time."""
    total = 0
    while True:
        async with db.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (FEED_LOCK,))
            cursor = await connection.execute(STAMP, {"at": at, "most": CHUNK})
            many = sum(int(found[0]) for found in await cursor.fetchall())
            if many:
                await connection.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
        total += many
        if many < CHUNK:
            return total


async def read_feed(
    db: Database,
    *,
    after: int = 0,
    since: datetime | None = None,
    domain_id: int | None = None,
    most: int = 1000,
    blocks: bool = False,
) -> list[FeedItem]:
    """The changes that follow a cursor (0: from the beginning), in the feed's order.

    since: only those found at or after this knowledge time.  blocks: with the blocks that changed.
    """
    values = {"after": after, "since": since, "domain_id": domain_id, "most": most, "blocks": blocks}
    async with db.transaction() as connection:
        cursor = await connection.execute(READ, values)
        return [_item(row) for row in await cursor.fetchall()]


async def last_of(db: Database, domain: Domain, url: Url) -> FeedItem | None:
    """The last change of a page, with the blocks that changed, whether the feed has it yet or not (position 0)."""
    async with db.transaction() as connection:
        row = await (await connection.execute(LAST, (domain.id, key_of(url)))).fetchone()
    return None if row is None else _item(row)


def _item(row: Sequence[Any]) -> FeedItem:
    position, domain, at, url, change, version, distance_bits, amount, parts, pages, blocks = row
    return FeedItem(
        position=position,
        domain=domain,
        at=at,
        url=Url(url),
        change=EventKind(change),
        version=version,
        distance_bits=distance_bits,
        amount=amount,
        parts=tuple(map(BlockKind, parts.split())),
        blocks=tuple(Edit(BlockKind(part), was, now) for part, was, now in blocks or ()),
        pages=pages,
    )
