"""The rows written by a record and read by a claim of unfetched pages do not grow with the domain."""

import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from benchmarks.store.filled import Filled, filled, touched, visit_pages
from crawler.store import record, report
from crawler.store.database import PREFER_KEY_LOOKUPS, Database, open_database
from crawler.store.frontier.candidate_query import FRONTIER
from tests.store.conftest import START

SIZES = (1_000, 10_000)
TABLES = ("page", "frontier", "cash", "page_links", "visit", "snapshot", "event")


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """Open a database with one connection, because the server counts by connection."""
    async with open_database(database_url, max_connections=1) as database:
        yield database


async def counts(db: Database) -> dict[str, tuple[int, int]]:
    return {table: await touched(db, table) for table in TABLES}


async def test_a_record_updates_each_target_once_and_touches_as_many_rows_in_a_large_domain_as_in_a_small(
    db: Database,
) -> None:
    written = []
    for n, pages in enumerate(SIZES):
        site = await filled(db, f"site{n}.test", pages=pages, at=START)
        at = START + timedelta(hours=1)
        # in both batches, the links lead to the same few pages
        narrow = Filled(site.domain, site.lease, 250)
        targets = await visit_pages(db, site, random.Random(1), most=20, links=0, at=at)
        batch = await visit_pages(db, narrow, random.Random(1), most=20, links=10, at=at)
        assert [visit.target.key for visit in batch] == [visit.target.key for visit in targets]
        before = await counts(db)

        await record.record_visits(db, site.lease, record.Batch(batch, max_pages=10**6))

        after = await counts(db)
        paid = {visit.target.key for visit in batch}.union(*(visit.recipients or () for visit in batch))
        assert after["cash"][0] - before["cash"][0] == len(paid)
        assert {table: after[table][1] - before[table][1] for table in TABLES} == dict.fromkeys(TABLES, 0)
        written.append([after[table][0] - before[table][0] for table in TABLES if table not in {"frontier", "cash"}])
    assert written[0] == written[1]
    assert await report.check_invariants(db) == []


@pytest.mark.soak
async def test_new_pages_are_found_by_an_index_and_nothing_is_sorted_in_a_domain_of_a_hundred_thousand(
    db: Database,
) -> None:
    site = await filled(db, "site.test", pages=100_000, at=START)
    keys = [visit.target.key for visit in await visit_pages(db, site, random.Random(1), most=50, links=0, at=START)]

    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        values = {"domain_id": site.domain.id, "without": keys, "deferred": [], "at": START, "after_at": START}
        limits = {"most": 300, "most_new": 300, "share_new": 90, "share_fetched": 90, "after_key": b""}
        cursor = await connection.execute(f"EXPLAIN (COSTS off) {FRONTIER}".encode(), values | limits)
        plan = "\n".join(row[0] for row in await cursor.fetchall())

    assert "Seq Scan" not in plan
    assert "Sort" not in plan
    assert plan.count("frontier_discovery") + plan.count("boosted_rank_key_idx") == 2, plan
