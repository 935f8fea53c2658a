"""recrawl notify run and test: telling now, once or as long as it runs, and after a crawl."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.cli.actions.delivery.notify_words import facts, remark_lacking
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, print_json_line, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.clock import Clock
from crawler.errors import BadInput, StoreUnavailable, failure_in
from crawler.format.values import format_count, format_when
from crawler.notify import (
    Delivered,
    DeliveryContext,
    deliver,
    keep_delivering,
    may_run,
    not_run_here,
    open_context,
    send_test,
)
from crawler.plugins import load
from crawler.runtime.keys.entrance import command_seal
from crawler.runtime.pages import pages_origin
from crawler.runtime.secrets import secrets_of
from crawler.settings import settings
from crawler.store import report, subscriptions
from crawler.store.database import Database
from crawler.store.subscriptions import Subscription

PAUSE_SECONDS = 2  # until a database that is away is asked again
CONNECTIONS = 6
WITHIN_CRAWL = timedelta(seconds=30)  # that `recrawl crawl` takes for it at its end


def send_test_now(number: int, *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Subscription, str]:
        found = await numbered(db, number)
        async with _context(db, Clock.at(None)) as context:
            return found, await send_test(context, found)

    found, why_not = with_database(work)
    if as_json:
        print_json({"subscription": number, "is_sent": not why_not, "why_not": why_not or None})
    elif why_not:
        remark(f"recrawl: the test was not taken by {found.wish.target}: {why_not}")
    else:
        say(f"A test was sent to {found.wish.target}")
        remark_lacking(found)
    return PROBLEM if why_not else DONE


def run(number: int | None, *, at: datetime | None, as_json: bool) -> int:
    """Tell what is due, once."""
    clock = Clock.at(at)

    async def work(db: Database, interrupts: Interrupts) -> tuple[Delivered, list[Postponed]]:
        found = await numbered(db, number) if number is not None else None
        async with _context(db, clock) as context:
            done = await deliver(context, only=number, stop=interrupts.stop)
            if found is not None and not may_run(found, context.seal):
                done.elsewhere.setdefault(found.id, not_run_here(found))
        return done, await _waiting(db, number, done, at=clock.now())

    done, waiting = with_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(done.as_dict() | {"waiting": waiting})
    else:
        say(said_of(done) or ("Nothing is told" if done.untold or waiting else "Nothing is due"))
        tell_failures(done)
        for each in waiting:
            remark(
                f"recrawl: subscription {each.subscription} waits until {format_when(each.until, now=clock.now())}, "
                f"{format_count(each.changes, 'change')}: {each.why}"
                f" (recrawl notify test {each.subscription} tries it now)"
            )
    return PROBLEM if done.untold else DONE


@dataclass(frozen=True, slots=True)
class Postponed:
    """What is told a subscription later: its target took nothing the last time, and is left alone until then."""

    subscription: int
    until: datetime
    why: str
    changes: int


async def _waiting(db: Database, number: int | None, done: Delivered, *, at: datetime) -> list[Postponed]:
    """What waits for a further try, without what a delivery has just tried."""
    found = await subscriptions.states(db, number)
    return [
        Postponed(each.subscription, until, each.reason, each.waiting)
        for each in found
        if each.subscription not in done.untold and (until := each.waits_until(at=at)) is not None
    ]


def follow(number: int | None, *, as_json: bool) -> int:
    """Tell what is found as it is found, until interrupted. A target that is slow holds up no other."""

    def tell(done: Delivered) -> None:
        if as_json and (done.messages or done.untold):
            print_json_line(done.as_dict())
        elif not as_json:
            if done.messages:
                say(said_of(done))
            tell_failures(done)

    async def work(db: Database, interrupts: Interrupts) -> int:
        if number is not None:
            await numbered(db, number)
        async with _context(db, Clock.at(None)) as context:
            while not interrupts.stop.is_set():
                try:
                    await keep_delivering(context, stop=interrupts.stop, tell=tell, only=number)
                except* StoreUnavailable as group:
                    remark(f"{failure_in(group)}; it is asked again")
                    await asyncio.sleep(PAUSE_SECONDS)
        return interrupts.number or 0

    number_of_signal = with_database(work, connections=CONNECTIONS, patient=True)
    return 128 + number_of_signal if number_of_signal else DONE


def pause(number: int, *, as_json: bool) -> int:
    """Tell a target nothing from now on. What was found until now waits for it."""

    async def work(db: Database, interrupts: Interrupts) -> tuple[bool, Subscription]:
        await numbered(db, number)
        now = datetime.now(UTC)
        await report.stamp_feed(db, at=now)
        is_new = await subscriptions.pause(db, number, at=now)
        await _read_until_paused(db, number, stop=interrupts.stop)
        return is_new, await numbered(db, number)

    is_new, found = with_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(facts(found))
    else:
        waiting = f"; {format_count(found.waiting, 'change')} waiting for that" if found.waiting else ""
        say(f"Subscription {number} is paused{'' if is_new else ' already'}: recrawl notify resume {number}{waiting}")
    return DONE


def resume(number: int, *, missed: bool, as_json: bool) -> int:
    """Tell a target again what is found from now on, and what had been found when it was paused."""

    async def work(db: Database, interrupts: Interrupts) -> tuple[bool, Subscription]:
        await numbered(db, number)
        now = datetime.now(UTC)
        await report.stamp_feed(db, at=now)
        await _read_until_paused(db, number, stop=interrupts.stop)
        found = await numbered(db, number)
        if found.pause_position is not None and found.position < found.pause_position and not missed:
            raise BadInput(
                f"subscription {number} stays paused: {format_count(found.waiting, 'change')} wait,"
                f" and not all that was found before it was paused is read yet."
                f" recrawl notify resume {number} --missed tells all of it"
            )
        was_paused = await subscriptions.resume(db, number, missed=missed, at=now)
        return was_paused, await numbered(db, number)

    was_paused, found = with_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(facts(found))
    elif not was_paused:
        say(f"Subscription {number} is not paused")
    else:
        since = "what was found while it was paused" if missed else "what is found from now on"
        waiting = f" {format_count(found.waiting, 'change')} that waited, and" if found.waiting else ""
        say(f"Subscription {number} goes on: it is told{waiting} {since}")
    return DONE


async def _read_until_paused(db: Database, number: int, *, stop: asyncio.Event) -> None:
    """Put what was found until a subscription was paused into its outbox; nothing of it is sent."""
    found = await numbered(db, number)
    if found.pause_position is not None and found.position < found.pause_position:
        async with _context(db, Clock.at(None)) as context:
            await deliver(context, only=number, stop=stop)


async def deliver_found(db: Database, clock: Clock, *, stop: asyncio.Event) -> Delivered:
    """Tell what a crawl has found, for half a minute at most."""
    async with _context(db, clock) as context:
        return await deliver(context, within=WITHIN_CRAWL, stop=stop)


def tell_failures(done: Delivered) -> None:
    """Say beside the answer what was not taken."""
    for number, why in sorted(done.failed.items()):
        remark(f"recrawl: subscription {number} was not told: {why}; it is tried again (recrawl notify list)")
    for number, why in sorted(done.elsewhere.items()):
        remark(f"recrawl: subscription {number} is not told: {why}")


def said_of(done: Delivered) -> str:
    if not done.messages:
        return ""
    return f"{format_count(done.changes, 'change')} told in {format_count(done.messages, 'message')}"


@asynccontextmanager
async def _context(db: Database, clock: Clock) -> AsyncIterator[DeliveryContext]:
    used = settings()
    async with open_context(
        db,
        find_secret=secrets_of(used),
        user_agent=used.user_agent,
        seal=command_seal(used.home.resolve()),
        origin=pages_origin(used.home.resolve()),
        now=clock.now,
        plugins=load(used.plugins),
    ) as context:
        yield context


async def numbered(db: Database, number: int) -> Subscription:
    """The subscription of that number. Raises BadInput."""
    found = await subscriptions.numbered(db, number)
    if found is None:
        raise BadInput(f"there is no subscription {number}: recrawl notify list")
    return found
