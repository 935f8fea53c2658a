"""The list of domains with their figures, sorted and filtered, one part at a time.

The list is sorted by the figures of the last hourly count, so that a thousand domains take milliseconds. The domains of
the part that is shown get their current figures if they are small.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.http.urls import Authority
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.report.freshness import FAILING, LIVE_TOTALS, MAX_AGE, MAX_SMALL_PAGES
from crawler.store.rows import build_like_pattern, clean_text, fetch_dict, fetch_number, fetch_rows, fetch_values

MAX_CURRENT_PAGES = 20_000  # counted for one part of the list; 2,000 take some 50 ms
RECENT = timedelta(days=1)  # the period of the counted changes


class DomainOrder(StrEnum):
    """The order of the list of domains."""

    ATTENTION = "attention"  # suspended, then below its target or with a finding of the plan
    NAME = "name"
    FRESHNESS = "freshness"
    PAGES = "pages"
    CHANGES = "changes"
    BUDGET = "budget"
    NEXT_VISIT = "next"


IS_SUSPENDED = "coalesce(s.resume_at > %(at)s, false)"
BUDGET = "coalesce(d.budget_per_day, l.budget_per_day)"
SPENT = "CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END"
ORDERS = {
    DomainOrder.ATTENTION: f"""
        {IS_SUSPENDED} DESC, coalesce(g.freshness < d.target_freshness, false) DESC, coalesce(l.finding, '') <> '' DESC,
        changes DESC, d.authority
    """,
    DomainOrder.NAME: "d.authority",
    DomainOrder.FRESHNESS: "g.freshness NULLS LAST, d.authority",
    DomainOrder.PAGES: "s.tracked DESC, d.authority",
    DomainOrder.CHANGES: "changes DESC, d.authority",
    DomainOrder.BUDGET: f"({SPENT})::float8 / nullif({BUDGET}, 0) DESC NULLS LAST, d.authority",
    DomainOrder.NEXT_VISIT: "d.state = 'paused', s.wake_at NULLS LAST, d.authority",
}
IS_LISTED = """
    (%(only)s::bigint[] IS NULL OR d.id = ANY(%(only)s)) AND d.authority ILIKE %(pattern)s
    AND (%(tag)s = '' OR EXISTS (SELECT FROM domain_tag g WHERE g.domain_id = d.id AND g.tag = %(tag)s))
"""
LISTED = f"""
    SELECT d.id AS domain_id, d.authority AS domain, d.state = 'paused' AS paused, s.tracked,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder,
           CASE WHEN {IS_SUSPENDED} THEN s.resume_at END AS suspended_until,
           CASE WHEN {IS_SUSPENDED} THEN s.resume_reason ELSE '' END AS suspension_reason,
           d.target_freshness, d.max_age_s * interval '1 second' AS max_age, g.freshness, coalesce(g.fetched, 0) AS
           fetched, coalesce(g.unfetched, 0) AS unfetched, coalesce(g.gone, 0) AS gone,
           coalesce(g.dead_links, 0) AS dead_links, coalesce(g.moved, 0) AS moved, coalesce(g.excluded, 0) AS excluded,
           coalesce(g.withheld, 0) AS withheld, g.counted_at, {SPENT} AS spent_today, {BUDGET} AS budget_per_day,
           coalesce(l.finding, '') AS finding, s.wake_at AS next_at, s.last_visit_at, coalesce(c.changes, 0) AS changes,
           ARRAY(SELECT g.tag FROM domain_tag g WHERE g.domain_id = d.id ORDER BY g.tag) AS tags
      FROM domain d
      JOIN domain_state s ON s.domain_id = d.id
      LEFT JOIN domain_plan l ON l.domain_id = d.id
      LEFT JOIN domain_figures g ON g.domain_id = d.id
      LEFT JOIN (SELECT e.domain_id, count(*) AS changes FROM event e
                  WHERE e.at >= %(since)s AND e.change <> 'added' AND e.change <> 'hint'
                    AND (%(only)s::bigint[] IS NULL OR e.domain_id = ANY(%(only)s)) GROUP BY e.domain_id) c
             ON c.domain_id = d.id
     WHERE {IS_LISTED}
     ORDER BY {{order}} LIMIT %(most)s OFFSET %(skipped)s
"""  # noqa: S608  only our own expressions are inserted
COUNT = f"SELECT count(*) FROM domain d WHERE {IS_LISTED}"  # noqa: S608  the same
FAILING_PAGES = f"""
    SELECT s.domain_id,
           CASE WHEN s.tracked <= %(small)s
                THEN (SELECT count(*) FROM page p WHERE p.domain_id = s.domain_id AND p.failures > 0)
                ELSE (SELECT count(*) FROM top_page t WHERE t.domain_id = s.domain_id AND t.ranking = '{FAILING}') END
      FROM domain_state s WHERE s.domain_id = ANY(%(ids)s)
