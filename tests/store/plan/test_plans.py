"""The inputs and the results of plans."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from crawler.core.budget.cost import RequestKind, ShadowPrice
from crawler.core.budget.sample import REQUEST_KINDS, PageSample, build_workload, compute_estimates
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.http.urls import Authority
from crawler.store import domains, plan
from crawler.store.database import Database, open_database
from crawler.store.plan import PlanRow, sample_domain
from crawler.store.plan.samples import SAMPLE, build_key_slice
from tests.store.conftest import START
from tests.store.made_up import USUAL
from tests.store.populated import Bulk, add, fetched


async def read(db: Database, *, most: int, minutes: int = 0) -> PageSample:
    at = START + timedelta(minutes=minutes)
    (standing,) = await plan.read_plan_inputs(db, at=at)
    return await sample_domain(db, standing, sample_size=most, at=at, defaults=USUAL)


async def test_a_small_domain_is_sampled_completely(db: Database, domain: Domain) -> None:
    await add(db, domain, Bulk(30, a=1.0, b=30.0), at=START)
    await add(db, domain, Bulk(5, state="unfetched", first=100), at=START)
    await add(db, domain, Bulk(5, state="gone", first=200), at=START)

    sample = await read(db, most=1000)

    assert (sample.fetched_pages, sample.unfetched_pages, sample.share) == (30, 5, 1.0)
    assert (sample.request_kind == REQUEST_KINDS.index(RequestKind.CONDITIONAL)).sum() == 30
    a, b = compute_estimates(sample, sample.priors)
    assert set(a[~sample.is_new]) == {PRIOR.a + 1.0}
    assert set(b[sample.is_new]) == {PRIOR.b}


async def test_without_statistics_each_page_is_read_a_few_times(database_url: str) -> None:
    async with open_database(database_url, max_connections=1) as db:  # the server counts per connection
        site = await domains.register(
            db, Authority("site.test"), scheme="http", domain_settings=DomainSettings(), at=START
        )
        await add(db, site, Bulk(200), at=START)
        before = await count_index_scans(db)

        await read(db, most=1000)

        assert await count_index_scans(db) - before < 10 * 200


async def count_index_scans(db: Database) -> int:
    await fetched(db, "SELECT pg_stat_force_next_flush()")
    ((scans,),) = await fetched(db, "SELECT sum(idx_scan)::int FROM pg_stat_user_indexes")
    assert isinstance(scans, int)
    return scans


async def test_duplicates_are_marked_in_the_sample_and_their_visits_counted_once(db: Database, domain: Domain) -> None:
    canonical, *others = await add(db, domain, Bulk(30, a=1.0, b=30.0), at=START)
    alone = await read(db, most=1000)
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET canonical = %s WHERE key = ANY(%s)", (canonical, others[:20]))

    sample = await read(db, most=1000)

    assert (sample.fetched_pages, sample.pages_by_group) == (alone.fetched_pages, alone.pages_by_group)
    assert [
        len(build_workload(each, [PRIOR], min_interval_days=0.1, max_interval_days=9).fetched.a)
        for each in (alone, sample)
    ] == [30, 10]


@pytest.mark.parametrize(("flapped", "asked"), [(0.0, RequestKind.HEAD), (4.0, RequestKind.CONDITIONAL)])
async def test_pages_count_as_head_requests_where_heads_were_useful(
    db: Database, domain: Domain, flapped: float, asked: RequestKind
) -> None:
    await add(db, domain, Bulk(30), at=START)
    stats = {"condition": {"unchanged": 4, "flapped": 4}, "head": {"unchanged": 4, "flapped": flapped}}
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET received_bytes = 90000")
        await connection.execute(
            "INSERT INTO domain_trust (domain_id, prior_no, stats) VALUES (%s, 0, %s)", (domain.id, Jsonb(stats))
        )

    sample = await read(db, most=1000)

    assert {REQUEST_KINDS[n] for n in sample.request_kind} == {asked}
    known = build_workload(sample, [PRIOR], min_interval_days=0.1, max_interval_days=9).fetched
    assert set(known.received_bytes) == {sample.costs.get_cost(asked).received_bytes}


async def test_pages_with_lying_validators_count_as_full_requests(db: Database, domain: Domain) -> None:
    await add(db, domain, Bulk(30), at=START)
    async with db.transaction() as connection:
        values = (domain.id, Jsonb({"etag": {"changes_seen": 4, "missed": 4}}))
        await connection.execute("INSERT INTO domain_trust (domain_id, prior_no, stats) VALUES (%s, 0, %s)", values)

    assert {REQUEST_KINDS[n] for n in (await read(db, most=1000)).request_kind} == {RequestKind.FULL}


@pytest.mark.soak
async def test_a_large_domain_is_sampled(db: Database, domain: Domain) -> None:
    await add(db, domain, Bulk(4000), at=START)

    samples = [await read(db, most=500, minutes=n) for n in range(4)]

    sizes = [len(sample.group) for sample in samples]
    assert all(400 < size < 600 for size in sizes)
    assert len(set(sizes)) > 1  # another slice each time
    assert sum(sample.fetched_pages for sample in samples) / 4 == pytest.approx(4000, rel=0.1)


async def test_the_slices_of_a_domain_contain_each_page_once(db: Database, domain: Domain) -> None:
    keys = await add(db, domain, Bulk(300), at=START)

    slices = [build_key_slice(n, 7) for n in range(7)]

    found = [sum(each["low"] <= key < each["high"] for each in slices) for key in keys]
    assert found == [1] * len(keys)


async def test_a_sample_is_read_by_the_index_on_keys(db: Database, domain: Domain) -> None:
    await add(db, domain, Bulk(20_000), at=START)
    async with db.transaction() as connection:
        await connection.execute("ANALYZE page")
        await connection.execute("ANALYZE frontier")
        values = build_key_slice(3, 100) | {"domain_id": domain.id, "at": START}
        rows = await (await connection.execute(f"EXPLAIN {SAMPLE}".encode(), values)).fetchall()

    planned = "\n".join(str(row[0]) for row in rows)
    assert "Seq Scan on page" not in planned
    assert "Seq Scan on frontier" not in planned


async def test_a_plan_is_written_with_its_priors_and_wakes_the_domain_once(db: Database, domain: Domain) -> None:
    planned = PlanRow(2.0, ShadowPrice(0.5, 0.001), 86_400.0, 340, 1.02, "a finding", [RateEstimate(0.7, 14.0)], [30])

    for minute in range(2):
        await plan.write_plan(db, domain, planned, rescores_pages=True, at=START + timedelta(minutes=minute))

    (standing,) = await plan.read_plan_inputs(db, at=START)
    assert (standing.price, standing.price_correction, standing.importance) == (ShadowPrice(0.5, 0.001), 1.02, 2.0)
    assert standing.planned_at == START + timedelta(minutes=1)
    written = await fetched(db, "SELECT longest_s, budget_per_day, finding FROM domain_plan")
    assert written == [(86_400.0, 340, "a finding")]
    assert await fetched(db, "SELECT no, a, b, pages FROM prior") == [(0, 0.7, 14.0, 30)]
    assert await fetched(db, "SELECT count(*) FROM inbox WHERE kind = 'reprice'") == [(1,)]


async def test_a_plan_for_a_deleted_domain_is_not_written(db: Database, domain: Domain) -> None:
    await domains.remove(db, domain)

    await plan.write_plan(
        db, domain, PlanRow(1.0, None, 1.0, None, 1.0, "", [PRIOR], [0]), rescores_pages=True, at=START
    )

    assert await fetched(db, "SELECT domain_id FROM domain_plan") == []
    assert await fetched(db, "SELECT id FROM inbox") == []


async def test_waiting_counts_pages_due_since_before_the_last_plan(db: Database, domain: Domain) -> None:
    await add(db, domain, Bulk(1), at=START)  # due a day later
    planned = PlanRow(1.0, None, 1.0, None, 1.0, "", [PRIOR], [1])
    waiting = []
    for days in (0.5, 1.5):
        at = START + timedelta(days=days)
        await plan.write_plan(db, domain, planned, rescores_pages=False, at=at)
        waiting += [standing.waiting for standing in await plan.read_plan_inputs(db, at=at)]

    assert waiting == [0, 1]
