"""recrawl notify: manage subscriptions, send notifications, and handle those that failed."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import typer

from crawler.cli.lazy import notifications, notify_output
from crawler.cli.options import KINDS_HELP, At, Json, Tag, argument, flag, option
from crawler.cli.output import print_json, print_json_line, print_listing, print_outcome, remark, say
from crawler.cli.session import DONE, PROBLEM, Interrupts, run_on_database, settings
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.format.values import format_count, format_delivered, format_instant, format_when

HELP = "Send notifications about changes by email, chat, webhook or your own program."
app = typer.Typer(no_args_is_help=True, help=HELP)

T = TypeVar("T")
Number = Annotated[int, argument("NUMBER", "The number of a subscription; see recrawl notify list.", min=1)]
Letters = Annotated[
    list[int] | None, argument("[NUMBER]...", "The numbers of dead letters; see recrawl notify dead.", min=1)
]
EveryOne = Annotated[bool, flag("--all", "All dead letters.")]


Target = Annotated[
    str,
    argument(
        "TARGET", "A webhook (https://...), an Apprise URL without secrets, command:PROGRAM, env:NAME or block:NAME."
    ),
]
NewTarget = Annotated[str | None, option("TARGET", "Another target.", "--target")]
DomainName = Annotated[str | None, option("DOMAIN", "Only changes of this domain. Default: all.")]
PageFilter = Annotated[str | None, option("URL", "Only changes of this page.")]
Prefix = Annotated[
    str | None, option("URL", "Only pages whose URL starts with this, such as 'https://docs.example.com/guide/'.")
]
Pattern = Annotated[str | None, option("PATTERN", "Only pages that match, such as '/docs/', '*.html$' or 're:/20../'.")]
Kind = Annotated[
    str | None,
    option(
        "KINDS",
        f"{KINDS_HELP} Default: all except added and hint. With --match, --lacks, --above or --below: added, "
        "changed, moved, gone and restored.",
    ),
]
MinMagnitude = Annotated[
    str | None,
    option(
        "SHARE",
        "Only changes of at least this share of a page, such as 5%. Changes whose size is not known are sent, too.",
    ),
]
Match = Annotated[str | None, option("TEXT", "Notify when this text appears. re:REGEX for a regular expression.")]
Lacks = Annotated[str | None, option("TEXT", "Notify when this text is no longer present.")]
Above = Annotated[
    float | None, option("N", "Notify when the number of --value or in the element of --selector rises above this.")
]
Below = Annotated[
    float | None, option("N", "Notify when the number of --value or in the element of --selector falls below this.")
]
ChangeBy = Annotated[
    str | None,
    option("SHARE", "Notify when the number of --value differs by this, such as 5%, from the last notified number."),
]
Value = Annotated[
    str | None, option("NAME", "Only changes of this value, which rules read (recrawl rules add --value).")
]
Selector = Annotated[
    str | None,
    option(
        "SELECTOR",
        "The element to check: a CSS selector, or xpath:XPATH. Default: the whole page. --above and --below need "
        "it, unless a rule of the domain watches elements (recrawl rules add --watch).",
    ),
]
Digest = Annotated[
    str | None,
    option("WHEN", "Send one message per period: 30m, 1h, daily (08:00), daily@07:30 or weekly@fri-07:30."),
]
QuietHours = Annotated[
    str | None,
    option(
        "HOURS",
        "Quiet hours, such as 22-07 or 21:30-06:45. Changes found meanwhile are sent in one message afterwards.",
    ),
]
TimeZone = Annotated[
    str | None,
    option(
        "ZONE", "The time zone of digests and quiet hours. Default: that of the crawl hours of the domain, else UTC."
    ),
]
Secret = Annotated[str | None, option("REFERENCE", "Sign webhooks with the key in env:NAME or block:NAME.")]
PRIVATE_HELP = "Allow a receiver on this machine or in a private network."


@app.command()
def add(
    target: Target,
    domain: DomainName = None,
    tag: Tag = None,
    page: PageFilter = None,
    prefix: Prefix = None,
    pattern: Pattern = None,
    kind: Kind = None,
    min_magnitude: MinMagnitude = None,
    match: Match = None,
    lacks: Lacks = None,
    above: Above = None,
    below: Below = None,
    change_by: ChangeBy = None,
    selector: Selector = None,
    value: Value = None,
    digest: Digest = None,
    quiet_hours: QuietHours = None,
    time_zone: TimeZone = None,
    secret: Secret = None,
    allow_private: Annotated[bool, flag("--allow-private", PRIVATE_HELP)] = False,
    as_json: Json = False,
) -> None:
    """Add a subscription: send notifications about changes from now on.

    Email and chat messages are sent with Apprise. Do not type a URL that contains a password or token: store the whole
    URL in an environment variable or a Prefect secret block, and pass env:NAME or block:NAME.

    With --match, --lacks, --above or --below, a notification is sent when the condition becomes true for a page. Text
    that is known to be noise is not checked. With --value, only changes of this value are notified.

    A webhook receives JSON; with --secret, it is signed as in Standard Webhooks. A program receives the same JSON on
    stdin. The program runs as your user, on this machine only.

    Examples:

        recrawl notify add env:TELEGRAM --domain docs.example.com
        recrawl notify add env:TELEGRAM --tag news
        recrawl notify add 'mailto://mail.example.com?from=me@example.com&to=me@example.com' --kind added,gone
        recrawl notify add https://ci.example.com/hook --secret env:HOOK_KEY --pattern /api/
        recrawl notify add env:MAIL --domain shop.example.com --pattern /kettle --selector .price --below 40
        recrawl notify add env:MAIL --domain shop.example.com --value price --change-by 5%
        recrawl notify add 'command:/usr/local/bin/rebuild --now' --domain docs.example.com --quiet-hours 22-07
    """
    request = notifications.SubscriptionRequest(
        target=target,
        domain=domain,
        tag=tag,
        page=page,
        prefix=prefix,
        pattern=pattern,
        kinds=kind or None,
        min_magnitude=min_magnitude,
        conditions={"appears": match, "goes": lacks, "above": above, "below": below, "differs": change_by},
        place=selector,
        value_name=value,
        digest=digest,
        quiet=quiet_hours,
        zone=time_zone,
        secret=secret,
        allow_private=allow_private,
        may_run_commands=True,
    )
    subscription = run_on_database(lambda db, _: notifications.subscribe(db, request, at=datetime.now(UTC)))
    if as_json:
        print_json(notifications.describe_subscription(settings(), subscription))
        return
    say(f"Subscription {subscription.id}: {notify_output.format_subscription(subscription)}")
    if not subscription.options.secret and subscription.options.target.startswith(("http://", "https://")):
        remark("Its messages are not signed: use --secret env:NAME to sign them")
    notify_output.remark_missing_secrets(subscription)
    remark(f"Next: recrawl notify test {subscription.id}")


@app.command("set")
def change(
    number: Number,
    target: NewTarget = None,
    domain: DomainName = None,
    tag: Tag = None,
    page: PageFilter = None,
    prefix: Prefix = None,
    pattern: Pattern = None,
    kind: Kind = None,
    min_magnitude: MinMagnitude = None,
    match: Match = None,
    lacks: Lacks = None,
    above: Above = None,
    below: Below = None,
    change_by: ChangeBy = None,
    selector: Selector = None,
    value: Value = None,
    digest: Digest = None,
    quiet_hours: QuietHours = None,
    time_zone: TimeZone = None,
    secret: Secret = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private/--no-allow-private", help=PRIVATE_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Change a subscription. Options that are not given stay as they are; an empty text removes an option.

    A condition replaces the one before. The new options apply to changes that are not waiting yet; those that wait are
    sent to the new target.

    Examples:

        recrawl notify set 3 --kind changed,failing,recovered --min-magnitude 5%
        recrawl notify set 3 --digest '' --quiet-hours 22-07
    """
    given: dict[str, object] = {"target": target, "page": page, "prefix": prefix, "pattern": pattern, "kinds": kind}
    given |= {"min_magnitude": min_magnitude, "place": selector, "value_name": value, "digest": digest}
    given |= {"quiet": quiet_hours, "zone": time_zone, "secret": secret, "allow_private": allow_private}
    given = {name: value for name, value in given.items() if value is not None} | {"may_run_commands": True}
    if kind == "":
        given["kinds"] = None
    if domain is not None or page or prefix or tag:
        given |= {"domain": domain, "tag": tag}  # one replaces the other; a page or a prefix also names its domain
    elif tag is not None:
        given["tag"] = None
    conditions = {"appears": match, "goes": lacks, "above": above, "below": below, "differs": change_by}
    if any(value is not None for value in conditions.values()):
        given["conditions"] = conditions
    subscription = run_on_database(
        lambda db, _: notifications.change_subscription(db, number, given, at=datetime.now(UTC))
    )
    message = f"Subscription {number}: {notify_output.format_subscription(subscription)}"
    print_outcome(notifications.describe_subscription(settings(), subscription), message, as_json=as_json)
    if not as_json:
        notify_output.remark_missing_secrets(subscription)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the subscriptions and the state of their deliveries.

    Examples:

        recrawl notify list
        recrawl notify list --json
    """
    listed = run_on_database(lambda db, _: notifications.list_subscriptions(db))
    if as_json:
        described = [notifications.describe_subscription(settings(), each) for each in listed]
        print_json({"subscriptions": described})
        return
    if not listed:
        say("There are no subscriptions: recrawl notify add TARGET")
    for n, each in enumerate(listed):
        if n:
            say("")
        not_run_here = notifications.explain_not_run(settings(), each)
        notify_output.show_subscription(each, not_run_here=not_run_here, now=datetime.now(UTC))


@app.command()
def remove(number: Number, as_json: Json = False) -> None:
    """Remove a subscription with its waiting changes and its dead letters.

    Examples:

        recrawl notify remove 3
    """
    removed = run_on_database(lambda db, _: notifications.unsubscribe(db, number))
    waiting = format_count(removed.waiting, "waiting change") if removed.waiting else ""
    dead = format_count(removed.dead, "dead letter") if removed.dead else ""
    lost = " and ".join(filter(None, (waiting, dead)))
    message = f"Subscription {number} is removed{f' with {lost}' if lost else ''}"
    print_outcome(notifications.describe_subscription(settings(), removed), message, as_json=as_json)


@app.command()
def pause(number: Number, as_json: Json = False) -> None:
    """Pause a subscription. Unsent changes found before are kept, and sent when you resume the subscription.

    Examples:

        recrawl notify pause 3
    """
    is_new, subscription = _run_delivery(
        lambda db, interrupts: notifications.pause(db, number, at=datetime.now(UTC), stop=interrupts.stop)
    )
    waiting = f"; {format_count(subscription.waiting, 'change')} waiting" if subscription.waiting else ""
    already = "" if is_new else " already"
    message = f"Subscription {number} is{already} paused{waiting}. To resume: recrawl notify resume {number}"
    print_outcome(notifications.describe_subscription(settings(), subscription), message, as_json=as_json)


@app.command()
def resume(
    number: Number,
    include_missed: Annotated[
        bool, flag("--include-missed", "Also send the changes found during the pause. Default: skip them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Resume a paused subscription: send the changes that were waiting, and those found from now on.

    Examples:

        recrawl notify resume 3
        recrawl notify resume 3 --include-missed
    """
    was_paused, subscription = _run_delivery(
        lambda db, interrupts: notifications.resume(
            db, number, missed=include_missed, at=datetime.now(UTC), stop=interrupts.stop
        )
    )
    since = "the changes found during the pause" if include_missed else "changes found from now on"
    waiting = f" {format_count(subscription.waiting, 'waiting change')} and" if subscription.waiting else ""
    message = f"is resumed: it receives{waiting} {since}" if was_paused else "is not paused"
    document = notifications.describe_subscription(settings(), subscription)
    print_outcome(document, f"Subscription {number} {message}", as_json=as_json)


