"""Vacuum: make the space of deleted rows available for new ones, or return it to the operating system."""

from psycopg import errors, sql

from crawler.store.database import Database
from crawler.store.rows import fetch_rows

LEAVES = """
    SELECT n.nspname, c.relname
      FROM unnest(%(tables)s::text[]) AS t(name)
     CROSS JOIN LATERAL pg_partition_tree(t.name::regclass) k
      JOIN pg_class c ON c.oid = k.relid AND k.isleaf
      JOIN pg_namespace n ON n.oid = c.relnamespace
     ORDER BY pg_total_relation_size(c.oid) DESC
"""
LOCK_TIMEOUT = "SET lock_timeout = '10s'"  # while VACUUM waits for the lock of a partition, other statements wait, too
PRUNED_TABLES = (
    "snapshot",
    "content",
    "visit",
    "visit_pack",
    "event",
    "feed",
    "page_value",
)  # tables that prune deletes from


async def vacuum(db: Database, *, full: bool = False) -> list[str]:
    """Vacuum the pruned tables and return the partitions that were skipped.

    By default, the space becomes available for new rows, and crawls may run at the same time. With `full`, each
    partition is rewritten and the space is returned to the operating system: the partition is locked meanwhile, and the
    disk must have space for a copy of it.
    """
    skipped = []
    leaves = await fetch_rows(db, LEAVES, {"tables": list(PRUNED_TABLES)})
    options = sql.SQL("(FULL, ANALYZE)") if full else sql.SQL("(ANALYZE)")
    async with db.connection() as connection:
        await connection.set_autocommit(True)
        await connection.execute(LOCK_TIMEOUT)
        try:
            for name in leaves:
                try:
                    await connection.execute(sql.SQL("VACUUM {} {}").format(options, sql.Identifier(*name)))
                except (errors.LockNotAvailable, errors.InsufficientPrivilege, errors.UndefinedTable, errors.DiskFull):
                    skipped.append(name[1])
        finally:
            await connection.execute("RESET lock_timeout")
            await connection.set_autocommit(False)
    return skipped
