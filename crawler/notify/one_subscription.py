"""One subscription: the feed is read for it, and it is sent what is due, one message after the other."""

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import uuid4

from crawler.core.alert.timing import is_hopeless, next_try
from crawler.core.http import parse_reference, retry_after
from crawler.engine import child_environment
from crawler.notify.context import Delivered, DeliveryContext
from crawler.notify.fitting import lower_bound, parts_of
from crawler.notify.payload import keys_of
from crawler.notify.reading import read_feed_for
from crawler.notify.seals import may_run, not_run_here, why_unserved
from crawler.notify.sending import MOST_CHANGES, DeliveryOutcome, TargetSender
from crawler.notify.target import TargetKind, TargetLacking, found_target, secret_at
from crawler.notify.watching import Watch
from crawler.store import subscriptions
from crawler.store.subscriptions import Message, Retry, Subscription

log = logging.getLogger("recrawl.notify")


async def serve(
    context: DeliveryContext, listed: Subscription, done: Delivered, *, end: int, may_go_on: Callable[[], bool]
) -> None:
    """Read the feed for one subscription, and send it what is due unless it is paused, or its target left alone."""
    subscription = await subscriptions.numbered(context.db, listed.id)  # as it is since it is ours alone
    if subscription is None:
        return
    if not may_run(subscription, context.seal):
        why = await why_unserved(context, subscription)
        done.elsewhere |= {subscription.id: why} if why else {}
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
                await subscriptions.split(context.db, message, parts, at=context.now())
                continue
            outcome = await sender.send(message, at=context.real_now(), most_bytes=subscription.most_bytes)
            bound = lower_bound(subscription, outcome)
            if bound is not None:
                log.warning("message.too_large", extra={"subscription": subscription.id, "bound_bytes": bound})
                await subscriptions.lower_bound(context.db, message, most_bytes=bound, at=context.now())
                subscription = replace(subscription, most_bytes=bound)
                continue
            if not await _noted(context, subscription, message, outcome, done):
                break
            if not outcome.why_not:
                subscription = replace(subscription, failures=0, failing_since=None, resume_at=None)


async def _next(context: DeliveryContext, subscription: Subscription) -> Message | None:
    """The message that is to be sent next. New ones are made when all that were made were sent.

    Raises TargetLacking where nobody can say whether the target is one that gets a message for each change, and where
    the key to sign with is missing.
    """
    now = context.now()
    found = await subscriptions.next_message(context.db, subscription.id, at=now)
    if found is not None:
        return found
    if not await subscriptions.is_due(context.db, subscription.id, at=now):
        return None  # before the target is looked up, which may ask a Prefect server
    kind = (await found_target(subscription.wish.target, context.find_secret)).kind
    await _signing_key(context, subscription)  # no message grows old while it is missing
    is_joined = kind not in {TargetKind.WEBHOOK, TargetKind.COMMAND}  # nobody wants a mail for each page
    made = await subscriptions.make_messages(
        context.db,
        subscription.id,
        at=now,
        is_joined=is_joined,
        most_each=MOST_CHANGES,
        most_bytes=None if is_joined else subscription.most_bytes,
    )
    return await subscriptions.next_message(context.db, subscription.id, at=now) if made else None


async def _wait_for_target(context: DeliveryContext, subscription: Subscription, why: str, done: Delivered) -> None:
    """Leave changes as they are until target and signing key are known; they are looked for ever more seldom."""
    now = context.now()
    log.info("target.lacking", extra={"subscription": subscription.id, "why": why})
    done.failed[subscription.id] = why
    resume_at = next_try(subscription.failures + 1, asked=None, now=now)
    await subscriptions.target_lacks(context.db, subscription.id, resume_at=resume_at, error=why, at=now)


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
        await subscriptions.taken(context.db, message, at=now)
        done.messages += 1
        done.positions.update(change["position"] for change in message.changes)
        return True
    facts = {"subscription": subscription.id, "token": str(message.token), "why": outcome.why_not}
    log.info("message.not_taken", extra=facts)
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
        await subscriptions.mended(context.db, subscription.id, at=context.now())
    return why_not
