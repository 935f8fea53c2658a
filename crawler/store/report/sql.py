"""SQL that a person types, one statement at a time, and roles that may read the views and nothing else."""

import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from crawler.errors import BadInput, CrawlerError
from crawler.store.database import Connection, Database, format_one_line
from crawler.store.rows import fetch_row, fetch_rows

ROLE_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")  # what needs no quotes anywhere; pg_ is the server's own
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


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The answer to a statement: its columns, and its rows as they come.

    status: of a statement without rows, what it did.
    """

    columns: tuple[str, ...]
    rows: AsyncIterator[Sequence[Any]]
    status: str = ""


@dataclass(frozen=True, slots=True)
class ReaderRole:
    """A role that may read the views. password: of a new role; None where the role was there and keeps its own."""

    name: str
    views: tuple[str, ...]
    password: str | None = field(repr=False)


@asynccontextmanager
async def run_query(db: Database, statement: str, *, may_write: bool) -> AsyncIterator[QueryResult]:
    """The answer to one statement, in a transaction of its own; rows come one by one, while the block runs.

    may_write: any statement; else one that gives rows (SELECT, VALUES, TABLE, WITH) in a read-only transaction.
    Raises BadInput for what is no such statement, or more than one, CrawlerError for what the database refuses.
    """
    async with (
        db.transaction() as connection,
        # DECLARE CURSOR takes what gives rows alone: COPY would write files in a read-only transaction, too.
        connection.cursor() if may_write else connection.cursor(name=CURSOR) as cursor,
    ):
        try:
            if may_write:
                await cursor.execute(statement.encode(), prepare=True)  # so that it is one statement alone
            else:
                await connection.execute("SET TRANSACTION READ ONLY")
                await cursor.execute(statement.encode())
            status = "" if cursor.description is not None else cursor.statusmessage or ""
            columns = tuple(column.name for column in cursor.description or ())
            yield QueryResult(columns, _iterate_rows(cursor), status)
        except psycopg.Error as error:
            if connection.info.transaction_status is TransactionStatus.ACTIVE:
                await connection.close()  # in the middle of a COPY, which nobody would end
            raise _translate_error(error, may_write=may_write) from error


def _translate_error(error: psycopg.Error, *, may_write: bool) -> Exception:
    """The error as it is told to whoever typed the statement; one of the connection stays as it is."""
    message = error.diag.message_primary or format_one_line(error)
    match error:
        case psycopg.errors.ReadOnlySqlTransaction():
            return CrawlerError(f"nothing is written without --write: {message}")
        case psycopg.errors.SyntaxError() if not may_write:
            return BadInput(f"the database does not take that: {message}; without --write it takes one SELECT")
        case psycopg.ProgrammingError():
            return BadInput(f"the database does not take that: {message}")
        case psycopg.DataError() | psycopg.IntegrityError() | psycopg.NotSupportedError() | psycopg.InternalError():
            return CrawlerError(f"the database refuses: {message}")
        case _:
            return error


async def grant_reading(db: Database, name: str) -> ReaderRole:
    """Let a role read the views, and make it where there is none; the tables stay closed to it.

    Raises BadInput for a name that would need quotes, CrawlerError where this user may make no roles.
    """
    if not ROLE_NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is no name for a role: small letters, digits and _, not beginning with a digit or pg_"
        )
    async with db.transaction() as connection:
        role_row = await fetch_row(connection, FIND_ROLE, (name, ROLE_COMMENT, name))
        if role_row is not None and role_row[0]:
            raise BadInput(f"{name} is who recrawl itself connects as; it may do anything")
        password = await _make_role(connection, name) if role_row is None else None
        views = tuple(str(row[0]) for row in await fetch_rows(connection, VIEWS, {}))
        for statement in await _list_privileges(connection, views):
            await connection.execute(sql.SQL("GRANT {} TO {}").format(statement, sql.Identifier(name)))
    return ReaderRole(name=name, views=views, password=password)


async def revoke_reading(db: Database, name: str) -> bool:
    """Take from a role what `grant_reading` gave it; whether the role is removed: one made so, with no more.

    Raises BadInput for a role that there is not, or for who recrawl itself connects as.
    """
    async with db.transaction() as connection:
        role_row = await fetch_row(connection, FIND_ROLE, (name, ROLE_COMMENT, name))
        if role_row is None:
            raise BadInput(f"there is no role {name!r}")
        is_self, is_ours = role_row
        if is_self:
            raise BadInput(f"{name} is who recrawl itself connects as; nothing can be taken from it")
        views = [str(row[0]) for row in await fetch_rows(connection, VIEWS, {})]
        role = sql.Identifier(name)
        for statement in reversed(await _list_privileges(connection, views)):
            await connection.execute(sql.SQL("REVOKE {} FROM {}").format(statement, role))
        if not is_ours:
            return False
        try:
            async with connection.transaction():
                await connection.execute(sql.SQL("DROP ROLE {}").format(role))
        except psycopg.errors.DependentObjectsStillExist:  # it owns something, or may read another database
            return False
        return True


async def _make_role(connection: Connection, name: str) -> str:
    """Make a role; return its password, of which the server gets a verifier alone."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    role = sql.Identifier(name)
    await connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT PASSWORD {}").format(role, sql.Literal(verifier)))
    await connection.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(ROLE_COMMENT)))
    await connection.execute(sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role))
    return password


async def _list_privileges(connection: Connection, views: Sequence[str]) -> list[sql.Composed]:
    """What a role needs to read the views, as GRANT and REVOKE name it."""
    row = await fetch_row(connection, "SELECT current_database(), current_schema()", {})
    assert row is not None  # it asks for values of the session
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
