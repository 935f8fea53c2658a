"""The change feed: every domain's events in one order, for any number of readers with cursors."""

from dataclasses import dataclass
from datetime import datetime

from crawler.core.change import Change
from crawler.core.urls import Url
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
    SELECT f.position, d.authority, e.at, e.url, e.change, e.version, e.distance_bits, e.key, e.domain_id
      FROM feed f
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
      JOIN domain d ON d.id = f.domain_id
     WHERE f.position > %(after)s AND (%(since)s::timestamptz IS NULL OR e.at >= %(since)s)
       AND (%(domain_id)s::bigint IS NULL OR f.domain_id = %(domain_id)s)
     ORDER BY f.position LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One change. position is the cursor with which to ask for what follows."""

    position: int
    domain: str
    at: datetime
    url: Url
    change: Change
    version: int
    distance_bits: int | None


async def stamp(db: Database, *, at: datetime) -> int:
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


async def read(
    db: Database, *, after: int = 0, since: datetime | None = None, domain_id: int | None = None, most: int = 1000
) -> list[FeedItem]:
    """The changes that follow a cursor (0: from the beginning), in the feed's order.

    since: only those found at or after this knowledge time.
    """
    async with db.transaction() as connection:
        cursor = await connection.execute(READ, {"after": after, "since": since, "domain_id": domain_id, "most": most})
        return [
            FeedItem(
                position=row[0],
                domain=row[1],
                at=row[2],
                url=Url(row[3]),
                change=Change(row[4]),
                version=row[5],
                distance_bits=row[6],
            )
            for row in await cursor.fetchall()
        ]
