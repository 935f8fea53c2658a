"""One subscription: the feed is read for it, and it is sent what is due, one message after the other."""

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from crawler.core.alert.timing import is_hopeless, next_try
from crawler.core.http.backoff import retry_after
from crawler.core.http.credentials import parse_reference
from crawler.engine.machine import child_environment
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify.payload import keys_of, parts_of
from crawler.notify.reading import Watch, read_feed_for
from crawler.notify.sending import MOST_CHANGES, DeliveryOutcome, TargetSender
from crawler.notify.target import FindSecret, TargetKind, TargetLacking, found_target, sealed_text, secret_at
from crawler.store import outbox, subscriptions
from crawler.store.database import Database
from crawler.store.outbox import Message
from crawler.store.subscriptions import Subscription

log = logging.getLogger("recrawl.notify")

LEAST_BYTES = 4096  # a change without its blocks; a receiver that refuses this takes nothing
LOWER = 4  # times less is tried after a message that was too large
ANOTHER_HOME = "its command was added in another home (RECRAWL_HOME), or with a key that is no more"
NEXT_STEP = "to run it here, recrawl notify remove {}, and recrawl notify add it again"
# A stack runs it every five minutes where it may, and tries one that fails every hour at least.
PATIENCE = timedelta(hours=2)


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


