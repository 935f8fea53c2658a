"""The series of the values that rules read from pages: one row for each value that differs from the last one."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.page.values import PageValue, ValueFinding
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.rows import build_unnest, clean_text, copy_rows, fetch_rows, split_into_columns

VALUE_COLUMNS = """
    domain_id int8, key bytea, name text, at timestamptz, number float8, unit text, text text, finding text,
    version int4
"""
# The last row of each series, and its last number.
LAST_VALUES = f"""
    SELECT x.key, x.name, l.number, l.unit, l.finding, n.number
      FROM {build_unnest("key bytea, name text")}
     CROSS JOIN LATERAL (SELECT v.number, v.unit, v.finding FROM page_value v
                          WHERE v.domain_id = %(domain_id)s AND v.key = x.key AND v.name = x.name
                          ORDER BY v.at DESC LIMIT 1) l
      LEFT JOIN LATERAL (SELECT v.number FROM page_value v
                          WHERE v.domain_id = %(domain_id)s AND v.key = x.key AND v.name = x.name
                            AND v.number IS NOT NULL
                          ORDER BY v.at DESC LIMIT 1) n ON true
"""  # noqa: S608  only our own columns are inserted
GONE = frozenset({Change.GONE, Change.MOVED})


class ValueEvent(Struct, frozen=True):
    """A value that differs. last: the row before, or None.  was: the last number before, or None."""

    visit: Visit
    value: PageValue
    last: PageValue | None
    was: float | None
    version: int


async def write_values(connection: Connection, domain: Domain, visits: Sequence[Visit]) -> list[ValueEvent]:
    """Write the values that differ from the last ones; return those to report.

    A value without a number is reported only if the last one had a number.
    """
    if not any(rule.view.values for rule in domain.settings.rules):
        return []
    read = [(visit, value) for visit in visits for value in _list_values(domain, visit)]
    if not read:
        return []
    pairs = split_into_columns("key bytea, name text", [(visit.target.key, value.name) for visit, value in read])
    rows = await fetch_rows(connection, LAST_VALUES, pairs | {"domain_id": domain.id}, binary=True)
    stored = {(row[0], row[1]): (PageValue(row[1], row[2], row[3], finding=row[4]), row[5]) for row in rows}
    events = []
    for visit, value in read:
        last, was = stored.get((visit.target.key, value.name), (None, None))
        if value.differs_from(last):
            version = visit.snapshot.version if visit.snapshot is not None else visit.target.version
            events.append(ValueEvent(visit, value, last, was, version.number if version is not None else 0))
    await copy_rows(connection, "page_value", VALUE_COLUMNS, (_build_row(domain.id, each) for each in events))
    return [each for each in events if each.value.number is not None or (each.last and each.last.number is not None)]


def _list_values(domain: Domain, visit: Visit) -> Iterator[PageValue]:
    """Yield what a visit read; for a page that is gone, that its values are gone."""
    if visit.change not in GONE:
        yield from visit.values
        return
    for rule in PageRules(domain.settings.rules).merge_view(visit.target.url).value_rules:
        yield PageValue(rule.name, finding=ValueFinding.GONE)


def _build_row(domain_id: int, event: ValueEvent) -> tuple[object, ...]:
    value = event.value
    texts = map(clean_text, (value.unit, value.text, str(value.finding)))
    return (domain_id, event.visit.target.key, value.name, event.visit.at, value.number, *texts, event.version)
