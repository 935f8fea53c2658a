"""What waits to be told to a subscriber: changes as they come from the feed, then the messages that carry them.

A message is made before it is first sent, and stays as it is until it was taken: whoever gets it twice knows it by its
token. Messages of one page are sent in the order of the feed; one that was given up holds up none. One that is too
large for its receiver is split.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from crawler.core.alert.timing import DEAD_LETTER_AGE, MAX_MESSAGE_AGE
from crawler.store.database import Database
from crawler.store.rows import (
    build_unnest,
    clean_text,
    execute,
    fetch_all,
    fetch_one,
    fetch_rows,
    fetch_value,
    split_into_columns,
)
from crawler.store.subscriptions import CLEAR_FAILURES, mark_recovered

ADVANCE_POSITION = "UPDATE subscription SET position = %(until)s WHERE id = %(id)s AND position = %(after)s"
NOTIFICATION_COLUMNS = "position bigint, due_at timestamptz, is_grouped boolean, content jsonb"
PUT_NOTIFICATIONS = f"""
    INSERT INTO notice (subscription_id, position, domain_id, key, due_at, is_grouped, content)
    SELECT %(id)s, f.position, f.domain_id, e.key, x.due_at, x.is_grouped, x.content
      FROM {build_unnest(NOTIFICATION_COLUMNS)}
      JOIN feed f ON f.position = x.position
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
"""  # noqa: S608  our own columns
# Beside its content a change takes as much again in words, up to what a person is shown of it.
DUE_NOTIFICATIONS = """
    SELECT position, is_grouped, octet_length(content::text) + least(octet_length(content::text), 1500) FROM notice
     WHERE subscription_id = %(id)s AND message_id IS NULL AND due_at <= %(at)s
     ORDER BY position LIMIT %(most)s
"""
MAKE_MESSAGE = """
    INSERT INTO message (subscription_id, token, created_at, next_try_at) VALUES (%(id)s, %(token)s, %(at)s, %(at)s)
 RETURNING id
"""
ASSIGN_MESSAGE = (
    "UPDATE notice SET message_id = %(message)s WHERE subscription_id = %(id)s AND position = ANY(%(positions)s)"
)
# Parts of a message that was split have later numbers than what was made after it: its first position tells the order.
# Those that were tried least come first, so that a message that nobody takes holds up only what is of its own pages.
NEXT_MESSAGE = """
    SELECT m.id, m.subscription_id, m.token, m.tries, m.created_at,
           ARRAY(SELECT n.content FROM notice n WHERE n.message_id = m.id ORDER BY n.position) AS changes
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
DELETE_MESSAGE = "DELETE FROM message WHERE id = %(message)s"
RECORD_DELIVERY = f"""
    WITH forgotten AS ({DELETE_MESSAGE} RETURNING id)
    UPDATE subscription SET delivered = delivered + %(changes)s, delivered_at = %(at)s, {CLEAR_FAILURES}
     WHERE id = %(id)s AND EXISTS (SELECT FROM forgotten)
"""  # noqa: S608  our own columns
RECORD_MESSAGE_FAILURE = """
    UPDATE message SET tries = tries + 1, last_error = %(error)s,
                       next_try_at = CASE WHEN %(is_dead)s THEN %(at)s ELSE %(next_try_at)s END,
                       state = CASE WHEN %(is_dead)s THEN 'dead' ELSE 'waiting' END
     WHERE id = %(message)s
"""
RECORD_TARGET_FAILURE = """
    UPDATE subscription SET failures = failures + 1, failing_since = coalesce(failing_since, %(at)s),
                            resume_at = %(resume_at)s, last_error = %(error)s
     WHERE id = %(id)s RETURNING failing_since
"""
GIVE_UP_OLD = """
    UPDATE message SET state = 'dead', last_error = %(error)s, next_try_at = %(at)s
     WHERE subscription_id = %(id)s AND state = 'waiting' AND created_at < %(before)s
"""

