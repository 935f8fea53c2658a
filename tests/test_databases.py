"""Cleaning a test's database leaves what a new copy of the template is, or the database is not used again."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from crawler.store import report
from crawler.store.database import open_database
from crawler.store.partitions import ensure_visit_partition
from tests.commands import serving
from tests.conftest import TEMPLATE
from tests.databases import TestDatabases, execute, read_new_copy, read_schema
from tests.engine.crawls import DAY, START, crawl, recrawl, register

# Of tables of pg_catalog these are what Postgres keeps for itself: file numbers, and when it came by.
PHYSICAL = {"relfilenode", "relfrozenxid", "relminmxid"}
COUNTED = {"relpages", "reltuples", "relallvisible", "relallfrozen"}
RELATIONS = """
    SELECT c.oid::regclass::text,
           array(SELECT attname::text FROM pg_attribute
                  WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum)
      FROM pg_class c
     WHERE relkind = 'r' AND NOT relisshared AND relnamespace <> 'information_schema'::regnamespace
     ORDER BY 1
"""
SIZES = (
    "SELECT oid::regclass::text, pg_relation_size(oid) FROM pg_class WHERE relkind IN ('r', 'i', 't') AND oid >= 16384"
)
SEQUENCES = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'S' ORDER BY 1"


@pytest.fixture
def databases(postgres_url: str, template_url: str) -> Iterator[TestDatabases]:
    """Return databases of this test's own."""
    found = TestDatabases(postgres_url, TEMPLATE)
    yield found
    found.close()


def read_all(url: str) -> dict[str, Any]:
    """Read all that a database holds, with its catalogs and the sizes of its files."""
    found: dict[str, Any] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for relation, columns in connection.execute(RELATIONS).fetchall():
            # What autovacuum does with the catalogs themselves, and when, is no test's doing.
            left_out = PHYSICAL | COUNTED if relation == "pg_class" else set()
            only = {"pg_statistic": "starelid >= 16384", "pg_namespace": "nspname !~ '_temp_'"}.get(relation, "true")
            kept = ", ".join(f't."{name}"' for name in columns if name not in left_out)
            query = f"SELECT ROW({kept})::text FROM {relation} t WHERE {only} ORDER BY 1"
            found[relation] = connection.execute(query.encode()).fetchall()
        for (name,) in connection.execute(SEQUENCES).fetchall():
            found[name] = connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
        counted = ", ".join(sorted(COUNTED))
        found["counted"] = connection.execute(
            f"SELECT oid, {counted} FROM pg_class WHERE oid >= 16384 ORDER BY 1".encode()
        ).fetchall()
        found["sizes"] = sorted(connection.execute(SIZES).fetchall())
        found["read"] = connection.execute(
            "SELECT sum(n_live_tup), sum(n_tup_upd), sum(idx_tup_fetch) FROM pg_stat_user_tables"
        ).fetchall()
        found["settings"] = connection.execute("SHOW work_mem").fetchall()
    return found


async def use(url: str) -> None:
    """Do what tests do: crawl twice, with a change, a partition for the visits' month, and fresh statistics."""
    with serving() as site:
        site.page("/", "/one", "/two", text="the way to all of it")
        async with open_database(url) as db:
            domain = await register(db, site.url)
            await crawl(db, at=START)
            await ensure_visit_partition(db, at=START + 60 * DAY)
            site.page("/one", text="a text that nobody has read before")
            await recrawl(db, domain, at=START + DAY)
            await report.append_to_feed(db, at=START + DAY + timedelta(minutes=1))
    execute(
        url,
        "UPDATE ledger SET no = no",
        "ANALYZE",
        "SELECT nextval('subscription_id_seq')",
        "CREATE TEMPORARY TABLE mine (n int)",
    )


