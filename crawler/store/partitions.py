"""Partitions: of `visit` one per month, so that forgetting it is a DROP; of the frontier's, what the planner knows."""

from datetime import UTC, datetime

from psycopg import errors, sql

from crawler.store.database import Connection, Database
from crawler.store.rows import fetch_rows, fetch_value

PARTITION_LOCK = 0x7265637261776D  # shifts begin at the same time; one more than the lock of the migrations
VISIT_PARTITIONS = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'visit'::regclass
"""
# A partition waits for every reader and writer of visits, and whoever comes after waits for it: better none at all.
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
# Partitions of a domain's pages that have doubled since Postgres counted them last.
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
MIN_ROWS = 50
IS_HELD_BY_DEFAULT = "SELECT EXISTS (SELECT FROM visit_default WHERE at >= %s AND at < %s)"
CREATE = sql.SQL("CREATE TABLE {name} PARTITION OF visit FOR VALUES FROM ({since}) TO ({until})")


async def ensure_visit_partition(db: Database, *, at: datetime) -> None:
    """See to it that the visits of the month of `at`, and of the next one, have a partition of their own.

    Where the default partition holds visits of such a month already, or where we may not create one, or others keep
    the table busy, they stay in the default partition: nothing but the cost of forgetting them depends on it.
    """
    this = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [this, get_next_month(this)]
    async with db.transaction() as connection:
        if not await _find_missing(connection, months):
            return
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        await connection.execute(LOCK_TIMEOUT)
        for month in await _find_missing(connection, months):
            await _try_to_create(connection, month)


async def analyze_if_outgrown(db: Database, domain_id: int) -> None:
    """Have Postgres count the rows of a domain's partitions again, if they have doubled since it did.

    Left to itself it does so once a minute. Until then it takes a domain that is new for one of a few pages, and joins
    what a record names with all of them: by ten thousand pages, that is nine tenths of its work. Only the columns that
    rows are found by are counted, which takes a tenth of the time of all.
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
            return  # somebody else is counting


def get_next_month(month: datetime) -> datetime:
    """The first instant of the month after the one that begins at `month`."""
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
    statement = CREATE.format(
        name=sql.Identifier(_format_partition_name(month)), since=sql.Literal(since), until=sql.Literal(until)
    )
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except (errors.LockNotAvailable, errors.InsufficientPrivilege, errors.CheckViolation):
        return  # a violation: such a visit came between the question and the answer
