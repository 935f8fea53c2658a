"""In closed hours a server gets no request of any kind; in open hours the day's budget is used."""

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from crawler.clock import Clock
from crawler.core.budget.hours import CLOSING_MARGIN, find_opening, parse_hours
from crawler.core.domain import Domain
from crawler.engine.resources import CrawlResources, open_resources
from crawler.engine.shift import run_shift
from crawler.engine.try_page import try_page
from crawler.store import claim, domains
from crawler.store.database import Database
from labs.demo.server import LivingServer
from labs.demo.site import make_site
from tests.engine.crawls import DAY, QUICK, crawl, register, rows
from tests.ports import next_port

NIGHTS = "Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun"
VIENNA = ZoneInfo("Europe/Vienna")
PACED = QUICK.model_copy(update={"pace": True})
BUDGET = 40


def is_open(at: datetime) -> bool:
    """Return whether a clock in Vienna shows a time within NIGHTS, computed independently of the product."""
    shown = at.astimezone(VIENNA)
    after_midnight = shown.time() < time(6) and shown.weekday() != 0
    return shown.weekday() >= 5 or after_midnight or (shown.weekday() < 5 and shown.time() >= time(22))


async def shift(db: Database, webs: CrawlResources, living: LivingServer, *, at: datetime) -> list[datetime]:
    """Run a shift at an instant; return when the server got requests, in knowledge time."""
    living.journal.clear()
    living.set_instant(at)
    clock = Clock.from_instant(at)
    await run_shift(db, webs, settings=PACED, clock=clock, holder="test")
    return [at + timedelta(seconds=entry.began - clock.began_at) for entry in living.journal.entries]


@pytest.mark.soak
@pytest.mark.parametrize(
    "monday",
    [
        pytest.param(date(2026, 3, 23), id="forward"),
        pytest.param(date(2026, 10, 19), id="back", marks=pytest.mark.soak),
    ],
)
async def test_in_a_week_in_which_the_clocks_change_every_request_comes_in_open_hours_and_the_budget_is_used(
    db: Database, monday: date
) -> None:
    begin = datetime.combine(monday, time(), tzinfo=UTC)
    asked: list[datetime] = []
    with LivingServer(make_site(7, pages=80, start=begin - DAY, days=12), next_port()) as living:
        domain = await register(db, living.url, hours=NIGHTS, budget_per_day=BUDGET, max_depth=12)
        async with open_resources(PACED) as webs:
            for hour in range(8 * 24):
                at = begin + timedelta(hours=hour)
                if hour % 24 == 0:
                    # more work than the budget allows
                    await domains.request_refresh(db, domain, prefix=domain.root, at=at)
                # Every hour, at two times in between, and where an hour, and with it the open hours, may end.
                for minutes in (0, 20, 40, 59, 59.6):
                    asked += await shift(db, webs, living, at=at + timedelta(minutes=minutes))

    used = Counter(at.date() for at in asked)
    assert [at for at in asked if not is_open(at)] == []
    assert used.keys() == {monday + timedelta(days=n) for n in range(8)}
    assert all(BUDGET - 2 <= count <= BUDGET for count in used.values())


async def test_a_lease_ends_when_the_hours_do_and_the_domain_wakes_when_they_open(db: Database) -> None:
    closes_at = datetime(2026, 3, 27, 5, tzinfo=UTC) - CLOSING_MARGIN
    at = closes_at - timedelta(seconds=0.6)
    with LivingServer(make_site(7, pages=200, start=at - DAY, days=3), next_port()) as living:
        await register(db, living.url, hours=NIGHTS, max_depth=12, parallelism=8)
        living.slow(0.1)
        async with open_resources(PACED) as webs:
            asked = await shift(db, webs, living, at=at)

    opens_at = datetime(2026, 3, 27, 21, tzinfo=UTC)
    arrived_late = sum(at >= closes_at for at in asked)
    assert arrived_late < len(asked)
    assert arrived_late <= 8  # in flight when the hours ended
    assert await rows(db, "SELECT wake_at, lease_token FROM domain_state") == [(opens_at, None)]


@pytest.mark.soak
async def test_what_waits_in_the_inbox_wakes_nobody_in_closed_hours_and_other_domains_are_crawled(
    db: Database, living: LivingServer
) -> None:
    noon = datetime(2026, 1, 7, 12, tzinfo=UTC)
    closed = await register(db, "http://127.0.0.1:1/", hours=NIGHTS)
    await register(db, living.url, max_depth=12)
    living.set_instant(noon)
    done = await crawl(db, at=noon)
    await domains.request_refresh(db, closed, prefix=closed.root, at=noon)

    taken = await claim.claim(db, at=noon, holder="test", term=timedelta(seconds=10), only=[closed])
    turn = await claim.compute_claim_wait(db, at=noon, only=[closed])

    assert list(done.by_domain) == [living.url.split("/")[2]]
    assert (turn, taken) == (None, None)


@pytest.mark.soak
async def test_other_hours_hold_at_once(db: Database, domain: Domain, living: LivingServer) -> None:
    noon = datetime(2026, 1, 7, 12, tzinfo=UTC)
    living.set_instant(noon)
    domain = await domains.change_settings(db, domain, replace(domain.settings, hours=NIGHTS), at=noon)
    closed = await crawl(db, at=noon)
    domain = await domains.change_settings(db, domain, replace(domain.settings, hours="08-18"), at=noon)
    opened = await crawl(db, at=noon)
    night = await crawl(db, at=noon + timedelta(hours=7))

    assert (closed.stats.requests, night.stats.requests) == (0, 0)
    assert opened.stats.visits > 0


async def test_a_page_is_not_tried_in_closed_hours(db: Database, living: LivingServer) -> None:
    noon = datetime(2026, 1, 7, 12, tzinfo=UTC)
    domain = await register(db, living.url, hours=NIGHTS)
    living.journal.clear()
    async with open_resources(QUICK) as webs:
        tried = await try_page(db, webs, domain, domain.root, settings=QUICK, clock=Clock.from_instant(noon))

    assert "hours are closed" in tried.problem
    assert living.journal.counts.requests == 0


@pytest.mark.soak
async def test_an_opening_that_was_found_holds_for_its_span_alone(db: Database, living: LivingServer) -> None:
    domain = await register(db, living.url, hours=NIGHTS, max_depth=12)
    at = datetime(2026, 1, 14, 12, tzinfo=UTC)
    await crawl(db, at=at)
    night_before = find_opening(parse_hours(NIGHTS), at - timedelta(days=2))
    living.set_instant(night_before)

    done = await crawl(db, at=night_before)

    assert done.stats.visits > 0
    assert domain.hours == parse_hours(NIGHTS)
