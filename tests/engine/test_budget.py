"""The server sees what a day's budget allows: all of it, and never more."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.planner.plan import plan_domains
from crawler.settings import Settings
from crawler.store import domains, frontier
from crawler.store.database import Database
from labs.demo.server import LivingServer
from labs.demo.site import make_site
from tests.engine.crawls import DAY, QUICK, START, crawl, register, rows
from tests.engine.test_kill import expire, run_until_killed
from tests.ports import next_port

AT_ONCE = QUICK.model_copy(update={"pace": False})
PACED = QUICK.model_copy(update={"pace": True})
MOST_LOST = 2 * 4 + 8  # of the requests granted to a killed crawl: two of its batches, and one per slot
HOURS = tuple(range(0, 24, 6))


async def asked_on(
    db: Database, living: LivingServer, day: int, *, hours: Sequence[float] = HOURS, settings: Settings = PACED
) -> list[int]:
    """Return the total requests that the server saw after each of these hours of a day, with a shift at each."""
    living.journal.clear()
    asked = []
    for hour in hours:
        at = START + timedelta(days=day, hours=hour)
        living.set_instant(at)
        await crawl(db, at=at, settings=settings)
        asked.append(living.journal.counts.requests)
    return asked


async def make_all_due(db: Database, domain: Domain, at: datetime) -> None:
    """Make more pages due than any budget here allows, all above the shadow price and not requested: they are paced."""
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO inbox (domain_id, kind, payload, arrived_at)
               SELECT %s, 'audit', jsonb_build_object('keys', jsonb_agg(encode(key, 'hex'))), %s FROM frontier
               HAVING count(*) > 0""",
            (domain.id, at),
        )


async def test_the_budget_of_a_day_is_used_to_the_last_request_and_never_exceeded(
    db: Database, living: LivingServer
) -> None:
    domain = await register(db, living.url, budget_per_day=60, max_depth=12)

    asked = []
    for day in range(3):
        await make_all_due(db, domain, START + timedelta(days=day))
        asked.append((await asked_on(db, living, day, settings=AT_ONCE))[-1])

    assert asked == [60] * 3


async def test_a_paced_budget_is_spread_over_the_day_and_used_by_its_end(db: Database, living: LivingServer) -> None:
    domain = await register(db, living.url, budget_per_day=48, max_depth=12)
    await make_all_due(db, domain, START)

    asked = await asked_on(db, living, 0, hours=[0, 6, 12, 18, 23.75])
    spent = await rows(db, "SELECT spent_requests FROM domain_state")

    assert asked == [2, 13, 25, 37, 48]  # the root is a seed: like robots.txt, it does not wait for pacing
    assert spent == [(48,)]


@pytest.mark.soak
async def test_a_budget_is_spread_over_the_open_hours_and_used_by_their_end(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    """Nothing is due, so all requests go to pages below the shadow price."""
    await crawl(db, at=START)
    limited = replace(domain.settings, budget_per_day=32, hours="mon-fri 9-17")
    await domains.change_settings(db, domain, limited, at=START)
    weekdays = [day for day in range(1, 8) if (START + day * DAY).weekday() < 5]
    (saturday,) = [day for day in range(1, 8) if (START + day * DAY).weekday() == 5]

    by_day = [await asked_on(db, living, day, hours=[0, 8, 9, 11, 13, 15, 16.75, 20]) for day in weekdays]

    for asked in by_day:
        assert asked[:2] == [0, 0]
        assert [asked[n] for n in range(2, 8)] == pytest.approx([1, 9, 17, 25, 32, 32], abs=1)
        assert asked[-1] >= 32 - 1
    assert await asked_on(db, living, saturday, hours=[0, 9, 13, 16.75]) == [0, 0, 0, 0]


async def test_what_a_day_has_left_over_is_not_sent_on_the_next_days_account(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=60), at=START)
    at = START + 2 * DAY - timedelta(seconds=0.4)
    await make_all_due(db, domain, at)
    living.journal.clear()
    living.slow(0.1)  # sixty requests, 8 at a time, take longer than the rest of the day

    async with open_resources(AT_ONCE) as webs:
        clock = Clock.from_instant(at)
        await run_shift(db, webs, settings=AT_ONCE, clock=clock, holder="test")

    midnight = clock.began_at + 0.4
    asked = [sum(entry.began < midnight for entry in living.journal.entries)]
    asked.append(living.journal.counts.requests - asked[0])
    assert asked[0] <= 60
    assert asked[1] <= 60 + 8  # those in flight at midnight
    assert await rows(db, "SELECT budget_day - %s::date, spent_requests FROM domain_state", START) == [(2, 60)]


async def test_kill_9_leaves_no_way_over_the_budget(
    db: Database, database_url: str, living: LivingServer, tmp_path: Path
) -> None:
    domain = await register(db, living.url, budget_per_day=60, max_depth=12)
    living.slow(0.02)
    kills = 2
    for n in range(kills):
        at = START + timedelta(hours=n)
        assert await run_until_killed(domain, living, database_url, tmp_path, at=at, requests=10)
        await expire(db)
    living.slow(0)
    await crawl(db, at=START + timedelta(hours=4), settings=AT_ONCE)
    first = living.journal.counts.requests

    await make_all_due(db, domain, START + DAY)
    second = (await asked_on(db, living, 1, hours=[0, 12], settings=AT_ONCE))[-1]

    assert 60 - kills * MOST_LOST <= first <= 60
    assert second == 60


