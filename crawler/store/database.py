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

PATIENCE_SECONDS = 20  # for a connection

# What whoever runs the server has to mend; to ask again does not help.
REFUSALS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
# Passing states of a server: away, full, busy, or a standby that is about to take over.
SILENCES = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
NEWER_MESSAGE = "a newer recrawl has migrated the database: install that one"


class Schema(StrEnum):
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
        except SILENCES as error:
            raise StoreUnavailable(f"the database does not answer: {one_line(error)}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise CrawlerError(f"the database refuses: {one_line(error)}") from error
        except psycopg.errors.NumericValueOutOfRange as error:
            raise BadInput(
                f"a number is beyond what the database holds ({one_line(error)}): use another one"
            ) from error
        except psycopg.DataError as error:
            if "NUL" not in str(error):
                raise
            # The driver refuses a text with a NUL before it asks the server: who typed a parameter made it up.
            raise BadInput(f"a text cannot be looked for ({one_line(error)}): leave that character out") from error


def one_line(error: BaseException) -> str:
    """A driver's many-line message as one line for a person."""
    return " ".join(str(error).split())


@asynccontextmanager
async def open_database(url: str, *, connections: int = 8) -> AsyncIterator[Database]:
    """The database at `url`, open until the block ends.

    url: postgresql://...; connections: at most so many at once.
    Raises StoreUnavailable where nothing answers there.
    """
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        libpq_url(url),
        min_size=1,
        max_size=connections,
        timeout=PATIENCE_SECONDS,
        open=False,
        check=AsyncConnectionPool.check_connection,
        kwargs={"application_name": "recrawl", "options": "-c timezone=UTC -c jit=off"},
    )
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it tells of every failed attempt; we tell once
    try:
        async with await psycopg.AsyncConnection.connect(libpq_url(url), connect_timeout=PATIENCE_SECONDS):
            pass
        await pool.open()
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {one_line(error)}") from error
    try:
        yield Database(pool)
    finally:
        await pool.close(timeout=5)


def libpq_url(url: str) -> str:
    """The URL as libpq wants it: without SQLAlchemy's name of a driver."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.split("+")[0] not in {"postgresql", "postgres"}:
        raise BadInput("a database URL begins with postgresql://")
    return f"postgresql://{rest}"


def prepare(url: str, *, may_upgrade: bool) -> None:
    """Bring the database to the newest schema, or say what its user has to do. Called before the database is used.

    may_upgrade: whatever it holds, since it is our own; a user's is migrated without asking only while it is empty.
    Raises CrawlerError for one that may not be migrated, and what `upgrade` does.
    """
    match schema_of(url):
        case Schema.CURRENT:
            pass
        case Schema.NEWER:
            raise CrawlerError(NEWER_MESSAGE)
        case Schema.OLDER if not may_upgrade:
            raise CrawlerError("the database has an older schema: recrawl db upgrade")
        case Schema.FOREIGN if not may_upgrade:
            raise CrawlerError("the database holds other tables, and none of recrawl: recrawl db upgrade adds them")
        case Schema.EMPTY | Schema.OLDER | Schema.FOREIGN:
            upgrade(url)


def upgrade(url: str, *, partitions: int | None = None) -> None:
    """Bring the database to the newest schema; does nothing where it is there already.

    partitions: how many partitions each table of pages gets in a new database; None for the default.
    Raises BadInput for a server that is too old or a database that is not in UTF-8 or has another number of
    partitions, StoreUnavailable for none, CrawlerError for one that this user may not change, that a newer recrawl has
    migrated, or that holds something else by a name of ours.
    """
    # Alembic and SQLAlchemy take a third of a second to import.
    from crawler.store import migrate  # noqa: PLC0415

    migrate.migrate(url, partitions=partitions)


def schema_of(url: str) -> Schema:
    """How the database compares with our migrations."""
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=PATIENCE_SECONDS) as connection:
            return schema_on(connection)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {one_line(error)}") from error
    except REFUSALS as error:
        raise CrawlerError(f"the database refuses: {one_line(error)}") from error


def silence_of(url: str) -> str:
    """Why nobody answers at a URL, in one line; empty where somebody does."""
    try:
        psycopg.connect(libpq_url(url), connect_timeout=PATIENCE_SECONDS).close()
    except psycopg.OperationalError as error:
        return f"cannot open the database: {one_line(error)}"
    return ""


def schema_on(connection: psycopg.Connection[TupleRow]) -> Schema:
    """How the database of a connection compares with our migrations."""
    found = set(_one_column(connection, "SELECT to_regclass('alembic_version')")) - {None}
    if found:
        found = set(_one_column(connection, "SELECT version_num FROM alembic_version"))
    if not found:
        tables = _one_column(connection, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        return Schema.FOREIGN if tables != [0] else Schema.EMPTY
    ours = revisions()
    if found == {ours[-1]}:
        return Schema.CURRENT
    return Schema.OLDER if found <= set(ours) else Schema.NEWER


def domains_in(url: str) -> int:
    """How many domains a database of any of our schemas holds."""
    with psycopg.connect(libpq_url(url), connect_timeout=PATIENCE_SECONDS) as connection:
        if _one_column(connection, "SELECT to_regclass('domain')") == [None]:
            return 0
        (many,) = _one_column(connection, "SELECT count(*) FROM domain")
        return int(many)


def revisions() -> list[str]:
    """Our migrations' revisions, the newest last: the numbers that their files' names begin with."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def _one_column(connection: psycopg.Connection[TupleRow], query: LiteralString) -> list[Any]:
    return [value for (value,) in connection.execute(query)]


# In this transaction alone. For many keys the planner would rather read a whole partition than find them. And nothing
# that it writes needs to outlive a crash: a due time is worked out again, what counts is debited before.
BY_KEY = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true), set_config('synchronous_commit', 'off', true)
"""
