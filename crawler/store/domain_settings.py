"""Changes of the settings of domains. The row in table domain has the values in force, whatever they come from."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from crawler.core.domain import Domain
from crawler.core.domain_settings import (
    BY_NAME,
    SETTINGS,
    DomainSettings,
    get_value,
    has_same_reading,
    has_same_weighing,
)
from crawler.core.http.urls import get_literal_prefix
from crawler.core.page_rules import PageRule
from crawler.core.tags import LayeredSettings, list_own_values
from crawler.errors import BadInput, NotFound
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import (
    build_setting_params,
    find_domains,
    post_reprice,
    post_to_inbox,
    replace_rules,
)

UPDATE = "UPDATE domain SET {columns} WHERE id = %(id)s"
# As every transaction does before it locks other rows of a domain.
LOCK = "SELECT FROM domain_state WHERE domain_id = ANY(%(ids)s) ORDER BY domain_id FOR NO KEY UPDATE"
# New crawl hours and budgets may allow an earlier crawl than those at the last release of the lease.
WAKE = "UPDATE domain_state SET closed_from = NULL, opens_at = NULL, wake_at = least(wake_at, %s) WHERE domain_id = %s"

SettingsChange = Callable[[LayeredSettings], LayeredSettings]


async def update_settings(db: Database, domain: Domain, change: SettingsChange, *, at: datetime) -> Domain:
    """Change single settings of a domain, put new seeds into the inbox and wake the domain; return it.

    change: is called with the stored settings, which no other process changes meanwhile. It may raise BadInput.
    Some settings, such as those of the scope, require a full recrawl of all pages: unchanged pages may have links that
    were out of scope when they were last parsed. See crawler/core/domain_settings.py. Raise BadInput if a new pattern
    or text is invalid; an existing one may stay.
    """
    async with db.transaction() as connection:
        return (await apply_settings(connection, [domain], change, at=at))[0]


async def change_settings(db: Database, domain: Domain, domain_settings: DomainSettings, *, at: datetime) -> Domain:
    """Change the settings that differ from those of `domain` (see `update_settings`). A default unsets the setting."""
    before = domain.settings
    changed = [each for each in SETTINGS if get_value(before, each) != get_value(domain_settings, each)]
    own = list_own_values(domain_settings)
    values = {each.name: own[each.name] for each in changed if each.name in own}
    if domain_settings.rules != before.rules:
        values["rules"] = domain_settings.rules
    unset = [each.name for each in changed if each.name not in own]
    return await update_settings(db, domain, lambda layers: layers.unset(unset).set_own(values), at=at)


async def apply_settings(
    connection: Connection,
    domains: Collection[Domain],
    change: SettingsChange = lambda layers: layers,
    *,
    names_domain: bool = False,
    at: datetime,
) -> list[Domain]:
    """Change the settings of domains in an open transaction (see `update_settings`), and apply those of their tags.

    names_domain: whether the message of a BadInput begins with the name of the domain.
    """
    ids = [domain.id for domain in domains]
    await connection.execute(LOCK, {"ids": ids})
    stored = {domain.id: domain for domain in await find_domains(connection, "d.id = ANY(%s)", (ids,))}
    changes = []
    for domain in domains:
        if domain.id not in stored:
            raise NotFound(f"{domain.authority} is no longer registered")
        try:
            changes.append((stored[domain.id], _change_settings(stored[domain.id], change)))
        except BadInput as error:
            if names_domain:
                raise BadInput(f"{domain.authority}: {error}") from error
            raise
    for before, after in changes:
        if before.settings.rules != after.settings.rules:
            await replace_rules(connection, before.id, after.settings.rules)
    async with connection.pipeline():  # a tag may have thousands of domains
        for before, after in changes:
            if before != after:
                await connection.execute(WAKE, (at, after.id))
                await _write_settings(connection, before, after)
                await _request_updates(connection, before, after.settings, at=at)
    return [after for _, after in changes]


def _change_settings(domain: Domain, change: SettingsChange) -> Domain:
    """Return a domain with changed settings. Raise BadInput."""
    layers = change(domain.layers)
    domain_settings = merge_layers(layers)
    check_settings(domain_settings, before=domain.settings)
    return replace(domain, settings=domain_settings, own=frozenset(layers.own.keys() & BY_NAME.keys()))


async def _write_settings(connection: Connection, before: Domain, after: Domain) -> None:
    """Write the settings that differ."""
    params = build_setting_params(after.settings)
    changed = [each.column for each in SETTINGS if get_value(before.settings, each) != get_value(after.settings, each)]
    columns = ", ".join(["own_settings = %(own)s", *(f"{column} = %({column})s" for column in changed)])
    values = {column: params[column] for column in changed} | {"own": sorted(after.own), "id": after.id}
    await connection.execute(UPDATE.format(columns=columns).encode(), values)


async def _request_updates(connection: Connection, domain: Domain, after: DomainSettings, *, at: datetime) -> None:
    """Request from the lease holder what follows from changed settings: new seeds, ranks, due times."""
    before = domain.settings
    new_seeds = [seed for seed in after.seeds if seed not in before.seeds]
    if new_seeds:
        await post_to_inbox(connection, domain.id, "seed", {"urls": new_seeds}, at=at)
    if not has_same_reading(before, after):
        await post_to_inbox(connection, domain.id, "refresh", {"prefix": domain.root, "full": True}, at=at)
    for prefix in _list_prefixes_to_read(before.rules, after.rules):
        url = domain.root.removesuffix("/") + prefix
        await post_to_inbox(connection, domain.id, "refresh", {"prefix": url, "full": True}, at=at)
    if before.ordering != after.ordering:
        keeps_places = before.ordering.order is after.ordering.order
        await post_to_inbox(connection, domain.id, "reorder", {"keeps_places": keeps_places}, at=at)
    if before.importance_window != after.importance_window:
        await post_to_inbox(connection, domain.id, "window", {"passes": after.importance_window}, at=at)
    limits = {(each.budget_per_day, each.bytes_per_day) for each in (before, after)}
    # A row in the inbox keeps the domain awake until it is applied.
    if len(limits) > 1 or not has_same_weighing(before, after):
        await post_reprice(connection, domain.id, at=at)


def _list_prefixes_to_read(before: Sequence[PageRule], after: Sequence[PageRule]) -> list[str]:
    """Return the paths of pages that must be fetched in full, because a rule reads new values from them."""
    known = {(rule.pattern, text) for rule in before for text in rule.view.values}
    changed = [rule for rule in after if {(rule.pattern, text) for text in rule.view.values} - known]
    return list(dict.fromkeys(get_literal_prefix(rule.pattern) for rule in changed))


def merge_layers(layers: LayeredSettings) -> DomainSettings:
    """Return the settings in force. Raise BadInput if they cannot be combined."""
    try:
        return layers.merge()
    except ValueError as error:
        raise BadInput(str(error)) from error


def check_settings(domain_settings: DomainSettings, *, before: DomainSettings | None = None) -> None:
    """Raise BadInput if a pattern or text is invalid. before: the settings to change, whose invalid texts may stay."""
    try:
        problems = set(domain_settings.problems) - set(before.problems if before is not None else ())
    except ValueError as error:
        raise BadInput(str(error)) from error
    for problem in sorted(problems):
        raise BadInput(problem)