@app.command("test")
def send_test(number: Number, as_json: Json = False) -> int:
    """Send a test message now. If it succeeds, the waiting changes of the subscription are due immediately.

    Examples:

        recrawl notify test 3
    """
    subscription, error = run_on_database(lambda db, _: notifications.send_test_notification(db, number))
    if as_json:
        print_json({"subscription": number, "is_sent": not error, "error": error or None})
    elif error:
        remark(f"recrawl: the test message to {subscription.options.target} failed: {error}")
    else:
        say(f"A test message was sent to {subscription.options.target}")
        notify_output.remark_missing_secrets(subscription)
    return PROBLEM if error else DONE


@app.command()
def run(
    number: Annotated[int | None, argument("[NUMBER]", "One subscription. Default: all.", min=1)] = None,
    follow: Annotated[
        bool, flag("--follow", "Keep running and send changes as they are found, until Ctrl-C.", short="-f")
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Send the notifications that are due now.

    The local stack does this every five minutes, and `recrawl crawl` when it ends. A failed message is tried again
    after 30 s, then at growing intervals of up to one hour. After 16 attempts or three days it becomes a dead letter. A
    message is sent twice only if the process is killed while sending.

    Examples:

        recrawl notify run
        recrawl notify run --follow
    """
    if follow and at is not None:
        raise BadInput("--follow uses the current time and cannot be combined with --at")
    if follow:
        return _follow_deliveries(number, as_json=as_json)
    clock = Clock.from_instant(at)

    async def work(
        db: "notifications.AppDatabase", interrupts: Interrupts
    ) -> "tuple[notifications.DeliveryStats, list[notifications.DeferredDelivery]]":
        delivered = await notifications.deliver_due(db, clock=clock, number=number, stop=interrupts.stop)
        return delivered, await notifications.list_deferred(db, delivered, number=number, at=clock.now())

    delivered, waiting = _run_delivery(work)
    if as_json:
        print_json(delivered.as_dict() | {"waiting": waiting})
    elif delivered.messages:
        say(format_delivered(delivered.changes, delivered.messages))
    else:
        say("Nothing was sent" if delivered.undelivered or waiting else "Nothing is due")
    if not as_json:
        notify_output.remark_failures(delivered)
        for each in waiting:
            until, changes = format_when(each.until, now=clock.now()), format_count(each.changes, "change")
            remedy = f"(to try now: recrawl notify test {each.subscription})"
            remark(f"recrawl: subscription {each.subscription} waits until {until}, {changes}: {each.reason} {remedy}")
    return PROBLEM if delivered.undelivered else DONE


def _follow_deliveries(number: int | None, *, as_json: bool) -> int:
    """Send changes as they are found, until interrupted."""

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
            on_outage=lambda error: remark(f"{error}; trying again"),
        )
        return interrupts.exit_code

    return _run_delivery(work)


@app.command()
def dead(
    number: Annotated[int | None, argument("[NUMBER]", "One subscription. Default: all.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """List the dead letters: messages that could not be delivered, and the last error of each.

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
            "attempts": str(each.tries),
            "changes": str(len(each.changes)),
            "headline": notifications.format_headline(each.changes),
            "error": each.error,
        }
        for each in dead_letters
    )
    letters = [
        {"number": each.id, "subscription": each.subscription_id, "target": each.target, "since": each.created_at}
        | {"attempts": each.tries, "error": each.error, "changes": each.changes}
        for each in dead_letters
    ]
    right = ("number", "subscription", "attempts", "changes")
    if print_listing({"dead_letters": letters}, rows, right=right, empty="There are no dead letters", as_json=as_json):
        count = notifications.MAX_LISTED
        more = f"; only the oldest {count} are listed" if len(dead_letters) == count else ""
        remark(f"Next: recrawl notify redeliver NUMBER, or discard NUMBER{more}")