async def test_a_budget_of_nothing_sends_nothing_at_all(db: Database, living: LivingServer) -> None:
    domain = await register(db, living.url, budget_per_day=0)
    await make_all_due(db, domain, START)
    await asked_on(db, living, 0, hours=[0, 12])
    of_its_own = living.journal.counts.requests
    domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=None), at=START)
    nothing = PACED.model_copy(update={"budget_per_day": 0})

    together = await asked_on(db, living, 1, hours=[0, 12], settings=nothing)

    assert (of_its_own, together) == (0, [0, 0])


async def test_all_domains_together_keep_within_one_budget(db: Database, living: LivingServer) -> None:
    settings = AT_ONCE.model_copy(update={"budget_per_day": 70})
    with LivingServer(make_site(8, pages=120, start=START, days=45), next_port()) as other:
        sites = [await register(db, server.url, max_depth=12) for server in (living, other)]
        asked = []
        for day in range(2):
            for domain in sites:
                await make_all_due(db, domain, START + timedelta(days=day))
            other.journal.clear()
            mine = (await asked_on(db, living, day, hours=[0, 12], settings=settings))[-1]
            asked.append((mine, other.journal.counts.requests))

    assert [sum(both) for both in asked] == [70] * 2
    assert all(sum(each) > 0 for each in zip(*asked, strict=True))


async def test_a_budget_in_bytes_is_exceeded_by_a_body_to_each_slot_at_most(db: Database, living: LivingServer) -> None:
    most = 150_000
    domain = await register(db, living.url, bytes_per_day=most, max_depth=12)

    received = []
    for day in range(2):
        await make_all_due(db, domain, START + timedelta(days=day))
        await asked_on(db, living, day, hours=[0, 8], settings=AT_ONCE)
        received.append(living.journal.counts.body_bytes)
    largest = max(entry.body_bytes for entry in living.journal.entries)

    assert all(most <= each <= most + 8 * largest for each in received)


async def test_two_domains_that_share_a_budget_in_bytes_exceed_it_by_a_body_to_each_of_their_slots(
    db: Database, living: LivingServer
) -> None:
    most = 200_000
    settings = AT_ONCE.model_copy(update={"bytes_per_day": most})
    with LivingServer(make_site(8, pages=120, start=START, days=45), next_port()) as other:
        for server in (living, other):
            await register(db, server.url, max_depth=12)
        await asked_on(db, living, 0, hours=[0, 12], settings=settings)
        received = [server.journal.counts.body_bytes for server in (living, other)]
        largest = max(entry.body_bytes for server in (living, other) for entry in server.journal.entries)

    assert most <= sum(received) <= most + 2 * 8 * largest


@pytest.mark.soak
async def test_a_doubled_or_halved_budget_takes_effect_within_one_plan_run(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    asked = []
    for day, budget in enumerate([60, 60, 60, 120, 120, 60, 60, 60], start=1):
        domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=budget), at=START)
        before = await rows(db, "SELECT key, due_at, xmin FROM frontier ORDER BY key")
        await plan_domains(db, at=START + timedelta(days=day), settings=PACED)
        assert await rows(db, "SELECT key, due_at, xmin FROM frontier ORDER BY key") == before  # not rewritten

        asked.append((await asked_on(db, living, day, hours=[0, 8, 16, 23.75]))[-1])

        at = START + timedelta(days=day, hours=23.75)
        left = await frontier.preview_targets(db, domain, max_targets=10, at=at, defaults=PACED.defaults)
        assert asked[-1] <= budget
        assert asked[-1] >= budget - 2 or not left  # unused only if no page was above the shadow price
    _, *once, twice, again_twice, _, half, again_half = asked
    assert twice > 60
    assert 1.5 < (twice + again_twice) / sum(once) < 3
    assert 0.3 < (half + again_half) / (twice + again_twice) < 0.7


async def test_a_larger_budget_wakes_a_domain_that_had_spent_its_own(db: Database, living: LivingServer) -> None:
    domain = await register(db, living.url, budget_per_day=20, max_depth=12)
    before = await asked_on(db, living, 0, hours=[0, 1], settings=AT_ONCE)
    await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=40), at=START)
    await plan_domains(db, at=START + timedelta(hours=2), settings=AT_ONCE)

    after = await asked_on(db, living, 0, hours=[2], settings=AT_ONCE)

    assert (before, after) == ([20, 20], [20])


async def test_a_lease_without_a_request_wakes_its_domain_a_minute_later_at_the_earliest(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    at = START + timedelta(minutes=1)
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET failures = 1")  # so that only the time determines when they are due
        await connection.execute("UPDATE frontier SET due_at = %s", (at + timedelta(seconds=30),))
        await connection.execute("UPDATE domain_state SET wake_at = %s", (at,))
    living.journal.clear()

    await crawl(db, at=at)

    assert living.journal.counts.requests == 0
    ((wake_at,),) = await rows(db, "SELECT wake_at FROM domain_state")
    assert timedelta(minutes=1) <= wake_at - at < timedelta(minutes=2)
