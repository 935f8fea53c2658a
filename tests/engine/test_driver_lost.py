"""Playwright's driver is killed during a crawl: that restarts the browser and suspends no domain."""

import asyncio
from pathlib import Path

import psutil
import pytest

from crawler.store.database import Database
from tests.engine.crawls import START, crawl, register
from tests.engine.static import StaticServer
from tests.engine.test_rendering import NAMES, _with_a_browser, renders, write_app

__all__ = ["_with_a_browser"]

PAGES = NAMES[:8]


async def kill_first_driver() -> None:
    """Kill the driver as soon as it exists, before it has started a browser."""
    while True:
        for each in psutil.Process().children():
            if "run-driver" in each.cmdline():
                each.kill()
                return
        await asyncio.sleep(0.01)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_a_driver_that_is_killed_while_it_starts_suspends_no_domain(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, PAGES)
    with StaticServer(tmp_path) as server:
        await register(db, server.url, seeds=(f"{server.url}/app/{PAGES[0]}/",), render="always")
        killing = asyncio.create_task(kill_first_driver())
        result = await crawl(db, at=START)

    await killing
    assert not result.suspensions
    assert not result.broken
    assert (await renders(db))["app", "always"] == len(PAGES)
