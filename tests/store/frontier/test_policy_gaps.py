"""Intervals of a revisit policy under a budget: they keep their ratio for smaller and larger budgets."""

from collections import Counter
from datetime import timedelta

import pytest

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import domains
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.made_up import take, targets
from tests.store.populated import Bulk, add

DAY = timedelta(days=1)
WARM_UP, DAYS = 40, 80
VISITED = """
    WITH seen AS (UPDATE page SET last_good_at = %(at)s WHERE key = ANY(%(keys)s))
    UPDATE frontier SET due_at = %(at)s + %(gap)s WHERE key = ANY(%(keys)s)
"""


@pytest.mark.parametrize("budget", [14, pytest.param(4, marks=pytest.mark.soak)])
async def test_a_budget_scales_the_intervals_of_a_policy_and_keeps_their_ratio(db: Database, budget: int) -> None:
    """Ten pages every other day and forty every 20 days need 7 visits a day; the policy uses the stored intervals."""
    settings = DomainSettings(budget_per_day=budget, revisit="similarity")
    domain = await domains.register(db, Authority("a.test"), scheme="http", domain_settings=settings, at=START)
    often = await add(db, domain, Bulk(10), at=START)
    seldom = await add(db, domain, Bulk(40, first=1000), at=START)
    lease = await take(db, START, term=timedelta(days=365))
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM frontier WHERE state = 'unfetched'")

    visits: Counter[bytes] = Counter()
    for n in range(1, WARM_UP + DAYS):
        at = START + n * DAY
        chosen = [target.key for target in await targets(db, lease, at, most=budget)]
        async with db.transaction() as connection:
            for keys, gap in ((often, 2 * DAY), (seldom, 20 * DAY)):
                values = {"at": at, "gap": gap, "keys": [key for key in keys if key in chosen]}
                await connection.execute(VISITED, values)
        assert len(chosen) == budget
        if n >= WARM_UP:
            visits.update(chosen)

    fast, slow = (sum(visits[key] for key in keys) / len(keys) for keys in (often, seldom))
    assert fast / slow == pytest.approx(10, rel=0.25)
    assert min(visits[key] for key in seldom) > 0
