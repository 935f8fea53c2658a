"""Change signals: their effect on pages, and the measurement of their sources."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import compute_fresh_chance
from crawler.core.freshness.signals import ChangeSignal, combine_signals, compute_aged_days
from crawler.core.freshness.site_activity import SiteActivity
from crawler.core.http.urls import Authority, Url
from crawler.errors import BadInput
from crawler.store import domains, record, report
from crawler.store.database import Database
from crawler.store.domains import MAX_WAITING_SIGNALS
from crawler.store.frontier import update_due_times
from tests.store.conftest import START
from tests.store.made_up import USUAL, crawl, html, key, look, take, targets, url

DAY = timedelta(days=1)
NOW = START + 6 * DAY
PAGES = range(1, 31)
COUNTS = "SELECT key, signals, signaled_at FROM page WHERE signals <> '' ORDER BY key"


async def measured(db: Database, domain: Domain) -> None:
    """Add a source that visits have shown to be reliable."""
    record_of = '{"page_days": 4000, "false_signals": 8, "true_signals": 200, "signaled_changes": 200,'
    record_of += ' "expected_changes": 220, "silent_changes": 10, "expected_silent_changes": 100, "merit": 6,'
    record_of += ' "recent_signals": 30, "recent_page_days": 200, "usual_signals": 30, "usual_page_days": 200}'
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO domain_source (domain_id, no, source, measured_at, recall, noise, effective_recall,
                                          applied_recall,
                                          applied_noise, applied_effective_recall, record)
               VALUES (%s, 0, 'cms', %s, 0.85, 0.0023, 0.85, 0.85, 0.0023, 0.85, %s)""",
            (domain.id, NOW, record_of),
        )


async def known_pages(db: Database) -> tuple[Domain, Lease]:
    """Add thirty pages that change about twice a year, each visited a few days ago."""
    domain = await domains.register(db, Authority("a.test"), scheme="http", domain_settings=DomainSettings(), at=START)
    lease = await take(db, START)
    await crawl(db, lease, {0: list(PAGES), **{n: [0] for n in PAGES}}, START)
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET rate_a = 2, rate_b = 400, visits = 2")
        await connection.execute("UPDATE page SET rate_b = 40000 WHERE key = %s", (key(domain, 0),))
        await connection.execute("UPDATE frontier SET due_at = %s", (START + DAY,))
    await drained(db, lease)
    assert await targets(db, lease, NOW) == []  # none is due yet
    return domain, lease


async def repriced(db: Database, domain: Domain, lease: Lease) -> None:
    async with db.transaction() as connection:
        await connection.execute(
            "INSERT INTO inbox (domain_id, kind, payload, arrived_at) VALUES (%s, 'reprice', '{}', %s)",
            (domain.id, NOW),
        )
    await drained(db, lease)


def says(domain: Domain, *numbers: int, at: datetime = NOW, source: str = "cms") -> list[ChangeSignal]:
    return [ChangeSignal(url=url(domain, n), source=source, at=at) for n in numbers]


async def drained(db: Database, lease: Lease, at: datetime = NOW, *, max_pages: int | None = None) -> None:
    while await record.drain_inbox(db, lease, at=at, defaults=USUAL, max_pages=max_pages):
        pass
    while await update_due_times(db, lease, at=at, defaults=USUAL):
        pass


async def figures(db: Database, statement: str, *values: object) -> list[tuple[Any, ...]]:
    async with db.transaction() as connection:
        return await (await connection.execute(statement, values)).fetchall()


async def due(db: Database, domain: Domain, n: int) -> datetime:
    ((at,),) = await figures(db, "SELECT due_at FROM frontier WHERE key = %s", key(domain, n))
    assert isinstance(at, datetime)
    return at


async def test_a_signal_of_a_good_source_makes_only_its_page_due(db: Database) -> None:
    domain, lease = await known_pages(db)
    await measured(db, domain)
    before = {target.key for target in await targets(db, lease, NOW)}

    await domains.add_signals(db, domain, says(domain, 7), at=NOW)
    await drained(db, lease)
    after = await targets(db, lease, NOW)

    assert before == set()
    assert [target.key for target in after] == [key(domain, 7)]
    assert after[0].signals == (1,)


async def test_a_signal_of_a_new_source_is_counted_without_changing_due_times(db: Database) -> None:
    domain, lease = await known_pages(db)
    before = await due(db, domain, 7)

    await domains.add_signals(db, domain, says(domain, 7), at=NOW)
    await drained(db, lease)

    assert await figures(db, COUNTS) == [(key(domain, 7), b"\1", [NOW])]
    assert await figures(db, "SELECT source, signals, recall, effective_recall FROM domain_source") == [
        ("cms", 1, 0.0, 0.0)
    ]
    assert abs(await due(db, domain, 7) - before) < timedelta(days=200)
    assert await targets(db, lease, NOW) == []


