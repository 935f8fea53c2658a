"""Messages that are too large for their receiver: told in several, and smaller from then on."""

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from crawler.store.database import Database
from crawler.store.subscriptions.outbox import CARRY, FORGET, Message

PART = """
    INSERT INTO message (subscription_id, token, made_at, next_try_at, tries, last_error)
    SELECT subscription_id, %(token)s, made_at, %(at)s, tries, last_error FROM message WHERE id = %(message)s
 RETURNING id
"""
POSITIONS = "SELECT position FROM notice WHERE message_id = %(message)s ORDER BY position"
BOUND = "UPDATE subscription SET most_bytes = least(most_bytes, %(most_bytes)s) WHERE id = %(id)s"
# Its body will be another one, so it goes by another name.
RENEW = "UPDATE message SET token = %(token)s, next_try_at = %(at)s WHERE id = %(message)s"


async def split(db: Database, message: Message, parts: Sequence[int], *, at: datetime) -> None:
    """Put the changes of a message into several, each with a token of its own. parts: how many go into each."""
    async with db.transaction() as connection:
        found = await (await connection.execute(POSITIONS, {"message": message.id})).fetchall()
        positions = [position for (position,) in found]
        for many in parts:
            values = {"message": message.id, "token": uuid4(), "at": at}
            row = await (await connection.execute(PART, values)).fetchone()
            assert row is not None
            part, positions = positions[:many], positions[many:]
            values = {"id": message.subscription_id, "message": row[0], "positions": part}
            await connection.execute(CARRY, values)
        await connection.execute(FORGET, {"message": message.id})


async def lower_bound(db: Database, message: Message, *, most_bytes: int, at: datetime) -> None:
    """A message was too large for its receiver: messages are smaller from now on, and this one is due at once."""
    values = {"message": message.id, "id": message.subscription_id, "token": uuid4(), "at": at}
    async with db.transaction() as connection:
        await connection.execute(BOUND, values | {"most_bytes": most_bytes})
        await connection.execute(RENEW, values)
