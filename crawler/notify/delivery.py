"""Deliver what is due: to all subscriptions side by side, to each one message after the other."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from crawler.core.alert import is_hopeless, next_try
from crawler.core.http import parse_reference, retry_after
from crawler.crawl import ParserPool, child_environment
from crawler.errors import CrawlerError
from crawler.notify.payload import keys_of
from crawler.notify.reading import read_feed_for
from crawler.notify.sending import MOST_CHANGES, DeliveryOutcome, TargetSender
from crawler.notify.target import FindSecret, TargetKind, TargetLacking, found_target, sealed_text, secret_at
from crawler.notify.watching import Watch
from crawler.plugins import NO_PLUGINS, Plugins
from crawler.store import report, subscriptions
from crawler.store.database import Database
from crawler.store.subscriptions import DeliveryLocks, Message, Retry, Subscription

log = logging.getLogger("recrawl.notify")

SIDE_BY_SIDE = 64  # subscriptions that are delivered to at a time; each waits for its own target
FOREVER = timedelta(days=36_500)
PAUSE = timedelta(seconds=2)  # until the feed is looked at again
BROKEN_PAUSE = timedelta(minutes=1)  # until a subscription is served again that could not be


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """What delivering needs.

    now: knowledge time.  find_secret: where secrets are.  seal: makes the proof that this machine's user has set a
    command; None where no command is run.  origin: of one's own pages, for links; None where nothing serves them.
    real_now: what receivers are told in signatures, which they compare with their own clocks.
    """

    db: Database
    readers: ParserPool
    find_secret: FindSecret
    user_agent: str
    seal: Callable[[str], str] | None = None
    origin: str | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    real_now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


@asynccontextmanager
async def open_context(
    db: Database,
    *,
    find_secret: FindSecret,
    user_agent: str,
    seal: Callable[[str], str] | None = None,
    origin: str | None = None,
    now: Callable[[], datetime] | None = None,
    plugins: Plugins = NO_PLUGINS,
) -> AsyncIterator[DeliveryContext]:
    """What delivering needs, for as long as the block runs; processes that read pages start when they are needed."""
    async with ParserPool(1, plugins=plugins) as readers:
        yield DeliveryContext(
            db=db,
            readers=readers,
            find_secret=find_secret,
            user_agent=user_agent,
            seal=seal,
            origin=origin,
            now=now or (lambda: datetime.now(UTC)),
        )


@dataclass(slots=True)
class Delivered:
    """What came of a delivery. changes, messages: that were taken.  failed: tries that were not, by subscription.

    put: changes that came into the outbox.
    """

    put: int = 0
    messages: int = 0
    changes: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Delivered") -> None:
        """Count what came of another delivery, too."""
        self.put += other.put
        self.messages += other.messages
        self.changes += other.changes
        self.failed |= other.failed


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
    pause: timedelta = PAUSE,
) -> None:
    """Deliver until `stop` is set, and look again after each pause. tell: hears of each subscription that was served.

    What is due to others is sent while a slow target is waited for. Raises StoreUnavailable.
    """
    async with subscriptions.delivery_locks(context.db) as locks, asyncio.TaskGroup() as tasks:
        rounds = _Rounds(context, locks, tasks, only=only, may_go_on=lambda: not stop.is_set())
        while not stop.is_set():
            await rounds.begin(tell)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause.total_seconds())


class _Rounds:
    """Rounds over all subscriptions; one that is still being served is left to that."""

    def __init__(
        self,
        context: DeliveryContext,
        locks: DeliveryLocks,
        tasks: asyncio.TaskGroup,
        *,
        only: int | None,
        may_go_on: Callable[[], bool],
    ) -> None:
        self._context, self._locks, self._tasks = context, locks, tasks
        self._only, self._may_go_on = only, may_go_on
        self._places = asyncio.Semaphore(SIDE_BY_SIDE)
        self._served: set[int] = set()
        self._broken_until: dict[int, float] = {}  # in the loop's time

    async def begin(self, tell: Callable[[Delivered], None]) -> None:
        """Bring the feed up to date, and begin to serve each subscription."""
        db = self._context.db
        listed = [each for each in await subscriptions.every(db) if self._only in {None, each.id}]
        if not listed:
            return
        await report.stamp_feed(db, at=self._context.now())
        end = await report.end_of_feed(db)
        now = asyncio.get_running_loop().time()
        for each in listed:
            if each.id not in self._served and self._broken_until.get(each.id, now) <= now:
                self._served.add(each.id)
                self._tasks.create_task(self._serve(each, end, tell), name=f"subscription-{each.id}")

    async def _serve(self, each: Subscription, end: int, tell: Callable[[Delivered], None]) -> None:
        done = Delivered()
        try:
            async with self._places:
                if self._may_go_on() and await self._locks.take(each.id):
                    try:
                        await _serve(self._context, each, done, end=end, may_go_on=self._may_go_on)
                    except CrawlerError:
                        raise
                    except Exception as error:
                        # One whose row cannot be read here, or whose change cannot be told, must not end the others.
                        log.exception("subscription.broken", extra={"subscription": each.id})
                        done.failed[each.id] = f"it cannot be served, and the log tells why ({type(error).__name__})"
                        self._broken_until[each.id] = asyncio.get_running_loop().time() + BROKEN_PAUSE.total_seconds()
                    finally:
                        await self._locks.give_back(each.id)
        finally:
            self._served.discard(each.id)
            tell(done)


async def _serve(
    context: DeliveryContext, listed: Subscription, done: Delivered, *, end: int, may_go_on: Callable[[], bool]
) -> None:
    """Read the feed for one subscription, and send it what is due unless it is paused, or its target left alone."""
    subscription = await subscriptions.numbered(context.db, listed.id)  # as it is since it is ours alone
    if subscription is None or not _is_ours(context, subscription):
        return
    if subscription.pause_position is not None:
        end = min(end, subscription.pause_position)
    watch = Watch(context.db, context.readers)
    done.put += await read_feed_for(
        context.db, subscription, end=end, watch=watch, now=context.now(), may_go_on=may_go_on
    )
    if subscription.paused_at is not None:
        return
    if subscription.resume_at is not None and subscription.resume_at > context.now():
        return
    await _send_due(context, subscription, done, may_go_on=may_go_on)


async def _send_due(
    context: DeliveryContext, subscription: Subscription, done: Delivered, *, may_go_on: Callable[[], bool]
) -> None:
    """Send a subscription one message after the other, until none is due or its target fails."""
    sender: TargetSender | None = None
    async with AsyncExitStack() as stack:
        # What has failed before is not tried in quiet hours, either.
        while may_go_on() and not subscription.wish.times.is_quiet(context.now()):
            message = await _next(context, subscription)
            if message is None:
                break
            try:
                if sender is None:
                    sender = await stack.enter_async_context(await _sender(context, subscription))
                outcome = await sender.send(message, at=context.real_now())
            except TargetLacking as error:
                outcome = DeliveryOutcome(str(error))
            if not await _noted(context, subscription, message, outcome, done):
                break
            if not outcome.why_not:
                subscription = replace(subscription, failures=0, failing_since=None, resume_at=None)


async def _next(context: DeliveryContext, subscription: Subscription) -> Message | None:
    """The message that is to be sent next. New ones are made when all that were made were sent."""
    now = context.now()
    found = await subscriptions.next_message(context.db, subscription.id, at=now)
    if found is not None:
        return found
    if not await subscriptions.is_due(context.db, subscription.id, at=now):
        return None  # before the target is looked up, which may ask a Prefect server
    kind = await _kind(context, subscription)
    is_joined = kind not in {TargetKind.WEBHOOK, TargetKind.COMMAND}  # nobody wants a mail for each page
    made = await subscriptions.make_messages(
        context.db, subscription.id, at=now, is_joined=is_joined, most_each=MOST_CHANGES
    )
    return await subscriptions.next_message(context.db, subscription.id, at=now) if made else None


async def _kind(context: DeliveryContext, subscription: Subscription) -> TargetKind | None:
    try:
        return (await found_target(subscription.wish.target, context.find_secret)).kind
    except TargetLacking:
        return None


async def _sender(context: DeliveryContext, subscription: Subscription) -> TargetSender:
    wish = subscription.wish
    target = await found_target(wish.target, context.find_secret)
    key = await secret_at(parse_reference(wish.secret), context.find_secret) if wish.secret else None
    if key is not None and not all(keys_of(key)):
        raise TargetLacking(f"{wish.secret} holds no key: anybody could sign with nothing")
    return TargetSender(
        target,
        user_agent=context.user_agent,
        allow_private=wish.allow_private,
        key=key,
        origin=context.origin,
        # A user's program has a Python of its own, if any, and no use for the modules of ours.
        environment=os.environ if target.kind is TargetKind.COMMAND else child_environment({}),
    )


async def _noted(
    context: DeliveryContext, subscription: Subscription, message: Message, outcome: DeliveryOutcome, done: Delivered
) -> bool:
    """Write down what came of a message; gives whether the next one may be sent."""
    now = context.now()
    if not outcome.why_not:
        await subscriptions.taken(context.db, message, at=now)
        done.messages += 1
        done.changes += len(message.changes)
        return True
    facts = {"subscription": subscription.id, "token": str(message.token), "why": outcome.why_not}
    log.warning("message.not_taken", extra=facts)
    done.failed[subscription.id] = outcome.why_not
    asked = retry_after(outcome.retry_after, now=now, server_date=outcome.date)
    waiting_since = max(message.made_at, subscription.failing_since or message.made_at)
    retry = Retry(
        at=next_try(message.tries + 1, asked=asked, now=now),
        is_dead=is_hopeless(message.tries + 1, waiting_since=waiting_since, now=now),
        resume_at=None if outcome.is_messages_fault else next_try(subscription.failures + 1, asked=asked, now=now),
    )
    await subscriptions.not_taken(context.db, message, retry, error=outcome.why_not, at=now)
    return outcome.is_messages_fault


def _is_ours(context: DeliveryContext, subscription: Subscription) -> bool:
    """Whether this process may deliver: a command is run by the user of the machine on which it was set."""
    text = sealed_text(subscription.wish.target)
    return not text or (context.seal is not None and context.seal(text) == subscription.wish.seal)


async def send_test(context: DeliveryContext, subscription: Subscription) -> str:
    """Send a test message past the outbox; gives why it was not taken, or nothing."""
    if not _is_ours(context, subscription):
        return "its command was set on another machine, or by another user"
    message = Message(id=0, subscription_id=subscription.id, token=uuid4(), tries=0, made_at=context.now(), changes=())
    try:
        async with await _sender(context, subscription) as sender:
            return (await sender.send(message, at=context.real_now())).why_not
    except TargetLacking as error:
        return str(error)
