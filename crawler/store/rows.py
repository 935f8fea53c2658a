"""Reading and writing rows of statements, and conversion of values: texts, costs, fingerprints.

Rows are read as values of a class, as dicts or as tuples. An Executor is a connection, or a database, for which the
function opens its own transaction. Without values, a percent sign in the statement needs no escape.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import convert
from msgspec.structs import asdict
from psycopg.rows import AsyncRowFactory, TupleRow, dict_row, scalar_row, tuple_row

from crawler.core.budget.cost import Cost, Costs, RequestKind
from crawler.store.database import Connection, Database

if TYPE_CHECKING:  # numpy
    from crawler.core.page.fingerprint import Fingerprint

T = TypeVar("T")
Values = Sequence[Any] | Mapping[str, Any]  # parameters of a statement
Executor = Connection | Database


async def execute(executor: Executor, statement: str, values: Values = ()) -> int:
    """Execute a statement and return the number of rows that it changed."""
    async with _open_connection(executor) as connection:
        return (await connection.execute(statement.encode(), values or None)).rowcount


async def fetch_all(
    executor: Executor, make: AsyncRowFactory[T], statement: str, values: Values = (), *, binary: bool = False
) -> list[T]:
    """Return the rows as built by a row factory of psycopg. binary: transfer the columns in binary format."""
    async with _open_connection(executor) as connection, connection.cursor(row_factory=make, binary=binary) as cursor:
        return await (await cursor.execute(statement.encode(), values or None)).fetchall()


async def fetch_one(executor: Executor, make: AsyncRowFactory[T], statement: str, values: Values = ()) -> T | None:
    """Return the first row, or None."""
    async with _open_connection(executor) as connection, connection.cursor(row_factory=make) as cursor:
        return await (await cursor.execute(statement.encode(), values or None)).fetchone()


async def fetch_values(executor: Executor, kind: type[T], statement: str, values: Values) -> list[T]:
    """Return the rows as values of a class with the columns as fields. Columns without a field are ignored.

    Each column is converted to the type of its field: text to an enum, an array to a tuple.
    """
    return [convert(row, kind) for row in await fetch_dicts(executor, statement, values)]


async def fetch_dicts(executor: Executor, statement: str, values: Values = ()) -> list[dict[str, Any]]:
    """Return the rows as dicts by column name."""
    return await fetch_all(executor, dict_row, statement, values)


async def fetch_dict(executor: Executor, statement: str, values: Values = ()) -> dict[str, Any] | None:
    """Return the first row as a dict by column name, or None."""
    return await fetch_one(executor, dict_row, statement, values)


async def fetch_rows(
    executor: Executor, statement: str, values: Values = (), *, binary: bool = False
) -> list[TupleRow]:
    """Return the rows as tuples."""
    return await fetch_all(executor, tuple_row, statement, values, binary=binary)


async def fetch_row(executor: Executor, statement: str, values: Values) -> TupleRow | None:
    """Return the first row as a tuple, or None."""
    return await fetch_one(executor, tuple_row, statement, values)


async def fetch_value(executor: Executor, statement: str, values: Values = ()) -> Any:
    """Return the first column of the first row, or None without rows."""
    return await fetch_one(executor, scalar_row, statement, values)


async def fetch_number(executor: Executor, statement: str, values: Values) -> int:
    """Return the first column of the first row as an integer; 0 if it is NULL or there are no rows."""
    return int(await fetch_value(executor, statement, values) or 0)


@asynccontextmanager
async def _open_connection(executor: Executor) -> AsyncIterator[Connection]:
    if isinstance(executor, Database):
        async with executor.transaction() as connection:
            yield connection
    else:
        yield executor


async def copy_rows(connection: Connection, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows into a table by binary COPY. columns: names and types, as for `build_unnest`."""
    names, types = zip(*_parse_columns(columns), strict=True)
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement.encode()) as sink:
        sink.set_types(types)
        for row in rows:
            await sink.write_row(row)


def build_unnest(columns: str) -> str:
    """Return the SQL that turns parameters with one array per column into rows `x`.

    columns: names and types, such as "key bytea, rank int". The parameters have the names of the columns.
    """
    parsed = _parse_columns(columns)
    arrays = ", ".join(f"%({name})b::{kind}[]" for name, kind in parsed)
    return f"unnest({arrays}) AS x({', '.join(name for name, _ in parsed)})"


def split_into_columns(columns: str, rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the rows as parameters for `build_unnest(columns)`."""
    names = [name for name, _ in _parse_columns(columns)]
    arrays = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, map(list, arrays), strict=True))


def build_placeholders(names: Iterable[str]) -> str:
    """Return the SQL placeholders of parameters with these names."""
    return ", ".join(f"%({name})s" for name in names)


def build_upsert_set(names: Iterable[str]) -> str:
    """Return the SET list of an upsert that overwrites these columns."""
    return ", ".join(f"{name} = excluded.{name}" for name in names)


def _parse_columns(columns: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (each.split() for each in columns.split(","))]


def clean_text(text: str | None) -> Any:
    """Return a text that Postgres accepts: without NUL, and with ? for each lone surrogate. None stays None."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def build_like_pattern(part: str) -> str:
    """Return the LIKE pattern of the texts that contain a part, in which % and _ have no meaning."""
    escaped = re.sub(r"([%_\\])", r"\\\1", clean_text(part))
    return f"%{escaped}%"


def decode_costs(stored: dict[str, Any]) -> Costs:
    """Return the costs stored in column `domain_state.costs`, with the defaults for kinds that are missing there."""
    return Costs(**{RequestKind(kind).value: Cost(**figures) for kind, figures in stored.items()})


def encode_costs(costs: Costs) -> dict[str, Any]:
    """Return the costs in the form of column `domain_state.costs`: only the kinds of request that visits have used."""
    return {kind.value: asdict(costs.get_cost(kind)) for kind in RequestKind if costs.get_cost(kind).visits}


def decode_fingerprint(number: int | None) -> "Fingerprint | None":
    """Return the unsigned fingerprint that a signed column stores."""
    return None if number is None else cast("Fingerprint", number & 0xFFFF_FFFF_FFFF_FFFF)


def encode_fingerprint(fingerprint: "Fingerprint | None") -> int | None:
    """Return a fingerprint as stored in a signed column."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
