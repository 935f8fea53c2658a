"""Subscriptions to changes, the state of their delivery, and the locks of the processes that deliver.

A process holds the lock of a subscription while it delivers. The lock ends with the database connection, even if the
process is killed.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg
from msgspec import Struct
from psycopg.rows import class_row, scalar_row

from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.alert.timing import DeliveryTimes, parse_digest, parse_quiet_hours
from crawler.core.http.urls import Authority
from crawler.errors import StoreUnavailable
from crawler.store.database import Connection, Database, format_one_line
from crawler.store.report import EventKind
from crawler.store.rows import (
    Executor,
    Values,
    build_placeholders,
    clean_text,
    execute,
    fetch_all,
    fetch_dicts,
    fetch_one,
    fetch_value,
)

MAX_BYTES = 262_144  # default maximum size of a message: a quarter of nginx's limit

DELIVERY_LOCK = 0x6E6F7465  # "note" in ASCII: the first key of a subscription's advisory lock
PAGE_BEFORE = """
    SELECT e.domain_id, CASE WHEN p.change NOT IN ('gone', 'moved') THEN p.version END AS version
      FROM feed f
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
      LEFT JOIN LATERAL (SELECT o.change, o.version FROM event o
                          WHERE o.domain_id = e.domain_id AND o.key = e.key AND o.number < e.number
                            AND o.change IN ('added', 'changed', 'moved', 'gone', 'restored')
                          ORDER BY o.number DESC LIMIT 1) p ON true
     WHERE f.position = %(position)s
"""
SELECT = """
    SELECT s.*, r.domain, r.waiting, r.waiting_since, r.unread_since, r.next_try_at, r.reason, r.dead
      FROM subscription s JOIN report_subscription r ON r.subscription = s.id
"""

CLEAR_FAILURES = "failures = 0, failing_since = NULL, resume_at = NULL, last_error = ''"
PAUSE = """
    UPDATE subscription SET paused_at = %(at)s, pause_position = (SELECT coalesce(max(position), 0) FROM feed)
     WHERE id = %(id)s AND paused_at IS NULL
"""
RESUME = f"""
    UPDATE subscription
       SET paused_at = NULL, pause_position = NULL, {CLEAR_FAILURES},
           position = CASE WHEN %(missed)s THEN position
                           ELSE greatest(position, (SELECT coalesce(max(position), 0) FROM feed)) END
     WHERE id = %(id)s AND paused_at IS NOT NULL AND (%(missed)s OR position >= pause_position)
"""  # noqa: S608  our own columns
# Restart the age of waiting messages: the pause does not count toward their maximum age.
RESTART_MESSAGES = """
    UPDATE message SET created_at = %(at)s, next_try_at = %(at)s, tries = 0
     WHERE subscription_id = %(id)s AND state = 'waiting'
"""

RECOVER = f"""
    WITH recovered AS (UPDATE subscription SET {CLEAR_FAILURES} WHERE id = ANY(%(ids)s))
    UPDATE message SET next_try_at = %(at)s
     WHERE subscription_id = ANY(%(ids)s) AND state = 'waiting' AND next_try_at > %(at)s
