from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY, compute_fresh_chance
from crawler.core.http.response import Response
from crawler.core.http.urls import Url
from crawler.core.novelty import NoveltyMemory
from crawler.core.opic.opic import ENDOWMENT, TOTAL_CASH, compute_importance
from crawler.core.visit.state import State
from crawler.store import claim, domains, frontier, record, report
from crawler.store.database import Database
from crawler.store.learned.domain_memory import write_memory
from tests.store.conftest import START
from tests.store.made_up import NOT_MODIFIED, USUAL, crawl, html, key, look, status, take, targets, url

LINKS = {0: [1, 2, 3], 1: [2], 2: [0], 3: [2]}
LATER = START + timedelta(days=40)


async def walked(db: Database, domain: Domain, *, at: datetime = START) -> None:
    """Visit all due pages."""
    lease = await take(db, at)
    await crawl(db, lease, LINKS, at)
    await claim.release(db, lease, at=at)


async def numbers(db: Database, statement: str, values: dict[str, object]) -> float:
    async with db.transaction() as connection:
        row = await (await connection.execute(statement.encode(), values)).fetchone()
        assert row is not None
        return float(row[0])


coins = st.integers(0, TOTAL_CASH)
same_fixture = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@same_fixture
@given(
    history=st.just(0.0) | st.floats(1, 8 * TOTAL_CASH),  # SQL treats less than a thousandth of a unit as 0
    cash=coins,
    circulating=st.integers(ENDOWMENT, TOTAL_CASH),
    clocks=st.tuples(st.integers(0, 10**17), st.integers(0, 10**17)),
    pages=st.integers(1, 10**7),
    passes=st.floats(0.1, 1000),
)
async def test_importance_in_sql_equals_importance_in_core(
    db: Database, *, history: float, cash: int, circulating: int, clocks: tuple[int, int], pages: int, passes: float
) -> None:
    last, now = sorted(clocks)
    window = passes * circulating

    expected = compute_importance(history, cash, clock_last=last, clock_now=now, pages=pages, window=window)
    found = await numbers(
        db,
        "SELECT page_importance(%(h)s, %(c)s, %(m)s, %(last)s, %(now)s, %(pages)s, %(passes)s)",
        {"h": history, "c": cash, "m": circulating, "last": last, "now": now, "pages": pages, "passes": passes},
    )

    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@same_fixture
@given(a=st.floats(1e-3, 1e6), b=st.floats(1e-3, 1e6), days=st.floats(-1, 40_000))
async def test_freshness_in_sql_equals_freshness_in_core(db: Database, a: float, b: float, days: float) -> None:
    unseen = days * DAY

    found = await numbers(db, "SELECT page_freshness(%(a)s, %(b)s, %(unseen)s, 1)", {"a": a, "b": b, "unseen": unseen})

    assert found == pytest.approx(float(compute_fresh_chance(a, b, unseen / DAY)), rel=1e-6, abs=1e-15)


async def test_pages_are_sorted_by_importance_with_mean_one(db: Database, domain: Domain) -> None:
    for n in range(12):
        await walked(db, domain, at=START + timedelta(days=181 * n))

    found = await report.list_top_pages(db, domain, top=10, at=START)

    ranks = [page.importance for page in found if page.importance is not None]
    assert len(found) == 4
    assert ranks == sorted(ranks, reverse=True)
    assert sum(ranks) / len(ranks) == pytest.approx(1, rel=0.15)  # cash that is not settled yet is included
    assert found[0].url == url(domain, 2)
    assert {page.state for page in found} == {State.FETCHED}
    assert all(page.version == 1 and page.due_at is not None and page.last_visit_at is not None for page in found)


