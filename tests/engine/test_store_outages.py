"""Postgres is down, read-only or locked for longer than a lease: the shift waits, and nothing is lost."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from crawler.engine import shift, store_port
from crawler.engine.stats import ShiftResult
from crawler.store import database
from crawler.store.database import Database, open_database
from tests.engine.crawls import QUICK, START, coins_missing, rows
from tests.engine.gate import Gate, gate_before
from tests.engine.scripted import Said, Scripted, scripted, states, text
from tests.patience import PATIENCE_S

LEAVES = [f"/leaf{n}" for n in range(60)]
SITE = {"/": text("the front page", *LEAVES)} | {path: text(f"leaf {path}") for path in LEAVES}
SHORT = QUICK.model_copy(update={"lease_term": timedelta(seconds=2), "max_batch_size": 10})


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all times, so that an outage of seconds is a long one."""
    monkeypatch.setattr(database, "CONNECT_TIMEOUT_SECONDS", 1)
    monkeypatch.setattr(shift, "CLAIM_INTERVAL", timedelta(seconds=0.1))
    monkeypatch.setattr(store_port, "STORE_RETRY", timedelta(seconds=0.1))


@pytest.fixture
async def gate(database_url: str) -> AsyncIterator[Gate]:
    async with gate_before(database_url) as gate:
        yield gate


@pytest.fixture
async def gated(gate: Gate) -> AsyncIterator[Database]:
    async with open_database(gate.url) as there:
        yield there


async def until(db: Database, query: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await rows(db, query) != [(True,)]:
            await asyncio.sleep(0.02)


async def shift_waits(crawl: asyncio.Task[ShiftResult], told: list[logging.LogRecord]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any(vars(each).get("about") == "shift" for each in told):
            assert not crawl.done(), f"the crawl ended before the outage: {await crawl}"
            await asyncio.sleep(0.02)


def after(site: Scripted, many: int) -> asyncio.Event:
    """Return an event that is set after this many requests for pages."""
    reached = asyncio.Event()

    def count(_path: str) -> Said | None:
        if len(site.asked) >= many:
            reached.set()
        return None

    site.trouble = count
    return reached


async def all_was_recorded_once(db: Database, site: Scripted) -> None:
    asked = Counter(path for path, _ in site.asked)
    assert {path: many for path, many in asked.items() if many != 1} == {}
    assert await rows(db, "SELECT count(*) FROM page WHERE version = 1") == [(len(SITE),)]
    assert await coins_missing(db) == 0


async def test_a_shift_waits_for_a_postgres_that_is_away_longer_than_its_lease(
    db: Database, gated: Database, gate: Gate, told: list[logging.LogRecord]
) -> None:
    async with scripted(db, SITE) as (site, domain):
        site.settings = SHORT
        begun = after(site, 20)
        crawl = asyncio.create_task(site.crawl(gated, at=START))
        await begun.wait()
        await gate.shut()
        await shift_waits(crawl, told)
        await until(db, "SELECT coalesce(leased_until < clock_timestamp(), true) FROM domain_state")
        await gate.open()
        result = await crawl

        await all_was_recorded_once(db, site)
        assert result.stats.visits == len(SITE)
        assert set((await states(db, domain)).values()) == {"fetched"}


async def test_a_shift_waits_for_a_postgres_that_is_read_only(
    db: Database, database_url: str, postgres_url: str, told: list[logging.LogRecord]
) -> None:
    name = urlsplit(database_url).path.removeprefix("/")
    async with scripted(db, SITE) as (site, _domain), open_database(database_url) as there:
        site.settings = SHORT
        begun = after(site, 20)
        crawl = asyncio.create_task(site.crawl(there, at=START))
        await begun.wait()
        await _set_read_only(postgres_url, name, "on")
        await shift_waits(crawl, told)
        await _set_read_only(postgres_url, name, "off")
        await crawl

    async with open_database(database_url) as afterwards:  # the connections of the first were broken, too
        await all_was_recorded_once(afterwards, site)


async def _set_read_only(server: str, name: str, value: str) -> None:
    """Set read-only mode for new transactions of that database, and break its connections."""
    async with open_database(server) as admin, admin.pool.connection() as connection:
        await connection.set_autocommit(True)
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}".encode())
        await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


async def test_a_shift_waits_for_a_long_statement_that_holds_its_tables(
    db: Database, gated: Database, told: list[logging.LogRecord]
) -> None:
    async with scripted(db, SITE) as (site, _domain):
        site.settings = SHORT
        begun = after(site, 20)
        crawl = asyncio.create_task(site.crawl(gated, at=START))
        await begun.wait()
        async with db.transaction() as connection:
            await connection.execute("LOCK TABLE domain_state IN ACCESS EXCLUSIVE MODE")
            await asyncio.sleep(3)  # a statement of another program, longer than the lease and the patience
        await crawl

        await all_was_recorded_once(db, site)
