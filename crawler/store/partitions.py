"""Partitions of `visit`, one per month of knowledge time, so that forgetting a month is a DROP."""

from datetime import UTC, datetime

from psycopg import errors, sql

from crawler.store.database import Connection, Database

PARTITION_LOCK = 0x7265637261776D  # shifts begin at the same time; one more than the lock of the migrations
PARTITIONS = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'visit'::regclass
"""
# A partition waits for every reader and writer of visits, and whoever comes after waits for it: better none at all.
PATIENCE = "SET LOCAL lock_timeout = '1s'"
CREATE = sql.SQL("CREATE TABLE {name} PARTITION OF visit FOR VALUES FROM ({since}) TO ({until})")


async def ensure_visit_partition(db: Database, *, at: datetime) -> None:
    """See to it that the visits of the month of `at`, and of the next one, have a partition of their own.

    Where the default partition holds visits of such a month already, or where we may not create one, or others keep
    the table busy, they stay in the default partition: nothing but the cost of forgetting them depends on it.
    """
    this = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [this, month_after(this)]
    async with db.transaction() as connection:
        if not await _missing(connection, months):
            return
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (PARTITION_LOCK,))
        await connection.execute(PATIENCE)
        for month in await _missing(connection, months):
            await _try_to_create(connection, month)


def month_after(month: datetime) -> datetime:
    """The first instant of the month after the one that begins at `month`."""
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


async def _missing(connection: Connection, months: list[datetime]) -> list[datetime]:
    there = {row[0] for row in await (await connection.execute(PARTITIONS)).fetchall()}
    return [month for month in months if _name(month) not in there]


def _name(month: datetime) -> str:
    return f"visit_{month:%Y_%m}"


async def _try_to_create(connection: Connection, month: datetime) -> None:
    since, until = month, month_after(month)
    cursor = await connection.execute(
        "SELECT EXISTS (SELECT FROM visit_default WHERE at >= %s AND at < %s)", (since, until)
    )
    row = await cursor.fetchone()
    if row is None or row[0]:
        return
    statement = CREATE.format(name=sql.Identifier(_name(month)), since=sql.Literal(since), until=sql.Literal(until))
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except (errors.LockNotAvailable, errors.InsufficientPrivilege, errors.CheckViolation):
        return  # a violation: such a visit came between the question and the answer
