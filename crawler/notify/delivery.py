"""Deliver what is due: to all subscriptions side by side, to each one message after the other."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.errors import CrawlerError
from crawler.notify.one_subscription import Delivered, DeliveryContext, serve
from crawler.store import report, subscriptions
from crawler.store.subscriptions import DeliveryLocks, Subscription

log = logging.getLogger("recrawl.notify")

SIDE_BY_SIDE = 64  # subscriptions that are delivered to at a time; each waits for its own target
FOREVER = timedelta(days=36_500)
PAUSE = timedelta(seconds=2)  # until the feed is looked at again
BROKEN_PAUSE = timedelta(minutes=1)  # until a subscription is served again that could not be
ELSEWHERE_PAUSE = timedelta(hours=1)  # until it is said again that nobody may run a command


async def deliver(
    context: DeliveryContext,
    *,
    only: int | None = None,
    within: timedelta = FOREVER,
    stop: asyncio.Event | None = None,
) -> Delivered:
    """Bring the feed up to date, read it for each subscription, and send what is due.

    only: to the subscription of that number.  within: no message is begun later, and no piece of the feed.
    stop: nor after it is set.
    Each message is sent at least once; one that was sent when this process ended is sent again, with its token.
    One that is paused is sent nothing; the feed is read for it up to where it was paused.
    """
    done = Delivered()
    deadline = asyncio.get_running_loop().time() + within.total_seconds()

    def may_go_on() -> bool:
        return asyncio.get_running_loop().time() < deadline and (stop is None or not stop.is_set())

    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        rounds = _Rounds(context, locks, tasks, only=only, may_go_on=may_go_on)
        await rounds.begin(done.add)
    return done


async def keep_delivering(
    context: DeliveryContext,
    *,
    stop: asyncio.Event,
    tell: Callable[[Delivered], None],
    only: int | None = None,
) -> None:
    """Deliver until `stop` is set, and look again after each PAUSE. tell: hears of each subscription that was served.

    What is due to others is sent while a slow target is waited for. Raises StoreUnavailable.
    """
    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        rounds = _Rounds(context, locks, tasks, only=only, may_go_on=lambda: not stop.is_set())
        while not stop.is_set():
            await rounds.begin(tell)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PAUSE.total_seconds())


@dataclass(slots=True)
class _Rounds:
    """Rounds over all subscriptions; one that is still being served is left to that."""

    context: DeliveryContext
    locks: DeliveryLocks
    tasks: asyncio.TaskGroup
    only: int | None
    may_go_on: Callable[[], bool]
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))
    _served: set[int] = field(default_factory=set)
    _left_until: dict[int, float] = field(default_factory=dict)  # in the loop's time

    async def begin(self, tell: Callable[[Delivered], None]) -> None:
        """Bring the feed up to date, and begin to serve each subscription."""
        db = self.context.db
        listed = [each for each in await subscriptions.every(db) if self.only in {None, each.id}]
        if not listed:
            return
        await report.stamp_feed(db, at=self.context.now())
        end = await report.end_of_feed(db)
        now = asyncio.get_running_loop().time()
        for each in listed:
            if each.id not in self._served and self._left_until.get(each.id, now) <= now:
                self._served.add(each.id)
                self.tasks.create_task(self._serve(each, end, tell), name=f"subscription-{each.id}")

    async def _serve(self, each: Subscription, end: int, tell: Callable[[Delivered], None]) -> None:
        done = Delivered()
        try:
            async with self._places:
                if self.may_go_on() and await self.locks.take(each.id):
                    try:
                        await serve(self.context, each, done, end=end, may_go_on=self.may_go_on)
                    except CrawlerError:
                        raise
                    except Exception as error:
                        # One whose row cannot be read here, or whose change cannot be told, must not end the others.
                        log.exception("subscription.broken", extra={"subscription": each.id})
                        done.failed[each.id] = f"it cannot be served, and the log tells why ({type(error).__name__})"
                        self._leave(each.id, BROKEN_PAUSE)
                    finally:
                        await self.locks.give_back(each.id)
                    if done.elsewhere:
                        self._leave(each.id, ELSEWHERE_PAUSE)
        finally:
            self._served.discard(each.id)
            tell(done)

    def _leave(self, number: int, pause: timedelta) -> None:
        self._left_until[number] = asyncio.get_running_loop().time() + pause.total_seconds()
