"""One Postgres: opening it, migrating it, and a transaction at a time."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from crawler.errors import BadInput, CrawlerError, StoreUnavailable

Connection = psycopg.AsyncConnection[TupleRow]

MIGRATIONS = Path(__file__).parents[2] / "migrations"
OLDEST_POSTGRES = 14  # bit_count() and the multirange catalogue that our views use
MIGRATION_LOCK = 0x7265637261776C  # two processes may want to migrate at once; "recrawl" in ASCII


PATIENCE_SECONDS = 20  # for a connection

# What whoever runs the server has to mend; to ask again does not help.
REFUSALS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
# Passing states of a server: away, full, busy, or a standby that is about to take over.
SILENCES = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction, PoolTimeout)
# Somebody else's table, index, function or schema has a name of ours.
CLASHES = (
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateFunction,
    psycopg.errors.WrongObjectType,
)
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


def upgrade(url: str, *, to: str = "head") -> None:
    """Bring the database to the newest schema, or to an older revision; does nothing where it is there already.

    Raises BadInput for a server that is too old or a database that is not in UTF-8, StoreUnavailable for none,
    CrawlerError for one that this user may not change, that a newer recrawl has migrated, or that holds something else
    by a name of ours.
    """
    with _naming_refusals(), _engine(url).connect() as connection:
        _refuse_what_cannot_hold_us(connection)
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        try:
            if _schema_on(connection) is Schema.NEWER:
                raise CrawlerError(NEWER_MESSAGE)
            command.upgrade(_config(connection), to)
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": MIGRATION_LOCK})
            connection.commit()


def schema_of(url: str) -> Schema:
    """How the database compares with our migrations."""
    with _naming_refusals(), _engine(url).connect() as connection:
        return _schema_on(connection)


def _schema_on(connection: Any) -> Schema:
    found = set(MigrationContext.configure(connection).get_current_heads())
    if not found:
        tables = connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"))
        return Schema.FOREIGN if tables.scalar() else Schema.EMPTY
    scripts = ScriptDirectory.from_config(_config(connection))
    if found == {scripts.get_current_head()}:
        return Schema.CURRENT
    ours_once = {script.revision for script in scripts.walk_revisions()}
    return Schema.OLDER if found <= ours_once else Schema.NEWER


@contextmanager
def _naming_refusals() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise StoreUnavailable(f"the database does not answer: {one_line(error.orig or error)}") from error
    except DBAPIError as error:
        if isinstance(error.orig, REFUSALS):
            raise CrawlerError(f"the database refuses: {one_line(error.orig)}") from error
        if isinstance(error.orig, CLASHES):
            clash = one_line(error.orig)
            raise CrawlerError(f"the database has no room for recrawl ({clash}): give it one of its own") from error
        raise


def _config(connection: Any) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _engine(url: str) -> Any:
    engine = create_engine(
        libpq_url(url).replace("postgresql://", "postgresql+psycopg://", 1),
        poolclass=NullPool,
        connect_args={"connect_timeout": PATIENCE_SECONDS},
    )
    try:
        engine.connect().close()
    except OperationalError as error:
        raise StoreUnavailable(f"cannot open the database: {one_line(error.orig or error)}") from error
    return engine


def _refuse_what_cannot_hold_us(connection: Any) -> None:
    version = int(connection.execute(text("SHOW server_version_num")).scalar()) // 10_000
    if version < OLDEST_POSTGRES:
        raise BadInput(f"the server is Postgres {version}; recrawl needs {OLDEST_POSTGRES} or newer")
    encoding = connection.execute(text("SHOW server_encoding")).scalar()
    if encoding != "UTF8":
        raise BadInput(f"the database is in {encoding}; make one with ENCODING 'UTF8', since pages are in any script")


# In this transaction alone. For many keys the planner would rather read a whole partition than find them. And nothing
# that it writes needs to outlive a crash: a due time is worked out again, what counts is debited before.
BY_KEY = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true), set_config('synchronous_commit', 'off', true)
"""
