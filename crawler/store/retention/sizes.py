"""What everything takes on disk: tables with their indexes and what Postgres keeps beside them (TOAST)."""

from dataclasses import dataclass

from psycopg import errors, sql

from crawler.store.database import Database
from crawler.store.rows import fetch_number, fetch_rows

# By what a row of it is. What is not named here are settings and what was learnt: small.
PARTS = {
    "pages": ("page", "frontier", "cash", "page_links", "page_fingerprint", "fingerprint_band", "announced"),
    "versions": ("snapshot", "content"),
    "recent visits": ("visit",),
    "packed visits": ("visit_pack",),
    "changes": ("event", "feed"),
}
# Rows as Postgres estimates them would be wrong on a young database; counting reads indexes.
SIZES = """
    SELECT t.name, coalesce(sum(pg_table_size(c.oid)), 0)::bigint, coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
      FROM unnest(%(tables)s::text[]) AS t(name)
     CROSS JOIN LATERAL pg_partition_tree(t.name::regclass) k
      JOIN pg_class c ON c.oid = k.relid AND k.isleaf
     GROUP BY t.name
"""
COUNTS = {
    "pages": "SELECT count(*) FROM page",
    "versions": "SELECT count(*) FILTER (WHERE is_kept) FROM snapshot",
    "recent visits": "SELECT count(*) FROM visit",
    "packed visits": "SELECT coalesce(sum(visits), 0)::bigint FROM visit_pack",
    "changes": "SELECT count(*) FROM event",
}
LEAVES = """
    SELECT n.nspname, c.relname
      FROM unnest(%(tables)s::text[]) AS t(name)
     CROSS JOIN LATERAL pg_partition_tree(t.name::regclass) k
      JOIN pg_class c ON c.oid = k.relid AND k.isleaf
      JOIN pg_namespace n ON n.oid = c.relnamespace
     ORDER BY pg_total_relation_size(c.oid) DESC
"""
PATIENCE = "SET lock_timeout = '10s'"  # for a partition that others use; whoever comes after us waits for us meanwhile
SHRUNK = ("snapshot", "content", "visit", "visit_pack", "event", "feed")  # by what prune takes


@dataclass(frozen=True, slots=True)
class Stored:
    """What a part of the database takes. name: pages, versions, recent visits, packed visits or changes.

    table_bytes: of rows, with long values apart.  index_bytes: of indexes.
    """

    name: str
    rows: int
    table_bytes: int
    index_bytes: int

    @property
    def each(self) -> float | None:
        """Bytes for one row; None where there is none."""
        return (self.table_bytes + self.index_bytes) / self.rows if self.rows else None


async def stored(db: Database) -> list[Stored]:
    """The parts of the database, and what they take now."""
    tables = [table for part in PARTS.values() for table in part]
    async with db.transaction() as connection:
        rows = await fetch_rows(connection, SIZES, {"tables": tables})
        sizes = {name: (table, index) for name, table, index in rows}
        return [
            Stored(
                name=name,
                rows=await fetch_number(connection, COUNTS[name], {}),
                table_bytes=sum(sizes[table][0] for table in members if table in sizes),
                index_bytes=sum(sizes[table][1] for table in members if table in sizes),
            )
            for name, members in PARTS.items()
        ]


async def vacuum(db: Database, *, full: bool = False) -> list[str]:
    """Make room of what was taken; gives the partitions that could not be done.

    Without `full` the room is used again by what comes, beside a crawl. With it each partition is written anew and the
    room is the system's: nobody reads or writes that partition meanwhile, and there must be room for it once more.
    """
    undone = []
    leaves = await fetch_rows(db, LEAVES, {"tables": list(SHRUNK)})
    how = sql.SQL("(FULL, ANALYZE)") if full else sql.SQL("(ANALYZE)")
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)
        await connection.execute(PATIENCE)
        try:
            for name in leaves:
                try:
                    await connection.execute(sql.SQL("VACUUM {} {}").format(how, sql.Identifier(*name)))
                except (errors.LockNotAvailable, errors.InsufficientPrivilege, errors.UndefinedTable, errors.DiskFull):
                    undone.append(name[1])
        finally:
            await connection.execute("RESET lock_timeout")
            await connection.set_autocommit(False)
    return undone
