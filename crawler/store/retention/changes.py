"""Retention of the change feed: old events are deleted, except those that a reader has not read.

A reader is a row in feed_reader or a subscription (recrawl notify). Others get an error if they have missed an event.
"""

from datetime import datetime

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.store.database import Database
from crawler.store.rows import execute, fetch_number, fetch_row, fetch_value

CHUNK = 5_000  # events in one transaction
MAX_POSITION = 2**62  # higher than any position

# The numbers of the last and the first event that may be deleted: the oldest events, as long as each is older than the
# limit and was read by all readers and by the index of fingerprints. The last row of the feed stays, because the next
# position is counted from it.
LAST_TO_FORGET = """
    SELECT least(
        s.stamped_event,
        coalesce((SELECT min(f.number) - 1 FROM feed f
                   WHERE f.domain_id = %(domain_id)s AND f.position >= (SELECT max(position) FROM feed)),
                 s.stamped_event),
        coalesce((SELECT event FROM fingerprint_cursor WHERE domain_id = %(domain_id)s), 0),
        coalesce((SELECT e.number - 1 FROM event e
                   WHERE e.domain_id = %(domain_id)s AND e.at >= %(before)s ORDER BY e.number LIMIT 1),
                 s.stamped_event),
        coalesce((SELECT min(f.number) - 1 FROM feed f
                   WHERE f.domain_id = %(domain_id)s AND f.position > %(read_until)s), s.stamped_event)),
        s.first_event
      FROM domain_state s WHERE s.domain_id = %(domain_id)s
"""
# Deletes versions without stored text together with their events, except the first version, which dates the page.
FORGET = """
    WITH gone AS (
        DELETE FROM feed WHERE domain_id = %(domain_id)s AND number BETWEEN %(first)s AND %(last)s RETURNING position),
    deleted_events AS (
        DELETE FROM event WHERE domain_id = %(domain_id)s AND number BETWEEN %(first)s AND %(last)s
     RETURNING key, version),
    versions AS (
        DELETE FROM snapshot v USING (SELECT DISTINCT key, version FROM deleted_events WHERE version > 1) t
         WHERE v.domain_id = %(domain_id)s AND v.key = t.key AND v.number = t.version AND NOT v.is_stored)
    UPDATE domain_state
       SET first_event = %(last)s + 1,
           forgotten_until = greatest(forgotten_until, (SELECT max(position) FROM gone))
     WHERE domain_id = %(domain_id)s AND first_event = %(first)s
 RETURNING 1
"""
# The newest row of each series stays.
FORGET_VALUES = """
    DELETE FROM page_value v
     WHERE v.domain_id = %(domain_id)s AND v.at < %(before)s
       AND EXISTS (SELECT FROM page_value n
                    WHERE n.domain_id = %(domain_id)s AND n.key = v.key AND n.name = v.name AND n.at > v.at)
"""
LOCK = "SELECT first_event FROM domain_state WHERE domain_id = %(domain_id)s FOR NO KEY UPDATE"
READERS = """
    SELECT position, name, number, paused_at
      FROM (SELECT position, domain_id, name, NULL::bigint, NULL::timestamptz FROM feed_reader
             UNION ALL
            SELECT position, domain_id, '', id, paused_at FROM subscription
           ) r (position, domain_id, name, number, paused_at)
     WHERE domain_id IS NULL OR domain_id = %(domain_id)s
     ORDER BY position LIMIT 1
"""
FIRST_UNREAD = """
    SELECT e.at FROM feed f JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
     WHERE f.domain_id = %s AND f.position > %s ORDER BY f.position LIMIT 1
"""


class SlowestReader(Struct, frozen=True):
    """The reader of a domain's changes with the lowest cursor: a row of feed_reader or a subscription.

    position: its cursor.  name: the name in feed_reader, or empty.  subscription: its number, or None.
    paused_at: when the subscription was paused, or None.
    """

    position: int
    name: str = ""
    subscription: int | None = None
    paused_at: datetime | None = None

    def __str__(self) -> str:
        """Return the reader as the user knows it."""
        return f"reader {self.name}" if self.subscription is None else f"subscription {self.subscription}"

    @property
    def remedy(self) -> str:
        """Return what the user can do to make the reader continue, or to remove it."""
        if self.subscription is None:
            name = self.name.replace("'", "''")
            forget = f"DELETE FROM feed_reader WHERE name = '{name}';"  # noqa: S608  shown to the user, never run
            return f"let it read on, or remove it in recrawl db shell --write: {forget}"
        remove = f"recrawl notify remove {self.subscription}"
        if self.paused_at is not None:
            resume = f"run recrawl notify resume {self.subscription}, or {remove}"
            return f"it has been paused since {self.paused_at:%Y-%m-%d}; {resume}"
        return f"recrawl notify list shows its errors; {remove} removes it"


async def find_slowest_reader(db: Database, domain: Domain) -> SlowestReader | None:
    """Return the reader of a domain's changes with the lowest cursor, or None without readers."""
    row = await fetch_row(db, READERS, {"domain_id": domain.id})
    return SlowestReader(*row) if row is not None else None


async def find_first_unread_at(db: Database, domain: Domain, reader: SlowestReader) -> datetime | None:
    """Return when the oldest change that a reader has not read was found, or None if it has read all."""
    unread_at: datetime | None = await fetch_value(db, FIRST_UNREAD, (domain.id, reader.position))
    return unread_at


async def find_changes_to_forget(
    db: Database, domain: Domain, *, before: datetime, read_until: int | None = None
) -> range:
    """Return the numbers of a domain's changes to delete: found before an instant, and read by all readers.

    read_until: the lowest cursor of the readers; None without readers.
    """
    until = read_until if read_until is not None else MAX_POSITION
    row = await fetch_row(db, LAST_TO_FORGET, {"domain_id": domain.id, "before": before, "read_until": until})
    return range(row[1], row[0] + 1) if row else range(0)


async def forget_values(db: Database, domain: Domain, *, before: datetime) -> int:
    """Delete what rules read from a domain's pages before an instant, except the last of each value."""
    return await execute(db, FORGET_VALUES, {"domain_id": domain.id, "before": before})


async def forget_changes(db: Database, domain: Domain, numbers: range) -> range:
    """Delete the first CHUNK of these changes and return the numbers of the others; none if another process deletes."""
    chunk, remaining = numbers[:CHUNK], numbers[CHUNK:]
    values = {"domain_id": domain.id, "first": chunk[0], "last": chunk[-1]}
    async with db.transaction() as connection:
        if await fetch_number(connection, LOCK, values) != chunk[0]:  # domain deleted, or another process prunes it
            return range(0)
        await connection.execute(FORGET, values)
    return remaining
