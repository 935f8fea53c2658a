"""One Postgres: opening it, migrating it, and a transaction at a time."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from crawler.errors import BadInput, CrawlerError, StoreUnavailable

Connection = psycopg.AsyncConnection[TupleRow]

MIGRATIONS = Path(__file__).parents[2] / "migrations"

CONNECT_TIMEOUT_SECONDS = 20  # for a connection

# What whoever runs the server has to mend; to ask again does not help.
PERMISSION_ERRORS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
# Passing states of a server: away, full, busy, or a standby that is about to take over.
UNAVAILABLE_ERRORS = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
NEWER_MESSAGE = "a newer recrawl has migrated the database: install that one"


class SchemaState(StrEnum):
    """How a database compares with our migrations."""

    EMPTY = "empty"
    FOREIGN = "foreign"  # tables, but none of ours
    OLDER = "older"
    CURRENT = "current"
    NEWER = "newer"  # a newer recrawl has migrated it


@dataclass(frozen=True, slots=True)
class Database:
    """An open database: a pool of connections, and transactions on them."""

    pool: AsyncConnectionPool[Connection]

    @property
    def url(self) -> str:
        """Where it is, as `open_database` takes it."""
        return str(self.pool.conninfo)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: committed at the end of the block, rolled back by any exception."""
        try:
            async with self.pool.connection() as connection, connection.transaction():
                yield connection
        except UNAVAILABLE_ERRORS as error:
            raise StoreUnavailable(f"the database does not answer: {format_one_line(error)}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise CrawlerError(f"the database refuses: {format_one_line(error)}") from error
        except psycopg.errors.NumericValueOutOfRange as error:
            raise BadInput(
                f"a number is beyond what the database holds ({format_one_line(error)}): use another one"
            ) from error
        except psycopg.DataError as error:
            if "NUL" not in str(error):
                raise
            # The driver refuses a text with a NUL before it asks the server: who typed a parameter made it up.
            raise BadInput(
                f"a text cannot be looked for ({format_one_line(error)}): leave that character out"
            ) from error


def format_one_line(error: BaseException) -> str:
    """A driver's many-line message as one line for a person."""
    return " ".join(str(error).split())


@asynccontextmanager
async def open_database(url: str, *, max_connections: int = 8) -> AsyncIterator[Database]:
    """The database at `url`, open until the block ends.

    url: postgresql://...;  max_connections: at most so many at once.
    Raises StoreUnavailable where nothing answers there.
    """
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        build_libpq_url(url),
        min_size=1,
        max_size=max_connections,
        timeout=CONNECT_TIMEOUT_SECONDS,
        open=False,
        check=AsyncConnectionPool.check_connection,
        kwargs={"application_name": "recrawl", "options": "-c timezone=UTC -c jit=off"},
    )
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it tells of every failed attempt; we tell once
    try:
        async with await psycopg.AsyncConnection.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS):
            pass
        await pool.open()
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {format_one_line(error)}") from error
    try:
        yield Database(pool)
    finally:
        await pool.close(timeout=5)


def build_libpq_url(url: str) -> str:
    """The URL as libpq wants it: without SQLAlchemy's name of a driver."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.split("+")[0] not in {"postgresql", "postgres"}:
        raise BadInput("a database URL begins with postgresql://")
    return f"postgresql://{rest}"


def prepare_schema(url: str, *, may_upgrade: bool) -> None:
    """Bring the database to the newest schema, or say what its user has to do. Called before the database is used.

    may_upgrade: whatever it holds, since it is our own; a user's is migrated without asking only while it is empty.
    Raises CrawlerError for one that may not be migrated, and what `upgrade` does.
    """
    match read_schema_state(url):
        case SchemaState.CURRENT:
            pass
        case SchemaState.NEWER:
            raise CrawlerError(NEWER_MESSAGE)
        case SchemaState.OLDER if not may_upgrade:
            raise CrawlerError("the database has an older schema: recrawl db upgrade")
        case SchemaState.FOREIGN if not may_upgrade:
            raise CrawlerError("the database holds other tables, and none of recrawl: recrawl db upgrade adds them")
        case SchemaState.EMPTY | SchemaState.OLDER | SchemaState.FOREIGN:
            upgrade_schema(url)


def upgrade_schema(url: str, *, partitions: int | None = None) -> None:
    """Bring the database to the newest schema; does nothing where it is there already.

    partitions: how many partitions each table of pages gets in a new database; None for the default.
    Raises BadInput for a server that is too old or a database that is not in UTF-8 or has another number of
    partitions, StoreUnavailable for none, CrawlerError for one that this user may not change, that a newer recrawl has
    migrated, or that holds something else by a name of ours.
    """
    # Alembic and SQLAlchemy take a third of a second to import.
    from crawler.store import migrate  # noqa: PLC0415

    migrate.migrate(url, partitions=partitions)


def read_schema_state(url: str) -> SchemaState:
    """How the database compares with our migrations."""
    try:
        with psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            return compare_schema(connection)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {format_one_line(error)}") from error
    except PERMISSION_ERRORS as error:
        raise CrawlerError(f"the database refuses: {format_one_line(error)}") from error


def find_connection_error(url: str) -> str:
    """Why nobody answers at a URL, in one line; empty where somebody does."""
    try:
        psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS).close()
    except psycopg.OperationalError as error:
        return f"cannot open the database: {format_one_line(error)}"
    return ""


def compare_schema(connection: psycopg.Connection[TupleRow]) -> SchemaState:
    """How the database of a connection compares with our migrations."""
    applied = set(_fetch_column(connection, "SELECT to_regclass('alembic_version')")) - {None}
    if applied:
        applied = set(_fetch_column(connection, "SELECT version_num FROM alembic_version"))
    if not applied:
        tables = _fetch_column(connection, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        return SchemaState.FOREIGN if tables != [0] else SchemaState.EMPTY
    known_revisions = list_revisions()
    if applied == {known_revisions[-1]}:
        return SchemaState.CURRENT
    return SchemaState.OLDER if applied <= set(known_revisions) else SchemaState.NEWER


def count_registered_domains(url: str) -> int:
    """How many domains a database of any of our schemas holds."""
    with psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
        if _fetch_column(connection, "SELECT to_regclass('domain')") == [None]:
            return 0
        (count,) = _fetch_column(connection, "SELECT count(*) FROM domain")
        return int(count)


def list_revisions() -> list[str]:
    """Our migrations' revisions, the newest last: the numbers that their files' names begin with."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def _fetch_column(connection: psycopg.Connection[TupleRow], query: LiteralString) -> list[Any]:
    return [value for (value,) in connection.execute(query)]


# In this transaction alone. For many keys the planner would rather read a whole partition than find them. And nothing
# that it writes needs to outlive a crash: a due time is worked out again, what counts is debited before.
PREFER_KEY_LOOKUPS = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true), set_config('synchronous_commit', 'off', true)
"""