"""  # noqa: S608  the same


class DomainQuery(Struct, frozen=True):
    """A part of the list of domains. name: a part of the name.  tag: one of their tags.  only: ids; None for all."""

    order: DomainOrder = DomainOrder.NAME
    name: str = ""
    only: Collection[int] | None = None
    skipped: int = 0
    tag: str = ""


class DomainRow(Struct, frozen=True):
    """A domain in a list, with the figures that its page shows, too.

    tracked: its pages in any state.  unfetched ... withheld, freshness: as in DomainReport, at counted_at, which is
    None for a domain without pages and for a large one that was never counted.  budget_per_day: its own or planned
    limit.  changes: in the last 24 hours, without added pages and hints.  failing: pages whose last visit failed; in a
    large domain, at the last count and up to RANKING_SIZE.  next_at: when it is crawled next.
    """

    domain_id: int
    domain: Authority
    paused: bool
    tracked: int
    holder: str | None
    suspended_until: datetime | None
    suspension_reason: str
    target_freshness: float | None
    max_age: timedelta | None
    freshness: float | None
    fetched: int
    unfetched: int
    gone: int
    dead_links: int
    moved: int
    excluded: int
    withheld: int
    counted_at: datetime | None
    spent_today: int
    budget_per_day: int | None
    finding: str
    next_at: datetime | None
    last_visit_at: datetime | None
    changes: int
    tags: tuple[str, ...] = ()
    failing: int = 0

    @property
    def is_large(self) -> bool:
        """Return whether its figures are those of the last count."""
        return self.tracked > MAX_SMALL_PAGES

    @property
    def is_uncounted(self) -> bool:
        """Return whether it is large and was never counted, so that most figures are unknown."""
        return self.is_large and self.counted_at is None

    @property
    def is_below(self) -> bool:
        """Return whether the freshness is below the domain's target."""
        return self.freshness is not None and self.freshness < (self.target_freshness or 0)

    @property
    def is_spent(self) -> bool:
        """Return whether the budget of the UTC day is spent."""
        return self.budget_per_day is not None and self.spent_today >= self.budget_per_day


async def list_domain_rows(
    db: Database, query: DomainQuery, *, max_count: int, at: datetime
) -> tuple[list[DomainRow], int]:
    """Return a part of the list of domains, and the number of domains in all parts."""
    pattern = build_like_pattern(query.name)
    only = None if query.only is None else list(query.only)
    values: dict[str, Any] = {"at": at, "since": at - RECENT, "only": only, "pattern": pattern}
    values |= {"most": max_count, "skipped": query.skipped, "tag": clean_text(query.tag)}
    async with db.transaction() as connection:
        rows = await fetch_values(connection, DomainRow, LISTED.format(order=ORDERS[query.order]), values)
        count = await fetch_number(connection, COUNT, values)
        await connection.execute(PREFER_KEY_LOOKUPS)  # a small domain may share its partition with a large one
        ids = [row.domain_id for row in rows if row.tracked]
        failing: dict[int, int] = dict(
            await fetch_rows(connection, FAILING_PAGES, {"ids": ids, "small": MAX_SMALL_PAGES})
        )
        current = {row.domain_id: await _read_current(connection, row, at=at) for row in _select_outdated(rows, at=at)}
    shown = [replace(row, **current.get(row.domain_id, {}), failing=failing.get(row.domain_id, 0)) for row in rows]
    return shown, count


def _select_outdated(rows: list[DomainRow], *, at: datetime) -> list[DomainRow]:
    """Return the small domains whose stored figures are missing or older than their last visit, or than MAX_AGE.

    Up to MAX_CURRENT_PAGES pages are counted; the others keep their stored figures.
    """
    pages, outdated = 0, []
    for row in rows:
        visited_at = row.last_visit_at or row.counted_at
        is_current = row.counted_at is not None and visited_at is not None and visited_at <= row.counted_at
        if row.tracked and not row.is_large and not (is_current and row.counted_at and at - row.counted_at < MAX_AGE):
            pages += row.tracked
            if pages <= MAX_CURRENT_PAGES:
                outdated.append(row)
    return outdated


async def _read_current(connection: Connection, row: DomainRow, *, at: datetime) -> dict[str, Any]:
    """Return the figures of a small domain now."""
    instant = max(at, row.last_visit_at or at)
    totals = await fetch_dict(connection, LIVE_TOTALS, {"domain_id": row.domain_id, "at": instant})
    assert totals is not None, "an aggregate has a row"
    return {name: value for name, value in totals.items() if name in DomainRow.__struct_fields__}
