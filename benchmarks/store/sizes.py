"""Disk space of everything: tables with their indexes and TOAST data."""

from dataclasses import dataclass

from crawler.store.database import Database
from crawler.store.rows import fetch_number, fetch_rows

# Tables by what their rows are. Tables not listed, with settings and learned values, are small.
PARTS = {
    "pages": ("page", "frontier", "cash", "page_links", "page_fingerprint", "fingerprint_band", "announced"),
    "versions": ("snapshot", "content"),
    "recent visits": ("visit",),
    "packed visits": ("visit_pack",),
    "changes": ("event", "feed"),
}
# Estimated row counts would be wrong on a young database; counting reads indexes.
SIZES = """
    SELECT t.name, coalesce(sum(pg_table_size(c.oid)), 0)::bigint, coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
      FROM unnest(%(tables)s::text[]) AS t(name)
     CROSS JOIN LATERAL pg_partition_tree(t.name::regclass) k
      JOIN pg_class c ON c.oid = k.relid AND k.isleaf
     GROUP BY t.name
"""
COUNTS = {
    "pages": "SELECT count(*) FROM page",
    "versions": "SELECT count(*) FILTER (WHERE is_stored) FROM snapshot",
    "recent visits": "SELECT count(*) FROM visit",
    "packed visits": "SELECT coalesce(sum(visits), 0)::bigint FROM visit_pack",
    "changes": "SELECT count(*) FROM event",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """The disk space of a part of the database: pages, versions, recent visits, packed visits or changes.

    table_bytes: rows with TOAST data.  index_bytes: indexes.
    """

    name: str
    rows: int
    table_bytes: int
    index_bytes: int

    @property
    def each(self) -> float | None:
        """Return the bytes per row, or None without rows."""
        return (self.table_bytes + self.index_bytes) / self.rows if self.rows else None


async def stored(db: Database) -> list[Stored]:
    """Return the parts of the database with their current sizes."""
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
