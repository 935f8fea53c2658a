"""Delivery to one subscription: read the feed, then send the due messages one after the other."""

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from msgspec.structs import replace

from crawler.core.alert.timing import compute_next_try, should_give_up
from crawler.core.http.backoff import parse_retry_after
from crawler.core.http.credentials import parse_reference
from crawler.engine.machine_load import build_child_environment
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify import target as targets
from crawler.notify.delivery_stats import DeliveryStats
from crawler.notify.feed_reader import ConditionChecker, queue_notifications
from crawler.notify.payload import compute_part_sizes
from crawler.notify.sender import MAX_CHANGES, DeliveryOutcome, TargetSender
from crawler.notify.target import FindSecret, TargetKind, TargetUnavailable
from crawler.notify.webhook_signing import parse_signing_keys
from crawler.store import outbox, subscriptions
from crawler.store.database import Database
from crawler.store.outbox import Message
from crawler.store.subscriptions import Subscription

log = logging.getLogger("recrawl.notify")

MIN_BYTES = 4096  # a change without its blocks fits; smaller messages are not tried
SHRINK_FACTOR = 4  # the next message is smaller by this factor after one that was too large
OTHER_HOME_REASON = "its command was added with another RECRAWL_HOME or with a key that no longer exists"
NEXT_STEP = "to run it here, remove it with recrawl notify remove {} and add it again with recrawl notify add"
# How long a command may be overdue before another home reports it. In its own home, deliveries run every five minutes,
# and retries wait up to an hour.
GRACE_PERIOD = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """The dependencies of a delivery.

    find_secret: looks up secrets.  sign: computes the signature which proves that the user of this RECRAWL_HOME added
    a command; None to run no commands.  origin: the origin of the web UI for links; None if it is not served.
    now: returns the time for due times and retries.  real_now: returns the time for signatures, which receivers compare
    with their own clocks.
    """

    db: Database
    parsers: ParserPool
    find_secret: FindSecret
    user_agent: str
    sign: Callable[[str], str] | None = None
    origin: str | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    real_now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


async def deliver_to_subscription(
    context: DeliveryContext, number: int, stats: DeliveryStats, end: int, may_continue: Callable[[], bool]
) -> None:
    """Read the feed for one subscription. Send its due messages, unless it is paused or backing off.

    number: of the locked subscription.  end: the position at which reading the feed stops.
    stats: gets the results.  may_continue: returns whether another message may be sent.
    """
    subscription = await subscriptions.find_subscription(context.db, number)
    if subscription is None:
        return
    if not may_run(subscription, context.sign):
        why = await _explain_undelivered(context, subscription)
        stats.elsewhere |= {subscription.id: why} if why else {}
        return
    if subscription.pause_position is not None:
        end = min(end, subscription.pause_position)
    checker = ConditionChecker(context.db, context.parsers)
    stats.put += await queue_notifications(checker, subscription, end=end, now=context.now(), may_continue=may_continue)
    is_backing_off = subscription.resume_at is not None and subscription.resume_at > context.now()
    if subscription.paused_at is None and not is_backing_off:
        await _send_due(context, subscription, stats, may_continue)


async def _send_due(
    context: DeliveryContext, subscription: Subscription, stats: DeliveryStats, may_continue: Callable[[], bool]
) -> None:
    """Send the due messages of a subscription one after the other, until its target fails."""
    sender: TargetSender | None = None
    async with AsyncExitStack() as stack:
        # Failed messages are not retried in quiet hours either.
        while may_continue() and not subscription.options.delivery_times.is_quiet(context.now()):
            try:
                message = await _prepare_next_message(context, subscription)
                if message is None:
                    break
                if sender is None:
                    sender = await stack.enter_async_context(await _open_sender(context, subscription))
            except TargetUnavailable as error:
                stats.failed[subscription.id] = str(error)
                await _record_missing_target(context, subscription, str(error))
                break
            parts = compute_part_sizes(message, max_bytes=subscription.max_bytes) if sender.is_bounded else []
            if len(parts) > 1:
                await outbox.split_message(context.db, message, parts, at=context.now())
                continue
            outcome = await sender.send(message, at=context.real_now(), max_bytes=subscription.max_bytes)
            max_bytes = _compute_lower_bound(subscription, outcome)
            if max_bytes is not None:
                log.warning("message.too_large", extra={"subscription": subscription.id, "bound_bytes": max_bytes})
                await outbox.lower_max_bytes(context.db, message, max_bytes=max_bytes, at=context.now())
                subscription = replace(subscription, max_bytes=max_bytes)
                continue
            if not await _record_outcome(context, subscription, message, outcome, stats):
                break
            if not outcome.why_not:
                subscription = replace(subscription, failures=0, failing_since=None, resume_at=None)


