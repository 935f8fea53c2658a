"""recrawl domains: registering, listing, changing, pausing, removing."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import typer

from crawler.app.registration import (
    authority_in,
    domain_named,
    home_seeds,
    require_not_before_last_visit,
    scope_of,
    url_of,
)
from crawler.app.status import Wait, format_wait, why_not_now
from crawler.cli.actions.domains.register import described, remark_missing_secrets
from crawler.cli.actions.domains.rules import shown_rule
from crawler.cli.actions.upkeep.prune import shown_storage
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say, show, show_facts
from crawler.cli.session import Interrupts, with_database
from crawler.cli.settings_options import SettingsPatch, facts_of, without
from crawler.core.budget import closing, opening, speed_at
from crawler.core.domain import Domain, DomainStatus
from crawler.core.domain_settings import DomainSettings
from crawler.core.http import Url
from crawler.core.opic import Order, Ordering
from crawler.errors import BadInput
from crawler.format.values import format_bytes, format_instant, format_when
from crawler.plugins import require_policy
from crawler.prune import foretold
from crawler.settings import settings
from crawler.store import domains, record
from crawler.store.database import Database
from crawler.store.retention import SizeEstimate

PAGE_COUNTS = ("new", "known", "gone", "dead_links", "moved", "refused", "withheld")  # of domains.Listed


def list_all(*, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[domains.Listed]:
        return await domains.every(db)

    found = with_database(work)
    if as_json:
        print_json(
            {
                "domains": [
                    described(listed.domain)
                    | {
                        "pages": {name: getattr(listed, name) for name in PAGE_COUNTS},
                        "wake_at": listed.wake_at,
                        "last_visit_at": listed.last_visit_at,
                        "holder": listed.holder,
                        "importance": listed.importance,
                    }
                    for listed in found
                ]
            }
        )
    elif not found:
        say("No domain is registered: recrawl domains add URL")
    else:
        numbers = ["never fetched", "looked at", "gone", "dead links"]
        show(
            ["domain", "state", "importance", *numbers, "last visit", "next"],
            [
                (
                    listed.domain.authority,
                    _state(listed, at=datetime.now(UTC)),
                    f"{listed.importance:.2f}",
                    str(listed.new),
                    str(listed.known),
                    str(listed.gone),
                    str(listed.dead_links),
                    format_instant(listed.last_visit_at),
                    format_instant(listed.wake_at) if listed.wake_at else "-",
                )
                for listed in found
            ],
            right=["importance", *numbers],
        )
    return DONE


def _state(listed: domains.Listed, *, at: datetime) -> str:
    if listed.domain.paused:
        return "paused"
    if listed.holder:
        return "being crawled"
    if is_closed(listed.domain, at=at):
        return "closed"
    return "left alone" if listed.resume_at is not None and listed.resume_at > at else "active"


def show_one(text: str, *, at: datetime | None, as_json: bool) -> int:
    instant = at or datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> tuple[Domain, DomainStatus, Wait | None, SizeEstimate]:
        domain = await domain_named(db, text)
        if at is not None:
            await require_not_before_last_visit(db, [domain], at)
        status = await domains.status_of(db, domain, at=instant)
        return domain, status, await why_not_now(db, domain, settings(), at=instant), await foretold(db, domain)

    domain, status, wait, storage = with_database(work)
    if as_json:
        print_json(described(domain) | {"status": status, "not_now": wait, "storage": storage})
        return DONE
    show_facts(
        [
            ("Domain", domain.authority),
            ("Root", domain.root),
            ("Other names", ", ".join(sorted(domain.aliases))),
            ("Registered", format_instant(domain.registered_at)),
            *_facts_of_all(domain.settings),
            ("Rules", "\n".join(map(shown_rule, domain.settings.rules))),
            ("Not crawled", "\n".join(domain.settings.refusals)),
            ("By its hours", shown_opening(domain, at=instant)),
            ("Budget left", str(status.budget_left) if status.budget_left is not None else ""),
            ("Bytes left", format_bytes(max(status.bytes_left, 0)) if status.bytes_left is not None else ""),
            ("Takes", shown_storage(storage) if storage.stored_bytes else ""),
            ("Last visit", format_instant(status.last_visit_at)),
            ("Now", format_wait(wait, domain, now=instant) or "is being crawled at the next run"),
        ]
    )
    return DONE


def _shown_order(ordering: Ordering) -> str:
    share = f", {ordering.url_share:.0%} of importance by URL" if ordering.order is Order.MIXED else ""
    return f"{ordering.order}{share}"


def _shown_favour(ordering: Ordering) -> str:
    return f"{', '.join(ordering.favour)} (by {ordering.favour_by:g})"


def _shown_dial(ordering: Ordering) -> str:
    return f"new pages {ordering.discovery:g}, known pages {ordering.refresh:g}"


def is_closed(domain: Domain, *, at: datetime) -> bool:
    """Whether the domain's hours let no request be sent at an instant."""
    return opening(domain.hours, at) > at


