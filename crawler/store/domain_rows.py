"""The rows of a domain: settings, rules, robots.txt, and messages in the inbox."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
from msgspec.structs import asdict
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain, RobotsCopy
from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, get_value, replace_values
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Authority, Url
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.setting import Setting, SettingKind
from crawler.core.tags import Tag
from crawler.errors import BadInput
from crawler.store.database import Connection
from crawler.store.rows import (
    Executor,
    Values,
    build_placeholders,
    build_upsert_set,
    copy_rows,
    execute,
    fetch_dicts,
    fetch_rows,
)

SETTING_COLUMNS = [setting.column for setting in SETTINGS]
DOMAIN_COLUMNS = f"""
    d.id, d.authority, d.scheme, d.state, d.registered_at, d.own_settings,
    {", ".join(f"d.{column}" for column in SETTING_COLUMNS)},
    ARRAY(SELECT a.authority FROM domain_alias a WHERE a.domain_id = d.id) AS aliases,
    ARRAY(SELECT to_jsonb(t) FROM domain_tag g JOIN tag t ON t.name = g.tag WHERE g.domain_id = d.id ORDER BY t.name)
        AS tags,
    ARRAY(SELECT to_jsonb(r) FROM rule r WHERE r.domain_id = d.id ORDER BY r.no) AS rules,
    (SELECT s.addresses FROM domain_state s WHERE s.domain_id = d.id) AS addresses
"""  # noqa: S608  only our own columns are inserted
RULE_COLUMNS = """
    domain_id int8, no int2, pattern text, min_interval_s float8, max_interval_s float8, weight float8, once bool,
    max_pages int4, pages int8, ignore text[], watch text[], ignore_text text[],
    tracked_values text[], render text
"""
VIEW_COLUMNS = ("ignore", "watch", "ignore_text", "tracked_values")
DELETE_RULES = "DELETE FROM rule WHERE domain_id = %s RETURNING pattern, max_pages, pages"
ROBOTS_COLUMNS = list(RobotsCopy.__struct_fields__)
INSERT_ROBOTS = f"""
    INSERT INTO robots (domain_id, {", ".join(ROBOTS_COLUMNS)})
    VALUES (%(domain_id)s, {build_placeholders(ROBOTS_COLUMNS)}) ON CONFLICT (domain_id)
"""  # noqa: S608  likewise
LIMITED_RULES = "SELECT pattern, pages FROM rule WHERE domain_id = %s AND max_pages IS NOT NULL"
FETCH_SIZE = 10_000  # URLs per round trip

POST_TO_INBOX = "INSERT INTO inbox (domain_id, kind, payload, arrived_at) VALUES (%s, %s, %s, %s)"
# A waiting row that is not yet being applied covers this request, too. If it is already applied in part, another row is
# needed.
POST_REPRICE = """
    WITH waiting AS (
        UPDATE inbox SET arrived_at = %(at)s
         WHERE domain_id = %(domain_id)s AND kind = 'reprice' AND NOT payload ? 'after' RETURNING id)
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT %(domain_id)s, 'reprice', '{}', %(at)s WHERE NOT EXISTS (SELECT FROM waiting)
"""
WRITE_INBOX_CURSOR = "UPDATE inbox SET payload = payload || jsonb_build_object('after', %s::text) WHERE id = %s"
SIGNALS_CHUNK = 1000  # signals in one inbox row


async def find_domains(executor: Executor, condition: str, values: Values) -> list[Domain]:
    """Return the domains that satisfy a condition on `domain d`. The condition may continue with ORDER BY and LIMIT."""
    rows = await fetch_dicts(executor, f"SELECT {DOMAIN_COLUMNS} FROM domain d WHERE {condition}", values)  # noqa: S608
    return [build_domain(row) for row in rows]


async def read_domain(connection: Connection, domain_id: int) -> Domain | None:
    """Return a domain as currently stored, or None if it was deleted."""
    matches = await find_domains(connection, "d.id = %s", (domain_id,))
    return matches[0] if matches else None


def build_domain(row: dict[str, Any]) -> Domain:
    """Return the domain of a row with DOMAIN_COLUMNS."""
    return Domain(
        id=row["id"],
        authority=Authority(row["authority"]),
        scheme=row["scheme"],
        aliases=frozenset(map(Authority, row["aliases"])),
        paused=row["state"] == "paused",
        registered_at=row["registered_at"],
        settings=replace_values(
            DomainSettings(rules=tuple(map(_build_rule, row["rules"]))),
            {setting.name: decode_setting(setting, row[setting.column]) for setting in SETTINGS},
        ),
        addresses=tuple(row["addresses"] or ()),
        own=frozenset(row["own_settings"]) & BY_NAME.keys(),
        tags=tuple(build_tag(**tag) for tag in row["tags"]),
    )


def build_tag(name: str, settings: dict[str, Any]) -> Tag:
    """Return the tag of a row. Settings of a later version of recrawl are skipped."""
    known = [each for each in SETTINGS if each.column in settings]
    return Tag(name, {each.name: decode_setting(each, settings[each.column]) for each in known})


def build_setting_params(domain_settings: DomainSettings) -> dict[str, Any]:
    """Return the column values of a domain's settings."""
    return {setting.column: encode_setting(setting, get_value(domain_settings, setting)) for setting in SETTINGS}


def decode_setting(setting: Setting, stored: Any) -> Any:
    """Return the value of a setting from its column, or from JSON in the form of the column."""
    if setting.kind in {SettingKind.DELAY, SettingKind.SPAN}:
        return _decode_span(stored)
    return tuple(stored) if setting.kind is SettingKind.TEXTS else stored


