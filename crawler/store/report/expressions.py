"""SQL expressions for importance and freshness of pages, the backlog of a domain, and the holders of leases.

Importance and freshness are computed in the database, by the functions in models/sql/functions.sql.
"""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import Url, compute_page_key
from crawler.store.database import Database
from crawler.store.rows import fetch_number, fetch_row, fetch_rows, fetch_values

# These expressions use the aliases of PAGE_TABLES below. Popularity is the part of importance that comes from links.
POPULARITY = """
    page_importance(c.history, c.net + q.dividend, s.total_cash - s.dormant, c.clock, s.clock,
                    (SELECT sum(n.pages) FROM pool n WHERE n.domain_id = %(domain_id)s)::float8, s.window_passes)
"""
# The share of importance that comes from the URL: 0 except in the mixed order.
URL_SHARE = """
    (SELECT CASE WHEN o.discovery_order = 'mixed' THEN o.url_weight ELSE 0 END FROM domain o WHERE o.id = %(domain_id)s)
"""
IMPORTANCE = f"((1 - {URL_SHARE}) * {POPULARITY} + {URL_SHARE} * f.url_score)"
# The weight of a page in scheduling: a mix of its importance and an equal share, set by importance_mix.
MIX = "(SELECT o.importance_mix FROM domain o WHERE o.id = %(domain_id)s)"
WEIGHT = f"(1 - {MIX} + {MIX} * {IMPORTANCE})"
# The time since the page's last successful visit, in site activity. The current time is at least that of the domain's
# last visit.
GAP = """
    activity_gap(greatest(%(at)s::timestamptz, s.last_visit_at), s.activity_at, s.activity_ahead, p.last_good_at)
"""
RECALL = "(SELECT max(o.effective_recall) FROM domain_source o WHERE o.domain_id = %(domain_id)s)"
# The changes that visits found in the 14 UTC days before an instant, relative to those predicted; at most 1. Visits go
# to the pages that change most: if even these change less than predicted, all do; if they change more, that says little
# about the others. One change more of each keeps few visits from counting much. View report_page has the same.
CALIBRATION = """
    (SELECT least(1, (1 + coalesce(sum(found), 0))::float8 / (1 + coalesce(sum(expected), 0))) FROM calibration
      WHERE domain_id = %(domain_id)s AND day >= ({at} AT TIME ZONE 'UTC')::date - 14
        AND day <= ({at} AT TIME ZONE 'UTC')::date)
"""
CALIBRATION_NOW = CALIBRATION.format(at="coalesce(%(at)s::timestamptz, now())")
# A duplicate that shares a schedule has no freshness: its text counts once, on the canonical page.
FRESHNESS = f"""
    CASE WHEN p.canonical IS NOT NULL THEN NULL
         WHEN f.state = 'fetched' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
         WHEN f.state = 'fetched' AND p.version > 0 AND {RECALL} IS NULL
         THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b, {GAP}, {CALIBRATION_NOW})  -- inlined: five times as fast
         WHEN f.state = 'fetched' AND p.version > 0
         THEN page_freshness(g.a + p.rate_a, g.b + p.rate_b,
                  signal_gap({GAP}, p.signals,
                             (SELECT array_agg(o.recall ORDER BY o.no) FROM domain_source o
                               WHERE o.domain_id = %(domain_id)s),
                             (SELECT array_agg(o.noise ORDER BY o.no) FROM domain_source o
                               WHERE o.domain_id = %(domain_id)s),
                             {RECALL}, g.a + p.rate_a, g.b + p.rate_b), {CALIBRATION_NOW}) END
"""  # noqa: S608  only our own expressions are inserted
RANKED_TABLES = """page p
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key"""
PAGE_TABLES = f"{RANKED_TABLES} JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no"
PAGES = f"""
    SELECT p.key, p.url, f.state, {IMPORTANCE} AS importance, {POPULARITY} AS popularity,
           CASE WHEN c.key IS NOT NULL THEN f.url_score END AS url_score, {FRESHNESS} AS freshness,
           p.last_visit_at, p.version, (g.a + p.rate_a) / (g.b + p.rate_b) AS rate_per_day, f.due_at,
           p.status, p.reason, p.failures, p.last_good_at, u.kind AS list_kind,
           page_category(f.state, p.version, u.kind) AS category, p.withheld_since, g.template, p.is_rendered,
           f.request_reason, p.canonical IS NOT NULL AS is_duplicate
      FROM {PAGE_TABLES}
     WHERE p.domain_id = %(domain_id)s
"""  # noqa: S608  only our own expressions are inserted
DUE = """
    SELECT count(*) FILTER (WHERE page_category(f.state, p.version, u.kind) = 'unfetched') AS unfetched,
           count(*) FILTER (WHERE page_category(f.state, p.version, u.kind) = 'unread_list') AS unread_lists,
           count(*) FILTER (WHERE page_category(f.state, p.version, u.kind)
                                  NOT IN ('unfetched', 'unread_list', 'excluded')) AS due,
           count(*) FILTER (WHERE f.state <> 'unfetched' AND coalesce(p.etag, p.last_modified) IS NOT NULL
                                  AND p.version > 0) AS conditional,
           coalesce(sum(p.received_bytes::bigint) FILTER (WHERE f.state <> 'unfetched'), 0)::bigint AS fetched_bytes,
           (SELECT coalesce(avg(received_bytes), 0) FROM page
             WHERE domain_id = %(domain_id)s AND version > 0)::float8 AS mean_bytes,
           (SELECT count(*) FROM inbox WHERE domain_id = %(domain_id)s) AS inbox_rows
      FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = f.key
     WHERE f.domain_id = %(domain_id)s AND (coalesce(f.due_at <= %(at)s, true))
"""
# Requests in the inbox count as work. A request can name any page, so all pages are read.
HAS_REQUESTS = "SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind IN ('refresh', 'seed') LIMIT 1"
DUE_OR_REQUESTED = f"""
    WITH prefixes AS MATERIALIZED (
        SELECT payload->>'prefix' AS prefix FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'refresh'),
    requested_urls AS MATERIALIZED (
        SELECT DISTINCT jsonb_array_elements_text(payload->'urls') AS url
          FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'seed'),
    unknown_urls AS MATERIALIZED (
        SELECT count(*) AS urls FROM requested_urls n
         WHERE n.url NOT IN (SELECT url FROM page WHERE domain_id = %(domain_id)s)),
    found AS ({DUE.rstrip().removesuffix(")")} OR p.url IN (SELECT url FROM requested_urls)
            OR EXISTS (SELECT FROM prefixes b WHERE starts_with(p.url, b.prefix))))
    SELECT found.unfetched + unknown_urls.urls AS unfetched, unread_lists, due, conditional, fetched_bytes, mean_bytes,
           inbox_rows
      FROM found, unknown_urls
"""  # noqa: S608  only our own statement is inserted
HOLDERS = "SELECT DISTINCT holder FROM domain_state WHERE leased_until > clock_timestamp() AND holder IS NOT NULL"
TRACKED_PAGES = """
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND page_category(f.state, p.version, u.kind) NOT IN ('unread_list', 'excluded')
"""
COUNT_PAGES = f"""
    SELECT count(*) AS pages {TRACKED_PAGES} AND starts_with(p.url, %(url)s) AND (%(is_prefix)s OR p.url = %(url)s)
"""
LIST_TRACKED = f"SELECT p.url {TRACKED_PAGES} AND p.key = ANY(%(keys)s)"


