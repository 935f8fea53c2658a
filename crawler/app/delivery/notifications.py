"""Subscriptions to changes, the delivery of due notifications, and dead letters."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from crawler.app.action_log import describe_action, format_names, recorded
from crawler.app.actor import Permission, require_permission
from crawler.app.database import AppDatabase
from crawler.app.registration import get_domain, parse_prefix
from crawler.app.settings import parse_share
from crawler.app.tags import get_tag
from crawler.clock import Clock
from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.alert.timing import DeliveryTimes, parse_digest, parse_quiet_hours
from crawler.core.domain import Domain
from crawler.core.http.credentials import SecretSource, parse_reference
from crawler.core.http.urls import list_pattern_problems, parse_pattern
from crawler.core.page.selectors import VALUE_NAME, View
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.errors import BadInput, Conflict, NotFound, StoreUnavailable, find_failure, name_field
from crawler.format.kinds import NEWS, parse_kinds
from crawler.format.subscriptions import format_subscription
from crawler.format.values import format_count
from crawler.notify.delivery import deliver, keep_delivering
from crawler.notify.delivery_stats import DeliveryStats
from crawler.notify.message_text import format_headline
from crawler.notify.subscription_delivery import DeliveryContext, explain_not_run_here, may_run
from crawler.notify.subscription_delivery import send_test as send_test_message
from crawler.notify.target import check_target, find_reference, get_signed_text
from crawler.notify.webhook_signing import parse_signing_keys
from crawler.plugins import load_plugins
from crawler.runtime.keys.home_keys import build_command_signer
from crawler.runtime.secrets import build_secret_finder, explain_missing, read_variable_secret
from crawler.runtime.web_ui import find_web_ui_origin
from crawler.settings import Settings
from crawler.store import outbox, report, subscriptions
from crawler.store.outbox import MAX_LISTED, DeadLetter
from crawler.store.report import EventKind
from crawler.store.subscriptions import MAX_BYTES, Subscription, SubscriptionOptions, list_subscriptions

CONDITION_KINDS = frozenset({EventKind.ADDED, EventKind.CHANGED, EventKind.MOVED, EventKind.GONE, EventKind.RESTORED})
# Options that a request has in the same form.
COPIED_OPTIONS = (
    *("target", "tag", "page", "prefix", "pattern", "place", "value_name", "digest", "quiet", "zone", "secret"),
    "allow_private",
)
RETRY_SECONDS = 2  # before the next attempt while the database is unavailable


class DeliveryState(StrEnum):
    """The state of a subscription's deliveries."""

    WORKING = "working"
    WAITING = "waiting"  # changes are to be sent later
    FAILING = "failing"  # the last deliveries failed
    PAUSED = "paused"
    NOT_RUN_HERE = "not run here"  # its command belongs to another RECRAWL_HOME, or its kind to a later version


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """A subscription as the user gave it. None or empty if not given.

    domain, tag (of domains), page, prefix, pattern: the pages to watch.  kinds: at least one, separated by commas; None
    for the default.  min_magnitude: such as 5%.
    conditions: the value of each ConditionKind; for DIFFERS a share such as 5%.
    place: the selector of the element to check.  value_name: the name of the value to check.
    quiet, zone: quiet hours such as 22-07, and their time zone.
    may_run_commands: whether the target may be a program of this machine; never for a request from the network.
    """

    target: str
    domain: str | None = None
    tag: str | None = None
    page: str | None = None
    prefix: str | None = None
    pattern: str | None = None
    kinds: str | None = None
    min_magnitude: str | float | None = None
    conditions: Mapping[str, str | float | None] = field(default_factory=dict)
    place: str | None = None
    value_name: str | None = None
    digest: str | None = None
    quiet: str | None = None
    zone: str | None = None
    secret: str | None = None
    allow_private: bool = False
    may_run_commands: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """A subscription and the state of its deliveries, for JSON.

    not_run_here: why processes of this RECRAWL_HOME may not run its command, or null.  cursor: the position up to which
    the feed was read.  waiting: the number of changes that are not yet delivered.
    """

    number: int
    domain: str | None
    tag: str | None
    target: str
    allow_private: bool
    time_zone: str
    page: str | None
    prefix: str | None
    pattern: str | None
    digest: str | None
    secret: str | None
    selector: str | None
    value: str | None
    quiet_hours: str | None
    kinds: list[str]
    min_magnitude: float | None
    condition: dict[str, str | float | None] | None
    cursor: int
    delivered: int
    delivered_at: datetime | None
    created_at: datetime
    paused_at: datetime | None
    waiting: int
    failures: int
    failing_since: datetime | None
    dead_letters: int
    max_bytes: int
    next_attempt_at: datetime | None
    last_error: str | None
    not_run_here: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """A subscription and the state of its deliveries, for people.

    not_run_here: why processes of this RECRAWL_HOME may not run its command, or "".
    missing_secrets: a sentence for each secret that its deliveries do not have.
    """

    subscription: Subscription
    state: DeliveryState
    not_run_here: str
    missing_secrets: list[str]


