from datetime import UTC, datetime, timedelta

import pytest
from psycopg.rows import dict_row

from crawler.core.domain import Domain
from crawler.store import report
from crawler.store.database import Database
from crawler.store.partitions import ensure_visit_partition
from crawler.store.retention import visits
from crawler.store.retention.visits import VISIT_COLUMNS
from tests.store import made_up
from tests.store.conftest import START

DAY = timedelta(days=1)
# Different values in every column, some of them null, in two months.
FILL = """
    INSERT INTO visit (domain_id, key, at, outcome, status, reason, change, evidence, distance_bits, conditional,
                       requests,
                       received_bytes, saved_bytes, elapsed_ms, cash, expected, due_at, shadow_price, audit, parts,
                       magnitude,
                       rendering, added_words, added_links)
    SELECT %(id)s, decode(md5((n %% %(pages)s)::text), 'hex'), %(at)s::timestamptz + n * interval '7 minutes',
           (ARRAY['fetched', 'not_modified', 'unreached'])[1 + n %% 3], CASE WHEN n %% 3 < 2 THEN 200 + n %% 5 END,
           CASE WHEN n %% 3 = 2 THEN 'timeout' ELSE '' END, (ARRAY['unchanged', 'cosmetic', 'unknown'])[1 + n %% 3],
           'status', CASE WHEN n %% 4 = 0 THEN n %% 60 END, n %% 2 = 0, 1 + n %% 3, n, 2 * n, n %% 900, 1000 + n,
           CASE WHEN n %% 5 > 0 THEN n / 10000.0 END, %(at)s::timestamptz + n * interval '8 minutes', n / 7.0,
           n %% 11 = 0, '', CASE WHEN n %% 6 = 0 THEN n / 20000.0 END, '', NULL, CASE WHEN n %% 9 = 0 THEN n END
      FROM generate_series(1, %(visits)s) n
"""


async def fill(db: Database, domain: Domain, *, pages: int, visits: int, at: datetime = START) -> datetime:
    """Add visits of the pages in turn, seven minutes apart, and return the time of the last one."""
    last = at + visits * timedelta(minutes=7)
    async with db.transaction() as connection:
        await connection.execute(FILL, {"id": domain.id, "pages": pages, "visits": visits, "at": at})
        await connection.execute("UPDATE domain_state SET last_visit_at = %s WHERE domain_id = %s", (last, domain.id))
    return last


async def every_visit(db: Database, table: str = "every_visit") -> list[dict[str, object]]:
    async with db.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"SELECT * FROM {table} ORDER BY domain_id, key, at".encode())
        return await cursor.fetchall()


async def pack_all(db: Database, domain: Domain, *, most: int) -> int:
    waiting = await visits.find_visits_to_pack(db, domain)
    assert waiting is not None
    done, after = await visits.pack_visits(db, domain, waiting, max_visits=most)
    while after is not None:
        many, after = await visits.pack_visits(db, domain, waiting, after=after, max_visits=most)
        done += many
    return done


@pytest.mark.parametrize(("pages", "chunk"), [(1, 20_000), (7, 1000), (500, 700), (4000, 20_000)])
async def test_packing_keeps_every_column_of_a_visit(db: Database, domain: Domain, pages: int, chunk: int) -> None:
    await ensure_visit_partition(db, at=START)
    last = await fill(db, domain, pages=pages, visits=5000)
    before = await every_visit(db)

    packed = await pack_all(db, domain, most=chunk)

    assert packed == sum(visit["at"] < last - 8 * DAY for visit in before) > 3000  # type: ignore[operator]
    assert len(await every_visit(db, "visit")) == 5000 - packed
    assert await every_visit(db) == before
    assert set(VISIT_COLUMNS) | {"domain_id", "key"} == set(before[0])


async def test_visits_of_a_page_or_period_are_found_in_rows_and_packs(db: Database, domain: Domain) -> None:
    await fill(db, domain, pages=40, visits=5000)
    before = await every_visit(db)
    await pack_all(db, domain, most=1500)
    since, until = START + 3 * DAY, START + 20 * DAY

    async with db.transaction() as connection:
        for key in {visit["key"] for visit in before}:
            cursor = await connection.execute(
                "SELECT at FROM visits_of(%s, %s) ORDER BY at", (domain.id, key), binary=True
            )
            assert [at for (at,) in await cursor.fetchall()] == [v["at"] for v in before if v["key"] == key]
        cursor = await connection.execute("SELECT count(*) FROM visits_between(%s, %s, %s)", (domain.id, since, until))
        assert await cursor.fetchall() == [(sum(since <= v["at"] <= until for v in before),)]  # type: ignore[operator]


