"""Monthly partitions of table `visit`, which are dropped when empty, and planner statistics of partitions of pages."""

from datetime import UTC, datetime

from psycopg import errors, sql

from crawler.store.database import Connection, Database
from crawler.store.rows import fetch_rows, fetch_value

PARTITION_LOCK = 0x7265637261776D  # for crawl runs that start at the same time; MIGRATION_LOCK plus one
VISIT_PARTITIONS = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'visit'::regclass
"""
# Creating a partition waits for all readers and writers of visits, and later ones wait for it, so give up early.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
# The partitions of page, frontier and cash with a domain's rows, if the rows of the first have more than doubled since
# Postgres last analyzed it.
OUTGROWN = """
    SELECT n.nspname, part.relname
      FROM (SELECT tableoid FROM page WHERE domain_id = %(domain_id)s ORDER BY key LIMIT 1) AS one
      JOIN pg_class seen ON seen.oid = one.tableoid
                        AND pg_stat_get_live_tuples(seen.oid) > 2 * greatest(seen.reltuples, %(few)s)
     CROSS JOIN LATERAL (
        SELECT one.tableoid
         UNION ALL (SELECT tableoid FROM frontier WHERE domain_id = %(domain_id)s ORDER BY key LIMIT 1)
         UNION ALL (SELECT tableoid FROM cash WHERE domain_id = %(domain_id)s ORDER BY key LIMIT 1)) AS all_of_them
      JOIN pg_class part ON part.oid = all_of_them.tableoid
      JOIN pg_namespace n ON n.oid = part.relnamespace
"""
MIN_ROWS = 50  # a partition that had fewer counts as this large
IS_HELD_BY_DEFAULT = "SELECT EXISTS (SELECT FROM visit_default WHERE at >= %s AND at < %s)"
CREATE = sql.SQL("CREATE TABLE {name} PARTITION OF visit FOR VALUES FROM ({since}) TO ({until})")


async def ensure_visit_partition(db: Database, *, at: datetime) -> None:
    """Create the partitions for visits of the month of `at` and of the next month, if they are missing.

    Visits of a month stay in the default partition if it already has some of them, if the database user may not create
    tables, or if the table is busy. It is then only more expensive to delete them later.
    """
    this_month = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [this_month, get_next_month(this_month)]
    async with db.transaction() as connection:
        if not await _find_missing(connection, months):
            return
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        await connection.execute(LOCK_TIMEOUT)
        for month in await _find_missing(connection, months):
            await _try_to_create(connection, month)


async def analyze_if_outgrown(db: Database, domain_id: int) -> None:
    """Analyze the partitions of a domain if the rows of the first have more than doubled since the last time.

    Autovacuum looks for such partitions once a minute. Until then, Postgres scans all pages of a new domain for each
    batch of visits: at ten thousand pages, the scans take 90% of the time. Only the key columns are analyzed,
    which takes a tenth of the time of a full ANALYZE.
    """
    async with db.transaction() as connection:
        outgrown = await fetch_rows(connection, OUTGROWN, {"domain_id": domain_id, "few": MIN_ROWS})
        if not outgrown:
            return
        await connection.execute(LOCK_TIMEOUT)
        try:
            async with connection.transaction():
                for name in outgrown:
                    await connection.execute(sql.SQL("ANALYZE {} (domain_id, key)").format(sql.Identifier(*name)))
        except errors.LockNotAvailable:
            return  # another process analyzes them


def get_next_month(month: datetime) -> datetime:
    """Return the first instant of the next month. month: the first instant of a month."""
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


async def _find_missing(connection: Connection, months: list[datetime]) -> list[datetime]:
    existing = {row[0] for row in await fetch_rows(connection, VISIT_PARTITIONS)}
    return [month for month in months if _format_partition_name(month) not in existing]


def _format_partition_name(month: datetime) -> str:
    return f"visit_{month:%Y_%m}"


async def _try_to_create(connection: Connection, month: datetime) -> None:
    since, until = month, get_next_month(month)
    if await fetch_value(connection, IS_HELD_BY_DEFAULT, (since, until)):
        return
    name = sql.Identifier(_format_partition_name(month))
    try:
        async with connection.transaction():
            await connection.execute(CREATE.format(name=name, since=sql.Literal(since), until=sql.Literal(until)))
    except (errors.LockNotAvailable, errors.InsufficientPrivilege, errors.CheckViolation):
        return  # CheckViolation: a visit of this month was inserted after the check above
