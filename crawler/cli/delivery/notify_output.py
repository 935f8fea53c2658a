"""recrawl notify: who is told of changes, and what could not be told."""

from datetime import UTC, datetime

from crawler.app.delivery import notifications
from crawler.app.delivery.notifications import (
    MOST_BYTES,
    MOST_LISTED,
    DeadLetter,
    Subscription,
    SubscriptionRequest,
    SubscriptionWish,
    headline,
)
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, print_outcome, remark, say, show, show_facts
from crawler.cli.session import settings, with_database
from crawler.format.kinds import KIND_WORDS, NEWS
from crawler.format.values import format_bytes, format_count, format_instant, format_when


def add(request: SubscriptionRequest, *, as_json: bool) -> None:
    made = with_database(lambda db, _: notifications.subscribe(db, settings(), request, at=datetime.now(UTC)))
    if as_json:
        print_json(facts(made))
        return
    say(f"Subscription {made.id}: {about(made)}")
    if not made.wish.secret and made.wish.target.startswith(("http://", "https://")):
        remark("Its messages are not signed: --secret env:NAME signs them")
    remark_missing_secrets(made)
    remark(f"Next: recrawl notify test {made.id}")


def list_all(*, as_json: bool) -> None:
    found = with_database(lambda db, _: notifications.list_subscriptions(db, settings()))
    if as_json:
        print_json({"subscriptions": [facts(each, elsewhere=elsewhere) for each, elsewhere in found]})
        return
    if not found:
        say("Nobody is told of changes: recrawl notify add TARGET")
    for n, (each, elsewhere) in enumerate(found):
        if n:
            say("")
        show_subscription(each, elsewhere=elsewhere, now=datetime.now(UTC))


def remove(number: int, *, as_json: bool) -> None:
    found = with_database(lambda db, _: notifications.unsubscribe(db, number))
    waiting = f"{format_count(found.waiting, 'change')} that waited" if found.waiting else ""
    dead = f"{format_count(found.dead, 'dead letter')}" if found.dead else ""
    lost = " and ".join(filter(None, (waiting, dead)))
    said = f"Subscription {number} is removed{f', and {lost} with it' if lost else ''}"
    print_outcome(facts(found), said, as_json=as_json)


def dead(number: int | None, *, as_json: bool) -> None:
    found = with_database(lambda db, _: notifications.list_dead_letters(db, number))
    if as_json:
        print_json({"dead": [letter(each) for each in found]})
    elif not found:
        say("No message was given up")
    else:
        show(
            ["number", "subscription", "since", "tries", "changes", "what", "why"],
            [
                (
                    *(str(each.id), str(each.subscription_id), format_instant(each.made_at), str(each.tries)),
                    *(str(len(each.changes)), headline(each.changes), each.error),
                )
                for each in found
            ],
            right=["number", "subscription", "tries", "changes"],
        )
        more = f"; these are the oldest {MOST_LISTED}" if len(found) == MOST_LISTED else ""
        remark(f"Next: recrawl notify redeliver NUMBER, or discard NUMBER{more}")


def redeliver(ids: list[int] | None, *, as_json: bool) -> int:
    many = with_database(lambda db, _: notifications.redeliver(db, ids, at=datetime.now(UTC)))
    return _tell_many(many, ids, as_json=as_json, said="will be sent once more: recrawl notify run")


def discard(ids: list[int] | None, *, as_json: bool) -> int:
    many = with_database(lambda db, _: notifications.discard(db, ids, at=datetime.now(UTC)))
    return _tell_many(many, ids, as_json=as_json, said="forgotten")


def _tell_many(many: int, ids: list[int] | None, *, as_json: bool, said: str) -> int:
    said = f"{format_count(many, 'dead letter')} {said}" if many else "No such dead letter"
    print_outcome({"letters": many}, said, as_json=as_json)
    if not as_json and many and ids is not None and many < len(set(ids)):
        remark(f"{len(set(ids)) - many} of these numbers are no dead letters: recrawl notify dead")
    return DONE if many or ids is None else PROBLEM


