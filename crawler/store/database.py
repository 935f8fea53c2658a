"""Connections, transactions and the state of the schema of a Postgres database."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from crawler.errors import BadInput, CrawlerError, StoreUnavailable

Connection = psycopg.AsyncConnection[TupleRow]

MIGRATIONS = Path(__file__).parents[2] / "migrations"

CONNECT_TIMEOUT_SECONDS = 20

# For migrations: errors that an administrator has to fix.
PERMISSION_ERRORS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
# For transactions: temporary states of a server: down, full, busy, or a standby that is about to be promoted.
UNAVAILABLE_ERRORS = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
NEXT_STEP = "use that version, or another RECRAWL_HOME or RECRAWL_DATABASE_URL"
NEWER_MESSAGE = "a newer version of recrawl has migrated the database; install that version"


class SchemaState(StrEnum):
    """The state of a database's schema, compared with the migrations of this version."""

    EMPTY = "empty"
    FOREIGN = "foreign"  # has tables, but none of recrawl
    OLDER = "older"
    CURRENT = "current"
    NEWER = "newer"  # migrated by a newer recrawl


@dataclass(frozen=True, slots=True)
class Database:
    """An open database: a pool of connections, and transactions on them."""

    pool: AsyncConnectionPool[Connection]

    @property
    def url(self) -> str:
        """Return its URL, as `open_database` accepts it."""
        return str(self.pool.conninfo)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection of the pool while the block runs. Errors of the driver are raised as they are."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        async with self.pool.connection() as connection:
            # Before Python 3.12, `asyncio.wait_for`, which the pool uses, drops a cancellation that arrives together
            # with the connection; a task with a loop would then never end.
            if task and task.cancelling() > cancellations:
                raise asyncio.CancelledError
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Run the block in a transaction, which an exception rolls back. Translate the driver errors named below."""
        try:
            async with self.connection() as connection, connection.transaction():
                yield connection
        except UNAVAILABLE_ERRORS as error:
            raise StoreUnavailable(f"the database does not respond: {format_one_line(error)}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise CrawlerError(f"the database refused access: {format_one_line(error)}") from error
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            fact = error.diag.message_primary
            raise CrawlerError(f"another version of recrawl created the database ({fact}); {NEXT_STEP}") from error
        except psycopg.errors.NumericValueOutOfRange as error:
            fact = format_one_line(error)
            raise BadInput(f"a number is out of range for the database ({fact}); use another one") from error
        except psycopg.DataError as error:
            if "NUL" not in str(error):
                raise
            # The driver rejects texts with a NUL before it contacts the server. Only user input can contain one.
            fact = format_one_line(error)
            raise BadInput(f"the database cannot search for this text ({fact}); remove the NUL character") from error


def format_one_line(error: BaseException) -> str:
    """Return the message of a driver's error on one line."""
    return " ".join(str(error).split())


@asynccontextmanager
async def open_database(url: str, *, max_connections: int = 8) -> AsyncIterator[Database]:
    """Open the database at a URL (postgresql://...) until the block ends.

    max_connections: the size of the connection pool.
    Raise BadInput if the URL has another scheme, StoreUnavailable if no connection is possible.
    """
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        build_libpq_url(url),
        min_size=1,
        max_size=max_connections,
        timeout=CONNECT_TIMEOUT_SECONDS,
        open=False,
        check=AsyncConnectionPool.check_connection,
        kwargs={
            "application_name": "recrawl",
            "options": "-c timezone=UTC -c jit=off",
            "prepare_threshold": 1,  # prepare a statement when it is executed again
        },
    )
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it logs each failed attempt; the error below suffices
    try:
        async with await psycopg.AsyncConnection.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS):
            pass
        await pool.open(wait=True, timeout=CONNECT_TIMEOUT_SECONDS)  # otherwise, the first use opens a second one
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {format_one_line(error)}") from error
    try:
        yield Database(pool)
    finally:
        await pool.close(timeout=5)


