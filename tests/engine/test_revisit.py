"""Revisit policies in crawls of a site whose pages change at known times."""

from datetime import timedelta
from itertools import pairwise
from statistics import fmean

import pytest
from msgspec.structs import replace

from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRules
from crawler.format.explanation import format_due
from crawler.planner.page_value import compute_due
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.report import explain_url
from tests.engine.crawls import DAY, QUICK, START, answering, crawl, register, rows
from tests.engine.periods import Periods, live, waits_after


@pytest.mark.soak
async def test_by_similarity_each_page_comes_to_be_looked_at_once_in_its_period(db: Database) -> None:
    site = Periods((5.0,), pages=24)
    async with answering(site.respond) as url:
        domain = await register(db, url, revisit="similarity")
        await live(db, domain, site, until=START + 190 * DAY)

    days = [each for visits in (16, 18, 20) for each in (await waits_after(db, domain, site, visits=visits))[5.0]]
    assert len(days) >= 54  # of 72; the others have longer periods
    assert fmean(days) == pytest.approx(5.0, rel=0.25)


@pytest.mark.soak
async def test_by_a_fixed_policy_each_page_is_asked_for_after_every_span(db: Database) -> None:
    site = Periods((2.0, 20.0), pages=6)
    async with answering(site.respond) as url:
        domain = await register(db, url, revisit="fixed 7d")
        await live(db, domain, site, until=START + 40 * DAY)

    for path in {path for path, _ in site.asked if site.period_of(path)}:
        first, second, *later = dict.fromkeys(at for asked, at in site.asked if asked == path)
        assert first == START
        assert second - first <= 7.5 * DAY  # shortened, so that pages added together are spread
        assert len(later) >= 3
        assert {after - before for before, after in pairwise([second, *later])} == {7 * DAY}


async def test_another_policy_gives_all_pages_other_due_times_at_once(db: Database) -> None:
    site = Periods((2.0, 20.0), pages=6)
    async with answering(site.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await live(db, domain, site, since=START + 60 * DAY, until=START + 60 * DAY)
        domain = await domains.change_settings(
            db, domain, replace(domain.settings, revisit="fixed 30d"), at=START + 61 * DAY
        )
        site.now = START + 61 * DAY
        await crawl(db, at=site.now)

    waits = await rows(
        db, "SELECT f.due_at - p.last_good_at FROM frontier f JOIN page p USING (domain_id, key) WHERE visits > 1"
    )
    assert len(waits) >= 12
    assert all(wait == 30 * DAY for (wait,) in waits)
    assert site.now not in {at for path, at in site.asked if site.period_of(path)}


@pytest.mark.soak
async def test_a_page_that_stays_as_it_is_waits_longer_by_similarity(db: Database) -> None:
    site = Periods((1000.0,), pages=4)
    async with answering(site.respond) as url:
        domain = await register(db, url, revisit="similarity")
        await live(db, domain, site, until=START + 70 * DAY)

    found = await rows(
        db, "SELECT v.at FROM visit v JOIN page p USING (domain_id, key) WHERE p.url LIKE %s ORDER BY v.at", "%/a/ab"
    )
    first, second, third, *_ = (at for (at,) in found)
    assert second - first <= 30.5 * DAY
    assert abs(third - second - 30 * DAY) <= 0.6 * DAY


async def test_explain_says_what_the_policy_says_also_of_a_first_wait_that_was_cut(db: Database) -> None:
    site = Periods((1000.0,), pages=4)
    async with answering(site.respond) as url:
        domain = await register(db, url, revisit="similarity")
        await crawl(db, at=START)
        paths = [each for (each,) in await rows(db, "SELECT url FROM page WHERE version > 0 AND visits = 1")]
        known = [await explain_url(db, domain, Url(each), at=START + DAY, defaults=QUICK.defaults) for each in paths]

    assert len(known) >= 4
    for each in known:
        assert each.page is not None
        today = compute_due(each, each.page, PageRules(domain.settings.rules))
        assert today is not None
        assert today.gap is not None
        assert abs(today.gap - 30 * DAY) < timedelta(minutes=1)
        assert "the domain's revisit policy sets an interval of 30 days" in format_due(
            each, each.page, today=today, exclusion=""
        )


@pytest.mark.soak
async def test_of_a_budget_that_binds_the_latest_pages_come_first(db: Database) -> None:
    site = Periods((2.0, 20.0), pages=10)
    async with answering(site.respond) as url:
        domain = await register(db, url, revisit="fixed 2d", budget_per_day=30)
        await live(db, domain, site, until=START + 5 * DAY)
        await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=5), at=START + 5 * DAY)
        began = START + 6 * DAY
        await live(db, domain, site, since=began, until=START + 30 * DAY)

    asked = [(path, at) for path, at in site.asked if site.period_of(path) and at >= began]
    days = {at: [path for path, asked_at in asked if asked_at == at] for _, at in asked}
    assert all(len(paths) <= 5 for paths in days.values())
    late = [path for path, at in asked if at >= began + 10 * DAY]
    assert (
        max(map(late.count, late)) - min(map(late.count, set(late))) <= 1
    )  # all in turn, regardless of how often they change
    assert len(set(late)) == 20