async def test_only_the_top_pages_are_returned(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    everything = await report.list_top_pages(db, domain, top=10, at=START)

    assert await report.list_top_pages(db, domain, top=2, at=START) == everything[:2]


async def test_freshness_falls_without_visits(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    now = await report.read_domain_report(db, domain, at=START + timedelta(minutes=1), window=timedelta(days=30))
    later = await report.read_domain_report(db, domain, at=LATER, window=timedelta(days=30))

    assert now is not None
    assert later is not None
    assert now.freshness == pytest.approx(1, abs=0.01)
    assert later.freshness_plain == pytest.approx((10 / 50) ** 0.5, rel=0.01)  # the prior, 40 days on
    assert later.freshness == pytest.approx(later.freshness_plain, rel=0.01)  # all these pages are still equal


async def test_reports_are_fresher_if_visits_of_two_weeks_found_less_than_predicted(
    db: Database, domain: Domain
) -> None:
    await walked(db, domain)
    now = datetime.now(UTC)
    usual = await report.read_domain_report(db, domain, at=now, window=DAY)
    days = [(domain.id, now.date() - timedelta(days=ago), 9, 3, found) for ago, found in ((15, 90), (2, 1), (1, 0))]
    insert = "INSERT INTO calibration VALUES (%s, %s, false, %s, %s, %s, 1)"
    async with db.transaction() as connection:
        await connection.cursor().executemany(insert, days)

    found = await report.read_domain_report(db, domain, at=now, window=DAY)
    past = await report.read_freshness_history(db, domain, instants=[now])
    in_view = await numbers(db, "SELECT avg(freshness) FROM report_page WHERE domain_id = %(id)s", {"id": domain.id})

    assert usual is not None
    assert found is not None
    assert usual.freshness_plain is not None
    stale = (1 - usual.freshness_plain) * (1 + 1) / (1 + 6)
    assert found.freshness_plain == pytest.approx(1 - stale)
    assert past[0].freshness_plain == pytest.approx(1 - stale, rel=1e-3)
    assert in_view == pytest.approx(1 - stale, rel=1e-3)
    async with db.transaction() as connection:
        await connection.execute("UPDATE calibration SET found = 90 WHERE day = %s", (now.date() - timedelta(days=1),))
    assert await report.read_domain_report(db, domain, at=now, window=DAY) == usual


async def test_the_report_counts_the_visits_of_the_window(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    lease = await take(db, LATER)
    by_key = {target.key: target for target in await targets(db, lease, LATER)}
    answers: dict[int, Response] = {
        0: NOT_MODIFIED,
        1: html(domain, [2], words="other words"),
        2: status(500),
        3: status(410),
    }
    done = [look(by_key[key(domain, n)], answer, LATER, domain) for n, answer in answers.items()]
    await record.record_visits(db, lease, record.Batch(done, max_pages=100))

    month = await report.read_domain_report(db, domain, at=LATER, window=timedelta(days=30))
    ever = await report.read_domain_report(db, domain, at=LATER, window=timedelta(days=300))

    assert month is not None
    assert ever is not None
    assert (month.visits, month.requests, month.failures) == (4, 4, 1)
    assert month.changes == {Change.CHANGED: 1, Change.GONE: 1}
    assert month.received_bytes == sum(visit.received_bytes for visit in done)
    assert month.saved_bytes == by_key[key(domain, 0)].received_bytes
    assert (ever.visits, ever.changes[Change.ADDED]) == (8, 4)
    assert (month.fetched, month.gone, month.holder) == (3, 1, "test")


async def test_an_instant_before_the_last_visit_counts_as_that_of_the_visit(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    found = await report.read_domain_report(db, domain, at=START - timedelta(days=9), window=timedelta(days=30))

    assert found is not None
    assert found.at == found.last_visit_at
    assert found.visits == 4


async def test_a_domain_without_pages_has_no_freshness(db: Database, domain: Domain) -> None:
    found = await report.read_domain_report(db, domain, at=START, window=timedelta(days=30))

    assert found is not None
    assert (found.freshness, found.freshness_plain, found.fetched, found.visits) == (None, None, 0, 0)


async def test_a_deleted_domain_has_no_report(db: Database, domain: Domain) -> None:
    await domains.remove(db, domain)

    assert await report.read_domain_report(db, domain, at=START, window=timedelta(days=30)) is None


async def test_the_backlog_counts_unfetched_and_due_pages(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, LINKS, START, most=1)

    begun = await report.read_backlog(db, domain, at=START)
    await crawl(db, lease, LINKS, START + timedelta(seconds=1))
    done = await report.read_backlog(db, domain, at=START + timedelta(seconds=2))
    later = await report.read_backlog(db, domain, at=START + timedelta(days=179))

    assert (begun.unfetched, begun.due) == (3, 0)
    assert begun.mean_bytes > 0
    assert (done.unfetched, done.due) == (0, 0)
    assert (later.unfetched, later.due, later.conditional) == (0, 4, 4)
    assert later.fetched_bytes == pytest.approx(4 * later.mean_bytes)


async def test_a_preview_equals_the_selection_and_changes_nothing(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    seen = await frontier.preview_targets(db, domain, max_targets=3, at=LATER, defaults=USUAL)
    lease = await take(db, LATER)
    handed_out = await frontier.select_targets(db, lease, max_targets=3, at=LATER, dispatched=(), defaults=USUAL)

    assert len(seen) == 3
    assert seen == handed_out


async def test_a_preview_leaves_out_pages_that_were_read_under_another_url(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, LINKS, START, most=1)
    memory = NoveltyMemory()
    for n in range(50):
        memory.learn_parameters(Url(f"{url(domain, 1)}?sid={n}"), 0.0)
    async with db.transaction() as connection:
        await write_memory(connection, domain.id, memory)
        await connection.execute("UPDATE page SET url = url || '?sid=50' WHERE key = %s", (key(domain, 1),))

    seen = await frontier.preview_targets(db, domain, max_targets=3, at=START, defaults=USUAL)
    handed_out = await frontier.select_targets(db, lease, max_targets=3, at=START, dispatched=(), defaults=USUAL)

    assert {each.key for each in seen} == {key(domain, 2), key(domain, 3)}
    assert seen == handed_out


async def test_holders_are_named_while_their_leases_last(db: Database, domain: Domain) -> None:
    before = await report.list_holders(db)
    await take(db, START)

    assert before == set()
    assert await report.list_holders(db) == {"test"}


async def test_pages_under_a_prefix_are_counted(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    assert await report.count_pages(db, domain, domain.root, is_prefix=True) == 4
    assert await report.count_pages(db, domain, url(domain, 3), is_prefix=True) == 1


async def test_a_page_is_explained_with_its_visits_and_linking_pages(db: Database, domain: Domain) -> None:
    await walked(db, domain)

    found = await report.explain_url(db, domain, url(domain, 2), at=LATER, defaults=USUAL)

    page = found.page
    assert page is not None
    assert (page.state, page.version, page.title, page.outlinks, page.depth) == (State.FETCHED, 1, "page", 1, 1)
    assert page.etag == '"v"'
    assert page.cash is not None
    assert page.cash >= 0
    assert [look.change for look in found.visits] == [Change.ADDED]
    assert {linker.url for linker in found.linking_pages} == {url(domain, n) for n in (0, 1, 3)}
    assert (found.links, found.nearest_depth) == (3, 0)
    worth = [(linker.importance or 0) / linker.outlinks for linker in found.linking_pages]
    assert worth == sorted(worth, reverse=True)


async def test_an_unfetched_page_is_explained_with_the_pages_before_it(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, LINKS, START, most=1)
    order = [target.key for target in await targets(db, lease, START)]

    ahead = {}
    for n in (1, 2, 3):
        page = (await report.explain_url(db, domain, url(domain, n), at=START, defaults=USUAL)).page
        assert page is not None
        ahead[key(domain, n)] = page.ahead

    assert sorted(ahead.values(), key=lambda n: n or 0) == [0, 1, 2]
    assert set(order) == set(ahead)


async def test_a_url_without_a_page_is_explained_by_its_links(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    root = await targets(db, lease, START)
    first = look(root[0], html(domain, [1, 2]), START, domain)
    await record.record_visits(db, lease, record.Batch([first], max_pages=1))  # the domain is full

    linked = await report.explain_url(db, domain, url(domain, 2), at=START, defaults=USUAL)
    unknown = await report.explain_url(db, domain, Url(f"{domain.root}never/heard/of"), at=START, defaults=USUAL)

    assert (linked.page, linked.links, linked.nearest_depth, linked.tracked) == (None, 1, 0, 1)
    assert (unknown.page, unknown.links, unknown.linking_pages) == (None, 0, ())


async def test_the_views_equal_the_reports(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    await report.append_to_feed(db, at=START)
    by_url = {page.url: page for page in await report.list_top_pages(db, domain, top=10, at=LATER)}
    whole = await report.read_domain_report(db, domain, at=LATER, window=timedelta(days=30))
    assert whole is not None

    async with db.transaction() as connection:
        # The views always use the real time: half a year must not change the importance.
        cursor = await connection.execute("SELECT url, importance, version FROM report_page WHERE domain_id = %s", (1,))
        pages = {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}
        cursor = await connection.execute("SELECT domain, pages_fetched, freshness FROM report_domain")
        domain_rows = await cursor.fetchall()
        cursor = await connection.execute("SELECT position, url, change FROM report_change ORDER BY position")
        feed = await cursor.fetchall()

    assert pages == {url: (page.importance, page.version) for url, page in by_url.items()}
    assert [(row[0], row[1]) for row in domain_rows] == [("site.test", 4)]
    assert 0 < domain_rows[0][2] < 1
    assert [row[0] for row in feed] == [1, 2, 3, 4]
    assert {row[2] for row in feed} == {"added"}


async def test_every_view_and_every_column_of_it_is_documented(db: Database) -> None:
    async with db.transaction() as connection:
        cursor = await connection.execute(
            """SELECT c.relname, a.attname, col_description(c.oid, a.attnum), obj_description(c.oid)
                 FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
                WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace"""
        )
        rows = await cursor.fetchall()

    views = (
        "calibration",
        "change",
        "domain",
        "duplicates",
        "feed",
        "freshness",
        "list",
        "page",
        "source",
        "subscription",
        "traffic",
        "trust",
        "value",
    )
    others = {"page_text", "page_versions", "domain_counted_live", "domain_counts", "every_visit"}
    assert {row[0] for row in rows} == others | {f"report_{name}" for name in views}
    assert [row for row in rows if not (row[2] and row[3])] == []


async def test_a_constant_domain_reads_one_partition(db: Database, domain: Domain) -> None:
    for view in ("report_page", "report_domain"):
        async with db.transaction() as connection:
            statement = f"EXPLAIN ANALYZE SELECT * FROM {view} WHERE domain_id = {domain.id}"
            cursor = await connection.execute(statement.encode())
            plan = "\n".join(row[0] for row in await cursor.fetchall() if "never executed" not in row[0])

        parts = {word for word in plan.replace("(", " ").split() if word.startswith("page_p")}
        assert len({part.split("_p")[1][:2] for part in parts}) == 1, plan


async def test_the_gap_from_signals_stays_within_the_range_of_an_interval(db: Database) -> None:
    heard = "signal_gap(interval '1 day', '\\x14'::bytea, '{0.9}', '{0.001}', 0.9, 0.1, 100)"

    assert await numbers(db, f"SELECT date_part('epoch', {heard})", {}) == 1e12
    assert await numbers(db, f"SELECT page_freshness(0.1, 100, {heard}, 1)", {}) < 0.35


async def test_a_duplicate_has_no_freshness(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    values = {"domain": domain.id, "canonical": key(domain, 1), "key": key(domain, 2)}
    fresh = "SELECT count(freshness) FROM report_page WHERE domain_id = %(domain)s"
    before = await numbers(db, fresh, values)
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET canonical = %(canonical)s WHERE key = %(key)s", values)

    assert await numbers(db, fresh, values) == before - 1
    shown = {line.url: line.freshness for line in await report.list_top_pages(db, domain, top=10, at=START)}
    assert shown[url(domain, 2)] is None
    assert shown[url(domain, 1)] is not None
