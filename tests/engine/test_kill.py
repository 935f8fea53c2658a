"""Killing a crawl with kill -9 is a normal way to stop it."""

import asyncio
import os
import random
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from crawler.core.domain import Domain
from crawler.engine.targets import LIMITED_AHEAD
from crawler.runtime.postgres.cluster import ensure_postgres
from crawler.store import domains
from crawler.store.database import Database, open_database, upgrade_schema
from labs.demo.server import LivingServer
from tests.engine.crawls import QUICK, RECRAWL, START, coins_missing, crawl, environ, register, rows
from tests.patience import SLOW

KILLS = 3
TERM = "2"  # seconds until a killed worker's domain can be claimed again


async def finished_looks(db: Database) -> int:
    found = await rows(db, "SELECT count(*) FROM visit")
    return int(found[0][0])


async def run_until_killed(
    domain: Domain,
    living: LivingServer,
    database_url: str,
    home: Path,
    *,
    at: datetime,
    requests: int,
    batch: int = 4,
) -> bool:
    """Run `recrawl crawl` and kill it with -9 after this many requests; return whether it was still running then."""
    enough = living.journal.counts.requests + requests
    process = subprocess.Popen(
        [str(RECRAWL), "crawl", domain.authority, "--at", at.isoformat(), "--json"],
        env=environ(
            database_url, home, RECRAWL_LEASE_TERM=TERM, RECRAWL_MAX_BATCH_SIZE=str(batch), RECRAWL_MAX_BATCH_AGE="0.2"
        ),
        stdout=subprocess.DEVNULL,
        stderr=(home / "stderr").open("w"),
    )
    while process.poll() is None and living.journal.counts.requests < enough:
        await asyncio.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    return await asyncio.to_thread(process.wait) == -signal.SIGKILL


@SLOW
async def test_killed_again_and_again_at_random_nothing_is_lost_and_nothing_is_there_twice(
    db: Database, database_url: str, domain: Domain, living: LivingServer, tmp_path: Path
) -> None:
    chance = random.Random(20)
    living.slow(0.02)
    killed = 0
    for n in range(KILLS):
        at, requests = START + timedelta(minutes=n), chance.randint(1, 14)
        killed += await run_until_killed(domain, living, database_url, tmp_path, at=at, requests=requests)
        assert await coins_missing(db) == 0
        await expire(db)
    assert killed == KILLS
    assert 0 < await finished_looks(db) < len(living.site.paths(START))
    living.slow(0)

    await crawl(db, at=START + timedelta(hours=1))

    twice = await rows(db, "SELECT key, at FROM visit GROUP BY 1, 2 HAVING count(*) > 1")
    first = await rows(db, "SELECT key FROM visit WHERE change = 'added' GROUP BY 1 HAVING count(*) > 1")
    pages = {"/" + row[0].removeprefix(domain.root) for row in await rows(db, "SELECT url FROM page WHERE version = 1")}
    numbers = await rows(db, "SELECT array_agg(number ORDER BY number) FROM event")
    broken = {
        row[0].removeprefix(domain.root[:-1]) for row in await rows(db, "SELECT url FROM page WHERE status >= 500")
    }
    assert twice == []
    assert first == []
    assert set(living.site.paths(START)) - broken <= pages
    assert numbers[0][0] == list(range(1, len(pages) + 1))
    assert await coins_missing(db) == 0


async def expire(db: Database) -> None:
    """Expire the killed worker's lease, as time would."""
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET leased_until = now() WHERE lease_token IS NOT NULL")


async def test_a_killed_crawl_takes_few_requests_of_a_limited_budget_with_it(
    db: Database, database_url: str, living: LivingServer, tmp_path: Path
) -> None:
    domain = await register(db, living.url, max_depth=12, budget_per_day=100_000)
    await crawl(db, at=START)
    living.slow(0.05)
    kills = 2
    spent, sent = await spent_requests(db), living.journal.counts.requests
    for n in range(1, 1 + kills):
        at = START + timedelta(minutes=n)
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        assert await run_until_killed(domain, living, database_url, tmp_path, at=at, requests=10, batch=100)
        await expire(db)

    burnt = await spent_requests(db) - spent - (living.journal.counts.requests - sent)

    assert 0 <= burnt <= kills * (LIMITED_AHEAD + 8)