@dataclass(frozen=True, slots=True)
class DeferredDelivery:
    """A subscription whose last delivery failed, and the time of the next attempt."""

    subscription: int
    until: datetime
    reason: str
    changes: int


@recorded("add subscription")
async def subscribe(db: AppDatabase, request: SubscriptionRequest, *, at: datetime) -> Subscription:
    """Add a subscription that sends the changes found from now on. Raises BadInput, which names the field."""
    options = await _parse_request(db, request)
    await report.append_to_feed(db, at=at)  # first, so that changes found earlier are not sent
    added = await subscriptions.add_subscription(db, options, at=at)
    describe_action(object=f"subscription {added.id}", new=format_subscription(added))
    return added


@recorded("change subscription")
async def change_subscription(
    db: AppDatabase, number: int, changes: Mapping[str, Any], *, at: datetime
) -> Subscription:
    """Change fields of a subscription's request, and try its waiting messages at once. Raises BadInput.

    Changes that already wait are sent, too, even if the subscription does not select them any more.
    """
    subscription = await find_subscription(db, number)
    request = dataclasses.replace(build_request(subscription), **changes)
    options = await _parse_request(db, request, subscription.options)
    await subscriptions.change_subscription(db, number, options, at=at)
    changed = await find_subscription(db, number)
    texts = format_subscription(subscription), format_subscription(changed)
    describe_action(object=f"subscription {number}", old=texts[0], new=texts[1])
    return changed


def build_request(subscription: Subscription) -> SubscriptionRequest:
    """Return the request that would give a subscription the options that it has."""
    options, condition = subscription.options, subscription.options.condition
    value = None if condition is None else condition.bound if condition.kind.is_numeric else condition.text
    share = options.min_magnitude
    return SubscriptionRequest(
        **{name: getattr(options, name) for name in COPIED_OPTIONS},
        domain=subscription.domain,
        kinds=None
        if options.value_name or options.kinds == _get_default_kinds(condition)
        else ",".join(sorted(options.kinds)),
        min_magnitude=None if share is None else f"{100 * share:.12g}%",
        conditions={} if condition is None else {condition.kind.value: value},
    )


def _check_value(request: SubscriptionRequest, condition: Condition | None) -> None:
    """Check the name of a value, and that it fits the condition. Raise BadInput."""
    if request.value_name and VALUE_NAME.fullmatch(request.value_name) is None:
        raise BadInput(f"{request.value_name[:40]!r} is not the name of a value: it has letters, digits and hyphens")
    if condition is not None and condition.kind is ConditionKind.DIFFERS and not request.value_name:
        raise BadInput("a change of a number (--change-by) needs the name of a value (--value)")
    if condition is not None and request.value_name and not condition.kind.is_numeric:
        raise BadInput("a condition on a text cannot be combined with a value: use --selector")