class Backlog(Struct, frozen=True):
    """The work that waits in a domain at an instant.

    unfetched: unfetched pages that may be fetched now.  unread_lists: URLs where a sitemap or a feed is searched for.
    due: other due pages, except excluded ones.  conditional: due pages for which a 304 may save the body.
    fetched_bytes: the bytes of the due pages at their last successful visits.  mean_bytes: the mean size of the
    domain's pages.  inbox_rows: rows in the inbox. The counts include the pages that its seeds and refreshes name.
    """

    unfetched: int
    unread_lists: int
    due: int
    conditional: int
    fetched_bytes: int
    mean_bytes: float
    inbox_rows: int

    @property
    def fetches(self) -> int:
        """Return the number of waiting fetches: of pages, and of URLs where a list may be."""
        return self.unfetched + self.unread_lists + self.due


async def read_backlog(db: Database, domain: Domain, *, at: datetime) -> Backlog:
    """Return the work that waits in the domain at an instant."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at}
        statement = DUE if await fetch_row(connection, HAS_REQUESTS, values) is None else DUE_OR_REQUESTED
        return (await fetch_values(connection, Backlog, statement, values))[0]


async def list_tracked(db: Database, domain: Domain, urls: Collection[Url]) -> set[Url]:
    """Return those of the URLs that are pages of the domain, without excluded pages and unread lists."""
    values = {"domain_id": domain.id, "keys": list(map(compute_page_key, urls))}
    return {url for (url,) in await fetch_rows(db, LIST_TRACKED, values)}


async def list_holders(db: Database) -> set[str]:
    """Return the names of the workers that hold a lease now."""
    return {holder for (holder,) in await fetch_rows(db, HOLDERS, {})}


async def count_pages(db: Database, domain: Domain, url: Url, *, is_prefix: bool) -> int:
    """Return the number of the domain's pages with a URL or URL prefix, without excluded pages and unread lists."""
    return await fetch_number(db, COUNT_PAGES, {"domain_id": domain.id, "url": url, "is_prefix": is_prefix})