@pytest.mark.soak
async def test_a_killed_crawl_takes_the_bytes_of_few_pages_of_a_budget_of_bytes_with_it(
    db: Database, database_url: str, living: LivingServer, tmp_path: Path
) -> None:
    domain = await register(db, living.url, max_depth=12, bytes_per_day=1_000_000_000)
    await crawl(db, at=START)
    living.slow(0.05)
    largest = int((await rows(db, "SELECT max(received_bytes) FROM visit"))[0][0])
    before, received = await spent_bytes(db)
    for n in range(1, 4):
        at = START + timedelta(minutes=n)
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        assert await run_until_killed(domain, living, database_url, tmp_path, at=at, requests=10, batch=100)
        await expire(db)

    after, received_after = await spent_bytes(db)

    assert 0 <= (after - before) - (received_after - received) <= 3 * (LIMITED_AHEAD + 8) * largest


async def spent_bytes(db: Database) -> tuple[int, int]:
    """Return the spent bytes of the day's budget, and those that recorded visits received."""
    (row,) = await rows(
        db, "SELECT spent_bytes, (SELECT coalesce(sum(received_bytes), 0) FROM visit) FROM domain_state"
    )
    return int(row[0]), int(row[1])


async def spent_requests(db: Database) -> int:
    ((spent,),) = await rows(db, "SELECT spent_requests FROM domain_state")
    return int(spent)


async def test_a_killed_workers_domain_waits_for_its_lease_to_run_out(
    db: Database, database_url: str, domain: Domain, living: LivingServer, tmp_path: Path
) -> None:
    living.slow(0.02)
    assert await run_until_killed(domain, living, database_url, tmp_path, at=START, requests=20)
    held = await rows(db, "SELECT lease_token IS NOT NULL FROM domain_state")

    too_early = await crawl(db, at=START + timedelta(minutes=1))
    await expire(db)
    in_time = await crawl(db, at=START + timedelta(minutes=1), pages=5)

    assert held == [(True,)]
    assert too_early.stats.leases == 0
    assert in_time.stats.visits == 5


async def test_killed_with_9_and_started_again_due_times_and_backoff_are_the_same(
    db: Database, database_url: str, domain: Domain, living: LivingServer, tmp_path: Path
) -> None:
    """All state is in the database: another process with empty memory makes the same decisions."""
    living.slow(0.02)
    assert await run_until_killed(domain, living, database_url, tmp_path, at=START, requests=40)
    known = {"/" + row[0].removeprefix(domain.root) for row in await rows(db, "SELECT url FROM page WHERE visits > 0")}
    await expire(db)
    living.throttle(1000, retry_after="600")
    living.journal.clear()
    await crawl(db, at=START + timedelta(minutes=1))
    asked = {entry.path for entry in living.journal.entries}
    before = await rows(db, "SELECT key, due_at, resume_at, rejections FROM frontier, domain_state ORDER BY key")
    living.throttle(0, retry_after="0")
    living.journal.clear()

    again = await run_until_killed(domain, living, database_url, tmp_path, at=START + timedelta(minutes=9), requests=1)

    assert not again  # it had ended normally
    assert living.journal.counts.requests == 0
    assert before == await rows(
        db, "SELECT key, due_at, resume_at, rejections FROM frontier, domain_state ORDER BY key"
    )
    assert {row[3] for row in before} == {1}
    assert len(known) > 10
    assert asked
    assert not asked & known  # they were due later


async def test_a_crawl_survives_the_death_of_postgres(
    living: LivingServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("own-postgres")
    for folder in (home, *home.parents[:2]):
        folder.chmod(0o755)
    cluster = ensure_postgres(home)
    try:
        cluster.create_database("crawl")
        url = cluster.build_url("crawl")
        upgrade_schema(url)
        async with open_database(url) as db:
            domain = await register(db, living.url, max_depth=12)
            living.slow(0.03)
            patient = QUICK.model_copy(update={"lease_term": timedelta(minutes=5)})
            crawling = asyncio.create_task(crawl(db, at=START, settings=patient))
            while living.journal.counts.requests < 40:
                await asyncio.sleep(0.01)  # until it is well in progress
            os.kill(cluster.pid, signal.SIGKILL)
            cluster = await asyncio.to_thread(ensure_postgres, home)
            shift = await crawling

            assert shift.stats.visits > 80
            assert await coins_missing(db) == 0
            looked = await rows(db, "SELECT count(*), count(DISTINCT key) FROM visit WHERE domain_id = %s", domain.id)
            assert looked[0][0] == looked[0][1] == shift.stats.visits
    finally:
        cluster.stop()
