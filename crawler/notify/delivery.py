"""Delivery of due messages: subscriptions run concurrently, and each gets one message after the other."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.errors import CrawlerError
from crawler.notify.delivery_stats import DeliveryStats
from crawler.notify.subscription_delivery import DeliveryContext, deliver_to_subscription
from crawler.store import report, subscriptions
from crawler.store.subscriptions import DeliveryLocks

log = logging.getLogger("recrawl.notify")

OnDelivered = Callable[[DeliveryStats], None]

MAX_CONCURRENT = 64  # subscriptions; each waits for its own target
FOREVER = timedelta(days=36_500)
POLL_INTERVAL = timedelta(seconds=2)  # between reads of the feed
ERROR_PAUSE = timedelta(minutes=1)  # after an unexpected error of a subscription
NOT_RUN_HERE_PAUSE = timedelta(hours=1)  # between reports that a command belongs to another home


async def deliver(
    context: DeliveryContext,
    *,
    subscription_id: int | None = None,
    within: timedelta = FOREVER,
    stop: asyncio.Event | None = None,
) -> DeliveryStats:
    """Append new events to the feed, read it for each subscription, and send the due messages.

    subscription_id: only deliver to this subscription.  within: the time limit for starting messages and for
    reading the feed.  stop: an event that ends both early.
    Messages are sent at least once: if this process is killed while it sends one, that message is sent again. A paused
    subscription gets no messages; the feed is read for it up to the position of the pause.
    """
    stats = DeliveryStats()
    deadline = asyncio.get_running_loop().time() + within.total_seconds()

    def may_continue() -> bool:
        return asyncio.get_running_loop().time() < deadline and (stop is None or not stop.is_set())

    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        await _DeliveryRounds(context, locks, tasks, subscription_id, may_continue).start_round(stats.add)
    return stats


async def keep_delivering(
    context: DeliveryContext, *, stop: asyncio.Event, on_delivered: OnDelivered, subscription_id: int | None = None
) -> None:
    """Deliver until `stop` is set, starting a new round every POLL_INTERVAL. Raises StoreUnavailable.

    on_delivered: is called with the results of each subscription. A slow target does not delay the others.
    """
    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        delivery_rounds = _DeliveryRounds(context, locks, tasks, subscription_id, lambda: not stop.is_set())
        while not stop.is_set():
            await delivery_rounds.start_round(on_delivered)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_INTERVAL.total_seconds())


@dataclass(slots=True)
class _DeliveryRounds:
    """Rounds over the subscriptions; a round skips those that are still in progress or wait after a problem."""

    context: DeliveryContext
    locks: DeliveryLocks
    tasks: asyncio.TaskGroup
    subscription_id: int | None
    may_continue: Callable[[], bool]
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT))
    _in_progress: set[int] = field(default_factory=set)
    _paused_until: dict[int, float] = field(default_factory=dict)  # in loop time

    async def start_round(self, on_delivered: OnDelivered) -> None:
        """Append new events to the feed, and start a delivery to each subscription."""
        db = self.context.db
        listed = await subscriptions.list_subscription_ids(db)
        selected = [each for each in listed if self.subscription_id in {None, each}]
        if not selected:
            return
        await report.append_to_feed(db, at=self.context.now())
        end = await report.read_feed_end(db)
        now = asyncio.get_running_loop().time()
        for each in selected:
            if each not in self._in_progress and self._paused_until.get(each, now) <= now:
                self._in_progress.add(each)
                self.tasks.create_task(self._deliver_to(each, end, on_delivered), name=f"subscription-{each}")

    async def _deliver_to(self, number: int, end: int, on_delivered: OnDelivered) -> None:
        stats = DeliveryStats()
        try:
            async with self._slots:
                if self.may_continue() and await self.locks.acquire(number):
                    pause = timedelta(0)
                    try:
                        await deliver_to_subscription(self.context, number, stats, end, self.may_continue)
                    except CrawlerError:
                        raise
                    except Exception as error:
                        # A row or change that cannot be read must not stop the other subscriptions.
                        log.exception("subscription.broken", extra={"subscription": number})
                        problem = f"an unexpected error occurred ({type(error).__name__})"
                        stats.failed[number] = f"{problem}; the log has the details"
                        pause = ERROR_PAUSE
                    finally:
                        await self.locks.release(number)
                    if stats.elsewhere:
                        pause = NOT_RUN_HERE_PAUSE
                    if pause:
                        now = asyncio.get_running_loop().time()
                        self._paused_until[number] = now + pause.total_seconds()
        finally:
            self._in_progress.discard(number)
            on_delivered(stats)
