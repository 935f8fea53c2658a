"""Freshness and counts of domains. For a large domain (more than MAX_SMALL_PAGES pages) they are stored.

A small domain is counted at query time. The figures of a large one are counted by the hourly plan, at the end of a
crawl that visited many pages, and by a reader if they are too old; counted_at says when.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec.structs import astuple
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.core.visit.state import PageCategory
from crawler.store.database import Connection, Database
from crawler.store.report.duplicates import (
    NearDuplicate,
    NearDuplicateGroup,
    fill_fingerprints,
    find_near_duplicate_groups,
)
from crawler.store.report.expressions import PAGES
from crawler.store.rows import execute, fetch_number, fetch_row, fetch_rows, fetch_value, fetch_values

# Pages in any state. Freshness takes about 10 microseconds per page, 40 with sources of change signals.
MAX_SMALL_PAGES = 2000
# Plans run hourly. If figures are older than this, for example because no plan runs, the next reader counts again.
MAX_AGE = timedelta(hours=3)
ANY_AGE = timedelta(days=36_500)
MIN_VISITED_SHARE = 0.01  # visits of a crawl, relative to the domain's pages, that make its figures outdated
RANKING_SIZE = 300  # pages in each ranking
GROUP_BITS = 3  # maximum distance of fingerprints in a group of near duplicates
MAX_GROUPS = 10
MAX_MEMBERS = 4  # pages of a group
MAX_FILL_CHUNKS = 4  # chunks of events to add to the index of fingerprints at a time
ALL, FAILING, RENDERED = "all", "failing", "rendered"  # rankings in addition to one for each PageCategory

TOTALS = """
    count(*) FILTER (WHERE category = 'unfetched') AS unfetched,
    count(*) FILTER (WHERE category = 'unfetched' AND due_at > %(at)s) AS deferred,
    count(*) FILTER (WHERE category = 'fetched') AS fetched,
    count(*) FILTER (WHERE category = 'gone') AS gone,
    count(*) FILTER (WHERE category = 'dead_link') AS dead_links,
    count(*) FILTER (WHERE category = 'moved') AS moved,
    count(*) FILTER (WHERE category = 'excluded') AS excluded,
    count(*) FILTER (WHERE withheld_since IS NOT NULL) AS withheld,
    sum(importance * freshness) / nullif(sum(importance) FILTER (WHERE freshness IS NOT NULL), 0) AS freshness,
    avg(freshness) AS freshness_plain,
    min(last_visit_at) FILTER (WHERE freshness IS NOT NULL) AS oldest_visit_at
"""
LIVE_TOTALS = f"SELECT {TOTALS}, %(at)s::timestamptz AS counted_at FROM ({PAGES}) p"  # noqa: S608  our own expressions
TOTAL_COLUMNS = """
    unfetched, deferred, fetched, gone, dead_links, moved, excluded, withheld, freshness, freshness_plain,
    oldest_visit_at
"""
STORED_TOTALS = f"SELECT {TOTAL_COLUMNS}, counted_at FROM domain_figures WHERE domain_id = %(domain_id)s"  # noqa: S608
# Whether the figures of a large domain are recent at an instant. The view domain_counted_live has a similar condition.
IS_STORED = """
    SELECT g.counted_at
      FROM domain_state s JOIN domain_figures g USING (domain_id)
     WHERE s.domain_id = %(domain_id)s AND s.tracked > %(small)s
       AND (%(at)s::timestamptz IS NULL OR
            greatest(%(at)s::timestamptz, s.last_visit_at) BETWEEN g.counted_at AND g.counted_at + %(kept_for)s)
"""
IS_LARGE = "SELECT FROM domain_state WHERE domain_id = %(domain_id)s AND tracked > %(small)s"
TRACKED = "SELECT tracked FROM domain_state WHERE domain_id = %(domain_id)s"
IS_OUTDATED = f"{IS_LARGE} AND %(visits)s >= %(moving)s * tracked"
# A deletion of the domain waits for the row lock, but the recording of visits does not. Another process that counts the
# domain waits at the inserted row.
BEGIN = """
    WITH stays AS (SELECT domain_id, tracked, greatest(%(at)s::timestamptz, last_visit_at) AS at
                     FROM domain_state WHERE domain_id = %(domain_id)s FOR KEY SHARE)
    INSERT INTO domain_figures (domain_id, counted_at) SELECT domain_id, at FROM stays
    ON CONFLICT (domain_id) DO UPDATE SET counted_at = excluded.counted_at
 RETURNING counted_at, (SELECT tracked FROM stays) AS tracked
