"""recrawl domains: listing, changing, pausing, removing."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from crawler.app.database import Database
from crawler.app.domains import (
    Domain,
    SizeEstimate,
    change_settings,
    describe_domain,
    domain_state,
    foretell_storage,
    inspect_domain,
    list_domains,
    remove_domains,
    reset_clocks,
)
from crawler.app.domains import set_paused as set_domains_paused
from crawler.app.registration import authority_in, domain_named, require_not_before_last_visit
from crawler.app.settings import SettingsPatch
from crawler.app.status import format_wait
from crawler.cli.domains.register import remark_missing_secrets
from crawler.cli.output import print_json, print_outcome, say, show, show_facts
from crawler.cli.running.prune_output import shown_storage
from crawler.cli.session import Interrupts, settings, with_database
from crawler.errors import BadInput
from crawler.format.hours import format_opening
from crawler.format.rules import format_rule
from crawler.format.settings import format_all_settings, format_changed_settings
from crawler.format.values import format_bytes, format_instant

PAGE_COUNTS = ("new", "known", "gone", "dead_links", "moved", "refused", "withheld")  # of Listed


def list_all(*, as_json: bool) -> None:
    found = with_database(lambda db, _: list_domains(db))
    if as_json:
        print_json(
            {
                "domains": [
                    describe_domain(listed.domain)
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
                    domain_state(listed, at=datetime.now(UTC)),
                    f"{listed.importance:.2f}",
                    *map(str, (listed.new, listed.known, listed.gone, listed.dead_links)),
                    format_instant(listed.last_visit_at),
                    format_instant(listed.wake_at) if listed.wake_at else "-",
                )
                for listed in found
            ],
            right=["importance", *numbers],
        )


def show_one(name: str, *, at: datetime | None, as_json: bool) -> None:
    instant = at or datetime.now(UTC)

    found = with_database(lambda db, _: inspect_domain(db, settings(), name, at=at))
    domain, status, storage = found.domain, found.status, found.storage
    if as_json:
        print_json(describe_domain(domain) | {"status": status, "not_now": found.wait, "storage": storage})
        return
    show_facts(
        [
            ("Domain", domain.authority),
            ("Root", domain.root),
            ("Other names", ", ".join(sorted(domain.aliases))),
            ("Registered", format_instant(domain.registered_at)),
            *format_all_settings(domain.settings),
            ("Rules", "\n".join(map(format_rule, domain.settings.rules))),
            ("Not crawled", "\n".join(domain.settings.refusals)),
            ("By its hours", format_opening(domain, at=instant)),
            ("Budget left", str(status.budget_left) if status.budget_left is not None else ""),
            ("Bytes left", format_bytes(max(status.bytes_left, 0)) if status.bytes_left is not None else ""),
            ("Takes", shown_storage(storage) if storage.stored_bytes else ""),
            ("Last visit", format_instant(status.last_visit_at)),
            ("Now", format_wait(found.wait, domain, now=instant) or "is being crawled at the next run"),
        ]
    )


def change(name: str, *, patch: SettingsPatch, unset: Sequence[str], at: datetime | None, as_json: bool) -> None:
    if not patch.values and not unset:
        raise BadInput("nothing to change: name a setting (recrawl domains set --help)")

    async def work(db: Database, _: Interrupts) -> tuple[Domain, Domain, SizeEstimate | None]:
        before = await domain_named(db, name)
        await require_not_before_last_visit(db, [before] if at is not None else [], at)
        after = await change_settings(db, settings(), before, patch, unset=unset, at=at or datetime.now(UTC))
        return before, after, await foretell_storage(db, before, after)

    before, domain, storage = with_database(work)
    if as_json:
        print_json(describe_domain(domain))
        return
    remark_missing_secrets(domain.settings, unless=before.settings)
    said = format_changed_settings(before.settings, domain.settings)
    say(f"{domain.authority} is changed" if said else f"{domain.authority} was so before: nothing is changed")
    for line in said:
        say(f"  {line}")
    if storage is not None and storage.stored_bytes:
        say(f"It takes {shown_storage(storage)}")


def reset_clock(names: Sequence[str], *, as_json: bool) -> None:
    found = with_database(lambda db, _: reset_clocks(db, names, at=datetime.now(UTC)))
    said = [
        f"{domain.authority} has no visit that is later than now: nothing is changed"
        if last_visit_at is None
        else f"{domain.authority}: visits up to {format_instant(last_visit_at)} count as made now"
        for domain, last_visit_at in found
    ]
    print_outcome({"reset": {domain.authority: at for domain, at in found}}, "\n".join(said), as_json=as_json)


def set_paused(names: Sequence[str], *, paused: bool, as_json: bool) -> None:
    found = [domain.authority for domain in with_database(lambda db, _: set_domains_paused(db, names, paused=paused))]
    said = [f"{name} is {'paused' if paused else 'active'}" for name in found]
    print_outcome({"paused": paused, "domains": found}, "\n".join(said), as_json=as_json)


def remove(names: Sequence[str], *, yes: bool, as_json: bool) -> None:
    if not yes and not sys.stdin.isatty():
        raise BadInput("removing forgets everything about a domain: add --yes")
    if not yes:
        typer.confirm(f"Forget {', '.join(map(authority_in, names))} and everything about it?", abort=True, err=True)

    found = [domain.authority for domain in with_database(lambda db, _: remove_domains(db, names))]
    print_outcome({"removed": found}, "\n".join(f"{name} is forgotten" for name in found), as_json=as_json)
