"""Who crawls a lease: this process, or one of its helpers, of which there are none until this one is busy.

One process crawls with one core, beside those that read for it. As long as it waits for servers most of the time, as
it does while it is polite, another would bring nothing. When it is busy with several leases, as many helpers are
started as there are cores, and the leases that are theirs by then are ended early and claimed again, for them.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.engine.machine import usable_cores
from crawler.engine.processes.helper import Equipment, Helper
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.settings import Settings
from crawler.store.database import Database

log = logging.getLogger("recrawl.crew")

WATCHED_FOR = timedelta(seconds=1)
BUSY_FOR = 2  # such spans in a row, so that what begins in a burst and is over soon starts nobody
BUSY = 0.8  # of a core's time
READERS = 2  # of each helper: one that no domain has alone

CrawlHere = Callable[[asyncio.Event], Awaitable[LeaseResult]]


@dataclass(frozen=True, slots=True)
class _Here:
    """A lease that this process crawls. stop: ends it early when set."""

    lease: Lease
    stop: asyncio.Event

    @property
    def may_move(self) -> bool:
        """Whether another process could go on with it: what a session has beside, logins and cookies, stays here."""
        return not self.lease.domain.settings.is_special


class Crew:
    """One process and its helpers. stop: ends every lease early when set. `at_work` makes one, and ends it."""

    def __init__(self, equipment: Equipment, *, stop: asyncio.Event) -> None:
        self._equipment, self._stop = equipment, stop
        self._most = equipment.settings.processes or usable_cores()
        self._here: list[_Here] = []
        self._helpers: list[Helper] = []

    @property
    def helpers(self) -> tuple[Helper, ...]:
        """The helpers that are at work."""
        return tuple(helper for helper in self._helpers if not helper.is_lost)

    async def crawl(self, lease: Lease, *, here: CrawlHere, progress: Callable[[CrawlStats], None]) -> LeaseResult:
        """Have a lease crawled, where there is the least to do. here: crawls it in this process, until an event is set.

        progress: called after each record.
        Raises HelperLost where it was crawled by a process that is gone.
        """
        mine = _Here(lease, asyncio.Event())
        helper = min(self.helpers, key=lambda each: each.leases, default=None)
        if helper is not None and helper.leases < len(self._here) and mine.may_move:
            return await helper.crawl(lease, stop=self._stop, progress=progress)
        self._here.append(mine)
        if self._stop.is_set():
            mine.stop.set()
        try:
            return await here(mine.stop)
        finally:
            self._here.remove(mine)

    async def share_out(self) -> None:
        """Start helpers, and end here what they are to go on with."""
        wanted = min(self._most, len(self._here)) - 1
        started = await asyncio.gather(
            *(Helper.started(self._equipment) for _ in range(wanted)), return_exceptions=True
        )
        for helper in started:
            if isinstance(helper, Helper):
                self._helpers.append(helper)
            elif isinstance(helper, OSError):
                log.warning("helper.not_started", extra={"error": str(helper)})
            else:
                raise helper
        ours = math.ceil(len(self._here) / (1 + len(self.helpers)))
        moved = [each for each in self._here if each.may_move][ours:]
        for each in moved:
            each.stop.set()
        log.info("work.shared", extra={"helpers": [helper.pid for helper in self.helpers], "moved": len(moved)})

    async def watch(self) -> None:
        """Share the work out as soon as this process is too busy for it."""
        busy = 0
        while busy < BUSY_FOR:
            began, used = time.monotonic(), time.process_time()
            await asyncio.sleep(WATCHED_FOR.total_seconds())
            share = (time.process_time() - used) / (time.monotonic() - began)
            busy = busy + 1 if share >= BUSY and len(self._here) > 1 else 0
        await self.share_out()

    async def pass_on_stop(self) -> None:
        """End what is crawled here, too, when all is to end; helpers are told for each of theirs."""
        await self._stop.wait()
        for each in self._here:
            each.stop.set()

    async def end(self) -> None:
        """End all helpers."""
        await asyncio.gather(*(helper.end() for helper in self._helpers))


@asynccontextmanager
async def at_work(
    db: Database, settings: Settings, *, clock: Clock, find_secret: FindSecret, stop: asyncio.Event
) -> AsyncIterator[Crew]:
    """A crew, until the block ends.

    find_secret: where secrets are; it is given to helpers, so it must be fit to be pickled.  stop: as in Crew.
    """
    equipment = Equipment(
        settings=settings.model_copy(update={"readers": READERS}),
        database_url=db.url,
        clock=clock,
        find_secret=find_secret,
        log_level=logging.getLogger("recrawl").getEffectiveLevel(),
    )
    crew = Crew(equipment, stop=stop)
    tasks = [asyncio.create_task(crew.pass_on_stop(), name="pass-on-stop")]
    if settings.processes != 1 and usable_cores() > 1:
        tasks.append(asyncio.create_task(crew.watch(), name="watch-load"))
    try:
        yield crew
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await crew.end()