def shown_opening(domain: Domain, *, at: datetime) -> str:
    """Whether the hours are open at an instant, how fast requests may be sent, and until when."""
    if domain.hours.is_always:
        return ""
    if is_closed(domain, at=at):
        return f"closed until {format_when(opening(domain.hours, at), now=at)}"
    closes_at = closing(domain.hours, at)
    until = f" until {format_when(closes_at, now=at)}" if closes_at else ""
    speed = speed_at(domain.hours, at)
    return f"open{until}{f', {speed:g} times the usual speed' if speed != 1 else ''}"


def change(text: str, *, patch: SettingsPatch, unset: Sequence[str], at: datetime | None, as_json: bool) -> int:
    if not patch.values and not unset:
        raise BadInput("nothing to change: name a setting (recrawl domains set --help)")

    async def work(db: Database, _: Interrupts) -> tuple[Domain, Domain, SizeEstimate | None]:
        before = await domain_named(db, text)
        await require_not_before_last_visit(db, [before] if at is not None else [], at)
        after = await change_settings(db, before, patch, unset=unset, at=at or datetime.now(UTC))
        keeps_alike = after.settings.retention == before.settings.retention
        return before, after, None if keeps_alike else await foretold(db, after)

    before, domain, storage = with_database(work)
    if as_json:
        print_json(described(domain))
        return DONE
    remark_missing_secrets(domain.settings, unless=before.settings)
    said = changed_settings(before, domain)
    say(f"{domain.authority} is changed" if said else f"{domain.authority} was so before: nothing is changed")
    for line in said:
        say(f"  {line}")
    if storage is not None and storage.stored_bytes:
        say(f"It takes {shown_storage(storage)}")
    return DONE


def _facts_of_all(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """The settings for people: those with a label of their own, and those that say together what comes first."""
    ordering = domain_settings.ordering
    return [
        *facts_of(domain_settings),
        ("Order", _shown_order(ordering)),
        ("Favoured", _shown_favour(ordering) if ordering.favour else ""),
        ("Reserve pays", _shown_dial(ordering)),
    ]


def changed_settings(before: Domain, after: Domain) -> list[str]:
    """The settings of a domain that differ, from what to what; none where all are as they were."""
    pairs = zip(_facts_of_all(before.settings), _facts_of_all(after.settings), strict=True)
    return [f"{label}: {was or 'as usual'} -> {now or 'as usual'}" for (label, was), (_, now) in pairs if was != now]


async def change_settings(
    db: Database, domain: Domain, patch: SettingsPatch, *, unset: Sequence[str] = (), at: datetime
) -> Domain:
    """The domain with the named options back at their defaults, then what was typed. Raises BadInput."""
    domain_settings = patch.applied_to(without(domain.settings, list(unset)))
    if "revisit" in patch.values:
        require_policy(domain_settings.revisit, settings().plugins)
    more = tuple(_seed(domain, typed) for typed in patch.seeds)
    domain_settings = replace(
        domain_settings,
        seeds=tuple(dict.fromkeys([*domain_settings.seeds, *home_seeds(scope_of(domain, domain_settings), more)])),
    )
    return await domains.change(db, domain, domain_settings, at=at)


def _seed(domain: Domain, typed: str) -> Url:
    """A seed may be a path of the domain."""
    return url_of(f"{domain.root}{typed[1:]}" if typed.startswith("/") else typed)


def reset_clock(texts: Sequence[str], *, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[tuple[Domain, datetime | None]]:
        found = [await domain_named(db, text) for text in texts]
        return [(domain, await record.reset_clock(db, domain, at=datetime.now(UTC))) for domain in found]

    found = with_database(work)
    if as_json:
        print_json({"reset": {domain.authority: last_visit_at for domain, last_visit_at in found}})
    for domain, last_visit_at in [] if as_json else found:
        if last_visit_at is None:
            say(f"{domain.authority} has no visit that is later than now: nothing is changed")
        else:
            say(f"{domain.authority}: visits up to {format_instant(last_visit_at)} count as made now")
    return DONE


def set_paused(texts: Sequence[str], *, paused: bool, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[Domain]:
        found = [await domain_named(db, text) for text in texts]
        for domain in found:
            await domains.set_paused(db, domain, paused=paused)
        return found

    found = with_database(work)
    if as_json:
        print_json({"paused": paused, "domains": [domain.authority for domain in found]})
    for domain in [] if as_json else found:
        say(f"{domain.authority} is {'paused' if paused else 'active'}")
    return DONE


def remove(texts: Sequence[str], *, yes: bool, as_json: bool) -> int:
    if not yes and not sys.stdin.isatty():
        raise BadInput("removing forgets everything about a domain: add --yes")
    if not yes:
        typer.confirm(f"Forget {', '.join(map(authority_in, texts))} and everything about it?", abort=True, err=True)

    async def work(db: Database, _: Interrupts) -> list[Domain]:
        found = [await domain_named(db, text) for text in texts]
        for domain in found:
            await domains.remove(db, domain)
        return found

    found = with_database(work)
    if as_json:
        print_json({"removed": [domain.authority for domain in found]})
    for domain in [] if as_json else found:
        say(f"{domain.authority} is forgotten")
    return DONE
