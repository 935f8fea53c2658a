"""A stopped crawl ends at any point, and returns what it had not started."""

import asyncio
from typing import Any

import pytest

from crawler.clock import Clock
from crawler.core.visit.visit import Target
from crawler.engine.coordinator import CrawlLimits
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.engine.stats import ShiftResult
from crawler.engine.store_port import LeasedStore
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, answered, answering, coins_missing, crawl, register, rows
from tests.patience import PATIENCE_S

PAGES = 30  # that the front page links to


def book(target: str) -> bytes:
    links = "".join(f"<a href=/{n}>page {n}</a> " for n in range(PAGES)) if target == "/" else ""
    return answered(404 if target == "/robots.txt" else 200, f"<p>Page {target} of a book. {links}".encode())


@pytest.mark.parametrize("nth", [1, 2])
async def test_a_stop_while_pages_are_handed_out_is_heard(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, nth: int
) -> None:
    """No fetch worker has a page then, so none would report news. nth: number of the selection."""
    stop, hand_out, times = asyncio.Event(), LeasedStore.select_targets, 0

    async def handed_out(store: LeasedStore, *limits: Any) -> list[Target]:
        nonlocal times
        targets = await hand_out(store, *limits)
        times += bool(targets)
        if targets and times == nth:
            stop.set()
            for _ in range(20):  # the shift and its worker pool each pass it on
                await asyncio.sleep(0)
        return targets

    async def stopped() -> ShiftResult:
        async with open_resources(QUICK) as webs, asyncio.timeout(PATIENCE_S):
            return await run_shift(
                db, webs, settings=QUICK, clock=Clock.from_instant(START), holder="test", limits=CrawlLimits(stop=stop)
            )

    async with answering(book) as url:
        domain = await register(db, url)
        with monkeypatch.context() as patched:
            patched.setattr(LeasedStore, "select_targets", handed_out)
            result = await stopped()
        assert stop.is_set()
        assert result.stats.visits == nth - 1
        assert await rows(db, "SELECT lease_token FROM domain_state WHERE domain_id = %s", domain.id) == [(None,)]
        rest = await crawl(db, at=START + DAY)
        assert result.stats.visits + rest.stats.visits == 1 + PAGES
    assert await coins_missing(db) == 0