def build_libpq_url(url: str) -> str:
    """Return the URL as libpq accepts it: without SQLAlchemy's driver name. Raise BadInput if it is not valid."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.split("+")[0] not in {"postgresql", "postgres"}:
        raise BadInput("invalid database URL: it must start with postgresql://")
    try:
        conninfo_to_dict(f"postgresql://{rest}")
    except psycopg.ProgrammingError as error:  # its message may quote the password
        message = "invalid database URL: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters as %20"
        raise BadInput(message) from error
    return f"postgresql://{rest}"


def prepare_schema(url: str, *, may_upgrade: bool) -> None:
    """Migrate the database to the newest schema if this is allowed. Call this before using a database.

    may_upgrade: migrate it whatever it contains, as for recrawl's own database. Otherwise, migrate it only if it is
    empty.
    Raise CrawlerError, which says what to do, if it may not be migrated, and the errors of `upgrade_schema`.
    """
    match read_schema_state(url):
        case SchemaState.CURRENT:
            pass
        case SchemaState.NEWER:
            raise CrawlerError(NEWER_MESSAGE)
        case SchemaState.OLDER if not may_upgrade:
            raise CrawlerError("the database has an older schema; run recrawl db upgrade")
        case SchemaState.FOREIGN if not may_upgrade:
            raise CrawlerError("the database has other tables, but none of recrawl; recrawl db upgrade adds them")
        case SchemaState.EMPTY | SchemaState.OLDER | SchemaState.FOREIGN:
            upgrade_schema(url)


def upgrade_schema(url: str, *, partitions: int | None = None) -> None:
    """Migrate the database to the newest schema. Does nothing if it is current.

    partitions: the number of partitions of each table of pages in a new database; None for the default.
    Raise BadInput if the server is too old, or the database is not in UTF-8 or has another number of partitions;
    StoreUnavailable if the server does not respond; CrawlerError if the user lacks privileges, a newer recrawl has
    migrated the database, or other objects use names of recrawl.
    """
    # Alembic and SQLAlchemy take a third of a second to import.
    from crawler.store import migrate  # noqa: PLC0415

    migrate.migrate(url, partitions=partitions)


def read_schema_state(url: str) -> SchemaState:
    """Return the state of the database's schema. Raise StoreUnavailable, or CrawlerError if access is refused."""
    try:
        with psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            return compare_schema(connection)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {format_one_line(error)}") from error
    except PERMISSION_ERRORS as error:
        raise CrawlerError(f"the database refused access: {format_one_line(error)}") from error


def find_connection_error(url: str) -> str:
    """Return why no connection to a URL is possible, on one line; empty if one is possible."""
    try:
        psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS).close()
    except psycopg.OperationalError as error:
        return f"cannot open the database: {format_one_line(error)}"
    return ""


def compare_schema(connection: psycopg.Connection[TupleRow]) -> SchemaState:
    """Compare the schema of a connection's database with the migrations."""
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
    """Return the number of domains in a database with any version of the schema."""
    with psycopg.connect(build_libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
        if _fetch_column(connection, "SELECT to_regclass('domain')") == [None]:
            return 0
        (count,) = _fetch_column(connection, "SELECT count(*) FROM domain")
        return int(count)


def list_revisions() -> list[str]:
    """Return the revisions of the migrations, the newest last: the numbers at the start of their file names."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def _fetch_column(connection: psycopg.Connection[TupleRow], query: LiteralString) -> list[Any]:
    return [value for (value,) in connection.execute(query)]


# Settings of the current transaction. Without the first three, Postgres reads a whole partition instead of looking up
# many keys. With asynchronous commit, a crash of the server may lose the last transactions. Their visits are then
# repeated and due times are computed again. Their requests stay debited, because a debit is committed synchronously.
PREFER_KEY_LOOKUPS = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true), set_config('synchronous_commit', 'off', true)
"""
# For transactions that run the same statements again and again with other keys. Planning them each time took a
# sixth of the time; a plan is good for all keys.
REUSE_KEY_LOOKUPS = f"{PREFER_KEY_LOOKUPS}, set_config('plan_cache_mode', 'force_generic_plan', true)"
# Without it, Postgres compares every key of a sample with every other one while it has no statistics of the tables.
AVOID_NESTED_LOOPS = "SELECT set_config('enable_nestloop', 'off', true)"
