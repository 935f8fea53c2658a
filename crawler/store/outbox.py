"""The outbox: pending notifications of changes from the feed, and the messages that carry them.

A message is created before it is first sent and stays unchanged until it is delivered, unless its receiver rejects it
as too large: then it is split or shortened, with a new token. By the token, a receiver recognizes repeated deliveries.
Messages about one page are sent in the order of the feed; dead letters block no others.
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
# The third column estimates the size of a change in a message, in bytes: its content as JSON, and its text for readers,
# which is as long, but at most 1,500 bytes.
DUE_NOTIFICATIONS = """
    SELECT position, is_grouped, octet_length(content::text) + least(octet_length(content::text), 1500) FROM notice
     WHERE subscription_id = %(id)s AND message_id IS NULL AND due_at <= %(at)s
     ORDER BY position LIMIT %(most)s
"""
MAKE_MESSAGE = (
    "INSERT INTO message (subscription_id, token, created_at, next_try_at) VALUES (%s, %s, %s, %s) RETURNING id"
)
ASSIGN_MESSAGE = "UPDATE notice SET message_id = %s WHERE subscription_id = %s AND position = ANY(%s)"
# A message waits for earlier ones about the same page. Earlier means a lower first position, because the parts of a
# split message have higher ids than messages created in between.
# The message with the fewest tries comes first, so one that always fails delays only those about its own pages.
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
    WITH deleted AS ({DELETE_MESSAGE} RETURNING id)
    UPDATE subscription SET delivered = delivered + %(changes)s, delivered_at = %(at)s, {CLEAR_FAILURES}
     WHERE id = %(id)s AND EXISTS (SELECT FROM deleted)
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

# For dead letters, next_try_at is the time when they were given up.
DELETE_OLD_DEAD = "DELETE FROM message WHERE subscription_id = %s AND state = 'dead' AND next_try_at < %s"
IS_DUE = "SELECT EXISTS (SELECT FROM notice WHERE subscription_id = %s AND message_id IS NULL AND due_at <= %s)"
MAKE_PART = """
    INSERT INTO message (subscription_id, token, created_at, next_try_at, tries, last_error)
    SELECT subscription_id, %(token)s, created_at, %(at)s, tries, last_error FROM message WHERE id = %(message)s
 RETURNING id
"""
POSITIONS = "SELECT position FROM notice WHERE message_id = %s ORDER BY position"
LOWER_MAX_BYTES = "UPDATE subscription SET max_bytes = least(max_bytes, %(max_bytes)s) WHERE id = %(id)s"
# The body changes, so the message gets a new token.
RENEW_MESSAGE = "UPDATE message SET token = %(token)s, next_try_at = %(at)s WHERE id = %(message)s"
MAX_LISTED = 200  # dead letters; each may have 500 changes
DEAD_LETTERS = """
    SELECT m.id, m.subscription_id, s.target, m.created_at, m.tries, m.last_error AS error,
           (SELECT coalesce(array_agg(n.content - 'blocks' ORDER BY n.position), '{}')
              FROM notice n WHERE n.message_id = m.id) AS changes
      FROM message m JOIN subscription s ON s.id = m.subscription_id
     WHERE m.state = 'dead' AND (%(number)s::bigint IS NULL OR m.subscription_id = %(number)s) AND m.id > %(after)s
     ORDER BY m.id LIMIT %(most)s
"""
IS_CHOSEN = """
    state = 'dead' AND (%(all)s OR id = ANY(%(ids)s)) AND (%(number)s::bigint IS NULL OR subscription_id = %(number)s)
"""
REDELIVER = f"""
    UPDATE message SET state = 'waiting', tries = 0, created_at = %(at)s, next_try_at = %(at)s WHERE {IS_CHOSEN}
 RETURNING subscription_id
"""  # noqa: S608  our own condition
DISCARD = f"DELETE FROM message WHERE {IS_CHOSEN}"  # noqa: S608  the same


@dataclass(frozen=True, slots=True)
class ChangeNotification:
    """A pending notification of a change. due_at: do not send before.  is_grouped: send together with others.

    content: everything that the message needs.
    """

    position: int
    due_at: datetime
    is_grouped: bool
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send now. tries: earlier tries.  created_at: the time from which its age is measured."""

    id: int
    subscription_id: int
    token: UUID
    tries: int
    created_at: datetime
    changes: Sequence[Mapping[str, Any]] = field(repr=False)


async def put_notifications(
    db: Database, number: int, notifications: Sequence[ChangeNotification], *, after: int, until: int
) -> bool:
    """Add notifications from a range of the feed to a subscription's outbox and advance its position.

    after, until: the range of positions. Return False without any change if another process has read this range.
    """
    rows = [(each.position, each.due_at, each.is_grouped, Jsonb(_clean_json(each.content))) for each in notifications]
    async with db.transaction() as connection:
        if not await execute(connection, ADVANCE_POSITION, {"id": number, "after": after, "until": until}):
            return False
        if notifications:
            columns = split_into_columns(NOTIFICATION_COLUMNS, rows)
            await execute(connection, PUT_NOTIFICATIONS, columns | {"id": number})
    return True