# Of those that are dead the next try was the last one.
DELETE_OLD_DEAD = (
    "DELETE FROM message WHERE subscription_id = %(id)s AND state = 'dead' AND next_try_at < %(forgotten)s"
)
IS_DUE = """
    SELECT EXISTS (SELECT FROM notice
                    WHERE subscription_id = %(id)s AND message_id IS NULL AND due_at <= %(at)s)
"""
MAKE_PART = """
    INSERT INTO message (subscription_id, token, created_at, next_try_at, tries, last_error)
    SELECT subscription_id, %(token)s, created_at, %(at)s, tries, last_error FROM message WHERE id = %(message)s
 RETURNING id
"""
POSITIONS = "SELECT position FROM notice WHERE message_id = %(message)s ORDER BY position"
LOWER_MAX_BYTES = "UPDATE subscription SET max_bytes = least(max_bytes, %(max_bytes)s) WHERE id = %(id)s"
# Its body will be another one, so it goes by another name.
RENEW_MESSAGE = "UPDATE message SET token = %(token)s, next_try_at = %(at)s WHERE id = %(message)s"
MAX_LISTED = 200  # letters at a time: one may hold 500 changes
DEAD_LETTERS = """
    SELECT m.id, m.subscription_id, s.target, m.created_at, m.tries, m.last_error AS error,
           (SELECT coalesce(array_agg(n.content - 'blocks' ORDER BY n.position), '{}')
              FROM notice n WHERE n.message_id = m.id) AS changes
      FROM message m JOIN subscription s ON s.id = m.subscription_id
     WHERE m.state = 'dead' AND (%(number)s::bigint IS NULL OR m.subscription_id = %(number)s)
     ORDER BY m.id LIMIT %(most)s
"""
IS_CHOSEN = "state = 'dead' AND (%(all)s OR id = ANY(%(ids)s))"
REDELIVER = f"""
    UPDATE message SET state = 'waiting', tries = 0, created_at = %(at)s, next_try_at = %(at)s WHERE {IS_CHOSEN}
 RETURNING subscription_id
"""  # noqa: S608  our own condition
DISCARD = f"DELETE FROM message WHERE {IS_CHOSEN}"  # noqa: S608  the same


@dataclass(frozen=True, slots=True)
class ChangeNotification:
    """A change of the feed that is to be told. due_at: not before.  is_grouped: together with others.

    content: all that is told of it, so that nothing else is needed when it is sent.
    """

    position: int
    due_at: datetime
    is_grouped: bool
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is to be sent now.

    tries: so often it was sent before.  created_at: when it could have been first.
    """

    id: int
    subscription_id: int
    token: UUID
    tries: int
    created_at: datetime
    changes: Sequence[Mapping[str, Any]] = field(repr=False)


async def put_notifications(
    db: Database, number: int, notifications: Sequence[ChangeNotification], *, after: int, until: int
) -> bool:
    """Put what a subscription is to be told of a piece of the feed into its outbox, and move its position behind it.

    after, until: the piece. Gives False, and changes nothing, where somebody else has read that piece meanwhile.
    """
    rows = [(each.position, each.due_at, each.is_grouped, Jsonb(_clean_json(each.content))) for each in notifications]
    async with db.transaction() as connection:
        if not await execute(connection, ADVANCE_POSITION, {"id": number, "after": after, "until": until}):
            return False
        if notifications:
            await execute(
                connection, PUT_NOTIFICATIONS, split_into_columns(NOTIFICATION_COLUMNS, rows) | {"id": number}
            )
    return True


async def is_due(db: Database, number: int, *, at: datetime) -> bool:
    """Whether anything is due for a subscription that is in no message yet."""
    return bool(await fetch_value(db, IS_DUE, {"id": number, "at": at}))


async def make_messages(
    db: Database,
    number: int,
    *,
    at: datetime,
    joins_changes: bool,
    max_changes_each: int,
    max_bytes: int | None = None,
    max_changes: int = 1000,
) -> int:
    """Make messages of what is due for a subscription, in the order of the feed; gives how many.

    joins_changes: changes share a message even where each may be told alone.  max_changes_each: changes of one message.
    max_bytes: of one message, about; None for any size.
    max_changes: changes that are put into messages now.
    """
    async with db.transaction() as connection:
        rows = await fetch_rows(connection, DUE_NOTIFICATIONS, {"id": number, "at": at, "most": max_changes})
        groups = list(
            _group_positions(rows, joins_changes=joins_changes, max_changes_each=max_changes_each, max_bytes=max_bytes)
        )
        for positions in groups:
            values = {"id": number, "token": uuid4(), "at": at}
            message_id = await fetch_value(connection, MAKE_MESSAGE, values)
            await connection.execute(ASSIGN_MESSAGE, {"id": number, "message": message_id, "positions": positions})
    return len(groups)


def _group_positions(
    rows: Iterable[tuple[Any, ...]], *, joins_changes: bool, max_changes_each: int, max_bytes: int | None
) -> Iterable[list[int]]:
    """Positions that share a message: neighbours alone, so that all messages stand in the feed's order."""
    group, used = list[int](), 0
    for position, is_grouped, size in rows:
        is_alone = not (joins_changes or is_grouped)
        is_too_large = max_bytes is not None and used + size > max_bytes
        if group and (is_alone or is_too_large or len(group) == max_changes_each):
            yield group
            group, used = [], 0
        group.append(position)
        used += size
        if is_alone:
            yield group
            group, used = [], 0
    if group:
        yield group


async def find_next_message(db: Database, number: int, *, at: datetime) -> Message | None:
    """The message of a subscription that is to be sent next; None while none may be, as long as it is paused, too.

    No earlier message of any of its pages is waiting.
    """
    return await fetch_one(db, class_row(Message), NEXT_MESSAGE, {"id": number, "at": at})


