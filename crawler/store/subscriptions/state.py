"""How subscriptions are doing: what waits for each, since when, and why."""

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from crawler.core.alert.timing import DeliveryTimes, parse_quiet
from crawler.store.database import Database

STATES = """
    SELECT subscription, target, domain, paused_at IS NOT NULL AS is_paused, quiet, zone, waiting, waiting_since,
           unread_since, failures, failing_since, next_try_at, reason, dead
      FROM report_subscription
     WHERE %(id)s::bigint IS NULL OR subscription = %(id)s
     ORDER BY subscription
"""


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """How a subscription is doing: a row of report_subscription, which says what its columns mean."""

    subscription: int
    target: str
    domain: str | None
    is_paused: bool
    quiet: str
    zone: str
    waiting: int
    waiting_since: datetime | None
    unread_since: datetime | None
    failures: int
    failing_since: datetime | None
    next_try_at: datetime | None
    reason: str
    dead: int

    def untold_since(self, *, at: datetime) -> datetime | None:
        """When the oldest change came up that should have been told by an instant; None where there is none.

        Nobody need be told of any while it is paused, nor in quiet hours.
        """
        if self.is_paused or (self.quiet and DeliveryTimes(self.zone, quiet=parse_quiet(self.quiet)).is_quiet(at)):
            return None
        since = [each for each in (self.waiting_since, self.unread_since) if each is not None and each <= at]
        return min(since, default=None)

    def waits_until(self, *, at: datetime) -> datetime | None:
        """When what was not taken is tried again; None where nothing is to be waited for."""
        is_later = self.waiting and self.next_try_at is not None and self.next_try_at > at
        return self.next_try_at if is_later else None


async def states(db: Database, number: int | None = None) -> list[SubscriptionState]:
    """How all subscriptions are doing, or the one of that number, in the order in which they were made."""
    async with db.transaction() as connection:
        cursor = await connection.cursor(row_factory=class_row(SubscriptionState)).execute(STATES, {"id": number})
        return await cursor.fetchall()
