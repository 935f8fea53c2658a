"""The rows that a selection reads and writes do not grow with the domain, by query plans and row counts."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.store.aged import aged
from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.core.visit.state import State
from crawler.core.visit.visit import Target
from crawler.store import domains, frontier, report
from crawler.store.claim.leases import CANDIDATES
from crawler.store.database import PREFER_KEY_LOOKUPS, Database, open_database
from crawler.store.frontier.candidate_query import HEAD_ROWS
from crawler.store.frontier.selection import FIRST_INSTANT, MAX_EXTRA_PAGES, WRITE_DUE_TIMES
from crawler.store.frontier.targets import DETAILS
from tests.store.conftest import START
from tests.store.made_up import USUAL, take, targets
from tests.store.populated import Bulk, add

PAGES = 100_000
MOST = 500
TABLES = ("page", "frontier", "cash", "page_links", "prior", "pool")
READ = """
    SELECT coalesce(sum(seq_tup_read), 0), coalesce(sum(idx_tup_fetch), 0), coalesce(sum(n_tup_upd), 0)
      FROM pg_stat_user_tables WHERE relid IN (SELECT relid FROM pg_partition_tree(%s::regclass))
"""


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """Open the database with one connection, because the server collects statistics per connection."""
    async with open_database(database_url, max_connections=1) as database:
        yield database


async def plan_of(db: Database, statement: str, values: dict[str, Any], *, by_key: bool = True) -> str:
    async with db.transaction() as connection:
        if by_key:
            await connection.execute(PREFER_KEY_LOOKUPS)
        cursor = await connection.execute(f"EXPLAIN {statement}".encode(), values)
        return "\n".join(row[0] for row in await cursor.fetchall())


async def counts(db: Database, table: str) -> tuple[int, int, int]:
    """Return the rows of a table that were read by sequential scans, read by indexes, and updated so far."""
    async with db.transaction() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with db.transaction() as connection:
        row = await (await connection.execute(READ.encode(), (table,))).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


async def handed_to(db: Database, lease: Lease) -> list[Target]:
    return await frontier.select_targets(db, lease, max_targets=MOST, at=START, dispatched=(), defaults=USUAL)


@pytest.mark.soak
async def test_a_selection_in_a_domain_of_a_hundred_thousand_pages_reads_only_a_few_windows(
    db: Database,
) -> None:
    lease = await aged(db, "aged.test", pages=PAGES, at=START)
    keys = [target.key for target in (await handed_to(db, lease))]
    values = {
        "domain_id": lease.domain.id,
        "without": keys,
        "deferred": [],
        "at": START,
        "most": MOST + MAX_EXTRA_PAGES,
        "most_new": MOST,
        "share_new": MOST // 3,
        "share_fetched": MOST // 3,
        "circulating": 10**15,
        "passes": 24.0,
        "withheld_before": START,
        "many_failures": 3,
        "activity_at": [],
        "activity_ahead": [],
        "clock": 10.0**15,
        "pages": PAGES,
        "mix": 0.5,
        "url_weight": 0.0,
        "after_at": FIRST_INSTANT,
        "after_key": b"",
        "keys": keys,
        "due_at": [START + timedelta(days=1)] * len(keys),
    }

    plans = [await plan_of(db, statement, values) for statement in (HEAD_ROWS, DETAILS, WRITE_DUE_TIMES)]
    before = {table: await counts(db, table) for table in TABLES}
    handed = await handed_to(db, lease)
    after = {table: await counts(db, table) for table in TABLES}

    for plan in plans:
        assert "Seq Scan" not in plan, plan
        assert "Sort" not in plan, plan
    assert "due_at_key_idx" in plans[0]
    assert plans[0].count("boosted_rank_key_idx") == 2
    assert {target.state for target in handed} == {State.UNFETCHED, State.FETCHED}
    assert len(handed) == MOST
    window = MOST + MAX_EXTRA_PAGES
    scanned, fetched, updated = ({table: after[table][n] - before[table][n] for table in TABLES} for n in range(3))
    assert scanned == dict.fromkeys(TABLES, 0)
    assert all(fetched[table] <= 5 * window for table in ("page", "frontier", "cash", "page_links"))
    assert updated["frontier"] <= window
    assert {table: updated[table] for table in TABLES if table != "frontier"} == dict.fromkeys(
        TABLES[:1] + TABLES[2:], 0
    )
    assert {finding.rule for finding in await report.check_invariants(db)} == {
        "wrong_version"
    }  # the pages have no snapshots


async def test_of_equal_value_the_longest_overdue_pages_are_selected_first(db: Database, domain: Domain) -> None:
    """In StormCrawler's order by due time alone, the most overdue pages of a host starve."""
    keys = await add(db, domain, Bulk(40, a=3.0, b=30.0), at=START)
    at = START + timedelta(days=60)
    async with db.transaction() as connection:
        for n, key in enumerate(keys):  # some are more overdue than others
            due_at = START + timedelta(days=1 + 7 * n % 40)
            await connection.execute("UPDATE frontier SET due_at = %s WHERE key = %s", (due_at, key))
    lease = await take(db, at)

    handed = await targets(db, lease, at, most=10)

    again = [target.key for target in handed if target.state is State.FETCHED]
    assert again == sorted(keys, key=lambda key: 7 * keys.index(key) % 40)[: len(again)]
    assert len(again) >= 9  # plus the root


async def test_due_pages_of_too_little_value_leave_their_slots_to_unfetched_pages(db: Database, domain: Domain) -> None:
    """A selection reads fewer unfetched pages if fetched ones are due, and more if these are rescheduled."""
    await add(db, domain, Bulk(100, a=0.0, b=50_000.0), at=START)
    new = await add(db, domain, Bulk(200, state="unfetched", first=1_000), at=START)
    at = START + timedelta(days=2)
    lease = await take(db, at)

    handed = await targets(db, lease, at, most=50)

    assert {target.state for target in handed} == {State.UNFETCHED}
    assert [target.key for target in handed[1:]] == sorted(new)[:49]  # after the root
    assert len(handed) == 50


@pytest.mark.parametrize("due", [True, False])
async def test_a_claim_among_many_domains_reads_at_most_one(db: Database, *, due: bool) -> None:
    for n in range(200):  # all wake at the same time, as after an import
        await domains.register(
            db, Authority(f"many{n}.test"), scheme="http", domain_settings=DomainSettings(), at=START
        )
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM inbox")
        await connection.execute("ANALYZE domain_state, domain, inbox")
    at = START if due else START - timedelta(days=1)
    values: dict[str, Any] = {"at": at, "only": None, "exempt": [], "term": timedelta(minutes=1), "tried": []}

    by_time, called = [await plan_of(db, statement, values, by_key=False) for statement in CANDIDATES]

    assert "domain_state_wake" in by_time
    assert "Sort" not in by_time
    for plan in (by_time, called):
        assert "Seq Scan on domain" not in plan
