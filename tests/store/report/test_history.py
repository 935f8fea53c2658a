"""Freshness at past instants, compared with the report."""

from datetime import timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY, compute_fresh_chance
from crawler.store import domains, report
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.made_up import USUAL
from tests.store.report.test_expressions import LATER, walked


async def test_freshness_now_equals_the_report(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    for days in (0, 1, 10, 40):
        at = START + timedelta(days=days)
        said = await report.read_domain_report(db, domain, at=at, window=DAY)
        assert said is not None
        (found,) = await report.read_freshness_history(db, domain, instants=[said.at])
        assert found.pages == said.fetched
        assert found.freshness == pytest.approx(said.freshness, abs=1e-6)
        assert found.freshness_plain == pytest.approx(said.freshness_plain, abs=1e-6)


async def test_history_and_report_use_the_site_activity(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    at = START + 10 * DAY
    (by_calendar,) = await report.read_freshness_history(db, domain, instants=[at])
    leapt = "UPDATE domain_state SET activity_at = %s, activity_ahead = %s WHERE domain_id = %s"
    values = ([START, START + 5 * DAY, START + 6 * DAY], [0.0, 0.0, 30.0], domain.id)
    async with db.transaction() as connection:
        await connection.execute(leapt, values)

    said = await report.read_domain_report(db, domain, at=at, window=DAY)
    before, now = await report.read_freshness_history(db, domain, instants=[START + 5 * DAY, at])

    assert said is not None
    assert now.freshness_plain == pytest.approx(said.freshness_plain, abs=1e-6)
    assert now.freshness_plain < by_calendar.freshness_plain < before.freshness_plain


async def test_past_freshness_uses_only_visits_until_then(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    await domains.request_refresh(db, domain, prefix=domain.root, at=LATER)
    await walked(db, domain, at=LATER)
    instants = [START - DAY, START + 10 * DAY, LATER - DAY, LATER + timedelta(minutes=5)]
    found = await report.read_freshness_history(db, domain, instants=instants)
    assert [each.at for each in found] == instants[1:], "before the first look nothing was known"
    pages = await report.list_top_pages(db, domain, top=100, at=LATER)
    for each, since in zip(found, (START, START, LATER), strict=True):
        known = [page for page in pages if page.version and page.freshness is not None]
        assert each.pages == len(known)
        facts = [await report.explain_url(db, domain, page.url, at=LATER, defaults=USUAL) for page in known]
        beliefs = [fact.page.rate_estimate for fact in facts if fact.page is not None]
        expected = [
            float(compute_fresh_chance(rate_estimate.a, rate_estimate.b, (each.at - since) / DAY))
            for rate_estimate in beliefs
        ]
        assert each.freshness_plain == pytest.approx(sum(expected) / len(expected), abs=0.01)
    assert found[1].freshness_plain < found[0].freshness_plain < found[2].freshness_plain


async def test_a_sample_represents_a_large_domain(db: Database, domain: Domain) -> None:
    await walked(db, domain)
    at = START + 20 * DAY
    (every,) = await report.read_freshness_history(db, domain, instants=[at])
    (sampled,) = await report.read_freshness_history(db, domain, instants=[at], sample_size=2)
    assert sampled.pages == 2 < every.pages
    assert sampled.freshness_plain == pytest.approx(every.freshness_plain, abs=0.05)


async def test_a_domain_without_pages_has_no_history(db: Database, domain: Domain) -> None:
    assert await report.read_freshness_history(db, domain, instants=[START, LATER]) == []
    assert await report.read_freshness_history(db, domain, instants=[]) == []
