"""Changes of the settings of domains. The row in table domain has the values in force, whatever they come from."""

from collections.abc import Callable
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
from crawler.core.tags import LayeredSettings, list_own_values
from crawler.errors import BadInput, NotFound
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import (
    SETTING_COLUMNS,
    build_setting_params,
    post_reprice,
    post_to_inbox,
    read_domain,
    replace_rules,
)

SET_COLUMNS = ", ".join(f"{column} = %({column})s" for column in SETTING_COLUMNS)
UPDATE = f"UPDATE domain SET own_settings = %(own)s, {SET_COLUMNS} WHERE id = %(id)s"  # noqa: S608  our own columns
# As every transaction does before it locks other rows of a domain.
LOCK = "SELECT FROM domain_state WHERE domain_id = %(domain_id)s FOR NO KEY UPDATE"
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
        return await apply_settings(connection, domain, change, at=at)


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


async def apply_settings(connection: Connection, domain: Domain, change: SettingsChange, *, at: datetime) -> Domain:
    """Change the settings of a domain in an open transaction (see `update_settings`), and apply those of its tags."""
    await connection.execute(LOCK, {"domain_id": domain.id})
    current = await read_domain(connection, domain.id)
    if current is None:
        raise NotFound(f"{domain.authority} is no longer registered")
    layers = change(current.layers)
    before, after = current.settings, merge_layers(layers)
    check_settings(after, before=before)
    own = sorted(layers.own.keys() & BY_NAME.keys())
    if before == after and current.own == frozenset(own):
        return current
    if before.rules != after.rules:
        await replace_rules(connection, domain.id, after.rules)
    await connection.execute(WAKE, (at, domain.id))
    await connection.execute(UPDATE, build_setting_params(after) | {"id": domain.id, "own": own})
    await _request_updates(connection, current, after, at=at)
    changed = await read_domain(connection, domain.id)
    assert changed is not None, "its row is locked"
    return changed


async def _request_updates(connection: Connection, domain: Domain, after: DomainSettings, *, at: datetime) -> None:
    """Request from the lease holder what follows from changed settings: new seeds, ranks, due times."""
    before = domain.settings
    new_seeds = [seed for seed in after.seeds if seed not in before.seeds]
    if new_seeds:
        await post_to_inbox(connection, domain.id, "seed", {"urls": new_seeds}, at=at)
    if not has_same_reading(before, after):
        await post_to_inbox(connection, domain.id, "refresh", {"prefix": domain.root, "full": True}, at=at)
    if before.ordering != after.ordering:
        keeps_places = before.ordering.order is after.ordering.order
        await post_to_inbox(connection, domain.id, "reorder", {"keeps_places": keeps_places}, at=at)
    if before.importance_window != after.importance_window:
        await post_to_inbox(connection, domain.id, "window", {"passes": after.importance_window}, at=at)
    limits = {(each.budget_per_day, each.bytes_per_day) for each in (before, after)}
    # A row in the inbox keeps the domain awake until it is applied.
    if len(limits) > 1 or not has_same_weighing(before, after):
        await post_reprice(connection, domain.id, at=at)


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
