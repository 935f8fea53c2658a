"""Migration of a database with Alembic. Imported only to migrate, because Alembic is slow to import."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from psycopg import errors
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.store import database
from models.schema import DEFAULT_PARTITIONS

OLDEST_POSTGRES = 14  # the views use bit_count()
MIGRATION_LOCK = 0x7265637261776C  # one process migrates at a time; "recrawl" in ASCII
PARTITIONS = text("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('page')")

# Another table, index, function or schema has a name that recrawl uses.
NAME_CONFLICTS = (errors.DuplicateTable, errors.DuplicateObject, errors.DuplicateFunction, errors.WrongObjectType)


def migrate(url: str, *, partitions: int | None) -> None:
    """Migrate the database to the newest schema. For the errors raised, see `database.upgrade_schema`."""
    if connection_error := database.find_connection_error(url):
        raise StoreUnavailable(connection_error)
    engine: Any = create_engine(
        database.build_libpq_url(url).replace("postgresql://", "postgresql+psycopg://", 1),
        poolclass=NullPool,
        connect_args={"connect_timeout": database.CONNECT_TIMEOUT_SECONDS},
    )
    with _translate_errors(), engine.connect() as connection:
        _check_server(connection)
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": MIGRATION_LOCK})
        connection.commit()
        try:
            if database.compare_schema(connection.connection.driver_connection) is database.SchemaState.NEWER:
                raise CrawlerError(database.NEWER_MESSAGE)
            # The partitions of table page; the other tables have the same number.
            existing = int(connection.execute(PARTITIONS).scalar_one())
            if partitions is not None and existing not in {0, partitions}:
                raise BadInput(
                    f"the tables have {existing} partitions each, which cannot be changed; "
                    f"for {partitions}, run recrawl db upgrade --partitions {partitions} on a new database"
                )
            config = Config()
            config.set_main_option("script_location", str(database.MIGRATIONS))
            config.attributes.update(connection=connection, partitions=existing or partitions or DEFAULT_PARTITIONS)
            command.upgrade(config, "head")
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": MIGRATION_LOCK})
            connection.commit()


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        fact = database.format_one_line(error.orig or error)
        if isinstance(error, OperationalError):
            raise StoreUnavailable(f"the database does not respond: {fact}") from error
        if isinstance(error.orig, database.PERMISSION_ERRORS):
            raise CrawlerError(f"the database refused access: {fact}") from error
        if isinstance(error.orig, NAME_CONFLICTS):
            raise CrawlerError(f"the database already uses a name of recrawl ({fact}); use another database") from error
        raise


def _check_server(connection: Any) -> None:
    version = int(connection.execute(text("SHOW server_version_num")).scalar()) // 10_000
    if version < OLDEST_POSTGRES:
        raise BadInput(f"the server is Postgres {version}; recrawl needs {OLDEST_POSTGRES} or newer")
    encoding = connection.execute(text("SHOW server_encoding")).scalar()
    if encoding != "UTF8":
        raise BadInput(
            f"the database uses the encoding {encoding}; create one with ENCODING 'UTF8', because pages use any script"
        )
