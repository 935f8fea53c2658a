"""Subscriptions as their users make them, how each is doing, and which process delivers to it.

Who delivers holds the subscription's lock meanwhile, which ends with the connection, however the process ends.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.alert.timing import DeliveryTimes, parse_digest, parse_quiet
from crawler.core.http.urls import Authority
from crawler.errors import StoreUnavailable
from crawler.store.database import Connection, Database, one_line
from crawler.store.report import EventKind
from crawler.store.rows import Place, clean, execute, fetch_dicts, fetch_one, fetch_value

MOST_BYTES = 262_144  # of a message, unless its receiver takes less: a quarter of what nginx lets through

DELIVERY_LOCK = 0x6E6F7465  # "note": the first half of the name of a subscription's lock
BEFORE = """
    SELECT e.domain_id, CASE WHEN p.change NOT IN ('gone', 'moved') THEN p.version END AS version
      FROM feed f
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
      LEFT JOIN LATERAL (SELECT o.change, o.version FROM event o
                          WHERE o.domain_id = e.domain_id AND o.key = e.key AND o.number < e.number
                            AND o.change IN ('first', 'changed', 'moved', 'gone', 'back')
                          ORDER BY o.number DESC LIMIT 1) p ON true
     WHERE f.position = %(position)s
"""
SELECT = """
    SELECT s.*, r.domain, r.waiting, r.waiting_since, r.unread_since, r.next_try_at, r.reason, r.dead
      FROM subscription s JOIN report_subscription r ON r.subscription = s.id
"""

IS_WELL = "failures = 0, failing_since = NULL, resume_at = NULL, last_error = ''"
PAUSE = """
    UPDATE subscription SET paused_at = %(at)s, pause_position = (SELECT coalesce(max(position), 0) FROM feed)
     WHERE id = %(id)s AND paused_at IS NULL
"""
RESUME = f"""
    UPDATE subscription
       SET paused_at = NULL, pause_position = NULL, {IS_WELL},
           position = CASE WHEN %(missed)s THEN position
                           ELSE greatest(position, (SELECT coalesce(max(position), 0) FROM feed)) END
     WHERE id = %(id)s AND paused_at IS NOT NULL AND (%(missed)s OR position >= pause_position)
"""  # noqa: S608  our own columns
# The time for which it was paused counts as no time in which its receiver took nothing.
AS_NEW = """
    UPDATE message SET made_at = %(at)s, next_try_at = %(at)s, tries = 0
     WHERE subscription_id = %(id)s AND state = 'waiting'
"""

MENDED = f"""
    WITH well AS (UPDATE subscription SET {IS_WELL} WHERE id = ANY(%(ids)s))
    UPDATE message SET next_try_at = %(at)s
     WHERE subscription_id = ANY(%(ids)s) AND state = 'waiting' AND next_try_at > %(at)s
"""  # noqa: S608  our own columns


@dataclass(frozen=True, slots=True)
class SubscriptionWish:
    """A user's wish to be told of changes.

    target: a URL, a command or the place of one (crawler/notify/target.py).  secret: the place of the key that messages
    are signed with; empty for none.  seal: of a command, the proof that the user of this machine has set it.
    domain_id, pattern: of which pages; None and empty for all.  place: the selector of the watched piece; empty for the
    whole page.  condition: told when it becomes true; None for every change.
    digest, quiet: as they were typed.  zone: IANA name.
    """

    target: str
    kinds: frozenset[EventKind]
    secret: str = ""
    seal: str = ""
    allow_private: bool = False
    domain_id: int | None = None
    pattern: str = ""
    place: str = ""
    condition: Condition | None = None
    digest: str = ""
    quiet: str = ""
    zone: str = "UTC"

    @property
    def times(self) -> DeliveryTimes:
        """When changes may be told. ValueError, a sentence for a person."""
        digest = parse_digest(self.digest) if self.digest else None
        return DeliveryTimes(self.zone, digest, parse_quiet(self.quiet) if self.quiet else None)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription, and how it is doing.

    domain: the name of its domain; None for all.  position: of the feed, up to which it was read.
    failures: of its target in a row, since failing_since; it is not tried before resume_at.  last_error: of those.
    delivered: changes that were taken.  waiting: changes that were not yet.  dead: messages that were given up.
    waiting_since, unread_since, next_try_at, reason: as in report_subscription.
    paused_at: since when nothing is sent; None where it is not paused.  pause_position: where the feed ended then: what
    stands before is told when it is resumed, whether it was read by then or not.
    most_bytes: of a message to a webhook or a program; less than at first where its receiver has refused larger ones.
    """

    id: int
    wish: SubscriptionWish
    domain: Authority | None
    made_at: datetime
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
    most_bytes: int

    def untold_since(self, *, at: datetime) -> datetime | None:
        """When the oldest change came up that should have been told by an instant; None where there is none.

        Nobody need be told of any while it is paused, nor in quiet hours.
        """
        # Without quiet hours the time zone, which this machine may lack, is not asked.
        if self.paused_at is not None or (self.wish.quiet and self.wish.times.is_quiet(at)):
            return None
        since = [each for each in (self.waiting_since, self.unread_since) if each is not None and each <= at]
        return min(since, default=None)

    def waits_until(self, *, at: datetime) -> datetime | None:
        """When what was not taken is tried again; None where nothing is to be waited for."""
        is_later = self.waiting and self.next_try_at is not None and self.next_try_at > at
        return self.next_try_at if is_later else None