@app.command()
def redeliver(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Queue dead letters to be sent again, by the next `recrawl notify run` or by the local stack.

    Other waiting messages for the same receivers are then tried at once, too.

    Examples:

        recrawl notify redeliver 17 18
        recrawl notify redeliver --all
    """
    ids = _select_letters(letters, every_one=every_one)
    count = run_on_database(lambda db, _: notifications.redeliver_letters(db, ids, at=datetime.now(UTC)))
    return _print_count(count, ids, as_json=as_json, message="will be sent again: recrawl notify run")


@app.command()
def discard(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Delete dead letters.

    Examples:

        recrawl notify discard 17
        recrawl notify discard --all
    """
    ids = _select_letters(letters, every_one=every_one)
    count = run_on_database(lambda db, _: notifications.discard_letters(db, ids, at=datetime.now(UTC)))
    return _print_count(count, ids, as_json=as_json, message="deleted")


def _run_delivery(work: "Callable[[notifications.AppDatabase, Interrupts], Awaitable[T]]") -> T:
    """Run work with enough connections to notify several targets at once. After a signal, the work ends early."""
    return run_on_database(work, connections=6, patient=True)


def _select_letters(letters: list[int] | None, *, every_one: bool) -> list[int] | None:
    if every_one is bool(letters):
        raise BadInput("give the numbers of dead letters, or --all")
    return None if every_one else letters


def _print_count(count: int, ids: list[int] | None, *, as_json: bool, message: str) -> int:
    message = f"{format_count(count, 'dead letter')} {message}" if count else "No such dead letter"
    print_outcome({"dead_letters": count}, message, as_json=as_json)
    if not as_json and count and ids is not None and count < len(set(ids)):
        remark(f"{len(set(ids)) - count} of these numbers are not dead letters: recrawl notify dead")
    return DONE if count or ids is None else PROBLEM
