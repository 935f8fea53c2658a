"""Subscriptions as recrawl notify shows them, and what is said beside of those that were not told."""

from datetime import datetime

from crawler.app.delivery import notifications
from crawler.cli.output import pick_fields, remark, say, show_facts
from crawler.cli.session import settings
from crawler.format.kinds import NEWS
from crawler.format.values import format_bytes, format_count, format_undelivered, format_when


def format_subscription(subscription: notifications.Subscription) -> str:
    """What is told to whom, in a line."""
    options = subscription.wish
    kinds = "" if options.condition is not None or options.kinds == NEWS else ", ".join(sorted(options.kinds))
    where = f"{subscription.domain or 'all domains'}{f' {options.pattern}' if options.pattern else ''}"
    when = [f"together {options.digest}" if options.digest else "", f"nothing {options.quiet}" if options.quiet else ""]
    zone = options.zone if options.digest or options.quiet else ""
    conditions = ", ".join(filter(None, (_format_condition(options), kinds, *when, zone)))
    return f"{options.target} is told of {where}{f': {conditions}' if conditions else ''}"


def _format_condition(options: notifications.SubscriptionOptions) -> str:
    """A condition in a few words."""
    if options.condition is None:
        return ""
    kind = options.condition.kind
    text = f"when the number is {kind} {options.condition.bound:g}"
    if not kind.is_numeric:
        text = f"when {options.condition.text!r} {kind}"
    return f"{text} in {options.place}" if options.place else text


def show_subscription(subscription: notifications.Subscription, *, elsewhere: str, now: datetime) -> None:
    """A subscription, and how it is going. elsewhere: why no process of this home may run its command, or empty."""
    say(f"{subscription.id}  {format_subscription(subscription)}")
    trouble = limit = ""
    delivered = "nothing yet"
    if subscription.failures:
        is_tried = subscription.resume_at is not None and subscription.paused_at is None
        again = f"; next try {format_when(subscription.resume_at, now=now)}" if is_tried else ""
        trouble = f"{format_count(subscription.failures, 'failure')} in a row, {subscription.last_error}{again}"
    if subscription.max_bytes < notifications.MAX_BYTES:
        limit = f"of {format_bytes(subscription.max_bytes)} at most, since larger ones were refused (413)"
    if subscription.delivered:
        delivered = (
            f"{format_count(subscription.delivered, 'change')}, last {format_when(subscription.delivered_at, now=now)}"
        )
    show_facts(
        [
            (
                "   paused",
                f"since {format_when(subscription.paused_at, now=now)}" if subscription.paused_at is not None else "",
            ),
            ("   told", delivered),
            ("   waiting", format_count(subscription.waiting, "change") if subscription.waiting else ""),
            ("   trouble", trouble),
            ("   messages", limit),
            ("   not run here", elsewhere),
            (
                "   dead letters",
                f"{subscription.dead}: recrawl notify dead {subscription.id}" if subscription.dead else "",
            ),
        ]
    )


def remark_missing_secrets(subscription: notifications.Subscription) -> None:
    """Say beside the answer what of a subscription's secrets a running stack does not know."""
    for sentence in notifications.list_missing_secrets(settings(), subscription):
        remark(sentence)


def describe_subscription(subscription: notifications.Subscription, *, elsewhere: str = "") -> dict[str, object]:
    """A subscription as JSON. elsewhere: as in show_subscription."""
    condition = subscription.wish.condition and {
        "kind": subscription.wish.condition.kind,
        "text": subscription.wish.condition.text or None,
        "bound": subscription.wish.condition.bound if subscription.wish.condition.kind.is_numeric else None,
    }
    optional = pick_fields(subscription.wish, "pattern", "place", "digest", "quiet", "secret")
    return {
        "number": subscription.id,
        "domain": subscription.domain,
        **pick_fields(subscription.wish, "target", "zone", "allow_private"),
        **{name: text or None for name, text in optional.items()},
        "kinds": sorted(subscription.wish.kinds),
        "condition": condition,
        "cursor": subscription.position,
        "told": subscription.delivered,
        "told_at": subscription.delivered_at,
        **pick_fields(
            subscription, "created_at", "paused_at", "waiting", "dead", "failures", "failing_since", "max_bytes"
        ),
        "next_try_at": subscription.resume_at,
        "last_error": subscription.last_error or None,
        "not_run_here": elsewhere or None,
    }


def remark_failures(delivered: notifications.DeliveryStats) -> None:
    """Say beside the answer what was not taken."""
    for number, reason in sorted(delivered.failed.items()):
        remark(f"recrawl: {format_undelivered(number, reason)}; it is tried again (recrawl notify list)")
    for number, reason in sorted(delivered.elsewhere.items()):
        remark(f"recrawl: subscription {number} is not told: {reason}")
