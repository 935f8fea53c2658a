"""A shift: claims domains and crawls several leases at a time, until nothing is due or its time is up."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from crawler.clock import Clock
from crawler.core.domain import Domain, Lease
from crawler.core.http.response import Unreached
from crawler.engine.coordinator import CrawlLimits, crawl_lease, give_back
from crawler.engine.processes.crew import Crew, at_work
from crawler.engine.processes.helper import HelperLost
from crawler.engine.resources import CrawlResources
from crawler.engine.stats import CrawlStats, LeaseResult, ShiftResult
from crawler.engine.store_port import LeasedStore, until_available
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim, report
from crawler.store.database import Database
from crawler.store.partitions import ensure_visit_partition

T = TypeVar("T")

log = logging.getLogger("recrawl.shift")

TELL_AFTER = timedelta(seconds=1)  # from a record until the feed has its changes, and who waits for them is told
LOOK_AROUND = timedelta(seconds=5)  # for domains that have become due while others are being crawled

# How one lease is crawled: given the lease, and what crawls it.
WalkLease = Callable[[Lease, Callable[[], Awaitable[LeaseResult]]], Awaitable[LeaseResult]]


@dataclass(frozen=True, slots=True)
class ShiftHooks:
    """What is called for the leases of a shift.

    progress: called after each record.  walk_lease: wraps the crawl of one lease (a flow's task).
    """

    progress: Callable[[Lease, CrawlStats], None] = lambda _lease, _stats: None
    walk_lease: WalkLease = lambda _lease, walk_it: walk_it()


def holder_name(role: str) -> str:
    """The name of a lease's holder, for people and for cleaning up: machine, process, role."""
    return f"{socket.gethostname()}/{os.getpid()}/{role}"


async def run_shift(
    db: Database,
    webs: CrawlResources,
    *,
    settings: Settings,
    clock: Clock,
    holder: str,
    only: Collection[Domain] | None = None,
    limits: CrawlLimits | None = None,
    hooks: ShiftHooks | None = None,
) -> ShiftResult:
    """Crawl leases until nothing that may be claimed is due, or a limit is reached.

    holder: the name that the leases bear.  only: claim among these domains.
    Raises StoreUnavailable where the database stays silent; a lost lease is counted, not raised.
    """
    limits = limits or CrawlLimits()
    await until_available(lambda _: ensure_visit_partition(db, at=clock.now()), about="shift")
    ending = asyncio.Event()
    began = time.monotonic()
    async with (
        _ends(ending, limits),
        at_work(db, settings, clock=clock, find_secret=webs.find_secret, stop=ending) as crew,
        asyncio.TaskGroup() as tasks,
    ):
        pool = _LeasePool(db, webs, crew, settings, clock, limits.pages, ending, hooks or ShiftHooks())
        telling = tasks.create_task(pool.tell_changes(), name="tell-changes")
        while not pool.is_over:
            lease = await pool.claim(holder=holder, only=only) if pool.has_room else None
            if lease is not None:
                task = tasks.create_task(pool.work_on(lease), name=f"lease-{lease.domain.authority}")
                pool.running.add(task)
                task.add_done_callback(pool.running.discard)
            elif pool.running:
                await pool.wait_for_change(only=only)
            elif not await pool.wait_for_turn(only=only):
                break
        telling.cancel()
    pool.result.stats.elapsed += timedelta(seconds=time.monotonic() - began)
    await until_available(lambda _: report.stamp_feed(db, at=clock.now()), about="shift")
    return pool.result


@asynccontextmanager
async def _ends(ending: asyncio.Event, limits: CrawlLimits) -> AsyncIterator[None]:
    """Set `ending` when the caller says stop, or the time is up; the caller's own event tells only what it said."""
    timer = None
    if limits.time_limit is not None:
        timer = asyncio.get_running_loop().call_later(limits.time_limit.total_seconds(), ending.set)

    async def listen() -> None:
        await limits.stop.wait()
        ending.set()

    listener = asyncio.create_task(listen(), name="stop")
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        listener.cancel()


@dataclass(slots=True, eq=False)
class _LeasePool:
    """The leases of one shift, several at a time.

    crew: by whom they are crawled.  pages: looks in all, at most.  stop: ends all of them when set.
    untold: domains that were recorded since the feed was brought up to date.  recorded: there are any.
    held: domains that are being crawled, whatever the store says of their leases.
    """

    db: Database
    webs: CrawlResources
    crew: Crew
    settings: Settings
    clock: Clock
    pages: int | None
    stop: asyncio.Event
    hooks: ShiftHooks
    result: ShiftResult = field(default_factory=ShiftResult)
    running: set[asyncio.Task[None]] = field(default_factory=set)
    untold: set[int] = field(default_factory=set)
    recorded: asyncio.Event = field(default_factory=asyncio.Event)
    held: set[int] = field(default_factory=set)

    @property
    def has_room(self) -> bool:
        """Another lease may begin. With a limit on pages there is one at a time, so that the limit is exact."""
        return len(self.running) < (self.settings.leases_at_once if self.pages is None else 1)

    @property
    def pages_left(self) -> int | None:
        return None if self.pages is None else self.pages - self.result.stats.looks

    @property
    def is_over(self) -> bool:
        left = self.pages_left
        return self.stop.is_set() or (left is not None and left <= 0)

    async def claim(self, *, holder: str, only: Collection[Domain] | None) -> Lease | None:
        lease = await self.patiently(
            lambda _: claim.claim(
                self.db,
                at=self.clock.now(),
                holder=holder,
                term=self.settings.lease_term,
                only=only,
                exempt_addresses=self.settings.exempt_addresses,
                delay=self.settings.delay,
                held=self.held,
            )
        )
        if lease is not None:
            self.held.add(lease.domain.id)
        return lease

    async def next_turn(self, only: Collection[Domain] | None) -> timedelta | None:
        """How long until some domain that is not being crawled here can be claimed; None if none can."""
        exempt = self.settings.exempt_addresses
        return await self.patiently(
            lambda _: claim.next_turn(self.db, at=self.clock.now(), only=only, exempt_addresses=exempt, held=self.held)
        )

    async def patiently(self, ask: Callable[[bool], Awaitable[T | None]]) -> T | None:
        """What the store says; it may be away as long as the leases wait for it, or until the shift is to end: None."""
        try:
            return await until_available(ask, about="shift", is_ending=self.stop.is_set)
        except StoreUnavailable:
            if self.stop.is_set():
                return None
            raise

    async def work_on(self, lease: Lease) -> None:
        try:
            await self.crawl(lease)
        finally:
            self.held.discard(lease.domain.id)

    async def crawl(self, lease: Lease) -> None:
        try:
            at_home = await self.at_home(lease)
        except LeaseLost:
            self.result.lost.append(lease.domain.authority)
            return
        if at_home is None:
            log.info("lease.address_busy", extra={"domain": lease.domain.authority})
            return
        lease = at_home
        store = LeasedStore(self.db, lease, settings=self.settings, clock=self.clock)
        try:
            done = await self.hooks.walk_lease(lease, lambda: self.walk(store))
        except LeaseLost:
            log.warning("lease.lost", extra={"domain": lease.domain.authority})
            self.result.lost.append(lease.domain.authority)
        except HelperLost as lost:
            log.warning("helper.lost", extra={"domain": lease.domain.authority, "error": str(lost)})
            self.result.take_in(lease.domain, LeaseResult(lost.stats, hold=None))
            await give_back(store)  # to be claimed again
        except CrawlerError:
            raise
        except Exception as error:
            log.exception("lease.broken", extra={"domain": lease.domain.authority})
            self.result.broken[lease.domain.authority] = repr(error)
        except BaseException:
            # A walk gives its domain back; a task of a flow that is cancelled before the walk begins does not.
            await give_back(store)
            raise
        else:
            self.result.take_in(lease.domain, done)

    async def at_home(self, lease: Lease) -> Lease | None:
        """The lease with slots of the addresses that its domain has now; None where somebody else holds one.

        They may be others than at the last look, and nobody knows any of a domain that was registered offline.
        """
        found = await self.webs.of(lease.domain).addresses(lease.domain.authority)
        exempt = self.settings.exempt_addresses
        if isinstance(found, Unreached) or set(found) == set(lease.domain.addresses):
            return lease  # that nobody answers is found by asking
        return await until_available(
            lambda _: claim.move(self.db, lease, found, exempt=exempt), about=lease.domain.authority
        )

    async def walk(self, store: LeasedStore) -> LeaseResult:
        lease = store.lease

        def progress(stats: CrawlStats) -> None:
            self.untold.add(lease.domain.id)
            self.recorded.set()
            self.hooks.progress(lease, stats)

        async def here(stop: asyncio.Event) -> LeaseResult:
            limits = CrawlLimits(pages=self.pages_left, stop=stop)
            return await crawl_lease(store, self.webs, limits=limits, progress=progress)

        return await self.crew.crawl(lease, here=here, progress=progress)

    async def tell_changes(self) -> None:
        """Append what is recorded to the feed while the shift goes on, so that who listens hears of it soon."""
        while True:
            await self.recorded.wait()
            await asyncio.sleep(TELL_AFTER.total_seconds())
            self.recorded.clear()
            told, self.untold = self.untold, set()
            try:
                await report.stamp_feed(self.db, at=self.clock.now(), only=told)
            except StoreUnavailable:  # the leases say so
                self.untold |= told
                self.recorded.set()

    async def wait_for_change(self, *, only: Collection[Domain] | None) -> None:
        """Wait until a lease ends or, if there is room for another, until some domain can be claimed."""
        patience: timedelta | None = None
        if self.has_room:
            turn = await self.next_turn(only)
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
        wait = await self.next_turn(only)
        if wait is None:
            return False
        try:
            async with asyncio.timeout(wait.total_seconds()):
                await self.stop.wait()
        except TimeoutError:
            return True
        return False
