"""Execution of a user's SQL, one statement at a time, and roles with read access to the views only."""

import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.pq import TransactionStatus

from crawler.errors import BadInput, CrawlerError
from crawler.store.database import Connection, Database, format_one_line
from crawler.store.rows import fetch_row, fetch_rows

ROLE_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")  # identifiers without quotes; pg_ is reserved
PASSWORD_BYTES = 24
CURSOR = "answer"
ROLE_COMMENT = "reads the views of recrawl; made by recrawl db grant"
FIND_ROLE = """
    SELECT current_user = %s, coalesce(shobj_description(oid, 'pg_authid') = %s, false) FROM pg_roles WHERE rolname = %s
"""
VIEWS = """
    SELECT relname FROM pg_class
     WHERE relkind = 'v' AND relnamespace = current_schema()::regnamespace
       AND (relname LIKE 'report\\_%' OR relname IN ('page_text', 'page_versions'))
     ORDER BY relname
"""


class QueryResult(Struct, frozen=True):
    """The result of a statement: its columns and an iterator over its rows.

    status: the command tag of a statement without rows.
    """

    columns: tuple[str, ...]
    rows: AsyncIterator[Sequence[Any]]
    status: str = ""


@dataclass(frozen=True, slots=True)
class ReaderRole:
    """A role that may read the views. password: of a new role; None if the role existed and keeps its password."""

    name: str
    views: tuple[str, ...]
    password: str | None = field(repr=False)


@asynccontextmanager
async def run_query(db: Database, statement: str, *, may_write: bool) -> AsyncIterator[QueryResult]:
    """Run one statement in its own transaction and stream its rows while the block runs.

    may_write: allow any statement; otherwise only a read-only one that returns rows (SELECT, VALUES, TABLE, WITH).
    Raise BadInput for an invalid statement or more than one, CrawlerError if the database rejects it.
    """
    async with (
        db.transaction() as connection,
        # DECLARE CURSOR accepts queries only: COPY could write files even in a read-only transaction.
        connection.cursor() if may_write else connection.cursor(name=CURSOR) as cursor,
    ):
        try:
            if may_write:
                await cursor.execute(statement.encode(), prepare=True)  # rejects several statements
            else:
                await connection.execute("SET TRANSACTION READ ONLY")
                await cursor.execute(statement.encode())
            status = "" if cursor.description is not None else cursor.statusmessage or ""
            columns = tuple(column.name for column in cursor.description or ())
            yield QueryResult(columns, _iterate_rows(cursor), status)
        except psycopg.Error as error:
            if connection.info.transaction_status is TransactionStatus.ACTIVE:
                await connection.close()  # in the middle of a COPY, which would never end
            raise _translate_error(error, may_write=may_write) from error


def _translate_error(error: psycopg.Error, *, may_write: bool) -> Exception:
    """Return the error to show to the user who entered the statement. Connection errors are returned unchanged."""
    message = error.diag.message_primary or format_one_line(error)
    match error:
        case psycopg.errors.ReadOnlySqlTransaction():
            return CrawlerError(f"the statement was not run because it writes: {message}; use --write to allow it")
        case psycopg.errors.SyntaxError() if not may_write:
            return BadInput(f"invalid statement: {message}; use one SELECT, or --write for any other statement")
        case psycopg.ProgrammingError():
            return BadInput(f"invalid statement: {message}")
        case psycopg.DataError() | psycopg.IntegrityError() | psycopg.NotSupportedError() | psycopg.InternalError():
            return CrawlerError(f"the database rejected the statement: {message}")
        case _:
            return error


async def grant_reading(db: Database, name: str) -> ReaderRole:
    """Grant a role read access to the views, not to the tables, and create it if it does not exist.

    Raise BadInput for a name that would need quotes or is recrawl's own role, CrawlerError without the privilege.
    """
    if not ROLE_NAME.fullmatch(name):
        hint = "use lowercase letters, digits and _, not starting with a digit or pg_"
        raise BadInput(f"{name!r} is not a valid role name; {hint}")
    async with db.transaction() as connection:
        role_row = await fetch_row(connection, FIND_ROLE, (name, ROLE_COMMENT, name))
        if role_row is not None and role_row[0]:
            raise BadInput(f"recrawl itself connects as {name}, which already has all privileges; choose another role")
        password = await _make_role(connection, name) if role_row is None else None
        views = tuple(str(row[0]) for row in await fetch_rows(connection, VIEWS, {}))
        for statement in await _list_privileges(connection, views):
            await connection.execute(sql.SQL("GRANT {} TO {}").format(statement, sql.Identifier(name)))
    return ReaderRole(name=name, views=views, password=password)


async def revoke_reading(db: Database, name: str) -> bool:
    """Revoke what `grant_reading` granted, drop a role that it created, and return whether the role was dropped.

    Raise BadInput if the role does not exist, or if recrawl itself connects as this role.
    """
    async with db.transaction() as connection:
        role_row = await fetch_row(connection, FIND_ROLE, (name, ROLE_COMMENT, name))
        if role_row is None:
            raise BadInput(f"there is no role {name!r}; check the name")
        is_self, is_ours = role_row
        if is_self:
            fact = f"recrawl itself connects as {name}"
            raise BadInput(f"{fact}, whose privileges cannot be revoked; choose another role")
        views = [str(row[0]) for row in await fetch_rows(connection, VIEWS, {})]
        role = sql.Identifier(name)
        for statement in reversed(await _list_privileges(connection, views)):
            await connection.execute(sql.SQL("REVOKE {} FROM {}").format(statement, role))
        if not is_ours:
            return False
        try:
            async with connection.transaction():
                await connection.execute(sql.SQL("DROP ROLE {}").format(role))
        except psycopg.errors.DependentObjectsStillExist:  # it owns objects or has other privileges
            return False
        return True


async def _make_role(connection: Connection, name: str) -> str:
    """Create a role and return its password. The server receives only a verifier of the password."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    role = sql.Identifier(name)
    await connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT PASSWORD {}").format(role, sql.Literal(verifier)))
    await connection.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(ROLE_COMMENT)))
    await connection.execute(sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role))
    return password


async def _list_privileges(connection: Connection, views: Sequence[str]) -> list[sql.Composed]:
    """Return the privileges that a role needs to read the views, as written in GRANT and REVOKE."""
    row = await fetch_row(connection, "SELECT current_database(), current_schema()", {})
    assert row is not None
    database, schema = map(sql.Identifier, row)
    return [
        sql.SQL("CONNECT ON DATABASE {}").format(database),
        sql.SQL("USAGE ON SCHEMA {}").format(schema),
        sql.SQL("SELECT ON {}").format(sql.SQL(", ").join(map(sql.Identifier, views))),
    ]


async def _iterate_rows(cursor: psycopg.AsyncCursor[Any]) -> AsyncIterator[Sequence[Any]]:
    if cursor.description is not None:
        async for row in cursor:
            yield row
