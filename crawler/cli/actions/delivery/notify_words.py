"""Subscriptions and dead letters, in words and as JSON."""

from datetime import datetime
from pathlib import Path

from crawler.cli.output import remark, say, show_facts
from crawler.core.http import SecretSource, parse_reference
from crawler.format.kinds import KIND_WORDS, NEWS
from crawler.format.values import format_bytes, format_count, format_when
from crawler.notify import may_run, not_run_here, sealed_text
from crawler.runtime.keys.entrance import command_seal
from crawler.runtime.secrets import lacking_in_worker
from crawler.settings import settings
from crawler.store.subscriptions import MOST_BYTES, DeadLetter, Subscription, SubscriptionWish

ENV = f"{SecretSource.ENV}:"


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
            ("   messages", _size(each)),
            ("   not run here", elsewhere),
            ("   dead letters", f"{each.dead}: recrawl notify dead {each.id}" if each.dead else ""),
        ]
    )


def _size(each: Subscription) -> str:
    usual = each.most_bytes >= MOST_BYTES
    return "" if usual else f"of {format_bytes(each.most_bytes)} at most, since larger ones were refused (413)"


def elsewhere_of(found: Subscription, *, home: Path) -> str:
    """Why no process of a home may run a subscription's command; empty where one may, or where it has none."""
    if not sealed_text(found.wish.target) or may_run(found, command_seal(home)):
        return ""
    return not_run_here(found)


def remark_lacking(found: Subscription) -> None:
    """Say beside the answer what of a subscription's secrets a running stack does not know."""
    wish = found.wish
    for text in (wish.target, wish.secret):
        if text.startswith(ENV):
            why = lacking_in_worker(settings(), parse_reference(text))
            if why:
                remark(why[0].upper() + why[1:])


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