async def test_a_signal_counts_once_and_only_after_the_last_visit(db: Database) -> None:
    domain, lease = await known_pages(db)

    for at in (NOW, NOW, NOW - DAY, START - DAY):
        await domains.add_signals(db, domain, says(domain, 3, at=at), at=NOW)
    await drained(db, lease)
    once = await figures(db, COUNTS)
    await domains.add_signals(db, domain, says(domain, 3, at=NOW + timedelta(hours=1)), at=NOW)
    await domains.add_signals(db, domain, says(domain, 3, at=NOW, source="other"), at=NOW)
    await drained(db, lease)

    assert once == [(key(domain, 3), b"\1", [NOW])]
    assert [row[1] for row in await figures(db, COUNTS)] == [b"\2\1"]
    assert await figures(db, "SELECT source, signals FROM report_source ORDER BY source") == [("cms", 2), ("other", 1)]


async def test_a_successful_visit_resets_the_signals_and_measures_their_source(db: Database) -> None:
    domain, lease = await known_pages(db)
    await measured(db, domain)
    await domains.add_signals(db, domain, says(domain, 7, 8), at=NOW)
    await drained(db, lease)

    found = {target.key: target for target in await targets(db, lease, NOW)}
    changed = look(found[key(domain, 7)], html(domain, [], words="quite other words than before"), NOW, domain)
    await record.record_visits(db, lease, record.Batch([changed], max_pages=100))

    assert [row[0] for row in await figures(db, COUNTS)] == [key(domain, 8)]
    ((true, false),) = await figures(
        db, "SELECT (record->>'true_signals')::float8, (record->>'false_signals')::float8 FROM domain_source"
    )
    assert true > 200 * (1 - 1 / 300) + 0.9
    assert false < 8.1


async def test_a_signal_discovers_a_page_within_scope_and_limit(db: Database) -> None:
    domain, lease = await known_pages(db)

    outside = ChangeSignal(url=Url("http://b.test/"), source="cms", at=NOW)
    await domains.add_signals(db, domain, [*says(domain, 900, 901, 902), outside], at=NOW)
    ((tracked,),) = await figures(db, "SELECT tracked FROM domain_state")
    await drained(db, lease, max_pages=tracked + 2)

    new = await figures(db, "SELECT state, request_reason, depth FROM frontier WHERE state = 'unfetched'")
    assert new == [("unfetched", 0, 1)] * 2


async def test_the_freshness_of_the_report_equals_core_with_signals(db: Database) -> None:
    domain, lease = await known_pages(db)
    await measured(db, domain)
    await domains.add_signals(db, domain, says(domain, 7), at=NOW)
    await drained(db, lease)

    shown = {row.url: row.freshness for row in await report.list_top_pages(db, domain, at=NOW, top=50)}
    (target,) = await targets(db, lease, NOW)

    for number, signals in ((7, (1,)), (8, ())):
        a, b = target.rate_estimate.a, target.rate_estimate.b
        heard = combine_signals([signals], [target.terms.sources], np.array([target.rate_estimate.rate_per_day]))
        expected = compute_fresh_chance(a, b, compute_aged_days(a, b, 6.0, heard))
        assert shown[url(domain, number)] == pytest.approx(float(expected[0]), rel=0.02)
    assert shown[url(domain, 7)] < 0.5 < shown[url(domain, 8)]  # type: ignore[operator]


async def test_too_many_waiting_signals_are_rejected(db: Database) -> None:
    domain, _ = await known_pages(db)

    with pytest.raises(BadInput, match=r"signals already wait for a\.test"):
        await domains.add_signals(db, domain, says(domain, *range(MAX_WAITING_SIGNALS + 1)), at=NOW)


async def test_pages_without_signals_of_a_proven_source_wait_longer(db: Database) -> None:
    domain, lease = await known_pages(db)
    await repriced(db, domain, lease)
    before = await due(db, domain, 5)

    await measured(db, domain)
    await repriced(db, domain, lease)

    assert await due(db, domain, 5) - START > 2 * (before - START)


@pytest.mark.parametrize("since", [-5.0, 0.0, 3.0, 10.0, 17.5, 20.0, 29.0, 30.0, 40.0])
async def test_site_activity_in_sql_equals_core(db: Database, since: float) -> None:
    activity = SiteActivity(at=tuple(START + n * DAY for n in (0, 10, 20, 30)), ahead=(0.0, -4.0, 25.0, 24.5))

    found = await figures(
        db, "SELECT activity_ahead(%s, %s, %s)", list(activity.at), list(activity.ahead), START + since * DAY
    )

    assert found == [(pytest.approx(activity.get_days_ahead(START + since * DAY)),)]


async def test_a_page_ages_by_the_activity_of_its_site(db: Database) -> None:
    at = [START, START + 10 * DAY]
    gaps = "SELECT activity_gap(%s, %s, %s, %s), activity_gap(%s, %s, '{}', %s)"

    found = await figures(db, gaps, at[1], at, [0.0, 20.0], START + 5 * DAY, at[1], [], START + 5 * DAY)

    assert found == [(15 * DAY, 5 * DAY)]
