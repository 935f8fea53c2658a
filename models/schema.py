"""The schema as SQL: tables with their partitions and indexes, functions, views, and the rows of a new database.

Functions and views are in models/sql. The files run in the order of `DEFINITIONS`.
"""

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.ddl import ExecutableDDLElement

from models import metadata

# Measured with 1, 4 and 16 (docs/decisions/0046-four-partitions.md): planning takes equally long with each.
DEFAULT_PARTITIONS = 4
DEFINITIONS = (
    "functions",
    "visits",
    "page_text",
    "page_versions",
    "domain_counted_live",
    "domain_counts",
    "report_page",
    "report_domain",
    "report_freshness",
    "report_change",
    "report_feed",
    "report_subscription",
    "report_duplicates",
    "report_list",
    "report_value",
    "report_source",
    "report_trust",
    "report_calibration",
    "report_traffic",
)
INITIAL_ROWS = "INSERT INTO ledger (no, day, spent_requests, spent_bytes) VALUES (1, '1970-01-01', 0, 0)"
SQL = Path(__file__).parent / "sql"
DIALECT = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # other styles double percent signs


def list_statements(*, partitions: int) -> list[str]:
    """List the statements that create the schema in an empty database. An item may hold several statements.

    partitions: the number of partitions of each table that is partitioned by hash of its domain.
    """
    tables = [statement for table in metadata.sorted_tables for statement in list_table_statements(table, partitions)]
    return [*tables, *map(read_definitions, DEFINITIONS), INITIAL_ROWS]


def list_table_statements(table: Table, partitions: int) -> Iterator[str]:
    """List the statements that create a table with its partitions and indexes."""
    yield _compile(CreateTable(table))
    storage = table.info.get("storage")  # for the table, or for each partition
    options = f" WITH ({storage})" if storage else ""
    partitioned_by = str(table.dialect_options["postgresql"]["partition_by"])
    if partitioned_by.startswith("HASH"):
        for part in range(partitions):
            yield (
                f"CREATE TABLE {table.name}_p{part:02} PARTITION OF {table.name}"
                f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part}){options}"
            )
    elif partitioned_by.startswith("RANGE"):
        yield f"CREATE TABLE {table.name}_default PARTITION OF {table.name} DEFAULT"
    elif storage:
        yield f"ALTER TABLE {table.name} SET ({storage})"
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield _compile(CreateIndex(index))


def read_definitions(name: str) -> str:
    """Read a file of models/sql. In visits.sql, fill in the columns of table visit."""
    statements = (SQL / f"{name}.sql").read_text()
    if name != "visits":
        return statements
    columns = [column.name for column in metadata.tables["visit"].columns]
    packed = [name for name in columns if name not in {"domain_id", "key"}]
    key = "substring(p.keys FROM (16 * x.place - 15)::int FOR 16) AS key"
    arrays = ", ".join(f"p.{name}" for name in packed)
    for word, meaning in {
        "{columns}": ", ".join(columns),
        "{unpacked}": ", ".join(["p.domain_id", key, *(f"x.{name}" for name in packed)]),
        "{unnested}": f"unnest({arrays}) WITH ORDINALITY AS x({', '.join(packed)}, place)",
    }.items():
        statements = statements.replace(word, meaning)
    comments = [f"COMMENT ON COLUMN every_visit.{name} IS 'as in table visit';" for name in columns]
    return "\n".join([statements, *comments])


def _compile(statement: ExecutableDDLElement) -> str:
    return str(statement.compile(dialect=DIALECT))
