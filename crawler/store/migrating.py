"""Migrations: bringing a database to the newest schema. Imported by whoever needs that alone: it takes 25 MB."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.store.database import MIGRATIONS, NEWER_MESSAGE, PATIENCE_SECONDS, Schema, libpq_url, one_line

OLDEST_POSTGRES = 14  # bit_count() and the multirange catalogue that our views use
MIGRATION_LOCK = 0x7265637261776C  # two processes may want to migrate at once; "recrawl" in ASCII
# What whoever runs the server has to mend; to ask again does not help.
REFUSALS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
# Somebody else's table, index, function or schema has a name of ours.
CLASHES = (
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateFunction,
    psycopg.errors.WrongObjectType,
)


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
