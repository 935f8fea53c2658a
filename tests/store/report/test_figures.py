"""Stored figures: those of a large domain are as of its last count, those of a small one are current."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY
from crawler.core.visit.state import State
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from crawler.store.report import CountState
from crawler.store.report.freshness import MAX_AGE, MAX_SMALL_PAGES
from tests.store.conftest import START
from tests.store.made_up import look, status, take, targets
from tests.store.report.test_expressions import LATER, walked

HOUR = timedelta(hours=1)
GRADED = """
    SELECT grouped_by, template, decile, pages, round(freshness::numeric, 9), round(freshness_plain::numeric, 9),
           extract(epoch FROM mean_age)::int, extract(epoch FROM mean_interval)::int
      FROM report_freshness ORDER BY grouped_by, template, decile
"""
TOTALS = """
    SELECT pages_unfetched, pages_fetched, pages_gone, pages_moved, pages_excluded, round(freshness::numeric, 6)
      FROM report_domain
"""


async def grown(db: Database, domain: Domain) -> None:
    """Make the domain count as a large one."""
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE domain_state SET tracked = %s WHERE domain_id = %s", (MAX_SMALL_PAGES + 1, domain.id)
        )


async def rows(db: Database, statement: str) -> list[tuple[object, ...]]:
    async with db.transaction() as connection:
        return [tuple(row) for row in await (await connection.execute(statement.encode())).fetchall()]


async def lose(db: Database, domain: Domain, *, at: datetime) -> None:
    """Revisit all pages; one of them is gone."""
    await domains.request_refresh(db, domain, prefix=domain.root, at=at)
    lease = await take(db, at)
    first, *_ = [target for target in await targets(db, lease, at) if target.state == State.FETCHED]
    await record.record_visits(db, lease, record.Batch([look(first, status(410), at, domain)], max_pages=100))
    await claim.release(db, lease, at=at)


async def test_the_stored_figures_of_a_large_domain_equal_its_count(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    live = await report.read_domain_report(db, domain, at=LATER, window=DAY)
    every = [await report.list_top_pages(db, domain, top=9, at=LATER, ranking=which) for which in (report.ALL, *State)]
    (past,) = await report.read_freshness_history(db, domain, instants=[START + DAY])

    await grown(db, domain)
    kept = await report.read_domain_report(db, domain, at=LATER, window=DAY)

    assert kept == live
    assert [
        await report.list_top_pages(db, domain, top=9, at=LATER, ranking=which) for which in (report.ALL, *State)
    ] == every
    assert await report.list_top_pages(db, domain, top=2, at=LATER) == every[0][:2]
    assert await report.list_top_pages(db, domain, top=9, at=LATER, ranking=report.FAILING) == []
    (kept_past,) = await report.read_freshness_history(db, domain, instants=[START + DAY])
    assert kept_past.pages == past.pages
    assert kept_past.freshness == pytest.approx(past.freshness)
    assert await report.read_largest_groups(db, domain, at=LATER) == []


async def test_a_large_domain_is_reported_as_of_its_last_count(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    await grown(db, domain)
    before = await report.read_domain_report(db, domain, at=LATER, window=DAY)
    assert before is not None
    assert before.counted_at == LATER

    await lose(db, domain, at=LATER + HOUR)
    soon = await report.read_domain_report(db, domain, at=LATER + HOUR, window=DAY)
    assert soon is not None
    assert (soon.counted_at, soon.gone, soon.freshness) == (LATER, 0, before.freshness)
    assert (
        len(await report.list_top_pages(db, domain, top=9, at=LATER + HOUR, ranking=State.FETCHED))
        == before.fetched - 1
    ), "a page that is gone is not shown as a known one"

    late = LATER + MAX_AGE + HOUR
    anew = await report.read_domain_report(db, domain, at=late, window=DAY)
    assert anew is not None
    assert (anew.counted_at, anew.gone) == (late, 1), "no plan has come by: who asks has it counted"


async def test_a_small_domain_is_counted_at_query_time(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    await report.store_figures(db, domain, at=LATER)

    await lose(db, domain, at=LATER + HOUR)
    found = await report.read_domain_report(db, domain, at=LATER + HOUR, window=DAY)

    assert found is not None
    assert (found.counted_at, found.gone) == (LATER + HOUR, 1)
    assert len(await report.list_top_pages(db, domain, top=9, at=LATER, ranking=State.GONE)) == 1


@pytest.mark.parametrize(
    ("visits", "is_counted"), [(0, False), (MAX_SMALL_PAGES // 100 - 1, False), (MAX_SMALL_PAGES, True)]
)
async def test_a_crawl_with_many_visits_ends_with_a_count(
    db: Database, domain: Domain, *, visits: int, is_counted: bool
) -> None:
    await walked(db, domain)
    await report.count_after_crawl(db, domain, visits=visits, at=LATER)
    assert await rows(db, "SELECT FROM domain_figures") == [], "a small one needs none"
    await grown(db, domain)
    await report.count_after_crawl(db, domain, visits=visits, at=LATER)
    assert bool(await rows(db, "SELECT FROM domain_figures")) is is_counted


async def test_the_views_equal_the_reports_for_small_and_large_domains(db: Database, domain: Domain) -> None:
    await walked(db, domain, at=datetime.now(UTC) - 2 * DAY)
    live = await rows(db, TOTALS), await rows(db, GRADED)
    assert await rows(db, "SELECT is_live FROM domain_counted_live") == [(True,)]

    await report.store_figures(db, domain, at=datetime.now(UTC))

    assert await rows(db, "SELECT is_live FROM domain_counted_live") == [(False,)]
    totals, graded = await rows(db, TOTALS), await rows(db, GRADED)
    assert [row[:5] for row in totals] == [row[:5] for row in live[0]]
    assert [row[:4] for row in graded] == [row[:4] for row in live[1]]
    # Some time has passed, so the pages are older.
    for after, before in zip(totals, live[0], strict=True):
        assert float(str(after[5])) == pytest.approx(float(str(before[5])), abs=0.001)
    for after, before in zip(graded, live[1], strict=True):
        fresh = [[float(str(value)) for value in row[4:6]] for row in (after, before)]
        assert fresh[0] == pytest.approx(fresh[1], abs=0.001)
        assert after[6:] == pytest.approx(before[6:], abs=300)


@pytest.mark.parametrize(
    ("pages", "visited", "counted", "is_live"),
    [
        (MAX_SMALL_PAGES, 2, 1, False),  # counted since its last visit
        (MAX_SMALL_PAGES, 1, 2, True),  # visited since
        (MAX_SMALL_PAGES + 1, 1, 2, False),  # a large one waits for the plan
        (MAX_SMALL_PAGES, 300, 200, True),  # no plan for hours
        (MAX_SMALL_PAGES + 1, 300, 200, False),
    ],
)
async def test_the_views_count_small_outdated_domains_live(
    db: Database, domain: Domain, *, pages: int, visited: int, counted: int, is_live: bool
) -> None:
    """Check a domain of some size that was visited and counted some minutes ago."""
    now = datetime.now(UTC)
    visited_at, counted_at = now - timedelta(minutes=visited), now - timedelta(minutes=counted)
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET tracked = %s, last_visit_at = %s", (pages, visited_at))
        await connection.execute(
            "INSERT INTO domain_figures (domain_id, counted_at) VALUES (%s, %s)", (domain.id, counted_at)
        )
    assert await rows(db, "SELECT is_live FROM domain_counted_live") == [(is_live,)]


async def test_the_views_use_the_same_limits(db: Database) -> None:
    ((said,),) = await rows(db, "SELECT pg_get_viewdef('domain_counted_live'::regclass)")
    assert f"tracked <= {MAX_SMALL_PAGES})" in str(said)
    assert f"'{int(MAX_AGE / HOUR):02}:00:00'::interval" in str(said)


async def test_a_deleted_domain_leaves_no_figures(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    await grown(db, domain)
    await report.store_figures(db, domain, at=LATER)
    await domains.remove(db, domain)
    await report.store_figures(db, domain, at=LATER)
    for table in ("domain_figures", "freshness_figures", "top_page"):
        assert await rows(db, f"SELECT FROM {table}") == []


async def test_figures_of_any_age_can_be_read_without_counting(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    assert await report.read_count_state(db, domain, at=LATER) is CountState.DONE, (
        "a small one is counted for each who asks"
    )
    await grown(db, domain)
    assert await report.read_count_state(db, domain, at=LATER) is CountState.NEVER
    await report.store_figures(db, domain, at=LATER)
    assert await report.read_count_state(db, domain, at=LATER) is CountState.DONE

    much_later = LATER + 9 * DAY
    assert await report.read_count_state(db, domain, at=much_later) is CountState.OLD
    old = await report.read_domain_report(db, domain, at=much_later, window=DAY, max_age=report.ANY_AGE)
    assert old is not None
    assert (old.counted_at, old.at) == (LATER, much_later)
    assert await report.read_count_state(db, domain, at=much_later) is CountState.OLD, "nothing was counted"
    assert await report.count_tracked_pages(db, domain) == MAX_SMALL_PAGES + 1
