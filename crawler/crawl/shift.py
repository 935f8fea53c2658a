"""A shift: claims domains and walks several leases at a time, until nothing is due or its time is up."""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.domain import Domain, Hold, Lease
from crawler.crawl.lease import LeaseResult, crawl_lease, give_back
from crawler.crawl.stats import CrawlStats
from crawler.crawl.tools import CrawlTools
from crawler.errors import CrawlerError, LeaseLost
from crawler.settings import Settings
from crawler.store import claim, report
from crawler.store.database import Database
from crawler.store.partitions import ensure_visit_partition

log = logging.getLogger("recrawl.shift")

LOOK_AROUND = timedelta(seconds=5)  # for domains that have become due while others are being crawled

# How one lease is walked: given the lease, and what walks it.
WalkLease = Callable[[Lease, Callable[[], Awaitable[LeaseResult]]], Awaitable[LeaseResult]]


@dataclass(slots=True)
class ShiftResult:
    """What a shift did: in all, by domain, and which domains are left alone now."""

    stats: CrawlStats = field(default_factory=CrawlStats)
    by_domain: dict[str, CrawlStats] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)  # domains that another worker took over
    broken: dict[str, str] = field(default_factory=dict)  # domains that an error of our own has ended, and which

    def take_in(self, domain: Domain, walked: LeaseResult) -> None:
        """Add what one lease did."""
        self.stats.merge(walked.stats)
        own = self.by_domain.setdefault(domain.authority, CrawlStats())
        own.merge(walked.stats)
        own.elapsed += walked.stats.elapsed
        if walked.hold is not None:
            self.holds[domain.authority] = walked.hold


def keep_what_is_loaded() -> None:
    """Spare the garbage collector what a process has loaded before its work begins, which stays until it ends.

    To look through all of it takes longer than to hand out 500 pages, and happens while they are handed out.
    """
    gc.collect()
    gc.freeze()


def holder_name(role: str) -> str:
    """Who holds a lease, for people and for cleaning up: machine, process, role."""
    return f"{socket.gethostname()}/{os.getpid()}/{role}"


async def run_shift(
    db: Database,
    webs: CrawlTools,
    *,
    settings: Settings,
    clock: Clock,
    holder: str,
    only: Collection[Domain] | None = None,
    pages: int | None = None,
    time_limit: timedelta | None = None,
    stop: asyncio.Event | None = None,
    progress: Callable[[Lease, CrawlStats], None] = lambda _lease, _tally: None,
    walk_lease: WalkLease = lambda _lease, walk_it: walk_it(),
) -> ShiftResult:
    """Walk leases until nothing that may be claimed is due, or the shift's time is up.

    only: claim among these domains.  pages: looks in all, at most.  time_limit: then what is in flight is recorded, and
    the domains are released.  stop: the same when set.  walk_lease: what wraps the walk of one lease (a flow's task).
    Raises StoreUnavailable where the database stays silent; a lost lease is counted, not raised.
    """
    await ensure_visit_partition(db, at=clock.now())
    ending = asyncio.Event()
    crew = _Crew(db, webs, settings=settings, clock=clock, pages=pages, stop=ending, progress=progress)
    crew.walk_lease = walk_lease
    began = time.monotonic()
    async with _ends(ending, stop=stop, time_limit=time_limit), asyncio.TaskGroup() as tasks:
        while not crew.is_over:
            lease, claimed = await crew.claim(holder=holder, only=only) if crew.has_room else (None, 0.0)
            if lease is not None:
                crew.begin(tasks.create_task(crew.work_on(lease, claimed), name=f"lease-{lease.domain.authority}"))
            elif crew.running:
                await crew.wait_for_change(only=only)
            elif not await crew.wait_for_turn(only=only):
                break
    crew.result.stats.elapsed = timedelta(seconds=time.monotonic() - began)
    await report.stamp_feed(db, at=clock.now())
    return crew.result


