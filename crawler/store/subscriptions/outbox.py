"""What waits to be told to a subscriber: changes as they come from the feed, then the messages that carry them.

A message is made before it is first sent, and stays as it is until it was taken: whoever gets it twice knows it by its
token. Messages of one page are sent in the order of the feed; one that was given up holds up none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from crawler.core.alert.timing import DEAD_KEPT, TOO_OLD
from crawler.store.columns import clean
from crawler.store.database import Database

MOVE_ON = "UPDATE subscription SET position = %(until)s WHERE id = %(id)s AND position = %(after)s"
PUT = """
    INSERT INTO notice (subscription_id, position, domain_id, key, due_at, is_grouped, content)
    SELECT %(id)s, f.position, f.domain_id, e.key, n.due_at, n.is_grouped, n.content
      FROM unnest(%(positions)s::bigint[], %(due)s::timestamptz[], %(grouped)s::boolean[], %(contents)s::jsonb[])
           AS n (position, due_at, is_grouped, content)
      JOIN feed f ON f.position = n.position
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
"""
# Beside its content a change takes as much again in words, up to what a person is shown of it.
DUE = """
    SELECT position, is_grouped, octet_length(content::text) + least(octet_length(content::text), 1500) FROM notice
     WHERE subscription_id = %(id)s AND message_id IS NULL AND due_at <= %(at)s
     ORDER BY position LIMIT %(most)s
"""
MAKE = """
    INSERT INTO message (subscription_id, token, made_at, next_try_at) VALUES (%(id)s, %(token)s, %(at)s, %(at)s)
 RETURNING id
"""
CARRY = "UPDATE notice SET message_id = %(message)s WHERE subscription_id = %(id)s AND position = ANY(%(positions)s)"
# Parts of a message that was split have later numbers than what was made after it: its first position tells the order.
# Those that were tried least come first, so that a message that nobody takes holds up only what is of its own pages.
NEXT = """
    SELECT m.id, m.token, m.tries, m.made_at
      FROM message m
     WHERE m.subscription_id = %(id)s AND m.state = 'waiting' AND m.next_try_at <= %(at)s
       AND (SELECT paused_at FROM subscription WHERE id = %(id)s) IS NULL
       AND NOT EXISTS (SELECT FROM notice n
                         JOIN notice o ON o.subscription_id = n.subscription_id AND o.domain_id = n.domain_id
                                      AND o.key = n.key AND o.message_id <> n.message_id
                         JOIN message b ON b.id = o.message_id AND b.state = 'waiting'
                        WHERE n.message_id = m.id
                          AND (SELECT min(position) FROM notice WHERE message_id = b.id)
                              < (SELECT min(position) FROM notice WHERE message_id = m.id))
     ORDER BY m.tries, m.id LIMIT 1
"""
CONTENTS = "SELECT content FROM notice WHERE message_id = %(message)s ORDER BY position"
FORGET = "DELETE FROM message WHERE id = %(message)s"
HEALTHY = """
    UPDATE subscription SET delivered = delivered + %(changes)s, delivered_at = %(at)s, failures = 0,
                            failing_since = NULL, resume_at = NULL, last_error = ''
     WHERE id = %(id)s
"""
FAILED = """
    UPDATE message SET tries = tries + 1, last_error = %(error)s,
                       next_try_at = CASE WHEN %(is_dead)s THEN %(at)s ELSE %(next_try_at)s END,
                       state = CASE WHEN %(is_dead)s THEN 'dead' ELSE 'waiting' END
     WHERE id = %(message)s
"""
FAILING = """
    UPDATE subscription SET failures = failures + 1, failing_since = coalesce(failing_since, %(at)s),
                            resume_at = %(resume_at)s, last_error = %(error)s
     WHERE id = %(id)s RETURNING failing_since
"""
BURY = """
    UPDATE message SET state = 'dead', last_error = %(error)s, next_try_at = %(at)s
     WHERE subscription_id = %(id)s AND state = 'waiting' AND made_at < %(before)s
"""

# Of those that are dead the next try was the last one.
FORGET_DEAD = "DELETE FROM message WHERE subscription_id = %(id)s AND state = 'dead' AND next_try_at < %(forgotten)s"
IS_DUE = """
    SELECT EXISTS (SELECT FROM notice
                    WHERE subscription_id = %(id)s AND message_id IS NULL AND due_at <= %(at)s)
