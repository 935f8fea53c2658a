"""recrawl notify: who is told of changes, telling them now, and what could not be told."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.lazy import notifications, notify_output
from crawler.cli.options import At, Json, Kinds, argument, flag, option
from crawler.cli.output import print_found, print_json, print_json_line, print_outcome, remark, say
from crawler.cli.session import DONE, PROBLEM, Interrupts, with_database
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.format.values import format_count, format_delivered, format_instant, format_when

CONNECTIONS = 6  # to tell several targets at once

app = typer.Typer(
    no_args_is_help=True,
    help="Have changes told by mail, chat, webhook or a program of yours.",
)

Number = Annotated[int, argument("NUMBER", "Of a subscription: recrawl notify list.", min=1)]
Letters = Annotated[list[int] | None, argument("[NUMBER]...", "Of dead letters: recrawl notify dead.", min=1)]
EveryOne = Annotated[bool, flag("--all", "All of them.")]


@app.command()
def add(
    target: Annotated[
        str,
        argument(
            "TARGET", "https://..., an apprise address without secrets, command:PROGRAM, or env:NAME or block:NAME."
        ),
    ],
    domain: Annotated[str | None, option("DOMAIN", "Changes of one domain only.")] = None,
    pattern: Annotated[str | None, option("PATTERN", "Of pages like '/docs/', '*.html$' or 're:/20../' only.")] = None,
    kind: Kinds = None,
    match: Annotated[str | None, option("TEXT", "When this text appears; re:EXPRESSION for a regular one.")] = None,
    lacks: Annotated[str | None, option("TEXT", "When this text goes.")] = None,
    above: Annotated[float | None, option("N", "When the number rises above this.")] = None,
    below: Annotated[float | None, option("N", "When the number falls below this.")] = None,
    place: Annotated[
        str | None, option("SELECTOR", "Of the watched piece: CSS, or XPath behind xpath:; else all of it.")
    ] = None,
    digest: Annotated[
        str | None, option("WHEN", "Together: every 1h or 30m, daily (at 8), daily@07:30, weekly@fri-07:30.")
    ] = None,
    quiet: Annotated[str | None, option("HOURS", "Nothing from 22-07 or 21:30-06:45; afterwards all together.")] = None,
    zone: Annotated[str | None, option("ZONE", "Whose clock counts: Europe/Vienna; else the domain's, or UTC.")] = None,
    secret: Annotated[str | None, option("REFERENCE", "Sign webhooks with the key at env:NAME or block:NAME.")] = None,
    allow_private: Annotated[
        bool, flag("--allow-private", "The receiver is on this machine or in a private network.")
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
        recrawl notify add 'mailto://mail.example.com?from=me@example.com&to=me@example.com' --kind new,gone
        recrawl notify add https://ci.example.com/hook --secret env:HOOK_KEY --pattern /api/
        recrawl notify add env:MAIL --domain shop.example.com --pattern /kettle --place .price --below 40
        recrawl notify add 'command:/usr/local/bin/rebuild --now' --domain docs.example.com --quiet 22-07
    """
    request = notifications.SubscriptionRequest(
        target=target,
        domain=domain,
        pattern=pattern,
        kinds=kind,
        conditions={"appears": match, "goes": lacks, "above": above, "below": below},
        place=place,
        digest=digest,
        quiet=quiet,
        zone=zone,
        secret=secret,
        allow_private=allow_private,
    )
    made = with_database(lambda db, _: notifications.subscribe(db, request, at=datetime.now(UTC)))
    if as_json:
        print_json(notify_output.describe(made))
        return
    say(f"Subscription {made.id}: {notify_output.format_subscription(made)}")
    if not made.wish.secret and made.wish.target.startswith(("http://", "https://")):
        remark("Its messages are not signed: --secret env:NAME signs them")
    notify_output.remark_missing_secrets(made)
    remark(f"Next: recrawl notify test {made.id}")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List who is told of what, and how that is going.

    Examples:

        recrawl notify list
        recrawl notify list --json
    """
    found = with_database(lambda db, _: notifications.list_subscriptions(db))
    if as_json:
        print_json({"subscriptions": [notify_output.describe(each, elsewhere=elsewhere) for each, elsewhere in found]})
        return
    if not found:
        say("Nobody is told of changes: recrawl notify add TARGET")
    for n, (each, elsewhere) in enumerate(found):
        if n:
            say("")
        notify_output.show_subscription(each, elsewhere=elsewhere, now=datetime.now(UTC))


@app.command()
def remove(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing any more, not even what waits for it.

    Examples:

        recrawl notify remove 3
    """
    found = with_database(lambda db, _: notifications.unsubscribe(db, number))
    waiting = f"{format_count(found.waiting, 'change')} that waited" if found.waiting else ""
    dead = format_count(found.dead, "dead letter") if found.dead else ""
    lost = " and ".join(filter(None, (waiting, dead)))
    said = f"Subscription {number} is removed{f', and {lost} with it' if lost else ''}"
    print_outcome(notify_output.describe(found), said, as_json=as_json)


