"""Which databases are migrated automatically, and what prevents a migration."""

from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from crawler.errors import BadInput, CrawlerError
from crawler.runtime.stack import open_crawl_database
from crawler.settings import Settings
from crawler.store.database import (
    SchemaState,
    build_libpq_url,
    prepare_schema,
    read_schema_state,
    upgrade_schema,
)
from tests.databases import execute


def uses(url: str) -> None:
    """Prepare the schema like every flow and command does first."""
    with open_crawl_database(Settings(database_url=url)):
        pass


def test_an_empty_database_of_a_user_is_migrated(empty_database_url: str) -> None:
    uses(empty_database_url)

    assert read_schema_state(empty_database_url) is SchemaState.CURRENT


@pytest.mark.usefixtures("later_release")
def test_a_database_of_a_user_with_an_older_schema_is_not_migrated(database_url: str) -> None:
    with pytest.raises(CrawlerError, match="recrawl db upgrade"):
        uses(database_url)

    assert read_schema_state(database_url) is SchemaState.OLDER


@pytest.mark.usefixtures("later_release")
def test_our_own_database_with_an_older_schema_is_migrated(database_url: str) -> None:
    prepare_schema(database_url, may_upgrade=True)

    assert read_schema_state(database_url) is SchemaState.CURRENT


def test_a_failed_migration_leaves_the_database_unchanged(database_url: str, later_release: Path) -> None:
    written = later_release.read_text()
    later_release.write_text(f"{written}    op.execute('SELECT 1 / 0')\n")
    with pytest.raises(DBAPIError, match="division by zero"):
        upgrade_schema(database_url)
    assert read_schema_state(database_url) is SchemaState.OLDER

    later_release.write_text(written)
    upgrade_schema(database_url)

    assert read_schema_state(database_url) is SchemaState.CURRENT


def test_a_database_of_a_user_with_a_newer_schema_is_not_migrated(database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(CrawlerError, match="a newer version of recrawl"):
        uses(database_url)

    assert read_schema_state(database_url) is SchemaState.NEWER


def test_a_database_of_a_user_with_other_tables_is_not_migrated(empty_database_url: str) -> None:
    execute(empty_database_url, "CREATE TABLE theirs (id int)")

    with pytest.raises(CrawlerError, match="recrawl db upgrade adds them"):
        uses(empty_database_url)

    assert read_schema_state(empty_database_url) is SchemaState.FOREIGN


def test_our_own_database_is_migrated_with_other_tables(empty_database_url: str) -> None:
    execute(empty_database_url, "CREATE TABLE theirs (id int)")

    prepare_schema(empty_database_url, may_upgrade=True)

    assert read_schema_state(empty_database_url) is SchemaState.CURRENT


def test_a_database_with_a_newer_schema_is_never_migrated(database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    for migrate in (upgrade_schema, lambda url: prepare_schema(url, may_upgrade=True)):
        with pytest.raises(CrawlerError, match="a newer version of recrawl"):
            migrate(database_url)


def test_foreign_alembic_heads_are_not_recrawls_schema(empty_database_url: str) -> None:
    execute(
        empty_database_url,
        "CREATE TABLE alembic_version (version_num varchar(32))",
        "INSERT INTO alembic_version VALUES ('abc'), ('def')",
    )

    with pytest.raises(CrawlerError, match="a newer version of recrawl"):
        prepare_schema(empty_database_url, may_upgrade=True)


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/db", "postgresql://u:secret%zz@h/db", "postgresql://u:secret@h/a b"]
)
def test_an_invalid_url_is_rejected_without_its_password(url: str) -> None:
    with pytest.raises(BadInput, match="invalid database URL") as raised:
        build_libpq_url(url)
    assert "secret" not in str(raised.value)
