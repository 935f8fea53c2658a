"""recrawl notify: who is told of changes, telling them now, and what could not be told."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.lazy import notifications, notify_output
from crawler.cli.options import At, Json, Kinds, declare_argument, declare_flag, declare_option
from crawler.cli.output import print_json, print_json_line, print_listing, print_outcome, remark, say
from crawler.cli.session import DONE, PROBLEM, Interrupts, run_on_database
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.format.values import format_count, format_delivered, format_instant, format_when

CONNECTIONS = 6  # to tell several targets at once

app = typer.Typer(
    no_args_is_help=True,
    help="Have changes told by mail, chat, webhook or a program of yours.",
)

Number = Annotated[int, declare_argument("NUMBER", "Of a subscription: recrawl notify list.", min=1)]
Letters = Annotated[list[int] | None, declare_argument("[NUMBER]...", "Of dead letters: recrawl notify dead.", min=1)]
EveryOne = Annotated[bool, declare_flag("--all", "All of them.")]


@app.command()
def add(
    target: Annotated[
        str,
        declare_argument(
            "TARGET", "https://..., an apprise address without secrets, command:PROGRAM, or env:NAME or block:NAME."
        ),
    ],
    domain: Annotated[str | None, declare_option("DOMAIN", "Changes of one domain only.")] = None,
    pattern: Annotated[
        str | None, declare_option("PATTERN", "Of pages like '/docs/', '*.html$' or 're:/20../' only.")
    ] = None,
    kind: Kinds = None,
    match: Annotated[
        str | None, declare_option("TEXT", "When this text appears; re:EXPRESSION for a regular one.")
    ] = None,
    lacks: Annotated[str | None, declare_option("TEXT", "When this text goes.")] = None,
    above: Annotated[float | None, declare_option("N", "When the number rises above this.")] = None,
    below: Annotated[float | None, declare_option("N", "When the number falls below this.")] = None,
    selector: Annotated[
        str | None, declare_option("SELECTOR", "Of the watched piece: CSS, or XPath behind xpath:; else all of it.")
    ] = None,
    digest: Annotated[
        str | None, declare_option("WHEN", "Together: every 1h or 30m, daily (at 8), daily@07:30, weekly@fri-07:30.")
    ] = None,
    quiet_hours: Annotated[
        str | None, declare_option("HOURS", "Nothing from 22-07 or 21:30-06:45; afterwards all together.")
    ] = None,
    time_zone: Annotated[
        str | None, declare_option("ZONE", "Whose clock counts: Europe/Vienna; else the domain's, or UTC.")
    ] = None,
    secret: Annotated[
        str | None, declare_option("REFERENCE", "Sign webhooks with the key at env:NAME or block:NAME.")
    ] = None,
    allow_private: Annotated[
        bool, declare_flag("--allow-private", "The receiver is on this machine or in a private network.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have changes told from now on; `recrawl notify test` tries it.

    Mail and chat go by apprise. What has a password or a token in it is not typed: put all of the address into a
    variable or a Prefect secret block, and name that. With --match, --lacks, --above or --below a change is told when
    that becomes true of a page, in its text without what is known to be noise. A webhook is told in JSON, signed as
    Standard Webhooks has it. A program gets the same on its stdin, and is run by your user on this machine alone.

    Examples:

        recrawl notify add env:TELEGRAM --domain docs.example.com
        recrawl notify add 'mailto://mail.example.com?from=me@example.com&to=me@example.com' --kind added,gone
        recrawl notify add https://ci.example.com/hook --secret env:HOOK_KEY --pattern /api/
        recrawl notify add env:MAIL --domain shop.example.com --pattern /kettle --selector .price --below 40
        recrawl notify add 'command:/usr/local/bin/rebuild --now' --domain docs.example.com --quiet-hours 22-07
    """
    request = notifications.SubscriptionRequest(
        target=target,
        domain=domain,
        pattern=pattern,
        kinds=kind,
        conditions={"appears": match, "goes": lacks, "above": above, "below": below},
        place=selector,
        digest=digest,
        quiet=quiet_hours,
        zone=time_zone,
        secret=secret,
        allow_private=allow_private,
    )
    subscription = run_on_database(lambda db, _: notifications.subscribe(db, request, at=datetime.now(UTC)))
    if as_json:
        print_json(notify_output.describe_subscription(subscription))
        return
    say(f"Subscription {subscription.id}: {notify_output.format_subscription(subscription)}")
    if not subscription.wish.secret and subscription.wish.target.startswith(("http://", "https://")):
        remark("Its messages are not signed: --secret env:NAME signs them")
    notify_output.remark_missing_secrets(subscription)
    remark(f"Next: recrawl notify test {subscription.id}")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List who is told of what, and how that is going.

    Examples:

        recrawl notify list
        recrawl notify list --json
    """
    listed = run_on_database(lambda db, _: notifications.list_subscriptions(db))
    if as_json:
        print_json(
            {
                "subscriptions": [
                    notify_output.describe_subscription(each, elsewhere=elsewhere) for each, elsewhere in listed
                ]
            }
        )
        return
    if not listed:
        say("Nobody is told of changes: recrawl notify add TARGET")
    for n, (each, elsewhere) in enumerate(listed):
        if n:
            say("")
        notify_output.show_subscription(each, elsewhere=elsewhere, now=datetime.now(UTC))


@app.command()
def remove(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing any more, not even what waits for it.

    Examples:

        recrawl notify remove 3
    """
    removed = run_on_database(lambda db, _: notifications.unsubscribe(db, number))
    waiting = f"{format_count(removed.waiting, 'change')} that waited" if removed.waiting else ""
    dead = format_count(removed.dead, "dead letter") if removed.dead else ""
    lost = " and ".join(filter(None, (waiting, dead)))
    message = f"Subscription {number} is removed{f', and {lost} with it' if lost else ''}"
    print_outcome(notify_output.describe_subscription(removed), message, as_json=as_json)


