"""A domain's rows: its settings and rules, as they are read with it and written, and what is left in its inbox."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain, RobotsCopy
from crawler.core.domain_settings import SETTINGS, DomainSettings, value_of, with_values
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Authority, Url
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.setting import Kind, Setting
from crawler.errors import BadInput
from crawler.store.database import Connection
from crawler.store.rows import Place, Values, copy, excluded, execute, fetch_dicts, fetch_rows, placeholders

WRITTEN = [setting.column for setting in SETTINGS]
COLUMNS = f"""
    d.id, d.authority, d.scheme, d.state, d.registered_at, {", ".join(f"d.{column}" for column in WRITTEN)},
    ARRAY(SELECT a.authority FROM domain_alias a WHERE a.domain_id = d.id) AS aliases,
    ARRAY(SELECT to_jsonb(r) FROM rule r WHERE r.domain_id = d.id ORDER BY r.no) AS rules,
    (SELECT s.addresses FROM domain_state s WHERE s.domain_id = d.id) AS addresses
"""  # noqa: S608  only our own columns are put in
RULE_COLUMNS = """
    domain_id int8, no int2, pattern text, least_s float8, most_s float8, weight float8, once bool, max_pages int4,
    pages int8, ignore text[], watch text[], ignore_text text[], render text
"""
DELETE_RULES = "DELETE FROM rule WHERE domain_id = %s RETURNING pattern, max_pages, pages"
ROBOTS_COLUMNS = [each.name for each in fields(RobotsCopy)]
INSERT_ROBOTS = f"""
    INSERT INTO robots (domain_id, {", ".join(ROBOTS_COLUMNS)})
    VALUES (%(domain_id)s, {placeholders(ROBOTS_COLUMNS)}) ON CONFLICT (domain_id)
"""  # noqa: S608  likewise
LIMITED = "SELECT pattern, pages FROM rule WHERE domain_id = %s AND max_pages IS NOT NULL"
AT_ONCE = 10_000  # URLs read at a time

POST = "INSERT INTO inbox (domain_id, kind, payload, arrived_at) VALUES (%s, %s, %s, %s)"
# A row that no pass has begun serves for this, too; behind one that is under way another full pass is needed.
REPRICE = """
    WITH waiting AS (
        UPDATE inbox SET arrived_at = %(at)s
         WHERE domain_id = %(domain_id)s AND kind = 'reprice' AND NOT payload ? 'after' RETURNING id)
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT %(domain_id)s, 'reprice', '{}', %(at)s WHERE NOT EXISTS (SELECT FROM waiting)
"""
GO_ON_AFTER = "UPDATE inbox SET payload = payload || jsonb_build_object('after', %s::text) WHERE id = %s"
SIGNALS_CHUNK = 1000  # of one inbox row


async def find_domains(place: Place, condition: str, values: Values) -> list[Domain]:
    """Return the domains for which a condition on `domain d` holds, which may go on with their order."""
    rows = await fetch_dicts(place, f"SELECT {COLUMNS} FROM domain d WHERE {condition}", values)  # noqa: S608
    return [domain_from(row) for row in rows]


async def domain_numbered(connection: Connection, domain_id: int) -> Domain | None:
    """Return a domain as it is stored now; None where it was removed."""
    found = await find_domains(connection, "d.id = %s", (domain_id,))
    return found[0] if found else None


def domain_from(row: dict[str, Any]) -> Domain:
    """A row with COLUMNS as a Domain."""
    return Domain(
        id=row["id"],
        authority=Authority(row["authority"]),
        scheme=row["scheme"],
        aliases=frozenset(map(Authority, row["aliases"])),
        paused=row["state"] == "paused",
        registered_at=row["registered_at"],
        settings=with_values(
            DomainSettings(rules=_rules_from(row["rules"])),
            {setting.name: _from_column(setting, row[setting.column]) for setting in SETTINGS},
        ),
        addresses=tuple(row["addresses"] or ()),
    )


def setting_values(domain_settings: DomainSettings) -> dict[str, Any]:
    """Return the values of the columns of a domain's settings."""
    return {setting.column: _to_column(setting, value_of(domain_settings, setting)) for setting in SETTINGS}


def _from_column(setting: Setting, stored: Any) -> Any:
    if setting.kind in {Kind.DELAY, Kind.SPAN}:
        return _span(stored)
    return tuple(stored) if setting.kind is Kind.TEXTS else stored


def _to_column(setting: Setting, value: Any) -> Any:
    if setting.kind in {Kind.DELAY, Kind.SPAN}:
        return _seconds(value)
    return str(value) if setting.kind is Kind.TEXT else list(value) if setting.kind is Kind.TEXTS else value


