"""Memory does not grow with the number of crawled pages."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.engine.recorder import BATCH_BYTES
from crawler.store.database import Database
from tests.engine.crawls import QUICK, RECRAWL, START, answered, answering, crawl, environ, register, rows
from tests.engine.endless import endless_site
from tests.patience import SLOW
from tests.peak import peak_of


def peak_memory(url: str, database_url: str, home: Path, *, pages: int, at: str) -> int:
    """Return the peak memory, in bytes, of one crawl of this many pages."""
    command = [str(RECRAWL), "crawl", url, "--allow-private", "--pages", str(pages), "--at", at, "--json"]
    output = home / "stdout"
    peak = peak_of(*command, environment=environ(database_url, home, RECRAWL_PARSER_PROCESSES="1"), output=output)
    assert f'"visits": {pages}' in output.read_text()
    return peak


async def growth(database_url: str, home: Path, *, few: int, many: int) -> int:
    async with endless_site() as url:
        small = await asyncio.to_thread(peak_memory, url, database_url, home, pages=few, at="2026-01-01T00:00:00Z")
        large = await asyncio.to_thread(peak_memory, url, database_url, home, pages=many, at="2026-01-02T00:00:00Z")
    return large - small


@pytest.mark.soak
@SLOW
async def test_five_times_the_pages_take_no_more_memory(database_url: str, tmp_path: Path) -> None:
    assert await growth(database_url, tmp_path, few=800, many=4000) < 10 << 20


@pytest.mark.soak
async def test_a_hundred_thousand_pages_take_no_more_memory_than_five_thousand(
    database_url: str, tmp_path: Path
) -> None:
    assert await growth(database_url, tmp_path, few=5000, many=100_000) < 16 << 20


async def test_a_batch_holds_no_more_than_some_bodies_however_many_visits_it_may_have(db: Database) -> None:
    large, pages = BATCH_BYTES // 4, 20

    def respond(target: str) -> bytes:
        if target == "/":
            return answered(200, "".join(f"<a href=/{n}>{n}</a>" for n in range(pages)).encode())
        return (
            answered(200, b"<!--" + b"x" * large + target.encode() + b"-->")
            if target[1:].isdigit()
            else answered(404, b"")
        )

    async with answering(respond) as url:
        await register(db, url, parallelism=1)
        patient = QUICK.model_copy(update={"max_batch_size": 5000, "max_batch_age": timedelta(minutes=5)})
        await crawl(db, at=START, settings=patient)

    visits, batches = (await rows(db, "SELECT count(*), count(DISTINCT xmin::text) FROM visit"))[0]
    assert visits == 1 + pages
    assert batches >= 1 + pages // 4
