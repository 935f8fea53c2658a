"""The most important pages of a domain: all, those in a state, those that fail, those that a browser rendered."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.visit.visit import CountedAs, State
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.report.figures import KEPT_FOR, kept_top, ranking_of
from crawler.store.report.reports import IMPORTANCE, PAGES

WANTED = """
    (%(state)s::text IS NULL OR page_counted_as(f.state, p.version, u.kind) = %(state)s)
    AND (NOT %(failing)s OR p.failures > 0) AND (NOT %(rendered)s OR p.is_rendered)
"""
# Freshness and titles are looked up for the pages that are shown, and for no others.
BEST = f"""
    SELECT p.key
      FROM page p
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND {WANTED}
     ORDER BY {IMPORTANCE} DESC NULLS LAST, p.url LIMIT %(top)s
"""  # noqa: S608  only our own expressions are put in
SHOWN = """
    SELECT p.*, coalesce(v.title, '') AS title
      FROM ({pages}) p
      LEFT JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version
     ORDER BY importance DESC NULLS LAST, url LIMIT %(top)s
"""
SHOWN_BEST = SHOWN.format(pages=f"{PAGES} AND p.key IN (SELECT key FROM best)")  # noqa: S608  the same
TOP = f"WITH best AS MATERIALIZED ({BEST}) {SHOWN_BEST}"
# Of a ranking that is kept: without those that have left it since.
TOP_OF = SHOWN.format(pages=f"{PAGES} AND p.key = ANY(%(keys)s) AND {WANTED}")


@dataclass(frozen=True, slots=True)
class PageLine:
    """One page of a list. importance: the domain's mean is 1; None outside the economy.

    popularity, url_score: what links and what the URL make of it; a mixed order weighs both, the others links alone.
    list_kind: of a sitemap or a feed, "" for one that was never read; None for pages that are no lists.
    failures: looks in a row that brought no good answer; last_good_at: the newest that did.
    """

    url: Url
    state: State
    importance: float | None
    popularity: float | None
    url_score: float | None
    freshness: float | None
    last_look_at: datetime | None
    version: int
    rate_per_day: float
    due_at: datetime | None
    status: int | None
    reason: str
    list_kind: str | None = None
    title: str = ""
    failures: int = 0
    last_good_at: datetime | None = None


async def pages(
    db: Database,
    domain: Domain,
    *,
    top: int,
    at: datetime,
    state: State | CountedAs | None = None,
    failing: bool = False,
    rendered: bool = False,
    kept_for: timedelta = KEPT_FOR,
) -> list[PageLine]:
    """The domain's most important pages, those outside the economy last.

    Of a large domain those that were so when it was last counted, if that was no longer ago than kept_for, as they are
    now.

    state: only those that count as it.  failing: only those of which the newest look brought no good answer.
    rendered: only those whose last version a browser made.
    """
    values = {"domain_id": domain.id, "at": at, "top": top, "state": state, "failing": failing, "rendered": rendered}
    ranking = ranking_of(state, failing=failing, rendered=rendered)
    async with db.transaction() as connection:
        kept = (
            await kept_top(connection, domain, ranking, top=top, at=at, kept_for=kept_for)
            if ranking is not None
            else None
        )
        if kept is None:
            rows = await _rows(connection, TOP, values)
        else:
            await connection.execute(BY_KEY)
            rows = await _rows(connection, TOP_OF, values | {"keys": kept})
    return [
        PageLine(
            url=Url(row["url"]),
            state=State(row["state"]),
            importance=row["importance"],
            popularity=row["popularity"],
            url_score=row["url_score"],
            freshness=row["freshness"],
            last_look_at=row["last_look_at"],
            version=row["version"],
            rate_per_day=row["rate_per_day"],
            due_at=row["due_at"],
            status=row["status"],
            reason=row["reason"],
            list_kind=row["list_kind"],
            title=row["title"],
            failures=row["failures"],
            last_good_at=row["last_good_at"],
        )
        for row in rows
    ]


async def _rows(connection: Connection, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), values)
        return await cursor.fetchall()