@app.command()
def pause(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing for a while. What had been found until then waits, and is told when it is resumed.

    Examples:

        recrawl notify pause 3
    """
    is_new, found = with_database(
        lambda db, interrupts: notifications.pause(db, number, at=datetime.now(UTC), stop=interrupts.stop),
        connections=CONNECTIONS,
        patient=True,
    )
    waiting = f"; {format_count(found.waiting, 'change')} waiting for that" if found.waiting else ""
    said = f"Subscription {number} is paused{'' if is_new else ' already'}: recrawl notify resume {number}{waiting}"
    print_outcome(notify_output.describe(found), said, as_json=as_json)


@app.command()
def resume(
    number: Number,
    missed: Annotated[
        bool, flag("--missed", "And what was found while it was paused, which else is not told.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell a paused target again what is found from now on, beside what waited when it was paused.

    Examples:

        recrawl notify resume 3
        recrawl notify resume 3 --missed
    """
    was_paused, found = with_database(
        lambda db, interrupts: notifications.resume(
            db, number, missed=missed, at=datetime.now(UTC), stop=interrupts.stop
        ),
        connections=CONNECTIONS,
        patient=True,
    )
    since = "what was found while it was paused" if missed else "what is found from now on"
    waiting = f" {format_count(found.waiting, 'change')} that waited, and" if found.waiting else ""
    said = f"goes on: it is told{waiting} {since}" if was_paused else "is not paused"
    print_outcome(notify_output.describe(found), f"Subscription {number} {said}", as_json=as_json)


@app.command("test")
def send_test(number: Number, as_json: Json = False) -> int:
    """Send a test message now. Where it is taken, what waits for that target is due at once.

    Examples:

        recrawl notify test 3
    """
    found, why_not = with_database(lambda db, _: notifications.send_test(db, number))
    if as_json:
        print_json({"subscription": number, "is_sent": not why_not, "why_not": why_not or None})
    elif why_not:
        remark(f"recrawl: the test was not taken by {found.wish.target}: {why_not}")
    else:
        say(f"A test was sent to {found.wish.target}")
        notify_output.remark_missing_secrets(found)
    return PROBLEM if why_not else DONE


@app.command()
def run(
    number: Annotated[int | None, argument("[NUMBER]", "Of one subscription; else all of them.", min=1)] = None,
    follow: Annotated[
        bool, flag("--follow", "Go on: tell what is found as it is found, until Ctrl-C.", short="-f")
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
        return _follow(number, as_json=as_json)
    clock = Clock.at(at)

    async def work(
        db: "notifications.Database", interrupts: Interrupts
    ) -> "tuple[notifications.Delivered, list[notifications.Postponed]]":
        done = await notifications.deliver_due(db, clock=clock, number=number, stop=interrupts.stop)
        return done, await notifications.list_postponed(db, done, number=number, at=clock.now())

    done, waiting = with_database(work, connections=CONNECTIONS, patient=True)
    if as_json:
        print_json(done.as_dict() | {"waiting": waiting})
    elif done.messages:
        say(format_delivered(done.changes, done.messages))
    else:
        say("Nothing is told" if done.untold or waiting else "Nothing is due")
    if not as_json:
        notify_output.remark_failures(done)
        for each in waiting:
            remark(
                f"recrawl: subscription {each.subscription} waits until {format_when(each.until, now=clock.now())}, "
                f"{format_count(each.changes, 'change')}: {each.why}"
                f" (recrawl notify test {each.subscription} tries it now)"
            )
    return PROBLEM if done.untold else DONE


def _follow(number: int | None, *, as_json: bool) -> int:
    """Tell what is found as it is found, until interrupted."""

    def tell(done: "notifications.Delivered") -> None:
        if as_json and (done.messages or done.untold):
            print_json_line(done.as_dict())
        elif not as_json:
            if done.messages:
                say(format_delivered(done.changes, done.messages))
            notify_output.remark_failures(done)

    async def work(db: "notifications.Database", interrupts: Interrupts) -> int:
        await notifications.follow_deliveries(
            db,
            number=number,
            stop=interrupts.stop,
            on_delivered=tell,
            on_outage=lambda error: remark(f"{error}; it is asked again"),
        )
        return interrupts.exit_code

    return with_database(work, connections=CONNECTIONS, patient=True)


@app.command()
def dead(
    number: Annotated[int | None, argument("[NUMBER]", "Of one subscription; else of all.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """List messages that were given up (dead letters), and why.

    Examples:

        recrawl notify dead
        recrawl notify dead 3 --json
    """
    found = with_database(lambda db, _: notifications.list_dead_letters(db, number))
    rows = (
        {
            "number": str(each.id),
            "subscription": str(each.subscription_id),
            "since": format_instant(each.made_at),
            "tries": str(each.tries),
            "changes": str(len(each.changes)),
            "what": notifications.headline(each.changes),
            "why": each.error,
        }
        for each in found
    )
    letters = [
        {
            "number": each.id,
            "subscription": each.subscription_id,
            "target": each.target,
            "since": each.made_at,
            "tries": each.tries,
            "why": each.error,
            "changes": each.changes,
        }
        for each in found
    ]
    right = ("number", "subscription", "tries", "changes")
    if print_found({"dead": letters}, rows, right=right, empty="No message was given up", as_json=as_json):
        more = f"; these are the oldest {notifications.MOST_LISTED}" if len(found) == notifications.MOST_LISTED else ""
        remark(f"Next: recrawl notify redeliver NUMBER, or discard NUMBER{more}")


@app.command()
def redeliver(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Have dead letters sent once more, by the next `recrawl notify run` or the running stack.

    What else waits for their receivers is tried then, too, however often they have failed before.

    Examples:

        recrawl notify redeliver 17 18
        recrawl notify redeliver --all
    """
    ids = _chosen(letters, every_one=every_one)
    many = with_database(lambda db, _: notifications.redeliver(db, ids, at=datetime.now(UTC)))
    return _tell_many(many, ids, as_json=as_json, said="will be sent once more: recrawl notify run")


@app.command()
def discard(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Forget dead letters.

    Examples:

        recrawl notify discard 17
        recrawl notify discard --all
    """
    ids = _chosen(letters, every_one=every_one)
    many = with_database(lambda db, _: notifications.discard(db, ids, at=datetime.now(UTC)))
    return _tell_many(many, ids, as_json=as_json, said="forgotten")


def _chosen(letters: list[int] | None, *, every_one: bool) -> list[int] | None:
    if every_one is bool(letters):
        raise BadInput("name the numbers of dead letters, or say --all")
    return None if every_one else letters


def _tell_many(many: int, ids: list[int] | None, *, as_json: bool, said: str) -> int:
    said = f"{format_count(many, 'dead letter')} {said}" if many else "No such dead letter"
    print_outcome({"letters": many}, said, as_json=as_json)
    if not as_json and many and ids is not None and many < len(set(ids)):
        remark(f"{len(set(ids)) - many} of these numbers are no dead letters: recrawl notify dead")
    return DONE if many or ids is None else PROBLEM
