from crawler.store.database import is_current, schema_differences, upgrade


def test_the_migrated_schema_equals_the_models(database_url: str) -> None:
    assert schema_differences(database_url) == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    upgrade(database_url)

    assert is_current(database_url)


def test_an_empty_database_is_not_current(empty_database_url: str) -> None:
    assert not is_current(empty_database_url)
