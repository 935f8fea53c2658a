"""A target freshness: pages that change as estimated are as fresh as the target, and hardly fresher."""

from datetime import timedelta
from math import exp
from random import Random
from statistics import fmean

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.planner.plan import plan_domains
from crawler.store.database import Database
from tests.engine.test_plan import AT, SETTINGS, registered
from tests.store.made_up import take, targets
from tests.store.populated import Bulk, add, fetched

DAY = timedelta(days=1)
TARGET = 0.97
EVERY = timedelta(hours=2)  # between shifts, each with a share of the day's requests
BY_PACE = 12
KINDS = (Bulk(120, a=6.0, b=600.0), Bulk(100, 4.0, 120.0, first=200), Bulk(60, 6.0, 60.0, first=400))
BELIEFS = """
    SELECT p.key, g.a + p.rate_a, g.b + p.rate_b
      FROM page p JOIN prior g ON g.domain_id = p.domain_id AND g.no = p.prior_no
     WHERE p.domain_id = %s AND p.version > 0 ORDER BY p.key
"""
VISITED = """
    WITH seen AS (UPDATE page SET last_good_at = %(at)s WHERE key = ANY(%(keys)s)),
    spent AS (UPDATE domain_state SET budget_day = %(day)s, spent_requests = %(spent)s, last_visit_at = %(at)s)
    UPDATE frontier SET due_at = %(at)s + interval '10 days' WHERE key = ANY(%(keys)s)
"""


@pytest.mark.soak
async def test_a_target_of_freshness_is_met_from_the_second_month_on_and_hardly_exceeded(db: Database) -> None:
    domain = await registered(db, "fresh.test", DomainSettings(target_freshness=TARGET, allow_private=True))
    for kind in KINDS:
        await add(db, domain, kind, at=AT)
    lease = await take(db, AT, term=100 * DAY)
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM frontier WHERE state = 'unfetched'")
    await plan_domains(db, at=AT, settings=SETTINGS)
    chance = Random(1)
    rates = {key: chance.gammavariate(a, 1 / b) for key, a, b in await beliefs(db, domain)}
    last = dict.fromkeys(rates, AT)

    fresh = []
    for day in range(45):
        midnight, spent = AT + day * DAY, 0
        await plan_domains(db, at=midnight, settings=SETTINGS)
        ((asked,),) = await fetched(db, "SELECT budget_per_day FROM domain_plan")
        assert isinstance(asked, int)
        for part in range(BY_PACE):
            at = midnight + part * EVERY
            keys = [each.key for each in await targets(db, lease, at, most=asked * (part + 1) // BY_PACE - spent)]
            spent += len(keys)
            async with db.transaction() as connection:
                values = {"at": at, "keys": keys, "day": midnight.date(), "spent": spent}
                await connection.execute(VISITED, values)
            last |= dict.fromkeys(keys, at)
            if day >= 30:
                middle = at + EVERY / 2
                fresh.append(fmean(exp(-rate * ((middle - last[key]) / DAY)) for key, rate in rates.items()))

    assert TARGET <= fmean(fresh) <= TARGET + 0.005


async def beliefs(db: Database, domain: Domain) -> list[tuple[bytes, float, float]]:
    """Return each page's key with the estimate of its change rate."""
    async with db.transaction() as connection:
        return list(await (await connection.execute(BELIEFS, (domain.id,))).fetchall())
