"""Pages and domains that keep failing are reported once, and once again when they respond."""

import asyncio
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answered, answering, crawl, environ, recrawl, register, rows
from tests.engine.scripted import HUNG_UP, NOT_THERE, Said, all_events, scripted, text
from tests.engine.test_kill import expire

LEAVES = [f"/leaf{n}" for n in range(8)]
SITE = {"/": text("the front page", *LEAVES)} | {path: text(f"leaf {path}") for path in LEAVES}
BROKEN = Said(502, "<p>sorry")
HOUR = timedelta(hours=1)
ROUNDS = 6


async def events(db: Database, domain: Domain) -> list[tuple[str, str]]:
    """Return all events except added pages, in order: path and change."""
    return [event for event in await all_events(db, domain) if event[1] != "added"]


async def test_a_page_is_reported_after_three_failed_visits_and_when_it_responds_again(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: BROKEN if path == "/leaf3" else None
        counts = []
        for n in range(1, 6):
            await site.recrawl(db, domain, at=START + n * HOUR, prefix="/leaf3")
            counts.append(len(await events(db, domain)))
        site.trouble = lambda _: None
        site.pages["/leaf3"] = text("leaf three after its repair")
        await site.recrawl(db, domain, at=START + 9 * HOUR, prefix="/leaf3")
        await site.recrawl(db, domain, at=START + 10 * HOUR, prefix="/leaf3")

        assert counts == [0, 0, 1, 1, 1]
        assert await events(db, domain) == [("/leaf3", "failing"), ("/leaf3", "changed"), ("/leaf3", "recovered")]
        found = await rows(
            db, "SELECT reason, version FROM event WHERE change IN ('failing', 'recovered') ORDER BY number"
        )
        assert found == [("http_502", 1), (None, 2)]
        assert await rows(db, "SELECT * FROM failure_run") == []


@pytest.mark.parametrize(("hours", "found"), [(5, []), (7, [("/leaf3", "failing")])], ids=["too-short", "long-enough"])
async def test_a_page_is_reported_once_it_has_failed_for_a_time(
    db: Database, hours: int, found: list[tuple[str, str]]
) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: BROKEN if path == "/leaf3" else None

        await site.recrawl(db, domain, at=START + DAY, prefix="/leaf3")
        await site.recrawl(db, domain, at=START + DAY + hours * HOUR, prefix="/leaf3")

        assert await events(db, domain) == found


async def test_the_number_of_failed_visits_is_a_setting(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        patient = DomainSettings(allow_private=True, delay=timedelta(0), failing_visits=5, failing_time=9 * DAY)
        await domains.change_settings(db, domain, patient, at=START)
        site.trouble = lambda path: BROKEN if path == "/leaf3" else None
        for n in range(1, 5):
            await site.recrawl(db, domain, at=START + n * HOUR, prefix="/leaf3")
        before = await events(db, domain)
        await site.recrawl(db, domain, at=START + 5 * HOUR, prefix="/leaf3")

        assert (before, await events(db, domain)) == ([], [("/leaf3", "failing")])


async def test_a_failing_page_that_is_gone_has_not_recovered(db: Database) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble = lambda path: BROKEN if path == "/leaf3" else None
        for n in range(1, 4):
            await site.recrawl(db, domain, at=START + n * HOUR, prefix="/leaf3")
        site.trouble = lambda path: NOT_THERE if path == "/leaf3" else None
        for n in range(5, 8):
            await site.recrawl(db, domain, at=START + n * HOUR, prefix="/leaf3")

        assert await events(db, domain) == [("/leaf3", "failing"), ("/leaf3", "gone")]
        assert await rows(db, "SELECT * FROM failure_run") == []


@pytest.mark.parametrize("is_named", [True, False], ids=["no-response", "no-address"])
async def test_a_domain_is_reported_and_not_each_of_its_pages(db: Database, *, is_named: bool) -> None:
    async with scripted(db, SITE) as (site, domain):
        await site.crawl(db, at=START)
        site.trouble, site.is_named = (lambda _: HUNG_UP), is_named
        counts = []
        for n in range(1, 6):
            await site.recrawl(db, domain, at=START + n * HOUR)
            counts.append(len(await events(db, domain)))
        site.trouble, site.is_named = (lambda _: None), True
        await site.recrawl(db, domain, at=START + 2 * DAY)
        await site.recrawl(db, domain, at=START + 3 * DAY)

        assert counts == [0, 0, 1, 1, 1]
        assert await events(db, domain) == [("/", "failing"), ("/", "recovered")]
        found = await rows(
            db, "SELECT reason, version FROM event WHERE change IN ('failing', 'recovered') ORDER BY number"
        )
        assert found == [("reset" if is_named else "dns", 0), (None, 0)]
        ((numbers,),) = await rows(db, "SELECT array_agg(number ORDER BY number) FROM event")
        assert numbers == list(range(1, len(SITE) + 3))


async def test_despite_kills_each_failure_and_recovery_is_reported_once(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    chance, sent, is_broken = random.Random(7), 0, False

    def respond(path: str) -> bytes:
        nonlocal sent
        sent += 1
        if path == "/robots.txt":
            return answered(404, b"")
        return answered(500, b"sorry") if is_broken and path != "/" else answered(200, SITE[path].body.encode())

    async def run_until_killed(hours: int, requests: int) -> None:
        at, enough = START + hours * HOUR, sent + requests
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "crawler", "crawl", domain.authority, "--at", at.isoformat(), "--json"),
            env=environ(database_url, tmp_path, RECRAWL_LEASE_TERM="2", RECRAWL_MAX_BATCH_SIZE="2"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        while child.returncode is None and sent < enough:
            await asyncio.sleep(0.002)
        if child.returncode is None:
            child.send_signal(signal.SIGKILL)
        await child.wait()
        await expire(db)

    async with answering(respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        for is_broken in (True, False):
            first = 1 if is_broken else 20
            for n in range(first, first + ROUNDS // 2):
                await run_until_killed(n, requests=chance.randint(2, 12))
            for n in range(first + ROUNDS // 2, first + ROUNDS):
                await recrawl(db, domain, at=START + n * HOUR)

    assert sorted(await events(db, domain)) == sorted(
        (path, kind) for path in LEAVES for kind in ("failing", "recovered")
    )