def _compute_lower_bound(subscription: Subscription, outcome: DeliveryOutcome) -> int | None:
    """Return a smaller size limit after a message was rejected as too large; None if there is no smaller one to try."""
    if outcome.rejected_bytes is None:
        return None
    max_bytes = max(MIN_BYTES, min(outcome.rejected_bytes, subscription.max_bytes) // SHRINK_FACTOR)
    return max_bytes if max_bytes < subscription.max_bytes else None


async def _prepare_next_message(context: DeliveryContext, subscription: Subscription) -> Message | None:
    """Return the next message, or None if none is due; create new messages once all earlier ones were sent.

    The kind of the target decides whether changes are joined into one message. Raises TargetUnavailable if the target
    cannot be resolved or the signing key is missing.
    """
    now = context.now()
    message = await outbox.find_next_message(context.db, subscription.id, at=now)
    if message is not None:
        return message
    if not await outbox.is_due(context.db, subscription.id, at=now):
        return None  # before the target is resolved, which may query a Prefect server
    kind = (await targets.resolve_target(subscription.options.target, context.find_secret)).kind
    await _find_signing_key(context, subscription)  # first, so that no message ages while the key is missing
    is_joined = kind not in {TargetKind.WEBHOOK, TargetKind.COMMAND}  # one email has many changes
    message_count = await outbox.make_messages(
        context.db,
        subscription.id,
        at=now,
        joins_changes=is_joined,
        max_changes_each=MAX_CHANGES,
        max_bytes=None if is_joined else subscription.max_bytes,
    )
    return await outbox.find_next_message(context.db, subscription.id, at=now) if message_count else None


async def _record_missing_target(context: DeliveryContext, subscription: Subscription, why: str) -> None:
    """Record that the target or signing key is missing, and schedule the next attempt with back-off."""
    now = context.now()
    log.info("target.lacking", extra={"subscription": subscription.id, "why": why})
    resume_at = compute_next_try(subscription.failures + 1, retry_after=None, now=now)
    await outbox.record_missing_target(context.db, subscription.id, resume_at=resume_at, error=why, at=now)


async def _open_sender(context: DeliveryContext, subscription: Subscription) -> TargetSender:
    options = subscription.options
    target = await targets.resolve_target(options.target, context.find_secret)
    key = await _find_signing_key(context, subscription)
    return TargetSender(
        target,
        user_agent=context.user_agent,
        allow_private=options.allow_private,
        key=key,
        origin=context.origin,
        # A user's program may use another Python, so it does not get the environment of a child process of recrawl.
        environment=os.environ if target.kind is TargetKind.COMMAND else build_child_environment({}),
    )


async def _find_signing_key(context: DeliveryContext, subscription: Subscription) -> str | None:
    """Return the secret that signs messages, or None. Raises TargetUnavailable if it is missing or invalid."""
    secret = subscription.options.secret
    if not secret:
        return None
    key = await targets.resolve_secret(parse_reference(secret), context.find_secret)
    try:
        _ = parse_signing_keys(key)
    except ValueError as error:
        raise TargetUnavailable(f"{secret} holds {error}") from error
    return key


async def _record_outcome(
    context: DeliveryContext, subscription: Subscription, sent: Message, outcome: DeliveryOutcome, stats: DeliveryStats
) -> bool:
    """Record the outcome of a message. Return whether the next message may be sent."""
    now = context.now()
    if not outcome.why_not:
        await outbox.record_delivery(context.db, sent, at=now)
        stats.messages += 1
        stats.positions.update(change["position"] for change in sent.changes)
        return True
    facts = {"subscription": subscription.id, "token": str(sent.token), "why": outcome.why_not}
    log.info("message.not_taken", extra=facts)
    stats.failed[subscription.id] = outcome.why_not
    requested_wait = parse_retry_after(outcome.retry_after, now=now, server_date=outcome.date)
    waiting_since = max(sent.created_at, subscription.failing_since or sent.created_at)
    await outbox.record_failure(
        context.db,
        sent,
        error=outcome.why_not,
        at=now,
        next_try_at=compute_next_try(sent.tries + 1, retry_after=requested_wait, now=now),
        is_dead=should_give_up(sent.tries + 1, waiting_since=waiting_since, now=now),
        resume_at=None
        if outcome.is_message_rejected
        else compute_next_try(subscription.failures + 1, retry_after=requested_wait, now=now),
    )
    return outcome.is_message_rejected


async def send_test(context: DeliveryContext, subscription: Subscription) -> str:
    """Send a test message without the outbox. Return the error, or an empty string.

    If the target accepts it, the waiting messages become due at once.
    """
    if not may_run(subscription, context.sign):
        return explain_not_run_here(subscription)
    message = Message(0, subscription.id, token=uuid4(), tries=0, created_at=context.now(), changes=())
    try:
        async with await _open_sender(context, subscription) as sender:
            why_not = (await sender.send(message, at=context.real_now(), max_bytes=subscription.max_bytes)).why_not
    except TargetUnavailable as error:
        return str(error)
    if not why_not and subscription.failures:
        await subscriptions.mark_recovered(context.db, [subscription.id], at=context.now())
    return why_not


def may_run(subscription: Subscription, sign: Callable[[str], str] | None) -> bool:
    """Return whether this process may deliver: a command runs only in the RECRAWL_HOME in which it was added.

    A subscription of a later version of recrawl is not delivered at all.
    """
    text = targets.get_signed_text(subscription.options.target)
    return not subscription.unknown and (
        not text or (sign is not None and sign(text) == subscription.options.signature)
    )


def explain_not_run_here(subscription: Subscription) -> str:
    """Return why this process may not deliver to a subscription, and what to do."""
    return subscription.unknown or f"{OTHER_HOME_REASON}: {NEXT_STEP.format(subscription.id)}"


async def _explain_undelivered(context: DeliveryContext, subscription: Subscription) -> str:
    """Return why an overdue command was not run; empty while its own RECRAWL_HOME may still deliver to it.

    Nothing is stored here, because that would overwrite the status that the other home has recorded.
    """
    now = context.now()
    if subscription.unknown:
        return subscription.unknown
    current = await subscriptions.find_subscription(context.db, subscription.id)
    since = current.get_overdue_since(at=now) if current is not None else None
    if current is None or since is None:
        return ""
    since = max(since, current.next_try_at or since)  # a failing command is retried in its own home
    if now - since < GRACE_PERIOD:
        return ""
    overdue_since = f"{since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{OTHER_HOME_REASON}, and it has not run since {overdue_since}: {NEXT_STEP.format(subscription.id)}"
