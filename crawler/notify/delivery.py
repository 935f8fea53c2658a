"""Deliver what is due: to all subscriptions side by side, to each one message after the other."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.errors import CrawlerError
from crawler.notify.subscription_delivery import DeliveryContext, DeliveryStats, deliver_to_subscription
from crawler.store import report, subscriptions
from crawler.store.subscriptions import DeliveryLocks, Subscription

log = logging.getLogger("recrawl.notify")

MAX_CONCURRENT = 64  # subscriptions that are delivered to at a time; each waits for its own target
FOREVER = timedelta(days=36_500)
POLL_INTERVAL = timedelta(seconds=2)  # until the feed is looked at again
ERROR_PAUSE = timedelta(minutes=1)  # until a subscription is served again that could not be
NOT_RUN_HERE_PAUSE = timedelta(hours=1)  # until it is said again that nobody may run a command


async def deliver(
    context: DeliveryContext,
    *,
    subscription_id: int | None = None,
    within: timedelta = FOREVER,
    stop: asyncio.Event | None = None,
) -> DeliveryStats:
    """Bring the feed up to date, read it for each subscription, and send what is due.

    subscription_id: to the subscription of that number.  within: no message is begun later, and no piece of the feed.
    stop: nor after it is set.
    Each message is sent at least once; one that was sent when this process ended is sent again, with its token.
    One that is paused is sent nothing; the feed is read for it up to where it was paused.
    """
    stats = DeliveryStats()
    deadline = asyncio.get_running_loop().time() + within.total_seconds()

    def may_continue() -> bool:
        return asyncio.get_running_loop().time() < deadline and (stop is None or not stop.is_set())

    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        delivery_rounds = _DeliveryRounds(
            context, locks, tasks, subscription_id=subscription_id, may_continue=may_continue
        )
        await delivery_rounds.start_round(stats.add)
    return stats


async def keep_delivering(
    context: DeliveryContext,
    *,
    stop: asyncio.Event,
    on_delivered: Callable[[DeliveryStats], None],
    subscription_id: int | None = None,
) -> None:
    """Deliver until `stop` is set, and look again after each PAUSE.

    on_delivered: is called with each subscription that was served.

    What is due to others is sent while a slow target is waited for. Raises StoreUnavailable.
    """
    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        delivery_rounds = _DeliveryRounds(
            context, locks, tasks, subscription_id=subscription_id, may_continue=lambda: not stop.is_set()
        )
        while not stop.is_set():
            await delivery_rounds.start_round(on_delivered)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_INTERVAL.total_seconds())


@dataclass(slots=True)
class _DeliveryRounds:
    """Rounds over all subscriptions; one that is still being served is left to that."""

    context: DeliveryContext
    locks: DeliveryLocks
    tasks: asyncio.TaskGroup
    subscription_id: int | None
    may_continue: Callable[[], bool]
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT))
    _in_progress: set[int] = field(default_factory=set)
    _paused_until: dict[int, float] = field(default_factory=dict)  # in the loop's time

    async def start_round(self, on_delivered: Callable[[DeliveryStats], None]) -> None:
        """Bring the feed up to date, and begin to serve each subscription."""
        db = self.context.db
        selected = [
            each for each in await subscriptions.list_subscriptions(db) if self.subscription_id in {None, each.id}
        ]
        if not selected:
            return
        await report.append_to_feed(db, at=self.context.now())
        end = await report.read_feed_end(db)
        now = asyncio.get_running_loop().time()
        for each in selected:
            if each.id not in self._in_progress and self._paused_until.get(each.id, now) <= now:
                self._in_progress.add(each.id)
                self.tasks.create_task(self._deliver_to(each, end, on_delivered), name=f"subscription-{each.id}")

    async def _deliver_to(
        self, subscription: Subscription, end: int, on_delivered: Callable[[DeliveryStats], None]
    ) -> None:
        stats = DeliveryStats()
        try:
            async with self._slots:
                if self.may_continue() and await self.locks.acquire(subscription.id):
                    try:
                        await deliver_to_subscription(
                            self.context, subscription, stats, end=end, may_continue=self.may_continue
                        )
                    except CrawlerError:
                        raise
                    except Exception as error:
                        # One whose row cannot be read here, or whose change cannot be told, must not end the others.
                        log.exception("subscription.broken", extra={"subscription": subscription.id})
                        stats.failed[subscription.id] = (
                            f"it cannot be served, and the log tells why ({type(error).__name__})"
                        )
                        self._pause(subscription.id, ERROR_PAUSE)
                    finally:
                        await self.locks.release(subscription.id)
                    if stats.elsewhere:
                        self._pause(subscription.id, NOT_RUN_HERE_PAUSE)
        finally:
            self._in_progress.discard(subscription.id)
            on_delivered(stats)

    def _pause(self, subscription_id: int, pause: timedelta) -> None:
        self._paused_until[subscription_id] = asyncio.get_running_loop().time() + pause.total_seconds()