async def test_few_visits_wait_and_a_second_pass_finds_nothing(db: Database, domain: Domain) -> None:
    await fill(db, domain, pages=3, visits=40, at=START)
    last = await fill(db, domain, pages=3, visits=1, at=START + 9 * DAY)
    assert await visits.find_visits_to_pack(db, domain) is None

    await fill(db, domain, pages=3, visits=1, at=last + 60 * DAY)
    assert await pack_all(db, domain, most=100) == 41

    assert await visits.find_visits_to_pack(db, domain) is None


async def test_the_partition_of_a_packed_month_is_dropped(db: Database, domain: Domain) -> None:
    await ensure_visit_partition(db, at=START)
    await fill(db, domain, pages=9, visits=9000)
    await pack_all(db, domain, most=20_000)

    assert await visits.drop_empty_partitions(db, at=START + 20 * DAY) == []
    assert await visits.drop_empty_partitions(db, at=START + 45 * DAY) == ["visit_2026_01"]
    assert await visits.drop_empty_partitions(db, at=START + 400 * DAY) == []  # February has the last ones

    await fill(db, domain, pages=9, visits=1, at=START)  # in January, in the default partition
    assert len(await every_visit(db)) == 9001


async def test_a_locked_partition_is_not_dropped(db: Database, domain: Domain) -> None:
    await ensure_visit_partition(db, at=START)
    async with db.transaction() as other:
        await other.execute("SELECT count(*) FROM visit")

        assert await visits.drop_empty_partitions(db, at=START + 400 * DAY) == []

    assert len(await visits.drop_empty_partitions(db, at=START + 400 * DAY)) == 2


async def test_old_visits_are_deleted_from_rows_and_packs(db: Database, domain: Domain) -> None:
    last = await fill(db, domain, pages=30, visits=9000)
    await pack_all(db, domain, most=20_000)
    before = last - 5 * DAY
    expected = await visits.count_visits(db, domain, before=before)

    forgotten = 0
    while many := await visits.forget_visits(db, domain, before=before, max_visits=500):
        forgotten += many

    left = await every_visit(db)
    assert forgotten == expected == 9000 - len(left)
    assert all(visit["at"] >= before for visit in left)  # type: ignore[operator]
    assert await visits.count_visits(db, domain, before=datetime(2030, 1, 1, tzinfo=UTC)) == len(left)


async def test_packing_does_not_change_history_and_reports(db: Database, domain: Domain) -> None:
    lease = await made_up.take(db, START)
    await made_up.crawl(db, lease, {0: [1, 2], 1: [], 2: []}, START)
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO visit (domain_id, key, at, outcome, change, evidence, conditional, requests, expected)
               SELECT v.domain_id, v.key, v.at + n * interval '1 hour', 'not_modified', 'unchanged', 'status', true, 1,
               0.1
                 FROM visit v, generate_series(1, 600) n"""
        )
        await connection.execute("UPDATE domain_state SET last_visit_at = %s", (START + 25 * DAY,))
    instants = [START + n * DAY / 2 for n in range(50)]
    fresh = await report.read_freshness_history(db, domain, instants=instants)
    told = await report.read_domain_report(db, domain, at=START + 25 * DAY, window=20 * DAY)
    hours = await report.read_traffic(db, domain, since=START, until=START + 30 * DAY)
    explained = await report.explain_url(
        db, domain, made_up.url(domain, 1), at=START + 25 * DAY, defaults=made_up.USUAL
    )

    assert await pack_all(db, domain, most=20_000) > 1000

    assert await report.read_freshness_history(db, domain, instants=instants) == fresh
    assert await report.read_domain_report(db, domain, at=START + 25 * DAY, window=20 * DAY) == told
    assert await report.read_traffic(db, domain, since=START, until=START + 30 * DAY) == hours
    again = await report.explain_url(db, domain, made_up.url(domain, 1), at=START + 25 * DAY, defaults=made_up.USUAL)
    assert again.visits == explained.visits
    assert await report.check_invariants(db) == []
