"""Output of recrawl notify: subscriptions, missing secrets and failed deliveries."""

from datetime import datetime

from crawler.app.delivery import notifications
from crawler.cli.output import remark, say, show_facts
from crawler.cli.session import settings
from crawler.format.subscriptions import format_subscription
from crawler.format.values import format_bytes, format_count, format_undelivered, format_when


def show_subscription(subscription: notifications.Subscription, *, not_run_here: str, now: datetime) -> None:
    """Print a subscription and the state of its deliveries.

    not_run_here: why processes of this RECRAWL_HOME may not run its command; empty if they may.
    """
    say(f"{subscription.id}  {format_subscription(subscription)}")
    trouble = limit = ""
    delivered, dead = "nothing yet", subscription.dead
    paused_since = format_when(subscription.paused_at, now=now)
    if subscription.failures:
        resume_at = subscription.resume_at if subscription.paused_at is None else None
        again = f"; next attempt {format_when(max(resume_at, now), now=now)}" if resume_at is not None else ""
        trouble = f"{format_count(subscription.failures, 'failure')} in a row, {subscription.last_error}{again}"
    if subscription.max_bytes < notifications.MAX_BYTES:
        limit = f"at most {format_bytes(subscription.max_bytes)}, because the receiver rejected larger ones (413)"
    if subscription.delivered:
        last = format_when(subscription.delivered_at, now=now)
        delivered = f"{format_count(subscription.delivered, 'change')}, last {last}"
    show_facts(
        [
            ("   paused", f"since {paused_since}" if subscription.paused_at is not None else ""),
            ("   sent", delivered),
            ("   waiting", format_count(subscription.waiting, "change") if subscription.waiting else ""),
            ("   failing", trouble),
            ("   secrets", " ".join(notifications.list_missing_secrets(settings(), subscription))),
            ("   message size", limit),
            ("   not run here", not_run_here),
            ("   dead letters", f"{dead}: recrawl notify dead {subscription.id}" if dead else ""),
        ]
    )


def remark_missing_secrets(subscription: notifications.Subscription) -> None:
    """Print remarks about secrets of a subscription that its deliveries do not have."""
    for sentence in notifications.list_missing_secrets(settings(), subscription):
        remark(sentence)


def remark_failures(delivered: notifications.DeliveryStats) -> None:
    """Print remarks about failed deliveries."""
    for number, reason in sorted(delivered.failed.items()):
        remark(f"recrawl: {format_undelivered(number, reason)}; it will be tried again (recrawl notify list)")
    for number, reason in sorted(delivered.elsewhere.items()):
        remark(f"recrawl: subscription {number} is not delivered: {reason}")