@asynccontextmanager
async def _ends(
    ending: asyncio.Event, *, stop: asyncio.Event | None, time_limit: timedelta | None
) -> AsyncIterator[None]:
    """Set `ending` when the caller says stop, or the time is up; the caller's own event tells only what it said."""
    timer = None
    if time_limit is not None:
        timer = asyncio.get_running_loop().call_later(time_limit.total_seconds(), ending.set)

    async def listen(told: asyncio.Event) -> None:
        await told.wait()
        ending.set()

    listener = asyncio.create_task(listen(stop), name="stop") if stop is not None else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        if listener is not None:
            listener.cancel()


class _Crew:
    """The leases of one shift."""

    def __init__(
        self,
        db: Database,
        webs: CrawlTools,
        *,
        settings: Settings,
        clock: Clock,
        pages: int | None,
        stop: asyncio.Event,
        progress: Callable[[Lease, CrawlStats], None],
    ) -> None:
        self.db, self.webs, self.settings, self.clock = db, webs, settings, clock
        self.pages, self.stop, self.progress = pages, stop, progress
        self.result = ShiftResult()
        self.running: set[asyncio.Task[None]] = set()
        self.walk_lease: WalkLease = lambda _lease, walk_it: walk_it()

    @property
    def has_room(self) -> bool:
        """With a limit on pages one lease at a time, so that the limit is exact."""
        return len(self.running) < (self.settings.leases_at_once if self.pages is None else 1)

    @property
    def pages_left(self) -> int | None:
        return None if self.pages is None else self.pages - self.result.stats.looks

    @property
    def is_over(self) -> bool:
        left = self.pages_left
        return self.stop.is_set() or (left is not None and left <= 0)

    async def claim(self, *, holder: str, only: Collection[Domain] | None) -> tuple[Lease | None, float]:
        claimed = time.monotonic()
        lease = await claim.claim(
            self.db,
            at=self.clock.now(),
            holder=holder,
            term=self.settings.lease_term,
            only=only,
            exempt_addresses=self.settings.exempt_addresses,
            delay=self.settings.delay,
        )
        return lease, claimed

    def begin(self, task: asyncio.Task[None]) -> None:
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def work_on(self, lease: Lease, claimed: float) -> None:
        try:
            walked = await self.walk_lease(lease, lambda: self.walk(lease, claimed))
        except LeaseLost:
            log.warning("lease.lost", extra={"domain": lease.domain.authority})
            self.result.lost.append(lease.domain.authority)
        except CrawlerError:
            raise
        except Exception as error:
            log.exception("lease.broken", extra={"domain": lease.domain.authority})
            self.result.broken[lease.domain.authority] = repr(error)
        except BaseException:
            # A walk gives its domain back; a task of a flow that is cancelled before the walk begins does not.
            await give_back(self.db, lease, at=self.clock.now())
            raise
        else:
            self.result.take_in(lease.domain, walked)

    async def walk(self, lease: Lease, claimed: float) -> LeaseResult:
        return await crawl_lease(
            self.db,
            lease,
            self.webs.of(lease.domain),
            settings=self.settings,
            clock=self.clock,
            claimed=claimed,
            readers=self.webs.parsers,
            pages=self.pages_left,
            stop=self.stop,
            progress=lambda stats: self.progress(lease, stats),
        )

    async def wait_for_change(self, *, only: Collection[Domain] | None) -> None:
        """Wait until a lease ends or, if there is room for another, until some domain can be claimed."""
        patience: timedelta | None = None
        if self.has_room:
            turn = await claim.next_turn(
                self.db, at=self.clock.now(), only=only, exempt_addresses=self.settings.exempt_addresses
            )
            patience = min(turn or LOOK_AROUND, LOOK_AROUND)
        if not self.running:
            return  # the last one ended while the store was asked
        await asyncio.wait(
            self.running,
            timeout=None if patience is None else patience.total_seconds(),
            return_when=asyncio.FIRST_COMPLETED,
        )

    async def wait_for_turn(self, *, only: Collection[Domain] | None) -> bool:
        """Wait until a domain's delay allows its next request, if that is all that holds it back; else give up."""
        wait = await claim.next_turn(
            self.db, at=self.clock.now(), only=only, exempt_addresses=self.settings.exempt_addresses
        )
        if wait is None:
            return False
        try:
            async with asyncio.timeout(wait.total_seconds()):
                await self.stop.wait()
        except TimeoutError:
            return True
        return False