@dataclass(slots=True)
class Delivered:
    """What came of a delivery. messages: that were taken.  failed: tries that were not, by subscription.

    positions: in the feed, of the changes that were taken: one that several subscriptions are told is one change.

    put: changes that came into the outbox.  elsewhere: why this process may not deliver, by subscription that nobody
    else delivers to either.
    """

    put: int = 0
    messages: int = 0
    positions: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)
    elsewhere: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Delivered") -> None:
        """Count what came of another delivery, too."""
        self.put += other.put
        self.messages += other.messages
        self.positions |= other.positions
        self.failed |= other.failed
        self.elsewhere |= other.elsewhere

    @property
    def changes(self) -> int:
        """Return how many changes were taken, each counted once, however many subscriptions were told of it."""
        return len(self.positions)

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name, for JSON."""
        return {
            "put": self.put,
            "messages": self.messages,
            "changes": self.changes,
            "failed": self.failed,
            "elsewhere": self.elsewhere,
        }

    @property
    def untold(self) -> dict[int, str]:
        """Why subscriptions were not told, whoever could mend that."""
        return dict(sorted((self.failed | self.elsewhere).items()))


async def serve(
    context: DeliveryContext, listed: Subscription, done: Delivered, *, end: int, may_go_on: Callable[[], bool]
) -> None:
    """Read the feed for one subscription, and send it what is due unless it is paused, or its target left alone."""
    subscription = await subscriptions.numbered(context.db, listed.id)  # as it is since it is ours alone
    if subscription is None:
        return
    if not may_run(subscription, context.seal):
        why = await _why_unserved(context, subscription)
        done.elsewhere |= {subscription.id: why} if why else {}
        return
    if subscription.pause_position is not None:
        end = min(end, subscription.pause_position)
    watch = Watch(context.db, context.readers)
    done.put += await read_feed_for(watch, subscription, end=end, now=context.now(), may_go_on=may_go_on)
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
            try:
                message = await _next(context, subscription)
                if message is None:
                    break
                if sender is None:
                    sender = await stack.enter_async_context(await _sender(context, subscription))
            except TargetLacking as error:
                await _wait_for_target(context, subscription, str(error), done)
                break
            parts = parts_of(message, most_bytes=subscription.most_bytes) if sender.is_bounded else []
            if len(parts) > 1:
                await outbox.split(context.db, message, parts, at=context.now())
                continue
            outcome = await sender.send(message, at=context.real_now(), most_bytes=subscription.most_bytes)
            bound = _lower_bound(subscription, outcome)
            if bound is not None:
                log.warning("message.too_large", extra={"subscription": subscription.id, "bound_bytes": bound})
                await outbox.lower_bound(context.db, message, most_bytes=bound, at=context.now())
                subscription = replace(subscription, most_bytes=bound)
                continue
            if not await _noted(context, subscription, message, outcome, done):
                break
            if not outcome.why_not:
                subscription = replace(subscription, failures=0, failing_since=None, resume_at=None)


def _lower_bound(subscription: Subscription, outcome: DeliveryOutcome) -> int | None:
    """The bound that a receiver seems to have that refused a message for its size; None where there is none to try."""
    if outcome.refused_bytes is None:
        return None
    bound = max(LEAST_BYTES, min(outcome.refused_bytes, subscription.most_bytes) // LOWER)
    return bound if bound < subscription.most_bytes else None


async def _next(context: DeliveryContext, subscription: Subscription) -> Message | None:
    """The message that is to be sent next. New ones are made when all that were made were sent.

    Raises TargetLacking where nobody can say whether the target is one that gets a message for each change, and where
    the key to sign with is missing.
    """
    now = context.now()
    found = await outbox.next_message(context.db, subscription.id, at=now)
    if found is not None:
        return found
    if not await outbox.is_due(context.db, subscription.id, at=now):
        return None  # before the target is looked up, which may ask a Prefect server
    kind = (await found_target(subscription.wish.target, context.find_secret)).kind
    await _signing_key(context, subscription)  # no message grows old while it is missing
    is_joined = kind not in {TargetKind.WEBHOOK, TargetKind.COMMAND}  # nobody wants a mail for each page
    made = await outbox.make_messages(
        context.db,
        subscription.id,
        at=now,
        is_joined=is_joined,
        most_each=MOST_CHANGES,
        most_bytes=None if is_joined else subscription.most_bytes,
    )
    return await outbox.next_message(context.db, subscription.id, at=now) if made else None


async def _wait_for_target(context: DeliveryContext, subscription: Subscription, why: str, done: Delivered) -> None:
    """Leave changes as they are until target and signing key are known; they are looked for ever more seldom."""
    now = context.now()
    log.info("target.lacking", extra={"subscription": subscription.id, "why": why})
    done.failed[subscription.id] = why
    resume_at = next_try(subscription.failures + 1, asked=None, now=now)
    await outbox.target_lacks(context.db, subscription.id, resume_at=resume_at, error=why, at=now)


async def _sender(context: DeliveryContext, subscription: Subscription) -> TargetSender:
    wish = subscription.wish
    target = await found_target(wish.target, context.find_secret)
    key = await _signing_key(context, subscription)
    return TargetSender(
        target,
        user_agent=context.user_agent,
        allow_private=wish.allow_private,
        key=key,
        origin=context.origin,
        # A user's program has a Python of its own, if any, and no use for the modules of ours.
        environment=os.environ if target.kind is TargetKind.COMMAND else child_environment({}),
    )


async def _signing_key(context: DeliveryContext, subscription: Subscription) -> str | None:
    """Return what messages are signed with; None where they are not. Raises TargetLacking where it cannot be used."""
    secret = subscription.wish.secret
    if not secret:
        return None
    key = await secret_at(parse_reference(secret), context.find_secret)
    try:
        _ = keys_of(key)
    except ValueError as error:
        raise TargetLacking(f"{secret} holds {error}") from error
    return key


async def _noted(
    context: DeliveryContext, subscription: Subscription, message: Message, outcome: DeliveryOutcome, done: Delivered
) -> bool:
    """Write down what came of a message; gives whether the next one may be sent."""
    now = context.now()
    if not outcome.why_not:
        await outbox.taken(context.db, message, at=now)
        done.messages += 1
        done.positions.update(change["position"] for change in message.changes)
        return True
    facts = {"subscription": subscription.id, "token": str(message.token), "why": outcome.why_not}
    log.info("message.not_taken", extra=facts)
    done.failed[subscription.id] = outcome.why_not
    asked = retry_after(outcome.retry_after, now=now, server_date=outcome.date)
    waiting_since = max(message.made_at, subscription.failing_since or message.made_at)
    await outbox.not_taken(
        context.db,
        message,
        error=outcome.why_not,
        at=now,
        next_try_at=next_try(message.tries + 1, asked=asked, now=now),
        is_dead=is_hopeless(message.tries + 1, waiting_since=waiting_since, now=now),
        resume_at=None if outcome.is_messages_fault else next_try(subscription.failures + 1, asked=asked, now=now),
    )
    return outcome.is_messages_fault


async def send_test(context: DeliveryContext, subscription: Subscription) -> str:
    """Send a test message past the outbox; gives why it was not taken, or nothing.

    A target that takes it is well, so what waits for it is due at once.
    """
    if not may_run(subscription, context.seal):
        return not_run_here(subscription)
    message = Message(id=0, subscription_id=subscription.id, token=uuid4(), tries=0, made_at=context.now(), changes=())
    try:
        async with await _sender(context, subscription) as sender:
            why_not = (await sender.send(message, at=context.real_now(), most_bytes=subscription.most_bytes)).why_not
    except TargetLacking as error:
        return str(error)
    if not why_not and subscription.failures:
        await subscriptions.mended(context.db, [subscription.id], at=context.now())
    return why_not


def may_run(subscription: Subscription, seal: Callable[[str], str] | None) -> bool:
    """Whether this process may deliver: a command is run by the user of the home in which it was added."""
    text = sealed_text(subscription.wish.target)
    return not text or (seal is not None and seal(text) == subscription.wish.seal)


def not_run_here(subscription: Subscription) -> str:
    """Why this process may not run a subscription's command, and the next step."""
    return f"{ANOTHER_HOME}: {NEXT_STEP.format(subscription.id)}"


async def _why_unserved(context: DeliveryContext, subscription: Subscription) -> str:
    """Why a command that this process may not run is not told; empty while its own home may well be doing that.

    Of several homes one may run it. Nothing is written down here, so that no other overwrites how it does there.
    """
    now = context.now()
    found = await subscriptions.numbered(context.db, subscription.id)
    since = found.untold_since(at=now) if found is not None else None
    if found is None or since is None:
        return ""
    since = max(since, found.next_try_at or since)  # where it fails it is run all the same
    if now - since < PATIENCE:
        return ""
    until = f"{since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{ANOTHER_HOME}, and nobody has run it since {until}: {NEXT_STEP.format(subscription.id)}"