async def _parse_request(
    db: AppDatabase, request: SubscriptionRequest, before: SubscriptionOptions | None = None
) -> SubscriptionOptions:
    """Return the options of a subscription. With the name of a value, only its changes are notified.

    before: its present options, whose command stays signed as it is.
    """
    if request.allow_private and not (before is not None and before.allow_private and before.target == request.target):
        require_permission(Permission.MANAGE, "a target at a private address")
    with _name_invalid("target"):
        # In a thread, because it may start a child process.
        target = await asyncio.to_thread(check_target, request.target, allow_private=request.allow_private)
        if find_reference(target) is not None and not (before is not None and before.target == target):
            require_permission(Permission.MANAGE, "a target that is a secret of this machine")
        signature = _sign_command(target, request, db.settings, before)
    with _name_invalid("secret"):
        if request.secret and not (before is not None and before.secret == request.secret):
            require_permission(Permission.MANAGE, "a signing key")
        secret = _parse_secret(request.secret) if request.secret else ""
    domain, page, prefix = await _find_pages(db, request)
    with _name_invalid("tag"):
        tag = (await get_tag(db, request.tag)).tag.name if request.tag else None
        if tag and domain is not None:
            raise BadInput("name either a tag or a domain, not both")
    with _name_invalid("pattern"):
        _ = parse_pattern(request.pattern) if request.pattern else None  # raises ValueError if invalid
        for problem in list_pattern_problems((request.pattern,)) if request.pattern else ():
            raise BadInput(problem)
    with _name_invalid("condition"):
        condition = _parse_condition(request.conditions)
    with _name_invalid("selector"):
        _ = View(watch=(request.place,)) if request.place else None  # raises ValueError if invalid
        if request.place and condition is None:
            raise BadInput("a selector (--selector) needs one of --match, --lacks, --above or --below")
        if request.place and request.value_name:
            raise BadInput("a selector and a value cannot be combined: the rule of the value has a selector (--value)")
        is_watched = domain is not None and any(rule.view.watch for rule in domain.settings.rules)
        has_number = request.place or is_watched or request.value_name
        if condition is not None and condition.kind.is_numeric and not has_number:
            raise BadInput(
                "a condition on a number needs the element or the value that has it: add a selector (--selector) or "
                "the name of a value (--value)"
            )
    with _name_invalid("value_name"):
        _check_value(request, condition)
    with _name_invalid("kinds"):
        kinds = parse_kinds(request.kinds) if request.kinds is not None else _get_default_kinds(condition)
        if request.value_name:
            kinds = frozenset({EventKind.VALUE})
    with _name_invalid("min_magnitude"):
        min_magnitude = parse_share(str(request.min_magnitude)) if request.min_magnitude else None
    with _name_invalid("digest"):
        _ = parse_digest(request.digest) if request.digest else None
    with _name_invalid("quiet_hours"):
        _ = parse_quiet_hours(request.quiet) if request.quiet else None
    with _name_invalid("time_zone"):
        zone = DeliveryTimes(request.zone or (domain.hours.zone if domain is not None else "UTC")).zone
    return SubscriptionOptions(
        target=target,
        kinds=kinds,
        secret=secret,
        signature=signature,
        allow_private=request.allow_private,
        domain_id=domain.id if domain is not None else None,
        tag=tag,
        pattern=request.pattern or "",
        page=page,
        prefix=prefix,
        min_magnitude=min_magnitude,
        place=request.place or "",
        value_name=request.value_name or "",
        condition=condition,
        digest=request.digest or "",
        quiet=request.quiet or "",
        zone=zone,
    )


@contextmanager
def _name_invalid(field: str) -> Iterator[None]:
    """Raise BadInput with the name of the field for a ValueError or BadInput in the block."""
    with name_field(field):
        try:
            yield
        except ValueError as error:
            raise BadInput(str(error)) from error


async def _find_pages(db: AppDatabase, request: SubscriptionRequest) -> tuple[Domain | None, str, str]:
    """Return the domain, the page and the prefix of a request; a page or a prefix also names its domain."""
    with _name_invalid("domain"):
        domain = await get_domain(db, request.domain) if request.domain else None
    urls = {"page": "", "prefix": ""}
    for name in urls:
        typed = getattr(request, name)
        if typed:
            with _name_invalid(name):
                domain = domain if domain is not None else await get_domain(db, typed)
                urls[name] = parse_prefix(domain, typed)
    return domain, urls["page"], urls["prefix"]


def _get_default_kinds(condition: Condition | None) -> frozenset[EventKind]:
    return CONDITION_KINDS if condition is not None else NEWS


