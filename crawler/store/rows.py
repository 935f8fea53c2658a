"""Rows of a statement, read in one go: as values of a class whose fields are the columns, as dicts, or as they are; and
rows written many at once. And values of other forms than Postgres has: texts, costs, fingerprints.

Each function works on a connection, or in a transaction of its own where it is given a database. Where no values are
given a percent sign in the statement stands for itself.
"""

from collections.abc import AsyncIterator, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import cache
from typing import Any, TypeVar

from psycopg.rows import AsyncRowFactory, TupleRow, dict_row, scalar_row, tuple_row
from pydantic import TypeAdapter

from crawler.core.budget.cost import Cost, Costs, RequestKind
from crawler.core.page.fingerprint import Fingerprint
from crawler.store.database import Connection, Database

T = TypeVar("T")
Values = Sequence[Any] | Mapping[str, Any]  # of a statement's parameters
Executor = Connection | Database


async def execute(executor: Executor, statement: str, values: Values = ()) -> int:
    """Execute a statement; return how many rows it changed."""
    async with _open_connection(executor) as connection:
        return (await connection.execute(statement.encode(), values or None)).rowcount


async def fetch_all(
    executor: Executor, row_factory: AsyncRowFactory[T], statement: str, values: Values = (), *, binary: bool = False
) -> list[T]:
    """Return the rows, as a row factory of psycopg makes them. binary: columns come in that form."""
    async with (
        _open_connection(executor) as connection,
        connection.cursor(row_factory=row_factory, binary=binary) as cursor,
    ):
        return await (await cursor.execute(statement.encode(), values or None)).fetchall()


async def fetch_one(
    executor: Executor, row_factory: AsyncRowFactory[T], statement: str, values: Values = ()
) -> T | None:
    """Return the first row; None without any."""
    async with _open_connection(executor) as connection, connection.cursor(row_factory=row_factory) as cursor:
        return await (await cursor.execute(statement.encode(), values or None)).fetchone()


async def fetch_values(executor: Executor, kind: type[T], statement: str, values: Values) -> list[T]:
    """Return the rows as values of a class, by the names of its fields; columns that it does not have are left out.

    A column is converted to the type of its field: a text to an enum, an array to a tuple.
    """
    rows: list[T] = _build_adapter(kind).validate_python(await fetch_dicts(executor, statement, values))  # type: ignore[arg-type]
    return rows


async def fetch_dicts(executor: Executor, statement: str, values: Values = ()) -> list[dict[str, Any]]:
    """Return the rows by the names of their columns."""
    return await fetch_all(executor, dict_row, statement, values)


async def fetch_dict(executor: Executor, statement: str, values: Values = ()) -> dict[str, Any] | None:
    """Return the first row by the names of its columns; None without any."""
    return await fetch_one(executor, dict_row, statement, values)


async def fetch_rows(
    executor: Executor, statement: str, values: Values = (), *, binary: bool = False
) -> list[TupleRow]:
    """Return the rows as tuples."""
    return await fetch_all(executor, tuple_row, statement, values, binary=binary)


async def fetch_row(executor: Executor, statement: str, values: Values) -> TupleRow | None:
    """Return the first row as a tuple; None without any."""
    return await fetch_one(executor, tuple_row, statement, values)


async def fetch_value(executor: Executor, statement: str, values: Values = ()) -> Any:
    """Return the first column of the first row; None without any."""
    return await fetch_one(executor, scalar_row, statement, values)


async def fetch_number(executor: Executor, statement: str, values: Values) -> int:
    """Return the first column of the first row as a whole number; 0 without any."""
    return int(await fetch_value(executor, statement, values) or 0)


@cache
def _build_adapter(kind: Hashable) -> TypeAdapter[list[Any]]:
    return TypeAdapter(list[kind])  # type: ignore[valid-type]


@asynccontextmanager
async def _open_connection(executor: Executor) -> AsyncIterator[Connection]:
    if isinstance(executor, Database):
        async with executor.transaction() as connection:
            yield connection
    else:
        yield executor


async def copy_rows(connection: Connection, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows into a table by COPY, in binary. columns: names and types, as `build_unnest` takes them."""
    names, types = zip(*_parse_columns(columns), strict=True)
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement.encode()) as sink:
        sink.set_types(types)
        for row in rows:
            await sink.write_row(row)


def build_unnest(columns: str) -> str:
    """Return the SQL that makes rows `x` of parameters that hold a column each.

    columns: names, which are those of the parameters, and types: "key bytea, rank int".
    """
    parsed = _parse_columns(columns)
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in parsed)
    return f"unnest({arrays}) AS x({', '.join(name for name, _ in parsed)})"


def split_into_columns(columns: str, rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the parameters of `unnest(columns)` for these rows."""
    names = [name for name, _ in _parse_columns(columns)]
    arrays = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, map(list, arrays), strict=True))


def build_placeholders(names: Iterable[str]) -> str:
    """Return the SQL for the values of parameters that have these names."""
    return ", ".join(f"%({name})s" for name in names)


def build_upsert_set(names: Iterable[str]) -> str:
    """Return what an upsert sets where the row is there: these columns to what was to be inserted."""
    return ", ".join(f"{name} = excluded.{name}" for name in names)


def _parse_columns(columns: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (each.split() for each in columns.split(","))]


def clean_text(text: str | None) -> Any:
    """Text as Postgres takes it: no NUL, no lone surrogate, whatever a server sent."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def decode_costs(stored: dict[str, Any]) -> Costs:
    """Costs as `domain_state.costs` holds them; kinds that it does not name are not learnt yet."""
    return Costs(**{RequestKind(kind).value: Cost(**figures) for kind, figures in stored.items()})


def encode_costs(costs: Costs) -> dict[str, Any]:
    """The value of `domain_state.costs` for these costs; kinds without a look are left out."""
    return {kind.value: asdict(costs.get_cost(kind)) for kind in RequestKind if costs.get_cost(kind).visits}


def decode_fingerprint(number: int | None) -> Fingerprint | None:
    """A Fingerprint is unsigned everywhere but in its column."""
    return None if number is None else Fingerprint(number & 0xFFFF_FFFF_FFFF_FFFF)


def encode_fingerprint(fingerprint: Fingerprint | None) -> int | None:
    """A Fingerprint as its signed column holds it."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