"""


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A change of the feed that is to be told. due_at: not before.  is_grouped: together with others.

    content: all that is told of it, so that nothing else is needed when it is sent.
    """

    position: int
    due_at: datetime
    is_grouped: bool
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is to be sent now. tries: so often it was sent before.  made_at: when it could have been first."""

    id: int
    subscription_id: int
    token: UUID
    tries: int
    made_at: datetime
    changes: tuple[Mapping[str, Any], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Retry:
    """What becomes of a message that was not taken, and of its receiver.

    at: when it is tried again.  is_dead: it is not.  resume_at: nothing is sent to the receiver before; None where the
    message was at fault, and not its receiver.
    """

    at: datetime
    is_dead: bool
    resume_at: datetime | None


async def put_notices(db: Database, number: int, notices: Sequence[ChangeNotice], *, after: int, until: int) -> bool:
    """Put what a subscription is to be told of a piece of the feed into its outbox, and move its position behind it.

    after, until: the piece. Gives False, and changes nothing, where somebody else has read that piece meanwhile.
    """
    values = {
        "id": number,
        "after": after,
        "until": until,
        "positions": [notice.position for notice in notices],
        "due": [notice.due_at for notice in notices],
        "grouped": [notice.is_grouped for notice in notices],
        "contents": [Jsonb(_clean(notice.content)) for notice in notices],
    }
    async with db.transaction() as connection:
        if not (await connection.execute(MOVE_ON, values)).rowcount:
            return False
        if notices:
            await connection.execute(PUT, values)
    return True


async def is_due(db: Database, number: int, *, at: datetime) -> bool:
    """Whether anything is due for a subscription that is in no message yet."""
    async with db.transaction() as connection:
        row = await (await connection.execute(IS_DUE, {"id": number, "at": at})).fetchone()
    return bool(row and row[0])


async def make_messages(
    db: Database,
    number: int,
    *,
    at: datetime,
    is_joined: bool,
    most_each: int,
    most_bytes: int | None = None,
    most: int = 1000,
) -> int:
    """Make messages of what is due for a subscription, in the order of the feed; gives how many.

    is_joined: changes share a message even where each may be told alone.  most_each: changes of one message.
    most_bytes: of one message, about; None for any size.
    most: changes that are put into messages now.
    """
    async with db.transaction() as connection:
        rows = await (await connection.execute(DUE, {"id": number, "at": at, "most": most})).fetchall()
        groups = list(_groups(rows, is_joined=is_joined, most_each=most_each, most_bytes=most_bytes))
        for positions in groups:
            values = {"id": number, "token": uuid4(), "at": at}
            row = await (await connection.execute(MAKE, values)).fetchone()
            assert row is not None
            await connection.execute(CARRY, {"id": number, "message": row[0], "positions": positions})
    return len(groups)


def _groups(
    rows: Iterable[tuple[Any, ...]], *, is_joined: bool, most_each: int, most_bytes: int | None
) -> Iterable[list[int]]:
    """Positions that share a message: neighbours alone, so that all messages stand in the feed's order."""
    group, used = list[int](), 0
    for position, is_grouped, size in rows:
        if group and most_bytes is not None and used + size > most_bytes:
            yield group
            group, used = [], 0
        used += size
        if not (is_joined or is_grouped):
            if group:
                yield group
            yield [position]
            group, used = [], 0
            continue
        group.append(position)
        if len(group) == most_each:
            yield group
            group, used = [], 0
    if group:
        yield group


async def next_message(db: Database, number: int, *, at: datetime) -> Message | None:
    """The message of a subscription that is to be sent next; None while none may be, as long as it is paused, too.

    No earlier message of any of its pages is waiting.
    """
    async with db.transaction() as connection:
        row = await (await connection.execute(NEXT, {"id": number, "at": at})).fetchone()
        if row is None:
            return None
        found = await (await connection.execute(CONTENTS, {"message": row[0]})).fetchall()
    return Message(
        id=row[0],
        subscription_id=number,
        token=row[1],
        tries=row[2],
        made_at=row[3],
        changes=tuple(content for (content,) in found),
    )


async def taken(db: Database, message: Message, *, at: datetime) -> None:
    """The message was taken, and its receiver is well."""
    values = {"message": message.id, "id": message.subscription_id, "changes": len(message.changes), "at": at}
    async with db.transaction() as connection:
        if (await connection.execute(FORGET, values)).rowcount:
            await connection.execute(HEALTHY, values)


async def not_taken(db: Database, message: Message, retry: Retry, *, error: str, at: datetime) -> None:
    """The message was not taken. error: why not, without anything secret.

    What else has been waiting since before a receiver failed for TOO_OLD is given up with it, without another try. Dead
    letters of the subscription that were given up before DEAD_KEPT are forgotten.
    """
    values = {
        "message": message.id,
        "id": message.subscription_id,
        "error": clean(error),
        "at": at,
        "next_try_at": retry.at,
        "is_dead": retry.is_dead,
        "resume_at": retry.resume_at,
        "before": at - TOO_OLD,
        "forgotten": at - DEAD_KEPT,
    }
    async with db.transaction() as connection:
        await connection.execute(FAILED, values)
        await connection.execute(FORGET_DEAD, values)
        if retry.resume_at is None:
            return
        row = await (await connection.execute(FAILING, values)).fetchone()
        if row is not None and row[0] < at - TOO_OLD:
            await connection.execute(BURY, values)


async def target_lacks(db: Database, number: int, *, resume_at: datetime, error: str, at: datetime) -> None:
    """The target of a subscription is not known, so no message could be made. error: why, without anything secret."""
    async with db.transaction() as connection:
        values = {"id": number, "resume_at": resume_at, "error": clean(error), "at": at}
        await connection.execute(FAILING, values)


def _clean(value: Any) -> Any:
    """Texts of a JSON value as Postgres takes them."""
    match value:
        case str():
            return clean(value)
        case Mapping():
            return {name: _clean(each) for name, each in value.items()}
        case list() | tuple():
            return [_clean(each) for each in value]
        case _:
            return value
