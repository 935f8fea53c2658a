"""Merging the packs of a month changes no visit and leaves few packs for each page."""

from datetime import timedelta

from crawler.core.domain import Domain
from crawler.store.database import Database
from crawler.store.retention import visits
from tests.engine.crawls import rows
from tests.store.conftest import START
from tests.store.retention.test_visits import every_visit, fill, pack_all

DAY = timedelta(days=1)
OF_PAGE = """
    SELECT count(*) FROM visit_pack p
     WHERE p.domain_id = %s AND p.bucket = visit_bucket(%s, p.bits) AND p.until < %s
"""


async def pack_nightly(db: Database, domain: Domain, days: range) -> None:
    for day in days:
        await rows(db, "UPDATE domain_state SET last_visit_at = %s RETURNING 1", START + day * DAY)
        await pack_all(db, domain, most=10_000)


async def test_the_packs_of_a_finished_month_are_merged_unchanged(db: Database, domain: Domain) -> None:
    last = await fill(db, domain, pages=300, visits=12_000)  # until the end of February, 205 a day
    before = await every_visit(db)
    await pack_nightly(db, domain, range(9, 39))
    assert await visits.find_packs_to_merge(db, domain) == []  # January is not packed to its end yet
    await pack_nightly(db, domain, range(39, (last - START).days))
    key = before[77]["key"]
    wide = (await rows(db, OF_PAGE, domain.id, key, START + 31 * DAY))[0][0]

    (january,) = await visits.find_packs_to_merge(db, domain)
    merged = await visits.merge_packs(db, domain, january)

    assert (january.month, january.bits, merged) == (START, 0, january.visits)
    assert merged > 5000
    narrow = (await rows(db, OF_PAGE, domain.id, key, START + 31 * DAY))[0][0]
    assert (wide > 25, narrow <= 2) == (True, True)
    assert await every_visit(db) == before
    async with db.transaction() as connection:
        cursor = await connection.execute("SELECT at FROM visits_of(%s, %s) ORDER BY at", (domain.id, key), binary=True)
        assert [at for (at,) in await cursor.fetchall()] == [visit["at"] for visit in before if visit["key"] == key]
    assert await visits.find_packs_to_merge(db, domain) == []


async def test_packs_that_are_narrow_enough_are_not_merged(db: Database, domain: Domain) -> None:
    await fill(db, domain, pages=900, visits=12_000)
    await pack_all(db, domain, most=100_000)
    await rows(db, "UPDATE domain_state SET last_visit_at = last_visit_at + interval '90 days' RETURNING 1")

    assert await visits.find_packs_to_merge(db, domain) == []
