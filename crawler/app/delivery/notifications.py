"""Who is notified of changes, the delivery of what is due, and messages that were given up (dead letters)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.app.database import Database
from crawler.app.registration import domain_named
from crawler.clock import Clock
from crawler.core.alert.condition import Condition, ConditionKind
from crawler.core.domain import Domain
from crawler.core.http.credentials import SecretSource, parse_reference
from crawler.core.http.urls import pattern_of, refusals_of
from crawler.core.page.selectors import View
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.errors import BadInput, StoreUnavailable, failure_in
from crawler.format.kinds import NEWS, parse_kinds
from crawler.format.values import format_count
from crawler.notify.delivery import deliver, keep_delivering
from crawler.notify.one_subscription import Delivered, DeliveryContext, may_run, not_run_here
from crawler.notify.one_subscription import send_test as send_test_message
from crawler.notify.payload import keys_of
from crawler.notify.target import checked_target, sealed_text
from crawler.notify.wording import headline
from crawler.plugins import load
from crawler.runtime.keys.own_keys import command_seal
from crawler.runtime.pages import pages_origin
from crawler.runtime.secrets import lacking_in_worker, secret_of_variable, secrets_of
from crawler.settings import Settings
from crawler.store import outbox, report, subscriptions
from crawler.store.outbox import MOST_LISTED, DeadLetter, discard, redeliver
from crawler.store.report import EventKind
from crawler.store.subscriptions import MOST_BYTES, Subscription, SubscriptionWish

WITH_CONDITION = frozenset({EventKind.FIRST, EventKind.CHANGED, EventKind.MOVED, EventKind.GONE, EventKind.BACK})
RETRY_SECONDS = 2  # until a database that is away is asked again
ENV = f"{SecretSource.ENV}:"


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A subscription as a user types it. conditions: texts and bounds by their ConditionKind, None where not given."""

    target: str
    domain: str | None
    pattern: str | None
    kinds: str | None
    conditions: Mapping[str, str | float | None]
    place: str | None
    digest: str | None
    quiet: str | None
    zone: str | None
    secret: str | None
    allow_private: bool


@dataclass(frozen=True, slots=True)
class Postponed:
    """A subscription whose target took nothing the last time, and gets nothing until a later instant."""

    subscription: int
    until: datetime
    why: str
    changes: int


async def subscribe(db: Database, request: SubscriptionRequest, *, at: datetime) -> Subscription:
    """Notify a target of what is found from now on. Raises BadInput."""
    domain = await domain_named(db, request.domain) if request.domain is not None else None
    wish = _parse(request, domain, db.settings)
    await report.stamp_feed(db, at=at)  # what was found before is no news
    return await subscriptions.add(db, wish, at=at)


def _parse(request: SubscriptionRequest, domain: Domain | None, settings: Settings) -> SubscriptionWish:
    target = checked_target(request.target, allow_private=request.allow_private)
    sealed = sealed_text(target)
    try:
        condition = _parse_condition(request.conditions)
        if request.pattern is not None:
            pattern_of(request.pattern)
        _ = View(watch=(request.place,)) if request.place is not None else None
        refused = refusals_of((request.pattern,)) if request.pattern is not None else ()
        usual_kinds = WITH_CONDITION if condition else NEWS
        wish = SubscriptionWish(
            target=target,
            kinds=parse_kinds(request.kinds) if request.kinds is not None else usual_kinds,
            secret=_check_secret(request.secret) if request.secret is not None else "",
            seal=command_seal(settings.home.resolve())(sealed) if sealed else "",
            allow_private=request.allow_private,
            domain_id=domain.id if domain is not None else None,
            pattern=request.pattern or "",
            place=request.place or "",
            condition=condition,
            digest=request.digest or "",
            quiet=request.quiet or "",
            zone=request.zone or (domain.hours.zone if domain is not None else "UTC"),
        )
        _ = wish.times
    except ValueError as error:
        raise BadInput(str(error)) from error
    if refused:
        raise BadInput(refused[0])
    if request.place is not None and condition is None:
        raise BadInput("--place names what --match, --lacks, --above or --below is about; none of them is given")
    is_watched = domain is not None and any(rule.view.watch for rule in domain.settings.rules)
    if condition is not None and condition.kind.is_of_number and not (wish.place or is_watched):
        raise BadInput("which number of a page is meant? Name the piece that has it: --place SELECTOR")
    return wish


def _check_secret(text: str) -> str:
    """Return a reference to a signing key as it is stored. Raises ValueError where the key is here and is none."""
    reference = parse_reference(text)
    key = secret_of_variable(reference)
    try:
        _ = keys_of(key) if key is not None else ()
    except ValueError as error:
        raise ValueError(f"{reference} holds {error}") from error
    return str(reference)


def _parse_condition(given: Mapping[str, str | float | None]) -> Condition | None:
    said = {ConditionKind(name): value for name, value in given.items() if value is not None}
    if len(said) > 1:
        raise BadInput("one of --match, --lacks, --above and --below at a time; another subscription may have another")
    for kind, value in said.items():
        return Condition(kind=kind, text=value) if isinstance(value, str) else Condition(kind=kind, bound=value)
    return None


async def list_subscriptions(db: Database) -> list[tuple[Subscription, str]]:
    """Return all subscriptions, each with why no process of this home may run its command; empty where one may."""
    home = db.settings.home.resolve()

    def seal(text: str) -> str:  # with a key that is made the first time
        return command_seal(home)(text)

    return [(each, "" if may_run(each, seal) else not_run_here(each)) for each in await subscriptions.every(db)]