async def is_due(db: Database, number: int, *, at: datetime) -> bool:
    """Return whether a subscription has due notifications that are in no message yet."""
    return bool(await fetch_value(db, IS_DUE, (number, at)))


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
    """Create messages from the due notifications of a subscription, in feed order, and return their number.

    joins_changes: combine changes even if each could be sent alone.  max_changes_each: of one message.
    max_bytes: of one message, approximately; None for any size.  max_changes: of all messages of this call.
    """
    async with db.transaction() as connection:
        rows = await fetch_rows(connection, DUE_NOTIFICATIONS, {"id": number, "at": at, "most": max_changes})
        groups = list(_group_positions(rows, joins=joins_changes, max_count=max_changes_each, max_bytes=max_bytes))
        for positions in groups:
            message_id = await fetch_value(connection, MAKE_MESSAGE, (number, uuid4(), at, at))
            await connection.execute(ASSIGN_MESSAGE, (message_id, number, positions))
    return len(groups)


def _group_positions(
    rows: Iterable[tuple[Any, ...]], *, joins: bool, max_count: int, max_bytes: int | None
) -> Iterable[list[int]]:
    """Group positions into messages. Only neighbors are combined, so messages keep the order of the feed."""
    group, used = list[int](), 0
    for position, is_grouped, size in rows:
        is_alone = not (joins or is_grouped)
        is_too_large = max_bytes is not None and used + size > max_bytes
        if group and (is_alone or is_too_large or len(group) == max_count):
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
    """Return the next message to send for a subscription, or None if there is none or the subscription is paused.

    No earlier message about any of its pages is waiting.
    """
    return await fetch_one(db, class_row(Message), NEXT_MESSAGE, {"id": number, "at": at})


async def record_delivery(db: Database, message: Message, *, at: datetime) -> None:
    """Record that a message was delivered, and reset the failures of its subscription."""
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
    """Record a failed delivery. error: the reason, without secrets.

    next_try_at: when to try again.  is_dead: do not try again.  resume_at: send nothing to the receiver before; None if
    the message caused the failure rather than the receiver.
    If the receiver has been failing for longer than MAX_MESSAGE_AGE, all waiting messages that are older than this
    become dead letters. Dead letters that were given up longer ago than DEAD_LETTER_AGE are deleted.
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
    }
    async with db.transaction() as connection:
        await connection.execute(RECORD_MESSAGE_FAILURE, values)
        await connection.execute(DELETE_OLD_DEAD, (message.subscription_id, at - DEAD_LETTER_AGE))
        if resume_at is None:
            return
        failing_since = await fetch_value(connection, RECORD_TARGET_FAILURE, values)
        if failing_since is not None and failing_since < at - MAX_MESSAGE_AGE:
            await connection.execute(GIVE_UP_OLD, values)


async def record_missing_target(db: Database, number: int, *, resume_at: datetime, error: str, at: datetime) -> None:
    """Record that no message could be sent because the target is unknown. error: the reason, without secrets."""
    values = {"id": number, "resume_at": resume_at, "error": clean_text(error), "at": at}
    await execute(db, RECORD_TARGET_FAILURE, values)


def _clean_json(value: Any) -> Any:
    """Return a JSON value with its texts cleaned for Postgres."""
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
    """Split a message into several with new tokens. parts: the number of changes in each."""
    async with db.transaction() as connection:
        positions = await fetch_all(connection, scalar_row, POSITIONS, (message.id,))
        for count in parts:
            values = {"message": message.id, "token": uuid4(), "at": at}
            message_id = await fetch_value(connection, MAKE_PART, values)
            part, positions = positions[:count], positions[count:]
            await connection.execute(ASSIGN_MESSAGE, (message_id, message.subscription_id, part))
        await connection.execute(DELETE_MESSAGE, {"message": message.id})


async def lower_max_bytes(db: Database, message: Message, *, max_bytes: int, at: datetime) -> None:
    """Lower the maximum size of messages after the receiver rejected this one, and make it due at once."""
    values = {"message": message.id, "id": message.subscription_id, "token": uuid4(), "at": at}
    async with db.transaction() as connection:
        await connection.execute(LOWER_MAX_BYTES, values | {"max_bytes": max_bytes})
        await connection.execute(RENEW_MESSAGE, values)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up. error: why.  changes: without their blocks."""

    id: int
    subscription_id: int
    target: str
    created_at: datetime
    tries: int
    error: str
    changes: list[dict[str, Any]] = field(repr=False)


async def list_dead_letters(
    db: Database, number: int | None = None, *, after: int = 0, max_count: int = MAX_LISTED
) -> list[DeadLetter]:
    """Return the dead letters of a subscription, or of all, the oldest first. after: only those with higher numbers."""
    values = {"number": number, "after": after, "most": max_count}
    return await fetch_all(db, class_row(DeadLetter), DEAD_LETTERS, values)


async def redeliver_letters(
    db: Database, ids: Collection[int] | None, *, number: int | None = None, at: datetime
) -> int:
    """Queue dead letters again with a full number of tries, and return their number.

    ids: None for all.  number: only those of this subscription.

    The user has fixed the receiver, so its failures are reset and its other waiting messages are tried now.
    """
    async with db.transaction() as connection:
        subscription_ids = await fetch_all(connection, scalar_row, REDELIVER, _build_choice_params(ids, number, at=at))
        await mark_recovered(connection, set(subscription_ids), at=at)
    return len(subscription_ids)


async def discard_letters(db: Database, ids: Collection[int] | None, *, number: int | None = None, at: datetime) -> int:
    """Delete dead letters and return their number. ids, number: as in `redeliver_letters`."""
    return await execute(db, DISCARD, _build_choice_params(ids, number, at=at))


def _build_choice_params(ids: Collection[int] | None, number: int | None, *, at: datetime) -> dict[str, Any]:
    return {"all": ids is None, "ids": list(ids or ()), "number": number, "at": at}
