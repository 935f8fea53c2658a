"""Whether this process may run a subscription's command, and what is said where nobody runs it."""

from collections.abc import Callable
from datetime import UTC, timedelta

from crawler.notify.context import DeliveryContext
from crawler.notify.target import sealed_text
from crawler.store import subscriptions
from crawler.store.subscriptions import Subscription

ANOTHER_HOME = "its command was added in another home (RECRAWL_HOME), or with a key that is no more"
NEXT_STEP = "to run it here, recrawl notify remove {}, and recrawl notify add it again"
# A stack runs it every five minutes where it may, and tries one that fails every hour at least.
PATIENCE = timedelta(hours=2)


def may_run(subscription: Subscription, seal: Callable[[str], str] | None) -> bool:
    """Whether this process may deliver: a command is run by the user of the home in which it was added."""
    text = sealed_text(subscription.wish.target)
    return not text or (seal is not None and seal(text) == subscription.wish.seal)


def not_run_here(subscription: Subscription) -> str:
    """Why this process may not run a subscription's command, and the next step."""
    return f"{ANOTHER_HOME}: {NEXT_STEP.format(subscription.id)}"


async def why_unserved(context: DeliveryContext, subscription: Subscription) -> str:
    """Why a command that this process may not run is not told; empty while its own home may well be doing that.

    Of several homes one may run it. Nothing is written down here, so that no other overwrites how it does there.
    """
    now = context.now()
    found = await subscriptions.states(context.db, subscription.id)
    since = found[0].untold_since(at=now) if found else None
    if since is None:
        return ""
    since = max(since, found[0].next_try_at or since)  # where it fails it is run all the same
    if now - since < PATIENCE:
        return ""
    until = f"{since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{ANOTHER_HOME}, and nobody has run it since {until}: {NEXT_STEP.format(subscription.id)}"
