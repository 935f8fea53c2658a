from crawler.store.database import Schema, schema_of, upgrade
from tests.store.differences import schema_differences


def test_the_migrated_schema_equals_the_models(database_url: str) -> None:
    assert schema_differences(database_url) == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    upgrade(database_url)

    assert schema_of(database_url) is Schema.CURRENT


def test_an_empty_database_is_not_current(empty_database_url: str) -> None:
    assert schema_of(empty_database_url) is Schema.EMPTY