def encode_setting(setting: Setting, value: Any) -> Any:
    """Return the value of a setting in the form of its column."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    kind = setting.kind
    return str(value) if kind is SettingKind.TEXT else list(value) if kind is SettingKind.TEXTS else value


def _build_rule(row: dict[str, Any]) -> PageRule:
    return PageRule(
        min_interval=_decode_span(row["min_interval_s"]),
        max_interval=_decode_span(row["max_interval_s"]),
        weight=None if row["weight"] is None else float(row["weight"]),  # JSON turns 1.0 into 1
        view=View(*(tuple(row[name]) for name in VIEW_COLUMNS)),
        pattern=row["pattern"],
        once=row["once"],
        max_pages=row["max_pages"],
        render=row["render"],
    )


async def put_robots(executor: Executor, domain: Domain, robots_copy: RobotsCopy, *, replaces: bool) -> None:
    """Store the robots.txt of a domain. replaces: overwrite an existing one."""
    statement = f"{INSERT_ROBOTS} {f'DO UPDATE SET {build_upsert_set(ROBOTS_COLUMNS)}' if replaces else 'DO NOTHING'}"
    await execute(executor, statement, asdict(robots_copy) | {"domain_id": domain.id})


async def replace_rules(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> None:
    """Replace the rules of a domain.

    A pattern whose pages were limited before keeps its count; for a new limit, the existing pages are counted. The row
    in domain_state is locked meanwhile, so the lease holder admits no pages.
    """
    await connection.execute("SELECT FROM domain_state WHERE domain_id = %s FOR NO KEY UPDATE", (domain_id,))
    deleted = await fetch_rows(connection, DELETE_RULES, (domain_id,))
    pages = {pattern: pages for pattern, max_pages, pages in deleted if max_pages is not None}
    uncounted = [rule for rule in rules if rule.max_pages is not None and rule.pattern not in pages]
    if uncounted:
        pages |= await _count_pages_by_rule(connection, domain_id, uncounted)
    if not rules:
        return
    try:
        rows = (_build_rule_row(domain_id, n, rule, pages) for n, rule in enumerate(rules))
        await copy_rows(connection, "rule", RULE_COLUMNS, rows)
    except psycopg.errors.CharacterNotInRepertoire as error:
        raise BadInput("a rule contains a NUL character; remove it") from error


async def count_limited_pages(executor: Executor, domain_id: int) -> dict[str, int]:
    """Return, by pattern, the number of pages that count toward the limit of each rule with a page limit."""
    return dict(await fetch_rows(executor, LIMITED_RULES, (domain_id,)))


async def _count_pages_by_rule(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> Counter[str]:
    """Return, by pattern, the number of the domain's pages that match each rule. Reads all pages: 5 s for a million."""
    counts: Counter[str] = Counter()
    async with connection.cursor(name="pages_of_rules") as cursor:
        await cursor.execute("SELECT url FROM page WHERE domain_id = %s", (domain_id,))
        while rows := await cursor.fetchmany(FETCH_SIZE):
            counts.update(rule.pattern for (url,) in rows for rule in rules if rule.matches(Url(url)))
    return counts


def _build_rule_row(domain_id: int, no: int, rule: PageRule, pages: dict[str, int]) -> tuple[object, ...]:
    counted = pages.get(rule.pattern, 0) if rule.max_pages is not None else 0
    spans = (each if each is None else each.total_seconds() for each in (rule.min_interval, rule.max_interval))
    view = rule.view
    texts = map(list, (view.ignore, view.watch, view.ignore_text, view.values))
    return (domain_id, no, rule.pattern, *spans, rule.weight, rule.once, rule.max_pages, counted, *texts, rule.render)


def _decode_span(length_s: float | None) -> timedelta | None:
    """Return the time span of a number of seconds; None stays None."""
    return None if length_s is None else timedelta(seconds=length_s)


async def post_to_inbox(
    executor: Executor, domain_id: int, kind: str, payload: dict[str, Any], *, at: datetime
) -> None:
    """Add a message to the inbox of a domain. kind: a value of column inbox.kind."""
    await execute(executor, POST_TO_INBOX, (domain_id, kind, Jsonb(payload), at))


async def post_reprice(connection: Connection, domain_id: int, *, at: datetime) -> None:
    """Put a request into the inbox to recompute the due times of all pages of a domain.

    Needed after a change of its shadow price, settings, site activity, or the quality of its signal sources.
    """
    await connection.execute(POST_REPRICE, {"domain_id": domain_id, "at": at})


async def write_inbox_cursor(connection: Connection, inbox_id: int, key: bytes) -> None:
    """Store the progress of an inbox row that concerns all pages: it is applied up to this key."""
    await connection.execute(WRITE_INBOX_CURSOR, (key.hex(), inbox_id))


async def post_signals(
    connection: Connection, domain_id: int, signals: Iterable[ChangeSignal], *, at: datetime
) -> None:
    """Add change signals to the inbox. Each row has one source and at most SIGNALS_CHUNK signals."""
    by_source: dict[str, list[tuple[str, str]]] = {}
    for each in signals:
        by_source.setdefault(each.source, []).append((each.url, each.at.isoformat()))
    for source, entries in by_source.items():
        for first in range(0, len(entries), SIGNALS_CHUNK):
            payload = {"source": source, "signals": entries[first : first + SIGNALS_CHUNK]}
            await post_to_inbox(connection, domain_id, "signal", payload, at=at)