# The columns of table subscription that hold a value as it is; kinds and a condition have columns of their own form.
WISH_COLUMNS = [each.name for each in fields(SubscriptionWish) if each.name not in {"kinds", "condition"}]
STANDING_COLUMNS = [each.name for each in fields(Subscription) if each.name not in {"wish", "domain"}]
WRITTEN = [*WISH_COLUMNS, "kinds", "condition", "condition_text", "bound"]
INSERT = f"""
    INSERT INTO subscription ({", ".join(WRITTEN)}, made_at, position)
    VALUES ({", ".join(f"%({name})s" for name in WRITTEN)}, %(at)s, (SELECT coalesce(max(position), 0) FROM feed))
 RETURNING id
"""  # noqa: S608  only our own columns are put in


async def add(db: Database, wish: SubscriptionWish, *, at: datetime) -> Subscription:
    """A new subscription, to all that comes into the feed from now on."""
    condition = wish.condition
    said = {name: getattr(wish, name) for name in WISH_COLUMNS}
    values = {name: clean(value) if isinstance(value, str) else value for name, value in said.items()} | {
        "kinds": sorted(kind.value for kind in wish.kinds),
        "condition": condition.kind.value if condition is not None else "",
        "condition_text": clean(condition.text) if condition is not None else "",
        "bound": condition.bound if condition is not None and condition.kind.is_of_number else None,
        "at": at,
    }
    async with db.transaction() as connection:
        number = await fetch_value(connection, INSERT, values)
        (made,) = await _found(connection, f"{SELECT} WHERE s.id = %(id)s", {"id": number})
    return made


async def every(db: Database) -> list[Subscription]:
    """All subscriptions, in the order in which they were made."""
    return await _found(db, f"{SELECT} ORDER BY s.id", {})


async def numbered(db: Database, number: int) -> Subscription | None:
    """The subscription of that number; None where there is none."""
    found = await _found(db, f"{SELECT} WHERE s.id = %(id)s", {"id": number})
    return found[0] if found else None


async def pause(db: Database, number: int, *, at: datetime) -> bool:
    """Send a subscription nothing from now on; gives whether it was not paused before. Messages wait where they are."""
    return bool(await execute(db, PAUSE, {"id": number, "at": at}))


async def resume(db: Database, number: int, *, missed: bool, at: datetime) -> bool:
    """Send a subscription again what waits for it, and what is found from now on; gives whether it was paused.

    missed: and what was found while it was paused.
    """
    values = {"id": number, "missed": missed, "at": at}
    async with db.transaction() as connection:
        if not await execute(connection, RESUME, values):
            return False
        await connection.execute(AS_NEW, values)
    return True


async def mended(place: Place, numbers: Collection[int], *, at: datetime) -> None:
    """Take the receivers of subscriptions for well: forget their failures, and try what waits at once."""
    await execute(place, MENDED, {"ids": list(numbers), "at": at})


async def remove(db: Database, number: int) -> bool:
    """Forget a subscription with all that waits for it; gives whether there was one."""
    return bool(await execute(db, "DELETE FROM subscription WHERE id = %s", (number,)))


async def _found(place: Place, statement: str, values: dict[str, Any]) -> list[Subscription]:
    return [_subscription(row) for row in await fetch_dicts(place, statement, values)]


def _subscription(row: dict[str, Any]) -> Subscription:
    condition = None
    if row["condition"]:
        kind = ConditionKind(row["condition"])
        condition = Condition(kind=kind, text=row["condition_text"], bound=row["bound"] or 0.0)
    wish = SubscriptionWish(
        kinds=frozenset(map(EventKind, row["kinds"])),
        condition=condition,
        **{name: row[name] for name in WISH_COLUMNS},
    )
    return Subscription(
        wish=wish,
        domain=Authority(row["domain"]) if row["domain"] is not None else None,
        **{name: row[name] for name in STANDING_COLUMNS},
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """A page before a change. version: the one that it said then, as far as is known; None where it was not there."""

    domain_id: int
    version: int | None


async def standing_before(db: Database, position: int) -> Standing:
    """Return what the page was of which a change stands at that position of the feed."""
    found = await fetch_one(db, class_row(Standing), BEFORE, {"position": position})
    assert found is not None, f"no change stands at {position}"
    return found


class DeliveryLocks:
    """Locks of subscriptions, held by one connection: they end with it, so that no kill leaves one behind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = asyncio.Lock()  # a connection answers one question at a time

    async def take(self, number: int) -> bool:
        """Whether a subscription is ours to deliver to from now on."""
        return await self._ask("SELECT pg_try_advisory_lock(%s, %s)", number)

    async def give_back(self, number: int) -> None:
        """Let others deliver to a subscription."""
        await self._ask("SELECT pg_advisory_unlock(%s, %s)", number)

    async def _ask(self, question: str, number: int) -> bool:
        try:
            async with self._asking:
                return bool(await fetch_value(self._connection, question, (DELIVERY_LOCK, number)))
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"the database does not answer: {one_line(error)}") from error


@asynccontextmanager
async def delivery_locks(db: Database) -> AsyncIterator[DeliveryLocks]:
    """Locks for as long as the block runs. It has one connection of the pool for itself."""
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)  # a transaction that stays open keeps Postgres from tidying up
        try:
            yield DeliveryLocks(connection)
        finally:
            if not connection.closed:
                await connection.execute("SELECT pg_advisory_unlock_all()")
                await connection.set_autocommit(False)