def _sign_command(
    target: str, request: SubscriptionRequest, settings: Settings, before: SubscriptionOptions | None
) -> str:
    """Return the signature of a command, without which it never runs; empty for other targets. Raises BadInput."""
    signed_text = get_signed_text(target)
    if before is not None and target == before.target:
        return before.signature
    if signed_text and not request.may_run_commands:
        raise BadInput("a program can only be added on its machine: recrawl notify add command:PROGRAM")
    return build_command_signer(settings.home.resolve())(signed_text) if signed_text else ""


def _parse_secret(text: str) -> str:
    """Parse a reference to a signing key. Raises ValueError if the reference, or its key if available, is invalid."""
    reference = parse_reference(text)
    key = read_variable_secret(reference)
    try:
        _ = parse_signing_keys(key) if key is not None else ()  # raises ValueError if invalid
    except ValueError as error:
        raise ValueError(f"{reference} holds {error}") from error
    return str(reference)


def _parse_condition(conditions: Mapping[str, str | float | None]) -> Condition | None:
    given = {ConditionKind(name): value for name, value in conditions.items() if value not in {None, ""}}
    if len(given) > 1:
        raise BadInput(
            "--match, --lacks, --above, --below and --change-by cannot be combined: add a subscription for each"
        )
    for kind, value in given.items():
        if kind is ConditionKind.DIFFERS:
            return Condition(kind=kind, bound=parse_share(str(value)))
        if kind.is_numeric is isinstance(value, str):
            raise BadInput(f"the condition {kind} needs a {'number' if kind.is_numeric else 'text'}, not {value!r}")
        return Condition(kind=kind, text=value) if isinstance(value, str) else Condition(kind=kind, bound=value)
    return None


def explain_not_run(settings: Settings, subscription: Subscription) -> str:
    """Return why this RECRAWL_HOME may not deliver to a subscription, or ""."""

    def sign(text: str) -> str:  # creates the key only if it is needed
        return build_command_signer(settings.home.resolve())(text)

    return "" if may_run(subscription, sign) else explain_not_run_here(subscription)


async def list_statuses(db: AppDatabase, *, after: int, max_count: int) -> list[SubscriptionStatus]:
    """Return the first subscriptions after this number, with the state of their deliveries."""
    listed = await list_subscriptions(db, after=after, max_count=max_count)
    return [_build_status(db, each) for each in listed]


async def find_status(db: AppDatabase, number: int) -> SubscriptionStatus:
    """Return the subscription with this number and the state of its deliveries. Raises NotFound."""
    return _build_status(db, await find_subscription(db, number))


def _build_status(db: AppDatabase, subscription: Subscription) -> SubscriptionStatus:
    not_run_here = explain_not_run(db.settings, subscription)
    state = DeliveryState.WAITING if subscription.waiting else DeliveryState.WORKING
    if subscription.paused_at is not None:
        state = DeliveryState.PAUSED
    elif not_run_here:
        state = DeliveryState.NOT_RUN_HERE
    elif subscription.failures:
        state = DeliveryState.FAILING
    return SubscriptionStatus(subscription, state, not_run_here, list_missing_secrets(db.settings, subscription))


def describe_subscription(settings: Settings, subscription: Subscription) -> SubscriptionState:
    """Return a subscription for JSON."""
    options, given = subscription.options, subscription.options.condition
    bound = given.bound if given and given.kind.is_numeric else None
    return SubscriptionState(
        number=subscription.id,
        domain=subscription.domain,
        tag=options.tag,
        target=options.target,
        allow_private=options.allow_private,
        time_zone=options.zone,
        page=options.page or None,
        prefix=options.prefix or None,
        pattern=options.pattern or None,
        digest=options.digest or None,
        secret=options.secret or None,
        selector=options.place or None,
        value=options.value_name or None,
        quiet_hours=options.quiet or None,
        kinds=sorted(options.kinds),
        min_magnitude=options.min_magnitude,
        condition={"kind": given.kind, "text": given.text or None, "bound": bound} if given else None,
        cursor=subscription.position,
        delivered=subscription.delivered,
        delivered_at=subscription.delivered_at,
        created_at=subscription.created_at,
        paused_at=subscription.paused_at,
        waiting=subscription.waiting,
        failures=subscription.failures,
        failing_since=subscription.failing_since,
        dead_letters=subscription.dead,
        max_bytes=subscription.max_bytes,
        next_attempt_at=subscription.resume_at,
        last_error=subscription.last_error or None,
        not_run_here=explain_not_run(settings, subscription) or None,
    )


