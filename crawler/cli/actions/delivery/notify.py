"""recrawl notify: who is told of changes, and what could not be told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app.registration import domain_named
from crawler.cli.actions.delivery.notify_run import numbered
from crawler.cli.actions.delivery.notify_words import (
    about,
    elsewhere_of,
    facts,
    letter,
    remark_lacking,
    show_subscription,
)
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.core.alert import Condition, ConditionKind
from crawler.core.domain import Domain
from crawler.core.http import parse_reference, pattern_of, refusals_of
from crawler.core.page import View
from crawler.errors import BadInput
from crawler.format.kinds import NEWS, parse_kinds
from crawler.format.values import format_count, format_instant
from crawler.notify import checked_target, headline, keys_of, sealed_text
from crawler.runtime.keys.entrance import command_seal
from crawler.runtime.secrets import secret_of_variable
from crawler.settings import settings
from crawler.store import report, subscriptions
from crawler.store.database import Database
from crawler.store.report import EventKind
from crawler.store.subscriptions import MOST_LISTED, DeadLetter, Subscription, SubscriptionWish

OF_STANDING = frozenset({EventKind.FIRST, EventKind.CHANGED, EventKind.MOVED, EventKind.GONE, EventKind.BACK})


@dataclass(frozen=True, slots=True)
class SubscriptionAsked:
    """A subscription as it was typed. conditions: texts and bounds by their ConditionKind, None where not given."""

    target: str
    domain: str | None
    pattern: str | None
    kinds: str | None
    conditions: Mapping[str, str | float | None]
    place: str | None
    digest: str | None
    quiet: str | None
    zone: str | None
    secret: str | None
    allow_private: bool


def add(asked: SubscriptionAsked, *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> Subscription:
        domain = await domain_named(db, asked.domain) if asked.domain is not None else None
        wish = _wish(asked, domain)
        now = datetime.now(UTC)
        await report.stamp_feed(db, at=now)  # what was found before is no news
        return await subscriptions.add(db, wish, at=now)

    made = with_database(work)
    if as_json:
        print_json(facts(made))
        return DONE
    say(f"Subscription {made.id}: {about(made)}")
    if not made.wish.secret and made.wish.target.startswith(("http://", "https://")):
        remark("Its messages are not signed: --secret env:NAME signs them")
    remark_lacking(made)
    remark(f"Next: recrawl notify test {made.id}")
    return DONE


def _wish(asked: SubscriptionAsked, domain: Domain | None) -> SubscriptionWish:
    """What was typed as a wish. Raises BadInput."""
    target = checked_target(asked.target, allow_private=asked.allow_private)
    sealed = sealed_text(target)
    try:
        condition = _condition(asked.conditions)
        if asked.pattern is not None:
            pattern_of(asked.pattern)
        _ = View(watch=(asked.place,)) if asked.place is not None else None
        refused = refusals_of((asked.pattern,)) if asked.pattern is not None else ()
        wish = SubscriptionWish(
            target=target,
            kinds=parse_kinds(asked.kinds) if asked.kinds is not None else (OF_STANDING if condition else NEWS),
            secret=_checked_secret(asked.secret) if asked.secret is not None else "",
            seal=command_seal(settings().home.resolve())(sealed) if sealed else "",
            allow_private=asked.allow_private,
            domain_id=domain.id if domain is not None else None,
            pattern=asked.pattern or "",
            place=asked.place or "",
            condition=condition,
            digest=asked.digest or "",
            quiet=asked.quiet or "",
            zone=asked.zone or (domain.hours.zone if domain is not None else "UTC"),
        )
        _ = wish.times
    except ValueError as error:
        raise BadInput(str(error)) from error
    if refused:
        raise BadInput(refused[0])
    if asked.place is not None and condition is None:
        raise BadInput("--place names what --match, --lacks, --above or --below is about; none of them is given")
    if condition is not None and condition.kind.is_of_number and not (wish.place or _is_watched(domain)):
        raise BadInput("which number of a page is meant? Name the piece that has it: --place SELECTOR")
    return wish


def _checked_secret(text: str) -> str:
    """Return a reference to a signing key as it is stored. Raises ValueError where the key is here and is none."""
    reference = parse_reference(text)
    key = secret_of_variable(reference)
    try:
        _ = keys_of(key) if key is not None else ()
    except ValueError as error:
        raise ValueError(f"{reference} holds {error}") from error
    return str(reference)


def _is_watched(domain: Domain | None) -> bool:
    """Whether its user's rules leave a piece of some pages."""
    return domain is not None and any(rule.view.watch for rule in domain.settings.rules)


def _condition(given: Mapping[str, str | float | None]) -> Condition | None:
    said = {ConditionKind(name): value for name, value in given.items() if value is not None}
    if len(said) > 1:
        raise BadInput("one of --match, --lacks, --above and --below at a time; another subscription may have another")
    for kind, value in said.items():
        if isinstance(value, str):
            return Condition(kind=kind, text=value)
        if value is not None:
            return Condition(kind=kind, bound=value)
    return None


def list_all(*, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[Subscription]:
        return await subscriptions.every(db)

    found, home = with_database(work), settings().home.resolve()
    if as_json:
        print_json({"subscriptions": [facts(each, elsewhere=elsewhere_of(each, home=home)) for each in found]})
        return DONE
    if not found:
        say("Nobody is told of changes: recrawl notify add TARGET")
    for n, each in enumerate(found):
        if n:
            say("")
        show_subscription(each, elsewhere=elsewhere_of(each, home=home), now=datetime.now(UTC))
    return DONE


def remove(number: int, *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> Subscription:
        found = await numbered(db, number)
        await subscriptions.remove(db, number)
        return found

    found = with_database(work)
    if as_json:
        print_json(facts(found))
    else:
        say(f"Subscription {number} is removed{_lost(found)}")
    return DONE


def _lost(found: Subscription) -> str:
    waiting = f"{format_count(found.waiting, 'change')} that waited" if found.waiting else ""
    dead = f"{format_count(found.dead, 'dead letter')}" if found.dead else ""
    lost = " and ".join(filter(None, (waiting, dead)))
    return f", and {lost} with it" if lost else ""


def dead(number: int | None, *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[DeadLetter]:
        if number is not None:
            await numbered(db, number)
        return await subscriptions.dead_letters(db, number)

    found = with_database(work)
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
    return DONE


def redeliver(ids: list[int] | None, *, at: datetime, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> int:
        return await subscriptions.redeliver(db, ids, at=at)

    many = with_database(work)
    _tell_many(many, ids, as_json=as_json, said="will be sent once more: recrawl notify run")
    return DONE if many or ids is None else PROBLEM


def discard(ids: list[int] | None, *, at: datetime, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> int:
        return await subscriptions.discard(db, ids, at=at)

    many = with_database(work)
    _tell_many(many, ids, as_json=as_json, said="forgotten")
    return DONE if many or ids is None else PROBLEM


def _tell_many(many: int, ids: list[int] | None, *, as_json: bool, said: str) -> None:
    if as_json:
        print_json({"letters": many})
        return
    say(f"{format_count(many, 'dead letter')} {said}" if many else "No such dead letter")
    if many and ids is not None and many < len(set(ids)):
        remark(f"{len(set(ids)) - many} of these numbers are no dead letters: recrawl notify dead")
