"""Metrics of domains: a few figures each, for a bounded number of domains."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from crawler.store.claim import AWAKE, DUE
from crawler.store.database import Database
from crawler.store.rows import fetch_rows, fetch_values

MAX_DUE = 100_000  # due pages of a domain are counted up to this number
DAYS = 7  # of the calibration
OTHERS = "(others)"

# The most important domains, and all others together. Due pages are counted by index, up to a bound. A domain is
# waiting if a claim would find it: pages may be due for days if it is paused, closed or has spent its budget.
DOMAINS = f"""
    WITH ranked AS (
        SELECT r.*, row_number() OVER (ORDER BY r.importance DESC, r.domain) AS place FROM report_domain r),
    found AS (
        SELECT CASE WHEN r.place < %(most)s THEN r.domain ELSE %(others)s END AS domain, r.importance, r.freshness,
               d.target_freshness, r.pages_fetched, r.pages_unfetched, r.pages_gone, r.dead_links, r.pages_withheld,
               r.holder IS NOT NULL AS is_leased,
               r.suspended_until IS NOT NULL AS is_suspended, coalesce({DUE} AND {AWAKE}, false) AS is_waiting,
               extract(epoch FROM %(at)s - r.oldest_visit_at)::float8 AS oldest_s,
               (SELECT count(*) FROM (SELECT FROM frontier f
                                       WHERE f.domain_id = r.domain_id AND f.state <> 'unfetched' AND f.due_at <= %(at)s
                                       LIMIT %(most_due)s) w) AS due
          FROM ranked r JOIN domain d ON d.id = r.domain_id JOIN domain_state s ON s.domain_id = d.id)
    SELECT domain, count(*) AS domains,
           sum(importance * freshness) / nullif(sum(importance) FILTER (WHERE freshness IS NOT NULL), 0) AS freshness,
           min(target_freshness)::float8 AS target_freshness, sum(pages_fetched)::bigint AS pages_fetched,
           sum(pages_unfetched)::bigint AS pages_unfetched, sum(pages_gone)::bigint AS pages_gone,
           sum(dead_links)::bigint AS dead_links, sum(pages_withheld)::bigint AS pages_withheld,
           sum(due)::bigint AS due, count(*) FILTER (WHERE is_leased) AS leased,
           count(*) FILTER (WHERE is_suspended) AS held, count(*) FILTER (WHERE is_waiting) AS waiting,
           max(oldest_s) AS oldest_visit_s
      FROM found GROUP BY domain ORDER BY domain = %(others)s, domain
"""  # noqa: S608  only our own conditions are inserted
CALIBRATION = """
    SELECT audit, sum(visits)::bigint AS visits, sum(expected)::float8 AS expected, sum(found)::float8 AS found,
           ((sum(found) - sum(expected)) / nullif(sqrt(sum(variance)), 0))::float8 AS deviations
      FROM calibration WHERE day > (%(at)s::timestamptz AT TIME ZONE 'UTC')::date - %(days)s
     GROUP BY audit HAVING sum(visits) > 0 ORDER BY audit
"""


DATABASE = """
    SELECT pg_database_size(current_database()) AS size_bytes, current_setting('server_version') AS version,
           (SELECT count(*) FROM domain) AS domains,
           (SELECT coalesce(sum(s.tracked), 0)::bigint FROM domain_state s) AS pages
"""
# Of partitioned tables, all partitions together.
LARGEST_TABLES = """
    SELECT coalesce(i.inhparent, c.oid)::regclass::text AS name,
           sum(pg_total_relation_size(c.oid))::bigint AS size_bytes
      FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
     GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %(most)s
"""


class DatabaseSize(Struct, frozen=True):
    """The size of the database. version: of Postgres.  pages: in any state.  tables: the largest, with their sizes."""

    size_bytes: int
    version: str
    domains: int
    pages: int
    tables: tuple[tuple[str, int], ...] = ()


class DomainGauge(Struct, frozen=True):
    """The figures of one domain, or of several together. domain: its name, or OTHERS.  domains: their number.

    due: the number of due pages, without unfetched ones.  leased, held, waiting: the number of domains that are being
    crawled, that are suspended, and that a worker may claim now.  oldest_visit_s: the longest time since the last visit
    to a fetched page, in seconds.
    """

    domain: str
    domains: int
    freshness: float | None
    target_freshness: float | None
    pages_fetched: int
    pages_unfetched: int
    pages_gone: int
    dead_links: int
    pages_withheld: int
    due: int
    leased: int
    held: int
    waiting: int
    oldest_visit_s: float | None


class CalibrationGauge(Struct, frozen=True):
    """Predicted changes compared with those found, over all domains and the last DAYS days.

    audit: visits of the random sample, or else all others.  expected, found: the number of changes.
    deviations: the standard deviations by which `found` exceeds `expected`; None without any variance.
    """

    audit: bool
    visits: int
    expected: float
    found: float
    deviations: float | None


async def read_domain_gauges(
    db: Database, *, at: datetime, max_domains: int
) -> tuple[list[DomainGauge], list[CalibrationGauge]]:
    """Return up to max_domains rows of figures, the last one for all less important domains, and the calibration."""
    async with db.transaction() as connection:
        values = {"at": at, "most": max_domains, "others": OTHERS, "most_due": MAX_DUE, "only": None}
        domains = await fetch_values(connection, DomainGauge, DOMAINS, values)
        return domains, await fetch_values(connection, CalibrationGauge, CALIBRATION, values | {"days": DAYS})


async def read_database_size(db: Database, *, max_tables: int) -> DatabaseSize:
    """Return the size of the database and of its largest tables."""
    (size,) = await fetch_values(db, DatabaseSize, DATABASE, {})
    tables = await fetch_rows(db, LARGEST_TABLES, {"most": max_tables})
    return replace(size, tables=tuple((name, size_bytes) for name, size_bytes in tables))