"""
COUNTED_TABLES = ("freshness_figures", "top_page")
# Reads all pages once: half a million take some seconds.
COUNT_PAGES = f"""
    WITH p AS MATERIALIZED (
        SELECT key, state, importance, freshness, due_at, last_visit_at, category, withheld_since, template,
               failures, is_rendered,
               extract(epoch FROM greatest(%(at)s, last_good_at) - last_good_at)::float8 AS age_s,
               extract(epoch FROM due_at - last_visit_at)::float8 AS interval_s,
               state = 'fetched' AND version > 0 AS is_read
          FROM ({PAGES}) x),
    totals AS (
        UPDATE domain_figures g
           SET ({TOTAL_COLUMNS}) = (SELECT {TOTALS} FROM p)
         WHERE g.domain_id = %(domain_id)s),
    parts AS (
        SELECT template, decile, count(*) AS pages, sum(importance) AS importance,
               sum(importance * freshness) AS fresh_importance, sum(freshness) AS fresh_pages,
               sum(age_s) AS age_s, max(age_s) AS oldest_s, sum(interval_s) AS interval_s,
               min(interval_s) AS shortest_s, max(interval_s) AS longest_s
          FROM (SELECT *, ntile(10) OVER (ORDER BY importance DESC NULLS LAST) AS decile FROM p WHERE is_read) r
         GROUP BY template, decile),
    graded AS (
        INSERT INTO freshness_figures
        SELECT %(domain_id)s,
               CASE WHEN grouping(template) = 0 THEN 'template' WHEN grouping(decile) = 0 THEN 'decile'
                    ELSE 'domain' END,
               coalesce(template, ''), coalesce(decile, 0),
               sum(pages), sum(fresh_importance) / nullif(sum(importance), 0), sum(fresh_pages) / sum(pages)::float8,
               make_interval(secs => sum(age_s) / sum(pages)::float8), make_interval(secs => max(oldest_s)),
               make_interval(secs => min(shortest_s)),
               make_interval(secs => sum(interval_s) / sum(pages)::float8), make_interval(secs => max(longest_s))
          FROM parts GROUP BY GROUPING SETS ((), (template), (decile))
        HAVING sum(pages) > 0),
    ranked AS (
        INSERT INTO top_page
        SELECT %(domain_id)s, r.ranking,
               row_number() OVER (PARTITION BY r.ranking ORDER BY b.importance DESC NULLS LAST, b.key), b.key
          FROM unnest(%(rankings)s::text[]) AS r(ranking)
         CROSS JOIN LATERAL (SELECT key, importance FROM p
                              WHERE CASE r.ranking WHEN '{ALL}' THEN true WHEN '{FAILING}' THEN p.failures > 0
                                                   WHEN '{RENDERED}' THEN p.is_rendered
                                                   ELSE p.category = r.ranking END
                              ORDER BY importance DESC NULLS LAST, key LIMIT %(places)s) b
         WHERE %(is_large)s)
    SELECT
