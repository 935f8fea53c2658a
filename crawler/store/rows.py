"""Rows of a statement, read in one go: as values of a class whose fields are the columns, as dicts, or as they are.

Each function reads on a connection, or in a transaction of its own where it is given a database. Where no values are
given a percent sign in the statement stands for itself.
"""

from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar

from psycopg.rows import AsyncRowFactory, TupleRow, dict_row, scalar_row, tuple_row
from pydantic import TypeAdapter

from crawler.store.database import Connection, Database

T = TypeVar("T")
Values = Sequence[Any] | Mapping[str, Any]  # of a statement's parameters


async def fetch_all(
    place: Connection | Database, row_factory: AsyncRowFactory[T], statement: str, values: Values = ()
) -> list[T]:
    """Return the rows, as a row factory of psycopg makes them."""
    async with _connection_of(place) as connection, connection.cursor(row_factory=row_factory) as cursor:
        return await (await cursor.execute(statement.encode(), values or None)).fetchall()


async def fetch_one(
    place: Connection | Database, row_factory: AsyncRowFactory[T], statement: str, values: Values = ()
) -> T | None:
    """Return the first row; None without any."""
    async with _connection_of(place) as connection, connection.cursor(row_factory=row_factory) as cursor:
        return await (await cursor.execute(statement.encode(), values or None)).fetchone()


async def fetch_values(place: Connection | Database, kind: type[T], statement: str, values: Values) -> list[T]:
    """Return the rows as values of a class, by the names of its fields; columns that it does not have are left out.

    A column is converted to the type of its field: a text to an enum, an array to a tuple.
    """
    found: list[T] = _adapter(kind).validate_python(await fetch_dicts(place, statement, values))  # type: ignore[arg-type]
    return found


async def fetch_dicts(place: Connection | Database, statement: str, values: Values) -> list[dict[str, Any]]:
    """Return the rows by the names of their columns."""
    return await fetch_all(place, dict_row, statement, values)


async def fetch_rows(place: Connection | Database, statement: str, values: Values) -> list[TupleRow]:
    """Return the rows as tuples."""
    return await fetch_all(place, tuple_row, statement, values)


async def fetch_row(place: Connection | Database, statement: str, values: Values) -> TupleRow | None:
    """Return the first row as a tuple; None without any."""
    return await fetch_one(place, tuple_row, statement, values)


async def fetch_value(place: Connection | Database, statement: str, values: Values = ()) -> Any:
    """Return the first column of the first row; None without any."""
    return await fetch_one(place, scalar_row, statement, values)


async def fetch_number(place: Connection | Database, statement: str, values: Values) -> int:
    """Return the first column of the first row as a whole number; 0 without any."""
    return int(await fetch_value(place, statement, values) or 0)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[list[Any]]:
    return TypeAdapter(list[kind])  # type: ignore[valid-type]


@asynccontextmanager
async def _connection_of(place: Connection | Database) -> AsyncIterator[Connection]:
    if isinstance(place, Database):
        async with place.transaction() as connection:
            yield connection
    else:
        yield place