async def find_subscription(db: Database, number: int) -> Subscription:
    """Return the subscription of that number. Raises BadInput."""
    found = await subscriptions.numbered(db, number)
    if found is None:
        raise BadInput(f"there is no subscription {number}: recrawl notify list")
    return found


def missing_secrets(settings: Settings, subscription: Subscription) -> list[str]:
    """Return a sentence for each secret of a subscription that the running stack does not know."""
    wish = subscription.wish
    variables = [text for text in (wish.target, wish.secret) if text.startswith(ENV)]
    reasons = [lacking_in_worker(settings, parse_reference(text)) for text in variables]
    return [why[0].upper() + why[1:] for why in reasons if why]


async def unsubscribe(db: Database, number: int) -> Subscription:
    """Remove a subscription with all that waits for it; return it was. Raises BadInput."""
    found = await find_subscription(db, number)
    await subscriptions.remove(db, number)
    return found


async def pause(db: Database, number: int, *, at: datetime, stop: asyncio.Event) -> tuple[bool, Subscription]:
    """Send a subscription nothing from now on; what was found until now waits for it. Raises BadInput.

    Returns whether it was not paused before, and the subscription.
    """
    await find_subscription(db, number)
    await report.stamp_feed(db, at=at)
    is_new = await subscriptions.pause(db, number, at=at)
    await _read_until_paused(db, number, stop=stop)
    return is_new, await find_subscription(db, number)


async def resume(
    db: Database, number: int, *, missed: bool, at: datetime, stop: asyncio.Event
) -> tuple[bool, Subscription]:
    """Send a paused subscription what waited for it and what is found from now on. Raises BadInput.

    missed: and what was found while it was paused.  Returns whether it was paused, and the subscription.
    """
    await find_subscription(db, number)
    await report.stamp_feed(db, at=at)
    await _read_until_paused(db, number, stop=stop)
    found = await find_subscription(db, number)
    if found.pause_position is not None and found.position < found.pause_position and not missed:
        raise BadInput(
            f"subscription {number} stays paused: {format_count(found.waiting, 'change')} wait,"
            f" and not all that was found before it was paused is read yet."
            f" recrawl notify resume {number} --missed tells all of it"
        )
    was_paused = await subscriptions.resume(db, number, missed=missed, at=at)
    return was_paused, await find_subscription(db, number)


async def _read_until_paused(db: Database, number: int, *, stop: asyncio.Event) -> None:
    """Put what was found until a subscription was paused into its outbox; nothing of it is sent."""
    found = await find_subscription(db, number)
    if found.pause_position is not None and found.position < found.pause_position:
        async with _delivery_context(db, Clock.at(None)) as context:
            await deliver(context, only=number, stop=stop)


async def send_test(db: Database, number: int) -> tuple[Subscription, str]:
    """Send a test message now; return the subscription, and why it was not taken, or empty. Raises BadInput."""
    found = await find_subscription(db, number)
    async with _delivery_context(db, Clock.at(None)) as context:
        return found, await send_test_message(context, found)


async def deliver_due(
    db: Database,
    *,
    clock: Clock,
    number: int | None = None,
    within: timedelta = timedelta.max,
    stop: asyncio.Event | None = None,
) -> Delivered:
    """Send what is due, once, to all subscriptions or to the one of that number. Raises BadInput if there is none.

    clock: knowledge time.  within: begin no message later.  stop: nor after it is set.
    """
    found = await find_subscription(db, number) if number is not None else None
    if found is None and not await subscriptions.every(db):
        return Delivered()
    async with _delivery_context(db, clock) as context:
        done = await deliver(context, only=number, within=within, stop=stop)
        if found is not None and not may_run(found, context.seal):
            done.elsewhere.setdefault(found.id, not_run_here(found))
    return done


async def follow_deliveries(
    db: Database,
    *,
    number: int | None,
    stop: asyncio.Event,
    on_delivered: Callable[[Delivered], None],
    on_outage: Callable[[BaseException], None],
) -> None:
    """Send what is found as it is found, until `stop` is set. A slow target holds up no other. Raises BadInput."""
    if number is not None:
        await find_subscription(db, number)
    async with _delivery_context(db, Clock.at(None)) as context:
        while not stop.is_set():
            try:
                await keep_delivering(context, stop=stop, tell=on_delivered, only=number)
            except* StoreUnavailable as group:
                on_outage(failure_in(group))
                await asyncio.sleep(RETRY_SECONDS)


async def list_postponed(db: Database, done: Delivered, *, number: int | None = None, at: datetime) -> list[Postponed]:
    """Return what waits for a further try, without what a delivery has just tried."""
    return [
        Postponed(each.id, until, each.reason, each.waiting)
        for each in await subscriptions.every(db)
        if number in {None, each.id} and each.id not in done.untold and (until := each.waits_until(at=at)) is not None
    ]


async def count_failing(db: Database) -> int:
    """Return how many subscriptions failed the last time and are not paused."""
    return sum(bool(each.failures) and each.paused_at is None for each in await subscriptions.every(db))


async def list_dead_letters(db: Database, number: int | None = None) -> list[DeadLetter]:
    """Return messages that were given up, the oldest first, of all subscriptions or of one. Raises BadInput."""
    if number is not None:
        await find_subscription(db, number)
    return await outbox.dead_letters(db, number)


@asynccontextmanager
async def _delivery_context(db: Database, clock: Clock) -> AsyncIterator[DeliveryContext]:
    home = db.settings.home.resolve()
    async with ParserPool(1, plugins=load(db.settings.plugins)) as readers:  # its process starts when it is needed
        yield DeliveryContext(
            db,
            readers,
            find_secret=secrets_of(db.settings),
            user_agent=db.settings.user_agent,
            seal=command_seal(home),
            origin=pages_origin(home),
            now=clock.now,
        )
