"""The most important pages of a domain."""

from datetime import datetime, timedelta

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.core.visit.state import State
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.report.expressions import IMPORTANCE, PAGES, RANKED_TABLES
from crawler.store.report.freshness import ALL, FAILING, MAX_AGE, RENDERED, read_stored_ranking
from crawler.store.rows import fetch_values

IS_IN_RANKING = f"""
    CASE %(which)s::text WHEN '{ALL}' THEN true WHEN '{FAILING}' THEN p.failures > 0
                         WHEN '{RENDERED}' THEN p.is_rendered
                         ELSE page_category(f.state, p.version, u.kind) = %(which)s END
"""
# Freshness and titles are read only for the pages that are shown.
TOP_KEYS = f"""
    SELECT p.key FROM {RANKED_TABLES}
     WHERE p.domain_id = %(domain_id)s AND {IS_IN_RANKING}
     ORDER BY {IMPORTANCE} DESC NULLS LAST, p.url LIMIT %(top)s
"""  # noqa: S608  only our own expressions are inserted
PAGE_LINES = """
    SELECT p.*, coalesce(v.title, '') AS title
      FROM ({pages}) p
      LEFT JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version
     ORDER BY importance DESC NULLS LAST, url LIMIT %(top)s
"""
TOP_LINES = PAGE_LINES.format(pages=f"{PAGES} AND p.key IN (SELECT key FROM best)")  # noqa: S608  the same
TOP = f"WITH best AS MATERIALIZED ({TOP_KEYS}) {TOP_LINES}"
# For a stored ranking, without the pages that no longer belong to it.
STORED_TOP = PAGE_LINES.format(pages=f"{PAGES} AND p.key = ANY(%(keys)s) AND {IS_IN_RANKING}")


class PageLine(Struct, frozen=True):
    """One page in a list of pages. importance: the mean of the domain is 1; None outside the OPIC economy.

    popularity, url_score: the parts of importance from links and from the URL; only a mixed order uses the latter.
    version: the number of its newest version, or 0.  status, reason: of the last visit.
    list_kind: the kind of a URL list, "" if it was never read; None for pages that are not lists.
    failures: consecutive failed visits.  last_good_at: the last successful visit.
    """

    url: Url
    state: State
    importance: float | None
    popularity: float | None
    url_score: float | None
    freshness: float | None
    last_visit_at: datetime | None
    version: int
    rate_per_day: float
    due_at: datetime | None
    status: int | None
    reason: str
    list_kind: str | None = None
    title: str = ""
    failures: int = 0
    last_good_at: datetime | None = None


async def list_top_pages(
    db: Database, domain: Domain, *, top: int, at: datetime, ranking: str = ALL, max_age: timedelta = MAX_AGE
) -> list[PageLine]:
    """Return the domain's most important pages; pages outside the OPIC economy come last.

    For a large domain, the ranking is that of the last count, unless the count is older than max_age. The other fields
    are always current.

    ranking: the pages to list: ALL; those of a PageCategory; FAILING, whose last visit failed; or RENDERED, whose
    newest version was rendered by a browser.
    """
    values = {"domain_id": domain.id, "at": at, "top": top, "which": str(ranking)}
    async with db.transaction() as connection:
        stored_keys = await read_stored_ranking(connection, domain, str(ranking), top=top, at=at, max_age=max_age)
        if stored_keys is None:
            return await fetch_values(connection, PageLine, TOP, values)
        await connection.execute(PREFER_KEY_LOOKUPS)
        return await fetch_values(connection, PageLine, STORED_TOP, values | {"keys": stored_keys})