async def find_subscription(db: AppDatabase, number: int) -> Subscription:
    """Return the subscription with this number. Raises NotFound if there is none."""
    subscription = await subscriptions.find_subscription(db, number)
    if subscription is None:
        raise NotFound(f"there is no subscription {number}; to list them: recrawl notify list")
    return subscription


def list_missing_secrets(settings: Settings, subscription: Subscription) -> list[str]:
    """Return a sentence for each secret of a subscription that its deliveries do not have."""
    references = (subscription.options.target, subscription.options.secret)
    variables = [parse_reference(text) for text in references if text.startswith(f"{SecretSource.ENV}:")]
    user = "notifications are sent; nothing is sent"
    reasons = [explain_missing(settings, reference, user=user) for reference in variables]
    return [why[0].upper() + why[1:] for why in reasons if why]


@recorded("remove subscription")
async def unsubscribe(db: AppDatabase, number: int) -> Subscription:
    """Remove a subscription with its waiting changes; return it. Raises BadInput."""
    subscription = await find_subscription(db, number)
    await subscriptions.remove_subscription(db, number)
    describe_action(object=f"subscription {number}", old=format_subscription(subscription))
    return subscription


@recorded("pause subscription")
async def pause(db: AppDatabase, number: int, *, at: datetime, stop: asyncio.Event) -> tuple[bool, Subscription]:
    """Pause a subscription; unsent changes wait. Return whether it was active, and the row. Raises BadInput."""
    await find_subscription(db, number)
    await report.append_to_feed(db, at=at)
    is_new = await subscriptions.pause_subscription(db, number, at=at)
    await _queue_changes_before_pause(db, number, stop=stop)
    describe_action(object=f"subscription {number}")
    return is_new, await find_subscription(db, number)


@recorded("resume subscription", "missed")
async def resume(
    db: AppDatabase, number: int, *, missed: bool, at: datetime, stop: asyncio.Event
) -> tuple[bool, Subscription]:
    """Resume a paused subscription: deliveries send the changes that wait and those found from now on. Raises BadInput.

    missed: also those found during the pause.  Return whether it was paused, and the subscription.
    """
    await find_subscription(db, number)
    await report.append_to_feed(db, at=at)
    await _queue_changes_before_pause(db, number, stop=stop)
    subscription = await find_subscription(db, number)
    if subscription.pause_position is not None and subscription.position < subscription.pause_position and not missed:
        raise Conflict(
            f"subscription {number} stays paused: {format_count(subscription.waiting, 'change')} wait, and some changes"
            f" found before the pause have not been processed yet. To send all of them:"
            f" recrawl notify resume {number} --include-missed"
        )
    was_paused = await subscriptions.resume_subscription(db, number, include_missed=missed, at=at)
    describe_action(object=f"subscription {number}")
    return was_paused, await find_subscription(db, number)


async def _queue_changes_before_pause(db: AppDatabase, number: int, *, stop: asyncio.Event) -> None:
    """Put the changes found before a subscription was paused into its outbox, without sending them."""
    subscription = await find_subscription(db, number)
    if subscription.pause_position is not None and subscription.position < subscription.pause_position:
        async with _open_delivery_context(db, Clock.from_instant(None)) as context:
            await deliver(context, subscription_id=number, stop=stop)  # sends nothing while the subscription is paused


@recorded("test subscription")
async def send_test_notification(db: AppDatabase, number: int) -> tuple[Subscription, str]:
    """Send a test message now; return the subscription and the error, empty on success. Raises BadInput."""
    subscription = await find_subscription(db, number)
    describe_action(object=f"subscription {number}")
    async with _open_delivery_context(db, Clock.from_instant(None)) as context:
        return subscription, await send_test_message(context, subscription)