"""  # noqa: S608  our own columns


class SubscriptionOptions(Struct, frozen=True):
    """The options of a subscription.

    target: a URL, a command or a reference to one (crawler/notify/target.py).  secret: a reference to the key that
    signs messages; empty for none.  signature: for a command, the signature of the local user who set it.
    domain_id, tag, pattern, page, prefix: the pages to watch, where page and prefix are URLs; None and empty for all.
    min_magnitude: the least magnitude of a change, 0 to 1; changes of unknown magnitude are notified, too.
    place: a selector of the part of the page to watch; empty for the whole page.
    condition: notify when it becomes true; None for every change.
    value_name: notify only of values with this name, on which the condition then is; empty for all changes.
    digest, quiet: the times of digests and the quiet hours, as entered by the user.  zone: an IANA time zone.
    """

    target: str
    kinds: frozenset[EventKind]
    secret: str = ""
    signature: str = ""
    allow_private: bool = False
    domain_id: int | None = None
    tag: str | None = None
    pattern: str = ""
    page: str = ""
    prefix: str = ""
    min_magnitude: float | None = None
    place: str = ""
    condition: Condition | None = None
    value_name: str = ""
    digest: str = ""
    quiet: str = ""
    zone: str = "UTC"

    @property
    def delivery_times(self) -> DeliveryTimes:
        """Return when notifications may be sent. Raise ValueError with a message for the user."""
        digest = parse_digest(self.digest) if self.digest else None
        return DeliveryTimes(self.zone, digest, parse_quiet_hours(self.quiet) if self.quiet else None)


class Subscription(Struct, frozen=True):
    """A subscription and the state of its delivery.

    domain: the name of its domain; None for all.  position: the feed was read up to here.
    failures: consecutive failures of its target, since failing_since; the next try is not before resume_at.
    last_error: the last of them.  delivered: number of delivered changes.  waiting: number of changes not yet
    delivered.  dead: number of messages given up.  waiting_since, unread_since, next_try_at, reason: as in view
    report_subscription.
    paused_at: when it was paused, or None.  pause_position: the end of the feed at that time; changes up to it are
    notified in any case.
    max_bytes: maximum size of a message to a webhook or a program; lowered if the receiver rejects larger ones.
    unknown: why nothing is delivered if a later version of recrawl added its condition or a kind of change; else empty.
    """

    id: int
    options: SubscriptionOptions
    domain: Authority | None
    created_at: datetime
    position: int
    failures: int
    failing_since: datetime | None
    resume_at: datetime | None
    last_error: str
    delivered: int
    delivered_at: datetime | None
    waiting: int
    waiting_since: datetime | None
    unread_since: datetime | None
    next_try_at: datetime | None
    reason: str
    dead: int
    paused_at: datetime | None
    pause_position: int | None
    max_bytes: int
    unknown: str = ""

    def get_overdue_since(self, *, at: datetime) -> datetime | None:
        """Return since when the oldest change that is overdue at an instant has been waiting, or None.

        Nothing is overdue while the subscription is paused or in quiet hours.
        """
        # Without quiet hours, do not load the time zone, which this machine may not have.
        if self.paused_at is not None or (self.options.quiet and self.options.delivery_times.is_quiet(at)):
            return None
        since = [each for each in (self.waiting_since, self.unread_since) if each is not None and each <= at]
        return min(since, default=None)

    def get_next_retry(self, *, at: datetime) -> datetime | None:
        """Return when a failed delivery is tried again, or None if none waits for a later try."""
        is_later = self.waiting and self.next_try_at is not None and self.next_try_at > at
        return self.next_try_at if is_later else None


# The columns that store an option unchanged; kinds and condition are converted.
OPTION_COLUMNS = [name for name in SubscriptionOptions.__struct_fields__ if name not in {"kinds", "condition"}]
STATE_COLUMNS = [name for name in Subscription.__struct_fields__ if name not in {"options", "domain", "unknown"}]
INSERTED_COLUMNS = [*OPTION_COLUMNS, "kinds", "condition", "condition_text", "bound"]
INSERT = f"""
    INSERT INTO subscription ({", ".join(INSERTED_COLUMNS)}, created_at, position)
    VALUES ({build_placeholders(INSERTED_COLUMNS)}, %(at)s, (SELECT coalesce(max(position), 0) FROM feed)) RETURNING id
"""  # noqa: S608  only our own columns are inserted
UPDATE_COLUMNS = ", ".join(f"{name} = %({name})s" for name in INSERTED_COLUMNS)
UPDATE = f"""
    UPDATE subscription
       SET max_bytes = CASE WHEN target = %(target)s THEN max_bytes ELSE {MAX_BYTES} END, {UPDATE_COLUMNS}
     WHERE id = %(id)s
