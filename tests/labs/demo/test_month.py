"""A crawl of the living site is fresher, in truth, than looking at every page in turn as often."""

from datetime import timedelta

import pytest

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, get_path_and_query
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database, open_database
from labs.demo.month import live_through
from labs.demo.outcome import outcome_of
from labs.demo.rival import copied, match
from labs.demo.server import LivingServer
from labs.demo.site import make_site
from labs.experiments.visits import looks_by_url
from tests.labs.demo.conftest import START
from tests.ports import next_port

DAY = timedelta(days=1)
DAYS = 12
BUDGET = 15
SETTINGS = Settings()


async def crawled(db: Database, server: LivingServer) -> Domain:
    """The living site, looked at once as a whole."""
    domain_settings = DomainSettings(allow_private=True, delay=timedelta(0), max_depth=12)
    authority = Authority(server.url.removeprefix("http://"))
    domain = await domains.register(db, authority, scheme="http", domain_settings=domain_settings, at=START)
    async with open_resources(SETTINGS) as webs:
        await run_shift(db, webs, settings=SETTINGS, clock=Clock.from_instant(START), holder="test")
    return domain


@pytest.mark.soak
async def test_days_of_shifts_beat_every_page_in_turn_with_as_many_requests(database_url: str) -> None:
    site = make_site(4, pages=80, start=START, days=DAYS + 5)
    async with open_database(database_url) as db:
        with LivingServer(site, next_port()) as server:
            domain = await crawled(db, server)
            month = await live_through(db, domain, server, settings=SETTINGS, budget=BUDGET, since=START, days=DAYS)
            asked = server.journal.counts.requests
        visits = {get_path_and_query(url): seen for url, seen in (await looks_by_url(db, domain)).items()}

    second_half = match(
        site,
        copied(site, visits),
        importances=month.importances,
        requests=month.requests,
        since=month.since,
        until=month.until,
        counted_from=START + DAYS / 2 * DAY,
    )

    assert BUDGET * DAYS / 2 < month.requests <= BUDGET * DAYS
    assert month.requests < asked
    assert second_half.margin.weighted > 0.01


@pytest.mark.soak
async def test_what_is_reported_and_what_is_true_are_told_side_by_side(database_url: str) -> None:
    site = make_site(5, pages=80, start=START, days=DAYS + 5)
    async with open_database(database_url) as db:
        with LivingServer(site, next_port()) as server:
            domain = await crawled(db, server)
            month = await live_through(db, domain, server, settings=SETTINGS, budget=BUDGET, since=START, days=1)
            outcome = await outcome_of(db, domain, site, month, runs=(), ui_url="")

    assert outcome.reported == month.reported
    assert outcome.match.requests == month.requests <= BUDGET
    assert outcome.margin == outcome.match.margin
    assert -0.02 < outcome.margin.plain <= 0  # our only shift ends the day, while the rival looks all day long
    assert 0.5 < outcome.reported.plain < 1
    assert 0.5 < outcome.match.ours.plain < 1
