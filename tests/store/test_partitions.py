import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.errors import BadInput
from crawler.store import database, domains, report
from crawler.store.database import MIGRATIONS, Database, open_database, upgrade_schema
from crawler.store.partitions import ensure_visit_partition, get_next_month
from tests.store import made_up
from tests.store.conftest import START
from tests.store.differences import schema_differences


async def look_at_all(db: Database, at: datetime) -> None:
    lease = await made_up.take(db, at)
    await made_up.crawl(db, lease, {0: [1, 2], 1: [], 2: []}, at)


async def partitions(db: Database) -> dict[str, int]:
    """Return the number of visits in each partition."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            """SELECT c.relname, (SELECT count(*) FROM visit v WHERE v.tableoid = c.oid)
                 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'visit'::regclass"""
        )
        return {row[0]: row[1] for row in await cursor.fetchall()}


async def test_visits_go_to_the_partition_of_their_month_and_the_next_month_exists(
    db: Database, domain: Domain, database_url: str
) -> None:
    await asyncio.gather(*(ensure_visit_partition(db, at=START) for _ in range(4)))
    await ensure_visit_partition(db, at=START)

    await look_at_all(db, START)

    assert await partitions(db) == {"visit_default": 0, "visit_2026_01": 3, "visit_2026_02": 0}
    assert schema_differences(database_url) == []
    assert await report.check_invariants(db) == []


async def test_visits_in_the_default_partition_stay_there(db: Database, domain: Domain) -> None:
    await look_at_all(db, START)

    await ensure_visit_partition(db, at=START)

    assert await partitions(db) == {"visit_default": 3, "visit_2026_02": 0}


async def test_no_partition_is_created_while_the_table_is_locked(db: Database) -> None:
    async with db.transaction() as other:
        await other.execute("LOCK TABLE visit IN ROW EXCLUSIVE MODE")

        await ensure_visit_partition(db, at=START)

    assert await partitions(db) == {"visit_default": 0}
    await ensure_visit_partition(db, at=START)
    assert len(await partitions(db)) == 3


async def hash_partitions(url: str) -> dict[str, int]:
    """Return the number of partitions of each table that is partitioned by hash of the domain."""
    async with open_database(url) as db, db.transaction() as connection:
        cursor = await connection.execute(
            """SELECT p.partrelid::regclass::text, count(i.inhrelid)::int
                 FROM pg_partitioned_table p LEFT JOIN pg_inherits i ON i.inhparent = p.partrelid
                WHERE p.partstrat = 'h' GROUP BY 1"""
        )
        return dict(await cursor.fetchall())


async def test_a_new_database_has_four_partitions_of_each_table_of_pages(database_url: str) -> None:
    found = await hash_partitions(database_url)

    assert {"page", "frontier", "cash", "snapshot", "event", "announced", "visit_pack", "fingerprint_band"} <= set(
        found
    )
    assert set(found.values()) == {4}


@pytest.mark.parametrize("number", [1, 16])
async def test_a_site_can_be_crawled_with_another_number_of_partitions(empty_database_url: str, number: int) -> None:
    upgrade_schema(empty_database_url, partitions=number)

    assert set((await hash_partitions(empty_database_url)).values()) == {number}
    async with open_database(empty_database_url) as db:
        await domains.register(db, Authority("a.test"), scheme="http", domain_settings=DomainSettings(), at=START)
        await look_at_all(db, START)
        assert await report.check_invariants(db) == []


@pytest.mark.usefixtures("later_release")
async def test_later_migrations_create_tables_with_the_same_number_of_partitions(empty_database_url: str) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(database, "MIGRATIONS", MIGRATIONS)
        upgrade_schema(empty_database_url, partitions=16)
    assert "later" not in await hash_partitions(empty_database_url)

    upgrade_schema(empty_database_url)

    found = await hash_partitions(empty_database_url)
    assert "later" in found
    assert set(found.values()) == {16}
    upgrade_schema(empty_database_url, partitions=16)
    with pytest.raises(BadInput, match=r"^the tables have 16 partitions each, .* --partitions 2 on a new database$"):
        upgrade_schema(empty_database_url, partitions=2)


def test_december_is_followed_by_january() -> None:
    assert get_next_month(datetime(2026, 12, 1, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert get_next_month(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 2, 1, tzinfo=UTC)


async def known_rows(db: Database) -> float:
    """Return the planner's row estimate of the largest partition of pages; -1 if it was never analyzed."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            """SELECT max(c.reltuples) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'page'::regclass"""
        )
        row = await cursor.fetchone()
        assert row is not None
        return float(row[0])


@pytest.fixture
async def one(database_url: str) -> AsyncIterator[Database]:
    """Open the database with a single connection, because Postgres collects statistics per connection."""
    async with open_database(database_url, max_connections=1) as database:
        yield database


async def add_pages(db: Database, domain: Domain, numbers: range) -> None:
    """Add pages and select some of them."""
    await domains.add_seeds(db, domain, [made_up.url(domain, n) for n in numbers], at=START)
    lease = await made_up.take(db, START)
    async with db.transaction() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    await made_up.targets(db, lease, START, most=1)
    await domains.expire_leases(db, holder_prefix="test")


async def test_partitions_are_analyzed_when_the_pages_of_a_domain_have_doubled(one: Database, domain: Domain) -> None:
    await add_pages(one, domain, range(20))
    assert await known_rows(one) == -1
    await add_pages(one, domain, range(20, 300))
    assert await known_rows(one) >= 300
    await add_pages(one, domain, range(300, 400))
    assert 300 <= await known_rows(one) < 400
    await add_pages(one, domain, range(400, 900))
    assert await known_rows(one) >= 900


async def test_analyze_does_not_wait_for_another_analyze(db: Database, one: Database, domain: Domain) -> None:
    await add_pages(one, domain, range(20))
    async with db.transaction() as other:
        await other.execute("LOCK TABLE page IN SHARE UPDATE EXCLUSIVE MODE")
        await add_pages(one, domain, range(20, 300))

    assert await known_rows(one) == -1
