"""recrawl rules: what a user says about the pages of a pattern."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from crawler.app.database import Database
from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.app.rules import (
    Domain,
    PageRule,
    add_rule,
    describe_rule,
    pages_by_pattern,
    remove_rule,
)
from crawler.cli.output import print_json, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.format.rules import format_rule, format_view
from crawler.format.values import format_span


def list_all(name: str, *, as_json: bool) -> None:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, dict[str, int]]:
        domain = await domain_named(db, name)
        return domain, await pages_by_pattern(db, domain)

    domain, pages = with_database(work)
    if as_json:
        _print(domain, pages)
    elif not domain.settings.rules:
        say(f"{domain.authority} has no rules: recrawl rules add {domain.authority} PATTERN")
    else:
        show(
            ["pattern", "least", "most", "weight", "again", "pages", "at most", "compared"],
            [_row(rule, pages) for rule in domain.settings.rules],
            right=["least", "most", "weight", "pages", "at most"],
        )


def add(name: str, rule: PageRule, *, first: bool, at: datetime | None, as_json: bool) -> None:
    async def change(db: Database, domain: Domain, instant: datetime) -> Domain:
        return await add_rule(db, domain, rule, first=first, at=instant)

    _change(name, change, at=at, as_json=as_json, said=format_rule(rule))


def remove(name: str, pattern: str, *, at: datetime | None, as_json: bool) -> None:
    async def change(db: Database, domain: Domain, instant: datetime) -> Domain:
        return await remove_rule(db, domain, pattern, at=instant)

    _change(name, change, at=at, as_json=as_json, said=f"{pattern}: no rule any more")


def _change(
    name: str,
    change: Callable[[Database, Domain, datetime], Awaitable[Domain]],
    *,
    at: datetime | None,
    as_json: bool,
    said: str,
) -> None:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, dict[str, int]]:
        domain = await domain_named(db, name)
        await require_not_before_last_visit(db, [domain] if at is not None else [], at)
        domain = await change(db, domain, at or datetime.now(UTC))
        return domain, await pages_by_pattern(db, domain)

    domain, pages = with_database(work)
    if as_json:
        _print(domain, pages)
    else:
        say(f"{domain.authority} {said}")


def _print(domain: Domain, pages: Mapping[str, int]) -> None:
    described = [describe_rule(rule) | {"pages": pages.get(rule.pattern)} for rule in domain.settings.rules]
    print_json({"domain": domain.authority, "rules": described})


def _row(rule: PageRule, pages: Mapping[str, int]) -> tuple[str, ...]:
    return (
        rule.pattern,
        format_span(rule.least) if rule.least is not None else "",
        format_span(rule.most) if rule.most is not None else "",
        f"{rule.weight:g}" if rule.weight is not None else "",
        "never" if rule.once else "",
        str(pages.get(rule.pattern, "")),
        str(rule.max_pages) if rule.max_pages is not None else "",
        format_view(rule.view),
    )
