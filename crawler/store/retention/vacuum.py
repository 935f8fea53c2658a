"""Room that was taken by what is gone: it is used again, or given back to the system."""

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
LOCK_TIMEOUT = (
    "SET lock_timeout = '10s'"  # for a partition that others use; whoever comes after us waits for us meanwhile
)
PRUNED_TABLES = ("snapshot", "content", "visit", "visit_pack", "event", "feed")  # by what prune takes


async def vacuum(db: Database, *, full: bool = False) -> list[str]:
    """Make room of what was taken; gives the partitions that could not be done.

    Without `full` the room is used again by what comes, beside a crawl. With it each partition is written anew and the
    room is the system's: nobody reads or writes that partition meanwhile, and there must be room for it once more.
    """
    skipped = []
    leaves = await fetch_rows(db, LEAVES, {"tables": list(PRUNED_TABLES)})
    options = sql.SQL("(FULL, ANALYZE)") if full else sql.SQL("(ANALYZE)")
    async with db.pool.connection() as connection:
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
