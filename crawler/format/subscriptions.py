"""Subscriptions to changes, in words."""

from crawler.core.alert.condition import ConditionKind
from crawler.format.kinds import NEWS
from crawler.format.values import format_share
from crawler.store.subscriptions import Subscription, SubscriptionOptions


def format_subscription(subscription: Subscription) -> str:
    """Describe in one line which changes a subscription sends, and to which target."""
    return f"{subscription.options.target} receives {format_selection(subscription)}"


def format_selection(subscription: Subscription, *, with_kinds: bool = True) -> str:
    """Describe which changes a subscription sends, and when."""
    options = subscription.options
    is_default = bool(options.value_name) or options.condition is not None or options.kinds == NEWS
    kinds = "" if is_default or not with_kinds else ", ".join(sorted(options.kinds))
    domains = f"domains with the tag {options.tag}" if options.tag else "all domains"
    where = options.page or (options.prefix and f"{options.prefix}*") or subscription.domain or domains
    where = f"{where} {options.pattern}" if options.pattern else where
    share = f"at least {format_share(options.min_magnitude)} of the page" if options.min_magnitude is not None else ""
    digest = f"digest {options.digest}" if options.digest else ""
    quiet = f"quiet hours {options.quiet}" if options.quiet else ""
    zone = options.zone if digest or quiet else ""
    value = f"only the value {options.value_name}" if options.value_name and options.condition is None else ""
    conditions = ", ".join(filter(None, (value, _format_condition(options), kinds, share, digest, quiet, zone)))
    return f"changes of {where}{f': {conditions}' if conditions else ''}"


def _format_condition(options: SubscriptionOptions) -> str:
    """Describe the condition of a subscription, or return an empty string."""
    if options.condition is None:
        return ""
    kind, text = options.condition.kind, f"when {options.condition.text!r} {options.condition.kind}"
    if kind is ConditionKind.DIFFERS:
        text = f"when {options.value_name} differs by {format_share(options.condition.bound)}"
    elif kind.is_numeric:
        text = f"when {options.value_name or 'the number'} is {kind} {options.condition.bound:.15g}"
    return f"{text} in {options.place}" if options.place else text
