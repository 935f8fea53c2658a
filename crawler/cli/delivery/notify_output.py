"""Subscriptions as recrawl notify shows them, and what is said beside of those that were not told."""

from datetime import datetime

from crawler.app.delivery import notifications
from crawler.cli.output import pick, remark, say, show_facts
from crawler.cli.session import settings
from crawler.format.kinds import KIND_WORDS, NEWS
from crawler.format.values import format_bytes, format_count, format_undelivered, format_when


def format_subscription(found: notifications.Subscription) -> str:
    """What is told to whom, in a line."""
    wish = found.wish
    kinds = (
        "" if wish.condition is not None or wish.kinds == NEWS else ", ".join(sorted(KIND_WORDS[k] for k in wish.kinds))
    )
    where = f"{found.domain or 'all domains'}{f' {wish.pattern}' if wish.pattern else ''}"
    when = [f"together {wish.digest}" if wish.digest else "", f"nothing {wish.quiet}" if wish.quiet else ""]
    zone = wish.zone if wish.digest or wish.quiet else ""
    told = ", ".join(filter(None, (_format_condition(wish), kinds, *when, zone)))
    return f"{wish.target} is told of {where}{f': {told}' if told else ''}"


def _format_condition(wish: notifications.SubscriptionWish) -> str:
    """A condition in a few words."""
    if wish.condition is None:
        return ""
    kind = wish.condition.kind
    said = f"when the number is {kind} {wish.condition.bound:g}"
    if not kind.is_of_number:
        said = f"when {wish.condition.text!r} {kind}"
    return f"{said} in {wish.place}" if wish.place else said


def show_subscription(each: notifications.Subscription, *, elsewhere: str, now: datetime) -> None:
    """A subscription, and how it is going. elsewhere: why no process of this home may run its command, or empty."""
    say(f"{each.id}  {format_subscription(each)}")
    trouble = limit = ""
    told = "nothing yet"
    if each.failures:
        is_tried = each.resume_at is not None and each.paused_at is None
        again = f"; next try {format_when(each.resume_at, now=now)}" if is_tried else ""
        trouble = f"{format_count(each.failures, 'failure')} in a row, {each.last_error}{again}"
    if each.most_bytes < notifications.MOST_BYTES:
        limit = f"of {format_bytes(each.most_bytes)} at most, since larger ones were refused (413)"
    if each.delivered:
        told = f"{format_count(each.delivered, 'change')}, last {format_when(each.delivered_at, now=now)}"
    show_facts(
        [
            ("   paused", f"since {format_when(each.paused_at, now=now)}" if each.paused_at is not None else ""),
            ("   told", told),
            ("   waiting", format_count(each.waiting, "change") if each.waiting else ""),
            ("   trouble", trouble),
            ("   messages", limit),
            ("   not run here", elsewhere),
            ("   dead letters", f"{each.dead}: recrawl notify dead {each.id}" if each.dead else ""),
        ]
    )


def remark_missing_secrets(found: notifications.Subscription) -> None:
    """Say beside the answer what of a subscription's secrets a running stack does not know."""
    for why in notifications.missing_secrets(settings(), found):
        remark(why)


def describe(found: notifications.Subscription, *, elsewhere: str = "") -> dict[str, object]:
    """A subscription as JSON. elsewhere: as in show_subscription."""
    condition = found.wish.condition and {
        "kind": found.wish.condition.kind,
        "text": found.wish.condition.text or None,
        "bound": found.wish.condition.bound if found.wish.condition.kind.is_of_number else None,
    }
    optional = pick(found.wish, "pattern", "place", "digest", "quiet", "secret")
    return {
        "number": found.id,
        "domain": found.domain,
        **pick(found.wish, "target", "zone", "allow_private"),
        **{name: text or None for name, text in optional.items()},
        "kinds": sorted(found.wish.kinds),
        "condition": condition,
        "cursor": found.position,
        "told": found.delivered,
        "told_at": found.delivered_at,
        **pick(found, "made_at", "paused_at", "waiting", "dead", "failures", "failing_since", "most_bytes"),
        "next_try_at": found.resume_at,
        "last_error": found.last_error or None,
        "not_run_here": elsewhere or None,
    }


def remark_failures(done: notifications.Delivered) -> None:
    """Say beside the answer what was not taken."""
    for number, why in sorted(done.failed.items()):
        remark(f"recrawl: {format_undelivered(number, why)}; it is tried again (recrawl notify list)")
    for number, why in sorted(done.elsewhere.items()):
        remark(f"recrawl: subscription {number} is not told: {why}")