def test_a_cleaned_database_equals_a_new_copy(databases: TestDatabases) -> None:
    with databases.lend() as url:
        name = url.rpartition("/")[2]
        asyncio.run(use(url))
        execute(url, f"ALTER DATABASE {name} SET work_mem = '77MB'")

    with databases.lend() as cleaned:
        assert databases.copies == 1
        with databases.lend() as new:
            assert databases.copies == 2
            for each in (cleaned, new):  # autovacuum may have looked at the one table that the template fills
                execute(each, "DELETE FROM pg_statistic WHERE starelid = 'alembic_version'::regclass")
            found, expected = read_all(cleaned), read_all(new)

    assert found.keys() == expected.keys()
    assert {key: set(found[key]) ^ set(expected[key]) for key in expected if found[key] != expected[key]} == {}
    assert len(expected["page_p00"]) == 0
    assert len(expected["ledger"]) == 1


@pytest.mark.parametrize("statement", ["DELETE FROM ledger", "UPDATE ledger SET spent_requests = 1"])
def test_rows_of_migrations_are_restored(databases: TestDatabases, statement: str) -> None:
    with databases.lend() as url:
        (before,) = read_rows(url, "SELECT ledger::text FROM ledger")
        execute(url, statement)
        assert read_rows(url, "SELECT ledger::text FROM ledger") != [before]

    with databases.lend() as again:
        assert read_rows(again, "SELECT ledger::text FROM ledger") == [before]
    assert databases.copies == 1


def test_what_still_runs_after_a_test_is_ended_and_reaches_no_later_one(databases: TestDatabases) -> None:
    with databases.lend() as url:
        left = psycopg.connect(url, autocommit=True)
        left.execute("SELECT pg_advisory_lock(1)")
        left.execute("LISTEN feed")

    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()
    with databases.lend() as again:
        assert databases.copies == 1
        assert again != url
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(url)
        assert read_rows(again, "SELECT pg_try_advisory_lock(1)") == [(True,)]


CHANGES = {
    "table": "CREATE TABLE mine (n int)",
    "column": "ALTER TABLE page ADD COLUMN mine int",
    "default": "ALTER TABLE domain ALTER COLUMN scheme SET DEFAULT 'mine'",
    "constraint": "ALTER TABLE ledger DROP CONSTRAINT ledger_one",
    "index": "CREATE INDEX mine ON domain (scheme)",
    "partition": "DROP TABLE visit_default",
    "partition again": "DROP TABLE visit_default; CREATE TABLE visit_default PARTITION OF visit DEFAULT",
    "view": "CREATE VIEW mine AS SELECT 1",
    "function": "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "trigger": "ALTER TABLE domain DISABLE TRIGGER ALL",
    "schema": "CREATE SCHEMA mine",
    "type": "CREATE TYPE mine AS ENUM ('a')",
    "grant": "GRANT SELECT ON page TO PUBLIC",
    "grant on the database": (
        "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO PUBLIC', current_database()); END $$"
    ),
    "comment": "COMMENT ON TABLE page IS 'mine'",
    "storage": "ALTER TABLE domain SET (fillfactor = 11)",
    "statistics": "CREATE STATISTICS mine ON id, scheme FROM domain",
    "large object": "SELECT lo_create(4711)",
    "sequence": "ALTER SEQUENCE domain_id_seq INCREMENT 7",
}


@pytest.fixture(scope="module")
def copy(postgres_url: str, template_url: str) -> Iterator[str]:
    """Return the URL of a copy that the tests of changes share; each takes its change back."""
    databases = TestDatabases(postgres_url, TEMPLATE)
    with databases.lend() as url:
        yield url
    databases.close()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_schema_is_seen(copy: str, change: str) -> None:
    with psycopg.connect(copy) as connection:
        new = read_new_copy(connection)
        connection.commit()
        assert read_schema(connection, new.since) == new.schema
        connection.execute(CHANGES[change].encode())
        assert read_schema(connection, new.since) != new.schema
        connection.rollback()
        assert read_schema(connection, new.since) == new.schema


def test_a_database_whose_schema_a_test_has_changed_is_not_used_again(databases: TestDatabases) -> None:
    with databases.lend() as url:
        execute(url, CHANGES["table"])

    with databases.lend() as other:
        assert databases.copies == 2
        assert read_rows(other, "SELECT to_regclass('mine')") == [(None,)]


def read_rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()