def about(found: Subscription) -> str:
    """What is told to whom, in a line."""
    wish = found.wish
    kinds = (
        "" if wish.condition is not None or wish.kinds == NEWS else ", ".join(sorted(KIND_WORDS[k] for k in wish.kinds))
    )
    where = f"{found.domain or 'all domains'}{f' {wish.pattern}' if wish.pattern else ''}"
    when = [f"together {wish.digest}" if wish.digest else "", f"nothing {wish.quiet}" if wish.quiet else ""]
    zone = wish.zone if wish.digest or wish.quiet else ""
    told = ", ".join(filter(None, (_shown(wish), kinds, *when, zone)))
    return f"{wish.target} is told of {where}{f': {told}' if told else ''}"


def _shown(wish: SubscriptionWish) -> str:
    """A condition in a few words."""
    if wish.condition is None:
        return ""
    about = f"{wish.condition.bound:g}" if wish.condition.kind.is_of_number else repr(wish.condition.text)
    said = f"when {about} {wish.condition.kind}"
    if wish.condition.kind.is_of_number:
        said = f"when the number is {wish.condition.kind} {about}"
    return f"{said} in {wish.place}" if wish.place else said


def show_subscription(each: Subscription, *, elsewhere: str, now: datetime) -> None:
    """A subscription, and how it is going. elsewhere: why no process of this home may run its command, or empty."""
    say(f"{each.id}  {about(each)}")
    trouble = ""
    if each.failures:
        is_tried = each.resume_at is not None and each.paused_at is None
        again = f"; next try {format_when(each.resume_at, now=now)}" if is_tried else ""
        trouble = f"{format_count(each.failures, 'failure')} in a row, {each.last_error}{again}"
    limit = ""
    if each.most_bytes < MOST_BYTES:
        limit = f"of {format_bytes(each.most_bytes)} at most, since larger ones were refused (413)"
    told = (
        f"{format_count(each.delivered, 'change')}, last {format_when(each.delivered_at, now=now)}"
        if each.delivered
        else ""
    )
    show_facts(
        [
            ("   paused", f"since {format_when(each.paused_at, now=now)}" if each.paused_at is not None else ""),
            ("   told", told or "nothing yet"),
            ("   waiting", format_count(each.waiting, "change") if each.waiting else ""),
            ("   trouble", trouble),
            ("   messages", limit),
            ("   not run here", elsewhere),
            ("   dead letters", f"{each.dead}: recrawl notify dead {each.id}" if each.dead else ""),
        ]
    )


def remark_missing_secrets(found: Subscription) -> None:
    """Say beside the answer what of a subscription's secrets a running stack does not know."""
    for why in notifications.missing_secrets(settings(), found):
        remark(why)


def facts(found: Subscription, *, elsewhere: str = "") -> dict[str, object]:
    """A subscription as JSON. elsewhere: as in show_subscription."""
    wish, condition = found.wish, found.wish.condition
    return {
        "number": found.id,
        "target": wish.target,
        "domain": found.domain,
        "pattern": wish.pattern or None,
        "kinds": sorted(wish.kinds),
        "condition": None
        if condition is None
        else {
            "kind": condition.kind,
            "text": condition.text or None,
            "bound": condition.bound if condition.kind.is_of_number else None,
        },
        "place": wish.place or None,
        "digest": wish.digest or None,
        "quiet": wish.quiet or None,
        "zone": wish.zone,
        "secret": wish.secret or None,
        "allow_private": wish.allow_private,
        "made_at": found.made_at,
        "paused_at": found.paused_at,
        "cursor": found.position,
        "told": found.delivered,
        "told_at": found.delivered_at,
        "waiting": found.waiting,
        "dead": found.dead,
        "failures": found.failures,
        "failing_since": found.failing_since,
        "next_try_at": found.resume_at,
        "last_error": found.last_error or None,
        "most_bytes": found.most_bytes,
        "not_run_here": elsewhere or None,
    }


def letter(each: DeadLetter) -> dict[str, object]:
    """A dead letter as JSON."""
    return {
        "number": each.id,
        "subscription": each.subscription_id,
        "target": each.target,
        "since": each.made_at,
        "tries": each.tries,
        "why": each.error,
        "changes": list(each.changes),
    }