"""  # noqa: S608  likewise


async def add_subscription(db: Database, options: SubscriptionOptions, *, at: datetime) -> Subscription:
    """Add a subscription to all changes that enter the feed from now on."""
    async with db.transaction() as connection:
        number = await fetch_value(connection, INSERT, _build_option_params(options) | {"at": at})
        (subscription,) = await _fetch_subscriptions(connection, "WHERE s.id = %s", (number,))
    return subscription


async def change_subscription(db: Database, number: int, options: SubscriptionOptions, *, at: datetime) -> None:
    """Change the options of a subscription. Waiting messages stay, and are tried at once."""
    async with db.transaction() as connection:
        await execute(connection, UPDATE, _build_option_params(options) | {"id": number})
        await mark_recovered(connection, [number], at=at)


def _build_option_params(options: SubscriptionOptions) -> dict[str, Any]:
    condition = options.condition
    columns = {name: getattr(options, name) for name in OPTION_COLUMNS}
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in columns.items()} | {
        "kinds": sorted(kind.value for kind in options.kinds),
        "condition": condition.kind.value if condition is not None else "",
        "condition_text": clean_text(condition.text) if condition is not None else "",
        "bound": condition.bound if condition is not None and condition.kind.is_numeric else None,
    }


async def list_subscriptions(db: Database, *, after: int = 0, max_count: int | None = None) -> list[Subscription]:
    """Return the subscriptions with higher numbers than `after`, the oldest first. max_count: None for all."""
    return await _fetch_subscriptions(db, "WHERE s.id > %s ORDER BY s.id LIMIT %s", (after, max_count))


async def list_subscription_ids(db: Database) -> list[int]:
    """Return the numbers of all subscriptions, the oldest first, without the cost of counting their changes."""
    return await fetch_all(db, scalar_row, "SELECT id FROM subscription ORDER BY id")


async def find_subscription(db: Database, number: int) -> Subscription | None:
    """Return the subscription with this number, or None."""
    return next(iter(await _fetch_subscriptions(db, "WHERE s.id = %s", (number,))), None)


async def pause_subscription(db: Database, number: int, *, at: datetime) -> bool:
    """Pause a subscription and return whether it was active. Its messages keep waiting."""
    return bool(await execute(db, PAUSE, {"id": number, "at": at}))


async def resume_subscription(db: Database, number: int, *, include_missed: bool, at: datetime) -> bool:
    """Resume a subscription and return whether it was resumed: if it was paused, and its position allows it.

    include_missed: also notify changes found during the pause. Else `position` must have reached `pause_position`.
    """
    values = {"id": number, "missed": include_missed, "at": at}
    async with db.transaction() as connection:
        if not await execute(connection, RESUME, values):
            return False
        await connection.execute(RESTART_MESSAGES, values)
    return True


async def mark_recovered(executor: Executor, numbers: Collection[int], *, at: datetime) -> None:
    """Reset the failures of subscriptions and try their waiting messages at once."""
    await execute(executor, RECOVER, {"ids": list(numbers), "at": at})


async def remove_subscription(db: Database, number: int) -> bool:
    """Delete a subscription with its messages and return whether it existed."""
    return bool(await execute(db, "DELETE FROM subscription WHERE id = %s", (number,)))


async def _fetch_subscriptions(executor: Executor, condition: str, values: Values) -> list[Subscription]:
    return list(map(_build_subscription, await fetch_dicts(executor, f"{SELECT} {condition}", values)))


def _build_subscription(row: dict[str, Any]) -> Subscription:
    condition, columns = None, {name: row[name] for name in OPTION_COLUMNS}
    unknown = frozenset(row["kinds"]) - set(EventKind) | {row["condition"]} - {"", *ConditionKind}
    if row["condition"] and row["condition"] not in unknown:
        kind = ConditionKind(row["condition"])
        condition = Condition(kind=kind, text=row["condition_text"], bound=row["bound"] or 0.0)
    kinds = frozenset(EventKind(kind) for kind in row["kinds"] if kind not in unknown)
    options = SubscriptionOptions(kinds=kinds, condition=condition, **columns)
    names, state = ", ".join(sorted(unknown)), {name: row[name] for name in STATE_COLUMNS}
    why = f"this version of recrawl does not know its kind ({names}): install the version that added it"
    return Subscription(options=options, domain=row["domain"], unknown=why if unknown else "", **state)


class PreviousPage(Struct, frozen=True):
    """A page before a change. version: its newest one; None if, by the stored events, it was new, gone or moved."""

    domain_id: int
    version: int | None


async def read_previous_page(db: Database, position: int) -> PreviousPage:
    """Return the page of the change at a position of the feed, as it was before this change."""
    page = await fetch_one(db, class_row(PreviousPage), PAGE_BEFORE, {"position": position})
    assert page is not None, f"no change at position {position}"
    return page


class DeliveryLocks:
    """Advisory locks of subscriptions on one connection. They end with it, so a killed process leaves none behind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._query_lock = asyncio.Lock()  # a connection runs one query at a time

    async def acquire(self, number: int) -> bool:
        """Try to take the lock of a subscription and return whether it was free."""
        return await self._query("SELECT pg_try_advisory_lock(%s, %s)", number)

    async def release(self, number: int) -> None:
        """Release the lock of a subscription."""
        await self._query("SELECT pg_advisory_unlock(%s, %s)", number)

    async def _query(self, statement: str, number: int) -> bool:
        try:
            async with self._query_lock:
                return bool(await fetch_value(self._connection, statement, (DELIVERY_LOCK, number)))
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"the database does not respond: {format_one_line(error)}") from error


@asynccontextmanager
async def delivery_locks(db: Database) -> AsyncIterator[DeliveryLocks]:
    """Provide locks of subscriptions while the block runs. Occupies one connection of the pool."""
    async with db.connection() as connection:
        await connection.set_autocommit(True)  # an open transaction would block vacuum
        try:
            yield DeliveryLocks(connection)
        finally:
            if not connection.closed:
                await connection.execute("SELECT pg_advisory_unlock_all()")
                await connection.set_autocommit(False)