async def record_delivery(db: Database, message: Message, *, at: datetime) -> None:
    """The message was taken, and its receiver is well."""
    values = {"message": message.id, "id": message.subscription_id, "changes": len(message.changes), "at": at}
    await execute(db, RECORD_DELIVERY, values)


async def record_failure(
    db: Database,
    message: Message,
    *,
    error: str,
    at: datetime,
    next_try_at: datetime,
    is_dead: bool,
    resume_at: datetime | None,
) -> None:
    """Write down that a message was not taken. error: why not, without anything secret.

    next_try_at: when it is tried again.  is_dead: it is not.  resume_at: nothing is sent to the receiver before; None
    where the message was at fault, and not its receiver.
    What else has been waiting since before a receiver failed for TOO_OLD is given up with it, without another try. Dead
    letters of the subscription that were given up before DEAD_LETTER_AGE are forgotten.
    """
    values = {
        "message": message.id,
        "id": message.subscription_id,
        "error": clean_text(error),
        "at": at,
        "next_try_at": next_try_at,
        "is_dead": is_dead,
        "resume_at": resume_at,
        "before": at - MAX_MESSAGE_AGE,
        "forgotten": at - DEAD_LETTER_AGE,
    }
    async with db.transaction() as connection:
        await connection.execute(RECORD_MESSAGE_FAILURE, values)
        await connection.execute(DELETE_OLD_DEAD, values)
        if resume_at is None:
            return
        failing_since = await fetch_value(connection, RECORD_TARGET_FAILURE, values)
        if failing_since is not None and failing_since < at - MAX_MESSAGE_AGE:
            await connection.execute(GIVE_UP_OLD, values)


async def record_missing_target(db: Database, number: int, *, resume_at: datetime, error: str, at: datetime) -> None:
    """The target of a subscription is not known, so no message could be made. error: why, without anything secret."""
    await execute(
        db, RECORD_TARGET_FAILURE, {"id": number, "resume_at": resume_at, "error": clean_text(error), "at": at}
    )


def _clean_json(value: Any) -> Any:
    """Texts of a JSON value as Postgres takes them."""
    match value:
        case str():
            return clean_text(value)
        case Mapping():
            return {name: _clean_json(each) for name, each in value.items()}
        case list() | tuple():
            return [_clean_json(each) for each in value]
        case _:
            return value


async def split_message(db: Database, message: Message, parts: Sequence[int], *, at: datetime) -> None:
    """Put the changes of a message into several, each with a token of its own. parts: how many go into each."""
    async with db.transaction() as connection:
        positions = await fetch_all(connection, scalar_row, POSITIONS, {"message": message.id})
        for count in parts:
            values = {"message": message.id, "token": uuid4(), "at": at}
            message_id = await fetch_value(connection, MAKE_PART, values)
            part, positions = positions[:count], positions[count:]
            await connection.execute(
                ASSIGN_MESSAGE, {"id": message.subscription_id, "message": message_id, "positions": part}
            )
        await connection.execute(DELETE_MESSAGE, {"message": message.id})


async def lower_max_bytes(db: Database, message: Message, *, max_bytes: int, at: datetime) -> None:
    """A message was too large for its receiver: messages are smaller from now on, and this one is due at once."""
    values = {"message": message.id, "id": message.subscription_id, "token": uuid4(), "at": at}
    async with db.transaction() as connection:
        await connection.execute(LOWER_MAX_BYTES, values | {"max_bytes": max_bytes})
        await connection.execute(RENEW_MESSAGE, values)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up. id: its number.  error: of the last try.  changes: without their blocks."""

    id: int
    subscription_id: int
    target: str
    created_at: datetime
    tries: int
    error: str
    changes: list[dict[str, Any]] = field(repr=False)


async def list_dead_letters(
    db: Database, number: int | None = None, *, max_count: int = MAX_LISTED
) -> list[DeadLetter]:
    """The dead letters of a subscription, or of all, the oldest first."""
    return await fetch_all(db, class_row(DeadLetter), DEAD_LETTERS, {"number": number, "most": max_count})


async def redeliver_letters(db: Database, ids: Collection[int] | None, *, at: datetime) -> int:
    """Have dead letters sent once more, with as many tries as at first; None for all. Gives how many.

    Whoever asks for it has mended the receiver: its failures are forgotten, and what else waits for it is tried now.
    """
    async with db.transaction() as connection:
        subscription_ids = await fetch_all(connection, scalar_row, REDELIVER, _build_choice_params(ids, at=at))
        await mark_recovered(connection, set(subscription_ids), at=at)
    return len(subscription_ids)


async def discard_letters(db: Database, ids: Collection[int] | None, *, at: datetime) -> int:
    """Forget dead letters; None for all. Gives how many."""
    return await execute(db, DISCARD, _build_choice_params(ids, at=at))


def _build_choice_params(ids: Collection[int] | None, *, at: datetime) -> dict[str, Any]:
    return {"all": ids is None, "ids": list(ids or ()), "at": at}