def _rules_from(rows: Iterable[dict[str, Any]]) -> tuple[PageRule, ...]:
    return tuple(
        PageRule(
            pattern=row["pattern"],
            least=_span(row["least_s"]),
            most=_span(row["most_s"]),
            weight=None if row["weight"] is None else float(row["weight"]),  # JSON knows no whole floats
            once=row["once"],
            max_pages=row["max_pages"],
            view=View(tuple(row["ignore"]), tuple(row["watch"]), tuple(row["ignore_text"])),
            render=row["render"],
        )
        for row in rows
    )


async def put_robots(place: Place, domain: Domain, copy: RobotsCopy, *, replaces: bool) -> None:
    """Store a domain's robots.txt. replaces: the one that is there already."""
    statement = f"{INSERT_ROBOTS} {f'DO UPDATE SET {excluded(ROBOTS_COLUMNS)}' if replaces else 'DO NOTHING'}"
    await execute(place, statement, asdict(copy) | {"domain_id": domain.id})


async def replace_rules(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> None:
    """Put these rules in place of those there are.

    A rule that limited the pages of its pattern before keeps its count of them; for one that begins to, the pages that
    are known are counted. The domain's hot row is held meanwhile, so that its lease holder admits none in between.
    """
    await connection.execute("SELECT FROM domain_state WHERE domain_id = %s FOR UPDATE", (domain_id,))
    deleted = await fetch_rows(connection, DELETE_RULES, (domain_id,))
    pages = {pattern: pages for pattern, most, pages in deleted if most is not None}
    uncounted = [rule for rule in rules if rule.max_pages is not None and rule.pattern not in pages]
    if uncounted:
        pages |= await _counted(connection, domain_id, uncounted)
    try:
        await copy(connection, "rule", RULE_COLUMNS, (_row(domain_id, n, rule, pages) for n, rule in enumerate(rules)))
    except psycopg.errors.CharacterNotInRepertoire as error:
        raise BadInput("a rule has a text with a NUL: leave that character out") from error


async def count_limited_pages(place: Place, domain_id: int) -> dict[str, int]:
    """Return how many pages count for each rule that limits them, by its pattern."""
    return dict(await fetch_rows(place, LIMITED, (domain_id,)))


async def _counted(connection: Connection, domain_id: int, rules: Sequence[PageRule]) -> Counter[str]:
    """How many pages of the domain are known under each pattern. It reads all of them: 5 s for a million."""
    found: Counter[str] = Counter()
    async with connection.cursor(name="pages_of_rules") as cursor:
        await cursor.execute("SELECT url FROM page WHERE domain_id = %s", (domain_id,))
        while rows := await cursor.fetchmany(AT_ONCE):
            found.update(rule.pattern for (url,) in rows for rule in rules if rule.matches(Url(url)))
    return found


def _row(domain_id: int, no: int, rule: PageRule, pages: dict[str, int]) -> tuple[object, ...]:
    counted = pages.get(rule.pattern, 0) if rule.max_pages is not None else 0
    return (
        *(domain_id, no, rule.pattern, _seconds(rule.least), _seconds(rule.most)),
        *(rule.weight, rule.once, rule.max_pages, counted),
        *(list(rule.view.ignore), list(rule.view.watch), list(rule.view.ignore_text), rule.render),
    )


def _span(length_s: float | None) -> timedelta | None:
    """A column of seconds as a span of time."""
    return None if length_s is None else timedelta(seconds=length_s)


def _seconds(length: timedelta | None) -> float | None:
    """And back."""
    return None if length is None else length.total_seconds()


async def post(place: Place, domain_id: int, kind: str, payload: dict[str, Any], *, at: datetime) -> None:
    """Leave something of a kind in the inbox."""
    await execute(place, POST, (domain_id, kind, Jsonb(payload), at))


async def post_reprice(connection: Connection, domain_id: int, *, at: datetime) -> None:
    """Let all pages of a domain be scored again: by another price, other settings or other evidence."""
    await connection.execute(REPRICE, {"domain_id": domain_id, "at": at})


async def go_on_after(connection: Connection, inbox_id: int, key: bytes) -> None:
    """Keep how far a row of the inbox that means all pages was applied: up to this page."""
    await connection.execute(GO_ON_AFTER, (key.hex(), inbox_id))


async def post_signals(
    connection: Connection, domain_id: int, signals: Iterable[ChangeSignal], *, at: datetime
) -> None:
    """Leave change signals in the inbox: rows of one source each, so that none takes long to apply."""
    by_source: dict[str, list[tuple[str, str]]] = {}
    for each in signals:
        by_source.setdefault(each.source, []).append((each.url, each.at.isoformat()))
    for source, told in by_source.items():
        for first in range(0, len(told), SIGNALS_CHUNK):
            payload = {"source": source, "signals": told[first : first + SIGNALS_CHUNK]}
            await post(connection, domain_id, "signal", payload, at=at)