async def deliver_due(
    db: AppDatabase,
    *,
    clock: Clock,
    number: int | None = None,
    max_duration: timedelta = timedelta.max,
    stop: asyncio.Event | None = None,
) -> DeliveryStats:
    """Send the due messages of all subscriptions, or of the one with this number. Raises BadInput if there is none.

    max_duration, stop: start no message after this duration, or after the event is set.
    """
    subscription = await find_subscription(db, number) if number is not None else None
    if subscription is None and not await subscriptions.list_subscription_ids(db):
        return DeliveryStats()
    async with _open_delivery_context(db, clock) as context:
        delivered = await deliver(context, subscription_id=number, within=max_duration, stop=stop)
        if subscription is not None and not may_run(subscription, context.sign):
            delivered.elsewhere.setdefault(subscription.id, explain_not_run_here(subscription))
    return delivered


async def follow_deliveries(
    db: AppDatabase,
    *,
    number: int | None,
    stop: asyncio.Event,
    on_delivered: Callable[[DeliveryStats], None],
    on_outage: Callable[[BaseException], None],
) -> None:
    """Send changes as they are found, until `stop` is set. Slow targets do not delay others. Raises BadInput."""
    if number is not None:
        await find_subscription(db, number)
    async with _open_delivery_context(db, Clock.from_instant(None)) as context:
        while not stop.is_set():
            try:
                await keep_delivering(context, stop=stop, on_delivered=on_delivered, subscription_id=number)
            except* StoreUnavailable as group:
                on_outage(find_failure(group))
                await asyncio.sleep(RETRY_SECONDS)


@recorded("redeliver", "number")
async def redeliver_letters(
    db: AppDatabase, ids: Collection[int] | None, *, number: int | None = None, at: datetime
) -> int:
    """Queue dead letters again, and return their number. ids: None for all.  number: only of this subscription."""
    count = await outbox.redeliver_letters(db, ids, number=number, at=at)
    describe_action(object="all dead letters" if ids is None else f"dead letters {format_names(ids)}")
    return count


@recorded("discard dead letters", "number")
async def discard_letters(
    db: AppDatabase, ids: Collection[int] | None, *, number: int | None = None, at: datetime
) -> int:
    """Delete dead letters and return their number. ids, number: as in `redeliver_letters`."""
    count = await outbox.discard_letters(db, ids, number=number, at=at)
    describe_action(object="all dead letters" if ids is None else f"dead letters {format_names(ids)}")
    return count


async def list_deferred(
    db: AppDatabase, delivered: DeliveryStats, *, number: int | None = None, at: datetime
) -> list[DeferredDelivery]:
    """Return the subscriptions that wait for another attempt, except those that `delivered` has just tried."""
    tried = delivered.undelivered
    listed = [each for each in await list_subscriptions(db) if number in {None, each.id}]
    waits = [(each, each.get_next_retry(at=at)) for each in listed if each.id not in tried]
    return [DeferredDelivery(each.id, until, each.reason, each.waiting) for each, until in waits if until is not None]


async def count_failing(db: AppDatabase) -> int:
    """Return how many active subscriptions had a failed last delivery."""
    return sum(bool(each.failures) and each.paused_at is None for each in await list_subscriptions(db))


async def list_dead_letters(
    db: AppDatabase, number: int | None = None, *, after: int = 0, max_count: int = MAX_LISTED
) -> list[DeadLetter]:
    """Return the dead letters of all subscriptions or of one, after a number, oldest first. Raises BadInput."""
    if number is not None:
        await find_subscription(db, number)
    return await outbox.list_dead_letters(db, number, after=after, max_count=max_count)


@asynccontextmanager
async def _open_delivery_context(db: AppDatabase, clock: Clock) -> AsyncIterator[DeliveryContext]:
    home = db.settings.home.resolve()
    # The process of the pool starts when it is needed.
    async with ParserPool(1, plugins=load_plugins(db.settings.plugins)) as parsers:
        yield DeliveryContext(
            db,
            parsers,
            find_secret=build_secret_finder(db.settings),
            user_agent=db.settings.user_agent_header,
            sign=build_command_signer(home),
            origin=find_web_ui_origin(home),
            now=clock.now,
        )
