"""recrawl notify run, test, pause and resume: telling now, once or as long as it runs."""

from datetime import UTC, datetime

from crawler.app.delivery import notifications
from crawler.app.delivery.notifications import Database, Delivered, Postponed
from crawler.cli.delivery.notify_output import facts, remark_missing_secrets
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, print_json_line, print_outcome, remark, say
from crawler.cli.session import Interrupts, settings, with_database
from crawler.clock import Clock
from crawler.format.deliveries import format_delivered, format_undelivered
from crawler.format.values import format_count, format_when

CONNECTIONS = 6


def send_test_now(number: int, *, as_json: bool) -> int:
    found, why_not = with_database(lambda db, _: notifications.send_test(db, settings(), number))
    if as_json:
        print_json({"subscription": number, "is_sent": not why_not, "why_not": why_not or None})
    elif why_not:
        remark(f"recrawl: the test was not taken by {found.wish.target}: {why_not}")
    else:
        say(f"A test was sent to {found.wish.target}")
        remark_missing_secrets(found)
    return PROBLEM if why_not else DONE


def run(number: int | None, *, at: datetime | None, as_json: bool) -> int:
    """Tell what is due, once."""
    clock = Clock.at(at)

    async def work(db: Database, interrupts: Interrupts) -> tuple[Delivered, list[Postponed]]:
        done = await notifications.deliver_due(db, settings(), clock=clock, number=number, stop=interrupts.stop)
        return done, await notifications.list_postponed(db, done, number=number, at=clock.now())

    done, waiting = with_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(done.as_dict() | {"waiting": waiting})
    elif done.messages:
        say(format_delivered(done.changes, done.messages))
    else:
        say("Nothing is told" if done.untold or waiting else "Nothing is due")
    if not as_json:
        tell_failures(done)
        for each in waiting:
            remark(
                f"recrawl: subscription {each.subscription} waits until {format_when(each.until, now=clock.now())}, "
                f"{format_count(each.changes, 'change')}: {each.why}"
                f" (recrawl notify test {each.subscription} tries it now)"
            )
    return PROBLEM if done.untold else DONE


def follow(number: int | None, *, as_json: bool) -> int:
    """Tell what is found as it is found, until interrupted."""

    def tell(done: Delivered) -> None:
        if as_json and (done.messages or done.untold):
            print_json_line(done.as_dict())
        elif not as_json:
            if done.messages:
                say(format_delivered(done.changes, done.messages))
            tell_failures(done)

    async def work(db: Database, interrupts: Interrupts) -> int:
        await notifications.follow_deliveries(
            db,
            settings(),
            number=number,
            stop=interrupts.stop,
            on_delivered=tell,
            on_outage=lambda error: remark(f"{error}; it is asked again"),
        )
        return interrupts.number or 0

    number_of_signal = with_database(work, connections=CONNECTIONS, patient=True)
    return 128 + number_of_signal if number_of_signal else DONE


def pause(number: int, *, as_json: bool) -> None:
    is_new, found = with_database(
        lambda db, interrupts: notifications.pause(db, settings(), number, at=datetime.now(UTC), stop=interrupts.stop),
        connections=CONNECTIONS,
        patient=True,
    )
    waiting = f"; {format_count(found.waiting, 'change')} waiting for that" if found.waiting else ""
    said = f"Subscription {number} is paused{'' if is_new else ' already'}: recrawl notify resume {number}{waiting}"
    print_outcome(facts(found), said, as_json=as_json)


def resume(number: int, *, missed: bool, as_json: bool) -> None:
    was_paused, found = with_database(
        lambda db, interrupts: notifications.resume(
            db, settings(), number, missed=missed, at=datetime.now(UTC), stop=interrupts.stop
        ),
        connections=CONNECTIONS,
        patient=True,
    )
    since = "what was found while it was paused" if missed else "what is found from now on"
    waiting = f" {format_count(found.waiting, 'change')} that waited, and" if found.waiting else ""
    said = f"goes on: it is told{waiting} {since}" if was_paused else "is not paused"
    print_outcome(facts(found), f"Subscription {number} {said}", as_json=as_json)


def tell_failures(done: Delivered) -> None:
    """Say beside the answer what was not taken."""
    for number, why in sorted(done.failed.items()):
        remark(f"recrawl: {format_undelivered(number, why)}; it is tried again (recrawl notify list)")
    for number, why in sorted(done.elsewhere.items()):
        remark(f"recrawl: subscription {number} is not told: {why}")
