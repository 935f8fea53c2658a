"""The hourly traffic of a domain is what its server saw, and an hour of failures is reported."""

from datetime import timedelta

import pytest

from crawler.core.domain import Domain
from crawler.planner.traffic import find_unusual_traffic, judge_hours
from crawler.store import domains
from crawler.store.database import Database
from labs.demo.server import LivingServer
from tests.engine.crawls import START, crawl, rows

HOUR = timedelta(hours=1)
DAY_OF_HOURS = 26


@pytest.mark.soak
async def test_an_hour_of_errors_is_told_from_a_day_without(db: Database, domain: Domain, living: LivingServer) -> None:
    seen = {}
    living.slow(0.02)  # far more than the delays of a busy machine
    for n in range(DAY_OF_HOURS + 1):
        at = START + n * HOUR
        living.set_instant(at)
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        living.journal.clear()
        await crawl(db, at=at, pages=12)
        seen[at] = sum(entry.path != "/robots.txt" for entry in living.journal.entries)
    until = START + (DAY_OF_HOURS + 1) * HOUR
    quiet = await find_unusual_traffic(db, at=until)
    # As if its server failed for an hour; the visits of that hour are as a crawl records them.
    broken = "UPDATE visit SET status = 503, elapsed_ms = elapsed_ms + 600000 WHERE at >= %s RETURNING 1"
    await rows(db, broken, START + DAY_OF_HOURS * HOUR)
    (found,) = await find_unusual_traffic(db, at=until + timedelta(minutes=30))
    hours = await judge_hours(db, domain, at=until, window=3 * HOUR)
    view = await rows(db, "SELECT hour, requests FROM report_traffic WHERE domain_id = %s ORDER BY hour", domain.id)

    assert quiet == []
    assert view == list(seen.items())
    assert found.domain == domain
    assert "visits failed" in found.judged.anomaly
    assert "responses took 600," in found.judged.anomaly
    assert [bool(each.anomaly) for each in hours] == [False, False, True]
