"""The site activity, as the plan learns it a few times a day from visits of months, in rows and packs."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.freshness.site_activity import SiteActivity
from crawler.core.http.urls import PageKey
from crawler.store import plan
from crawler.store.database import Database
from crawler.store.partitions import ensure_visit_partition
from tests.store.conftest import START
from tests.store.populated import Bulk, add, fetched
from tests.store.retention.test_visits import pack_all

DAY = timedelta(days=1)
VISIT = """
    INSERT INTO visit (domain_id, key, at, outcome, change, evidence, conditional, requests)
    SELECT %s, x.key, %s, 'fetched', %s, 'text', false, 1 FROM unnest(%s::bytea[]) AS x(key) RETURNING 1
"""
LAST = "UPDATE domain_state SET last_visit_at = greatest(last_visit_at, %s) RETURNING 1"
POSTED = "SELECT count(*) FROM inbox WHERE kind = 'reprice'"


async def visits(
    db: Database, domain: Domain, keys: Sequence[PageKey], days: Sequence[float], *, changed: float = -1
) -> datetime:
    """Visit these pages on these days, with changes on one day, and return the time of the last visit."""
    for day in days:
        change = "added" if day == days[0] else "changed" if day == changed else "unchanged"
        await fetched(db, VISIT, domain.id, START + day * DAY, change, list(keys))
    await fetched(db, LAST, START + days[-1] * DAY)
    return START + days[-1] * DAY


async def learned(db: Database, domain: Domain, *, at: datetime) -> SiteActivity:
    await plan.learn_activity(db, domain, at=at)
    ((limits, ahead),) = await fetched(db, "SELECT activity_at, activity_ahead FROM domain_state")
    return SiteActivity(tuple(limits), tuple(ahead))  # type: ignore[arg-type]


@pytest.fixture
async def keys(db: Database, domain: Domain) -> list[PageKey]:
    """Add forty pages with an estimated change rate of once in fifty days."""
    return await add(db, domain, Bulk(40, a=1.0, b=65.0), at=START)


async def burst(db: Database, domain: Domain, keys: list[PageKey]) -> datetime:
    """Visit half of the pages on even days and the others on odd days; all change in the night before day 21."""
    await ensure_visit_partition(db, at=START)
    await visits(db, domain, keys[::2], range(0, 26, 2), changed=22)
    return await visits(db, domain, keys[1::2], range(1, 27, 2), changed=21)


async def test_pages_not_visited_since_a_burst_of_changes_have_aged_most(
    db: Database, domain: Domain, keys: list[PageKey]
) -> None:
    at = await burst(db, domain, keys)

    found = await learned(db, domain, at=at + timedelta(hours=1))

    assert (found.at[0], found.at[-1]) == (START.replace(hour=0), at + timedelta(hours=1))
    assert found.get_days_ahead(START + 20.2 * DAY) > found.get_days_ahead(START + 21.2 * DAY) + 1
    assert await fetched(db, POSTED) == [(1,)], "pages that wait are scored again"


async def test_packed_visits_give_the_same_activity(db: Database, domain: Domain, keys: list[PageKey]) -> None:
    at = await burst(db, domain, keys)
    plainly = await learned(db, domain, at=at)
    await fetched(db, "UPDATE domain_state SET activity_at = '{}', activity_ahead = '{}' RETURNING 1")

    assert await pack_all(db, domain, most=10_000) > 300
    assert (await learned(db, domain, at=at)).ahead == pytest.approx(plainly.ahead)


async def test_activity_is_learned_a_few_times_a_day(db: Database, domain: Domain, keys: list[PageKey]) -> None:
    at = await burst(db, domain, keys)
    learned_at = set()
    for hour in range(24):
        now = at + timedelta(hours=hour)
        if hour < 12:  # no visits afterwards
            await fetched(db, LAST, now)
        learned_at.add((await learned(db, domain, at=now)).at[-1] - at)

    assert learned_at == {timedelta(hours=hour) for hour in (0, 6, 12)}
    assert await fetched(db, POSTED) == [(1,)], "it has moved once"


async def test_duplicates_do_not_count_for_the_activity(db: Database, domain: Domain, keys: list[PageKey]) -> None:
    await visits(db, domain, keys[:20], range(0, 30, 5))
    at = await visits(db, domain, keys[20:], range(0, 30, 5), changed=20)
    apart = await learned(db, domain, at=at)
    await fetched(db, "UPDATE page SET canonical = %s WHERE key = ANY(%s) RETURNING 1", keys[0], keys[20:])

    await fetched(db, LAST, at + DAY)
    following = await learned(db, domain, at=at + DAY)

    assert max(map(abs, apart.ahead)) > 1
    assert max(map(abs, following.ahead)) < 0.5


async def test_a_site_without_a_second_visit_ages_by_the_calendar(
    db: Database, domain: Domain, keys: list[PageKey]
) -> None:
    at = await visits(db, domain, keys, [0])

    assert await learned(db, domain, at=at + DAY) == SiteActivity((at + DAY,), (0.0,))
