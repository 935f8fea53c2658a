import subprocess
import sys

import psycopg
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import ARRAY

from crawler.store.database import MIGRATIONS, SchemaState, list_revisions, read_schema_state, upgrade_schema
from models import metadata
from models.schema import DEFINITIONS, SQL
from tests.store.differences import schema_differences


def test_the_migrated_schema_equals_the_models(database_url: str) -> None:
    assert schema_differences(database_url) == []


def test_every_column_of_the_views_is_described(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        undescribed = connection.execute(
            """SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0
                  AND col_description(a.attrelid, a.attnum) IS NULL"""
        ).fetchall()

    assert undescribed == []


def test_every_definition_is_part_of_the_schema() -> None:
    assert sorted(f"{name}.sql" for name in DEFINITIONS) == sorted(path.name for path in SQL.iterdir())


def test_a_pack_of_visits_has_an_array_for_each_column_of_a_visit() -> None:
    visit, pack = metadata.tables["visit"].columns, metadata.tables["visit_pack"].columns
    kinds = {column.name: str(column.type) for column in visit if column.name not in {"domain_id", "key"}}
    arrays = {column.name: column.type for column in pack if column.name in kinds}

    assert {name: str(kind.item_type) for name, kind in arrays.items() if isinstance(kind, ARRAY)} == kinds


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    upgrade_schema(database_url)

    assert read_schema_state(database_url) is SchemaState.CURRENT


def test_an_empty_database_is_not_current(empty_database_url: str) -> None:
    assert read_schema_state(empty_database_url) is SchemaState.EMPTY


def test_migration_files_sort_in_the_order_in_which_alembic_runs_them() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    chain = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]

    assert list_revisions() == chain[::-1]


def test_the_state_of_the_schema_is_read_without_importing_alembic(database_url: str) -> None:
    told = f"""
import sys
from crawler.store.database import prepare_schema
prepare_schema({database_url!r}, may_upgrade=True)
print([name for name in ("alembic", "sqlalchemy", "mako") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