"""  # noqa: S608  only our own expressions are inserted
STORE_GROUPS = "UPDATE domain_figures SET near_duplicates = %s WHERE domain_id = %s"
STORED_GROUPS = "SELECT near_duplicates FROM domain_figures WHERE domain_id = %s AND near_duplicates IS NOT NULL"
RANKED = "SELECT key FROM top_page WHERE domain_id = %(domain_id)s AND ranking = %(ranking)s ORDER BY place"


class CountState(StrEnum):
    """Whether a domain's figures are available."""

    DONE = "done"  # current, or counted at query time
    OLD = "old"  # counted too long ago
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts and the freshness of all pages of a domain, as in DomainReport."""

    unfetched: int
    deferred: int
    fetched: int
    gone: int
    dead_links: int
    moved: int
    excluded: int
    withheld: int
    freshness: float | None
    freshness_plain: float | None
    oldest_visit_at: datetime | None
    counted_at: datetime


async def store_figures(db: Database, domain: Domain, *, at: datetime) -> None:
    """Count all pages of a domain and store the figures. Do nothing if the domain was deleted."""
    async with db.transaction() as connection:
        count_row = await fetch_row(connection, BEGIN, {"domain_id": domain.id, "at": at})
        if count_row is None:
            return
        counted_at, tracked = count_row
        is_large = tracked > MAX_SMALL_PAGES
        for table in COUNTED_TABLES:
            await connection.execute(f"DELETE FROM {table} WHERE domain_id = %s", (domain.id,))  # noqa: S608  our names
        rankings = [ALL, FAILING, RENDERED, *(each.value for each in PageCategory)]
        values = {"domain_id": domain.id, "at": counted_at, "rankings": rankings, "places": RANKING_SIZE}
        values["is_large"] = is_large
        await connection.execute(COUNT_PAGES.encode(), values)
    if is_large:
        groups = await _find_largest_groups(db, domain)
        document = [[each.pages, list(map(astuple, each.members))] for each in groups]
        await execute(db, STORE_GROUPS, (Jsonb(document), domain.id))


async def count_if_large(db: Database, domain: Domain, *, at: datetime, max_age: timedelta) -> None:
    """Count the pages of the domain if it is large and its figures are older than max_age."""
    if await read_count_state(db, domain, at=at, max_age=max_age) is not CountState.DONE:
        await store_figures(db, domain, at=at)


async def count_after_crawl(db: Database, domain: Domain, *, visits: int, at: datetime) -> None:
    """Count a large domain at the end of a crawl if the number of visits may have changed its figures."""
    values = {"domain_id": domain.id, "small": MAX_SMALL_PAGES, "visits": visits, "moving": MIN_VISITED_SHARE}
    if await fetch_row(db, IS_OUTDATED, values) is not None:
        await store_figures(db, domain, at=at)


async def read_totals(connection: Connection, domain: Domain, *, at: datetime, max_age: timedelta) -> Totals:
    """Return counts and freshness: computed now for a small domain, from the last count for a large one."""
    is_stored = await are_figures_stored(connection, domain, at=at, max_age=max_age)
    statement = STORED_TOTALS if is_stored else LIVE_TOTALS
    (totals,) = await fetch_values(connection, Totals, statement, {"domain_id": domain.id, "at": at})
    return totals  # both statements return one row


async def read_count_state(db: Database, domain: Domain, *, at: datetime, max_age: timedelta = MAX_AGE) -> CountState:
    """Return whether the figures of a domain are current: it is small, or they are no older than max_age."""
    async with db.transaction() as connection:
        is_large = await fetch_row(connection, IS_LARGE, {"domain_id": domain.id, "small": MAX_SMALL_PAGES}) is not None
        if not is_large or await are_figures_stored(connection, domain, at=at, max_age=max_age):
            return CountState.DONE
        was_counted = await are_figures_stored(connection, domain, at=at, max_age=ANY_AGE)
        return CountState.OLD if was_counted else CountState.NEVER


async def count_tracked_pages(db: Database, domain: Domain) -> int:
    """Return the number of pages of a domain in any state; 0 if it was deleted."""
    return await fetch_number(db, TRACKED, {"domain_id": domain.id})


async def are_figures_stored(
    connection: Connection, domain: Domain, *, at: datetime | None, max_age: timedelta = MAX_AGE
) -> bool:
    """Return whether to show stored figures: the domain is large and they are recent. at: None accepts any age."""
    values = {"domain_id": domain.id, "at": at, "small": MAX_SMALL_PAGES, "kept_for": max_age}
    return await fetch_row(connection, IS_STORED, values) is not None


async def read_stored_ranking(
    connection: Connection, domain: Domain, ranking: str, *, top: int, at: datetime | None, max_age: timedelta = MAX_AGE
) -> list[PageKey] | None:
    """Return the pages of a stored ranking, or None if there is none, if it is too old, or too short for `top` pages.

    at: the instant of the request; None accepts a count of any age.
    """
    if not await are_figures_stored(connection, domain, at=at, max_age=max_age):
        return None
    values = {"domain_id": domain.id, "ranking": ranking}
    keys = [PageKey(key) for (key,) in await fetch_rows(connection, RANKED, values)]
    return keys if len(keys) < RANKING_SIZE or top <= RANKING_SIZE else None


async def read_largest_groups(
    db: Database, domain: Domain, *, at: datetime, max_age: timedelta = MAX_AGE
) -> list[NearDuplicateGroup]:
    """Return the largest groups of near duplicates: for a large domain with recent figures, as of the last count.

    Otherwise, update the fingerprints and search for the groups now.
    """
    async with db.transaction() as connection:
        if await are_figures_stored(connection, domain, at=at, max_age=max_age):
            stored = await fetch_value(connection, STORED_GROUPS, (domain.id,))
            if stored is not None:
                groups = ((pages, [NearDuplicate(*member) for member in members]) for pages, members in stored)
                return [NearDuplicateGroup(domain.authority, pages, members) for pages, members in groups]
    return await _find_largest_groups(db, domain)


async def _find_largest_groups(db: Database, domain: Domain) -> list[NearDuplicateGroup]:
    await fill_fingerprints(db, domain, max_chunks=MAX_FILL_CHUNKS)
    return await find_near_duplicate_groups(db, domain, bits=GROUP_BITS, max_groups=MAX_GROUPS, max_members=MAX_MEMBERS)
