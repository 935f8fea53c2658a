"""What everything takes on disk: tables with their indexes and what Postgres keeps beside them (TOAST)."""

from dataclasses import dataclass

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
    "versions": "SELECT count(*) FILTER (WHERE is_stored) FROM snapshot",
    "recent visits": "SELECT count(*) FROM visit",
    "packed visits": "SELECT coalesce(sum(visits), 0)::bigint FROM visit_pack",
    "changes": "SELECT count(*) FROM event",
}


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
