"""Create the partitions of tables that are partitioned by hash of their domain."""

from alembic import op
from sqlalchemy import Connection, text

# Measured with 1, 4 and 16: docs/decisions/0046-four-partitions.md. The planner takes as long with each.
DEFAULT_PARTITIONS = 4
COUNT = text("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('page')")


def create_hash_partitions(table: str, *, storage: str = "") -> None:
    """Create the partitions of a table, as many as the other tables of this database have.

    storage: a WITH clause for each partition.
    """
    config = op.get_context().config
    asked = config.attributes.get("partitions") if config is not None else None
    partitions = count_hash_partitions(op.get_bind()) or asked or DEFAULT_PARTITIONS
    for part in range(partitions):
        op.execute(
            f"CREATE TABLE {table}_p{part:02} PARTITION OF {table}"
            f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part}){storage}"
        )


def count_hash_partitions(connection: Connection) -> int:
    """Return how many partitions the table of pages has, and so the others; 0 where there is none."""
    return int(connection.execute(COUNT).scalar_one())
