"""Export in batches: each batch reads only its own rows, independent of the pages before it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from benchmarks.store.exported import fill
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.store import domains, report
from crawler.store.database import Database, open_database

PAGES, BATCH = 3000, 50
LAST = PageKey(bytes.fromhex("f0"))
AT = datetime(2026, 1, 1, tzinfo=UTC)
# Rows read by scans, from the server's statistics.
READ = """
    SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
     WHERE relid IN (SELECT relid FROM pg_partition_tree('snapshot'::regclass) UNION ALL
                     SELECT relid FROM pg_partition_tree('page'::regclass) UNION ALL
                     SELECT relid FROM pg_partition_tree('frontier'::regclass))
"""


async def rows_read(db: Database) -> int:
    """Return the number of rows read so far. db: has one connection, whose statistics are flushed first."""
    async with db.transaction() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with db.transaction() as connection:
        row = await (await connection.execute(READ)).fetchone()
        assert row is not None
        return int(row[0])


async def pages(db: Database, domain: Domain) -> int:
    return len(await report.read_pages_to_export(db, domain, after=LAST, max_count=BATCH, with_bodies=True))


async def versions(db: Database, domain: Domain) -> int:
    return len(
        (await report.read_versions_to_export(db, domain, after=(LAST, 1), max_count=BATCH, with_bodies=True))[0]
    )


@pytest.mark.parametrize("take", [pages, versions])
async def test_a_batch_near_the_end_reads_only_its_own_rows(
    database_url: str, take: Callable[[Database, Domain], Awaitable[int]]
) -> None:
    await fill(database_url, PAGES)
    async with open_database(database_url, max_connections=1) as db:
        [listed] = await domains.list_domains(db)
        before = await rows_read(db)
        taken = await take(db, listed.domain)
        read = await rows_read(db) - before

    assert taken == BATCH
    assert read < 12 * BATCH  # the page, its state and text, and all of it again for its importance
