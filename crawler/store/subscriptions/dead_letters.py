"""Messages that were given up: shown, sent once more, or forgotten."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from crawler.store.database import Database
from crawler.store.subscriptions.subscriptions import be_mended

MOST_LISTED = 200  # letters at a time: one may hold 500 changes
DEAD = """
    SELECT m.id, m.subscription_id, s.target, m.made_at, m.tries, m.last_error AS error,
           (SELECT coalesce(array_agg(n.content - 'blocks' ORDER BY n.position), '{}')
              FROM notice n WHERE n.message_id = m.id) AS changes
      FROM message m JOIN subscription s ON s.id = m.subscription_id
     WHERE m.state = 'dead' AND (%(number)s::bigint IS NULL OR m.subscription_id = %(number)s)
     ORDER BY m.id LIMIT %(most)s
"""
WHICH = "state = 'dead' AND (%(all)s OR id = ANY(%(ids)s))"
REDELIVER = f"""
    UPDATE message SET state = 'waiting', tries = 0, made_at = %(at)s, next_try_at = %(at)s WHERE {WHICH}
 RETURNING subscription_id
"""  # noqa: S608  our own condition
DISCARD = f"DELETE FROM message WHERE {WHICH}"  # noqa: S608  the same


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up. id: its number.  error: of the last try.  changes: without their blocks."""

    id: int
    subscription_id: int
    target: str
    made_at: datetime
    tries: int
    error: str
    changes: list[dict[str, Any]] = field(repr=False)


async def dead_letters(db: Database, number: int | None = None, *, most: int = MOST_LISTED) -> list[DeadLetter]:
    """The dead letters of a subscription, or of all, the oldest first."""
    async with db.transaction() as connection, connection.cursor(row_factory=class_row(DeadLetter)) as cursor:
        return await (await cursor.execute(DEAD, {"number": number, "most": most})).fetchall()


async def redeliver(db: Database, ids: Collection[int] | None, *, at: datetime) -> int:
    """Have dead letters sent once more, with as many tries as at first; None for all. Gives how many.

    Whoever asks for it has mended the receiver: its failures are forgotten, and what else waits for it is tried now.
    """
    async with db.transaction() as connection:
        found = await (await connection.execute(REDELIVER.encode(), _values(ids, at=at))).fetchall()
        await be_mended(connection, {row[0] for row in found}, at=at)
    return len(found)


async def discard(db: Database, ids: Collection[int] | None, *, at: datetime) -> int:
    """Forget dead letters; None for all. Gives how many."""
    async with db.transaction() as connection:
        return (await connection.execute(DISCARD.encode(), _values(ids, at=at))).rowcount


def _values(ids: Collection[int] | None, *, at: datetime) -> dict[str, Any]:
    return {"all": ids is None, "ids": list(ids or ()), "at": at}