@app.command()
def pause(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing for a while. What had been found until then waits, and is told when it is resumed.

    Examples:

        recrawl notify pause 3
    """
    is_new, subscription = run_on_database(
        lambda db, interrupts: notifications.pause(db, number, at=datetime.now(UTC), stop=interrupts.stop),
        connections=CONNECTIONS,
        patient=True,
    )
    waiting = f"; {format_count(subscription.waiting, 'change')} waiting for that" if subscription.waiting else ""
    message = f"Subscription {number} is paused{'' if is_new else ' already'}: recrawl notify resume {number}{waiting}"
    print_outcome(notify_output.describe_subscription(subscription), message, as_json=as_json)


@app.command()
def resume(
    number: Number,
    include_missed: Annotated[
        bool, declare_flag("--include-missed", "And what was found while it was paused, which else is not told.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell a paused target again what is found from now on, beside what waited when it was paused.

    Examples:

        recrawl notify resume 3
        recrawl notify resume 3 --include-missed
    """
    was_paused, subscription = run_on_database(
        lambda db, interrupts: notifications.resume(
            db, number, missed=include_missed, at=datetime.now(UTC), stop=interrupts.stop
        ),
        connections=CONNECTIONS,
        patient=True,
    )
    since = "what was found while it was paused" if include_missed else "what is found from now on"
    waiting = f" {format_count(subscription.waiting, 'change')} that waited, and" if subscription.waiting else ""
    message = f"goes on: it is told{waiting} {since}" if was_paused else "is not paused"
    print_outcome(
        notify_output.describe_subscription(subscription), f"Subscription {number} {message}", as_json=as_json
    )


@app.command("test")
def send_test(number: Number, as_json: Json = False) -> int:
    """Send a test message now. Where it is taken, what waits for that target is due at once.

    Examples:

        recrawl notify test 3
    """
    subscription, error = run_on_database(lambda db, _: notifications.send_test_notification(db, number))
    if as_json:
        print_json({"subscription": number, "is_sent": not error, "why_not": error or None})
    elif error:
        remark(f"recrawl: the test was not taken by {subscription.wish.target}: {error}")
    else:
        say(f"A test was sent to {subscription.wish.target}")
        notify_output.remark_missing_secrets(subscription)
    return PROBLEM if error else DONE


@app.command()
def run(
    number: Annotated[int | None, declare_argument("[NUMBER]", "Of one subscription; else all of them.", min=1)] = None,
    follow: Annotated[
        bool, declare_flag("--follow", "Go on: tell what is found as it is found, until Ctrl-C.", short="-f")
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Tell now what is due: what a running stack does every five minutes, and `recrawl crawl` at its end.

    A target that does not take a message is tried again later: after 30 s, then ever more seldom up to once an hour.
    After 16 tries, or three days, the message is a dead letter. Nothing is told twice unless this is killed meanwhile.

    Examples:

        recrawl notify run
        recrawl notify run --follow
    """
    if follow and at is not None:
        raise BadInput("--follow goes by the time that it is: no --at")
    if follow:
        return _follow_deliveries(number, as_json=as_json)
    clock = Clock.from_instant(at)

    async def work(
        db: "notifications.AppDatabase", interrupts: Interrupts
    ) -> "tuple[notifications.DeliveryStats, list[notifications.DeferredDelivery]]":
        delivered = await notifications.deliver_due(db, clock=clock, number=number, stop=interrupts.stop)
        return delivered, await notifications.list_deferred(db, delivered, number=number, at=clock.now())

    delivered, waiting = run_on_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(delivered.as_dict() | {"waiting": waiting})
    elif delivered.messages:
        say(format_delivered(delivered.changes, delivered.messages))
    else:
        say("Nothing is told" if delivered.undelivered or waiting else "Nothing is due")
    if not as_json:
        notify_output.remark_failures(delivered)
        for each in waiting:
            remark(
                f"recrawl: subscription {each.subscription} waits until {format_when(each.until, now=clock.now())}, "
                f"{format_count(each.changes, 'change')}: {each.why}"
                f" (recrawl notify test {each.subscription} tries it now)"
            )
    return PROBLEM if delivered.undelivered else DONE


def _follow_deliveries(number: int | None, *, as_json: bool) -> int:
    """Tell what is found as it is found, until interrupted."""

    def print_delivered(delivered: "notifications.DeliveryStats") -> None:
        if as_json and (delivered.messages or delivered.undelivered):
            print_json_line(delivered.as_dict())
        elif not as_json:
            if delivered.messages:
                say(format_delivered(delivered.changes, delivered.messages))
            notify_output.remark_failures(delivered)

    async def work(db: "notifications.AppDatabase", interrupts: Interrupts) -> int:
        await notifications.follow_deliveries(
            db,
            number=number,
            stop=interrupts.stop,
            on_delivered=print_delivered,
            on_outage=lambda error: remark(f"{error}; it is asked again"),
        )
        return interrupts.exit_code

    return run_on_database(work, connections=CONNECTIONS, patient=True)


@app.command()
def dead(
    number: Annotated[int | None, declare_argument("[NUMBER]", "Of one subscription; else of all.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """List messages that were given up (dead letters), and why.

    Examples:

        recrawl notify dead
        recrawl notify dead 3 --json
    """
    dead_letters = run_on_database(lambda db, _: notifications.list_dead_letters(db, number))
    rows = (
        {
            "number": str(each.id),
            "subscription": str(each.subscription_id),
            "since": format_instant(each.created_at),
            "tries": str(each.tries),
            "changes": str(len(each.changes)),
            "what": notifications.format_headline(each.changes),
            "why": each.error,
        }
        for each in dead_letters
    )
    letters = [
        {
            "number": each.id,
            "subscription": each.subscription_id,
            "target": each.target,
            "since": each.created_at,
            "tries": each.tries,
            "why": each.error,
            "changes": each.changes,
        }
        for each in dead_letters
    ]
    right = ("number", "subscription", "tries", "changes")
    if print_listing({"dead": letters}, rows, right=right, empty="No message was given up", as_json=as_json):
        more = (
            f"; these are the oldest {notifications.MAX_LISTED}"
            if len(dead_letters) == notifications.MAX_LISTED
            else ""
        )
        remark(f"Next: recrawl notify redeliver NUMBER, or discard NUMBER{more}")


@app.command()
def redeliver(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Have dead letters sent once more, by the next `recrawl notify run` or the running stack.

    What else waits for their receivers is tried then, too, however often they have failed before.

    Examples:

        recrawl notify redeliver 17 18
        recrawl notify redeliver --all
    """
    ids = _select_letters(letters, every_one=every_one)
    count = run_on_database(lambda db, _: notifications.redeliver_letters(db, ids, at=datetime.now(UTC)))
    return _print_count(count, ids, as_json=as_json, message="will be sent once more: recrawl notify run")


@app.command()
def discard(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Forget dead letters.

    Examples:

        recrawl notify discard 17
        recrawl notify discard --all
    """
    ids = _select_letters(letters, every_one=every_one)
    count = run_on_database(lambda db, _: notifications.discard_letters(db, ids, at=datetime.now(UTC)))
    return _print_count(count, ids, as_json=as_json, message="forgotten")


def _select_letters(letters: list[int] | None, *, every_one: bool) -> list[int] | None:
    if every_one is bool(letters):
        raise BadInput("name the numbers of dead letters, or say --all")
    return None if every_one else letters


def _print_count(count: int, ids: list[int] | None, *, as_json: bool, message: str) -> int:
    message = f"{format_count(count, 'dead letter')} {message}" if count else "No such dead letter"
    print_outcome({"letters": count}, message, as_json=as_json)
    if not as_json and count and ids is not None and count < len(set(ids)):
        remark(f"{len(set(ids)) - count} of these numbers are no dead letters: recrawl notify dead")
    return DONE if count or ids is None else PROBLEM
