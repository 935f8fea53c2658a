"""A shift (one crawl run): claim domains and crawl several at a time until nothing is due or the time is up."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TypeVar

from msgspec import Struct, field

from crawler.clock import Clock
from crawler.core.domain import Domain, Lease
from crawler.core.http.response import Unreached
from crawler.engine.coordinator import CrawlLimits, crawl_lease, release_lease
from crawler.engine.processes.worker_handle import WorkerLost
from crawler.engine.processes.worker_pool import WorkerPool, open_worker_pool
from crawler.engine.resources import CrawlResources
from crawler.engine.stats import CrawlStats, LeaseResult, ShiftResult
from crawler.engine.store_port import LeasedStore, retry_until_available
from crawler.errors import CrawlerError, LeaseLost, StoreUnavailable
from crawler.settings import Settings
from crawler.store import claim, report
from crawler.store.database import Database
from crawler.store.partitions import ensure_visit_partition

T = TypeVar("T")

log = logging.getLogger("recrawl.shift")

FEED_DELAY = timedelta(seconds=1)  # from the record of a batch until its changes are appended to the feed
CLAIM_INTERVAL = timedelta(seconds=5)  # how often to try to claim domains that became due during the crawl

# Runs the crawl of one lease: called with the lease and the function that crawls it.
WrapCrawl = Callable[[Lease, Callable[[], Awaitable[LeaseResult]]], Awaitable[LeaseResult]]


class ShiftHooks(Struct, frozen=True):
    """Callbacks for the leases of a shift.

    progress: called after each recorded batch.  wrap_crawl: wraps the crawl of one lease, such as in a Prefect task.
    """

    progress: Callable[[Lease, CrawlStats], None] = lambda _lease, _stats: None
    wrap_crawl: WrapCrawl = lambda _lease, crawl_it: crawl_it()


def build_holder_name(role: str) -> str:
    """Return a name for the holder of leases, for display and for cleanup: machine, process and role."""
    return f"{socket.gethostname()}/{os.getpid()}/{role}"


async def run_shift(
    db: Database,
    resources: CrawlResources,
    *,
    settings: Settings,
    clock: Clock,
    holder: str,
    only: Collection[Domain] | None = None,
    limits: CrawlLimits | None = None,
    hooks: ShiftHooks | None = None,
) -> ShiftResult:
    """Claim and crawl domains until none is due or a limit is reached.

    holder: the name of the leases' holder.  only: claim only these domains.
    Raise StoreUnavailable if the database does not come back. A lost lease is listed in the result, not raised.
    """
    limits = limits or CrawlLimits()
    await retry_until_available(lambda _: ensure_visit_partition(db, at=clock.now()), about="shift")
    ending = asyncio.Event()
    began = time.monotonic()
    async with (
        _linked_stop(ending, limits),
        open_worker_pool(db, settings, clock=clock, find_secret=resources.find_secret, stop=ending) as workers,
        asyncio.TaskGroup() as tasks,
    ):
        pool = _LeasePool(db, resources, workers, settings, clock, limits.max_visits, ending, hooks or ShiftHooks())
        feed_task = tasks.create_task(pool.publish_changes(), name="publish-changes")
        while not pool.is_over:
            lease = await pool.claim_domain(holder=holder, only=only) if pool.has_free_slot else None
            if lease is not None:
                task = tasks.create_task(pool.run_lease(lease), name=f"lease-{lease.domain.authority}")
                pool.running.add(task)
                task.add_done_callback(pool.running.discard)
            elif pool.running:
                await pool.wait_for_change(only=only)
            elif not await pool.wait_for_claim(only=only):
                break
        feed_task.cancel()
    pool.result.stats.elapsed += timedelta(seconds=time.monotonic() - began)
    await retry_until_available(lambda _: report.append_to_feed(db, at=clock.now()), about="shift")
    return pool.result


@asynccontextmanager
async def _linked_stop(ending: asyncio.Event, limits: CrawlLimits) -> AsyncIterator[None]:
    """Set `ending` when the caller sets its stop event or the time is up; leave the caller's event unchanged."""
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


class _LeasePool(Struct, eq=False):
    """The concurrent leases of one shift.

    workers: crawl the leases, in this process or in worker processes.  max_visits: the maximum over all leases.
    stop: ends all leases when set.  unpublished: ids of domains with recorded visits whose changes are not in the feed
    yet.  recorded: set while there are any.  active_domains: ids of domains being crawled here, even if their leases
    have expired in the store.
    """

    db: Database
    resources: CrawlResources
    workers: WorkerPool
    settings: Settings
    clock: Clock
    max_visits: int | None
    stop: asyncio.Event
    hooks: ShiftHooks
    result: ShiftResult = field(default_factory=ShiftResult)
    running: set[asyncio.Task[None]] = field(default_factory=set)
    unpublished: set[int] = field(default_factory=set)
    recorded: asyncio.Event = field(default_factory=asyncio.Event)
    active_domains: set[int] = field(default_factory=set)

    @property
    def has_free_slot(self) -> bool:
        """Return whether another lease may start. With max_visits, only one runs at a time: the limit is exact."""
        return len(self.running) < (self.settings.concurrent_domains if self.max_visits is None else 1)

    @property
    def visits_left(self) -> int | None:
        return None if self.max_visits is None else self.max_visits - self.result.stats.visits

    @property
    def is_over(self) -> bool:
        left = self.visits_left
        return self.stop.is_set() or (left is not None and left <= 0)

    async def claim_domain(self, *, holder: str, only: Collection[Domain] | None) -> Lease | None:
        settings, leased_ids = self.settings, self.active_domains
        claim_one = partial(claim.claim, self.db, holder=holder, term=settings.lease_term, leased_ids=leased_ids)
        exempt, delay = settings.exempt_addresses, settings.delay
        lease = await self.call_store(
            lambda _: claim_one(at=self.clock.now(), only=only, exempt_addresses=exempt, delay=delay)
        )
        if lease is not None:
            self.active_domains.add(lease.domain.id)
        return lease

    async def compute_claim_wait(self, only: Collection[Domain] | None) -> timedelta | None:
        """Return the time until another domain can be claimed; None if none can, or if the shift must end."""
        compute_wait = partial(claim.compute_claim_wait, self.db, only=only, leased_ids=self.active_domains)
        exempt = self.settings.exempt_addresses
        return await self.call_store(lambda _: compute_wait(at=self.clock.now(), exempt_addresses=exempt))

    async def call_store(self, operation: Callable[[bool], Awaitable[T | None]]) -> T | None:
        """Return the store's result, retrying while it is unavailable; None if the shift must end meanwhile."""
        try:
            return await retry_until_available(operation, about="shift", is_ending=self.stop.is_set)
        except StoreUnavailable:
            if self.stop.is_set():
                return None
            raise

    async def run_lease(self, lease: Lease) -> None:
        try:
            updated = await self.update_addresses(lease)
            if updated is None:
                log.info("lease.address_busy", extra={"domain": lease.domain.authority})
            else:
                await self.crawl_and_count(updated)
        except LeaseLost:
            self.result.lost.append(lease.domain.authority)
        finally:
            self.active_domains.discard(lease.domain.id)

    async def crawl_and_count(self, lease: Lease) -> None:
        store = LeasedStore(self.db, lease, settings=self.settings, clock=self.clock)
        try:
            result = await self.hooks.wrap_crawl(lease, lambda: self.run_crawl(store))
        except LeaseLost:
            log.warning("lease.lost", extra={"domain": lease.domain.authority})
            self.result.lost.append(lease.domain.authority)
        except WorkerLost as lost:
            log.warning("worker.lost", extra={"domain": lease.domain.authority, "error": str(lost)})
            self.result.add_lease(lease.domain, LeaseResult(lost.stats, suspension=None))
            await release_lease(store)  # so that the domain can be claimed again
        except CrawlerError:
            raise
        except Exception as error:
            log.exception("lease.broken", extra={"domain": lease.domain.authority})
            self.result.broken[lease.domain.authority] = repr(error)
        except BaseException:
            # A crawl releases its domain, but a Prefect task that is canceled before the crawl starts does not.
            await release_lease(store)
            raise
        else:
            self.result.add_lease(lease.domain, result)

    async def update_addresses(self, lease: Lease) -> Lease | None:
        """Return the lease with the addresses that its domain resolves to; None if another domain holds one of them.

        Addresses may have changed since the last crawl, and a domain that was registered offline has none yet.
        """
        addresses = await self.resources.choose_client(lease.domain).resolve_addresses(lease.domain.authority)
        exempt = self.settings.exempt_addresses
        if isinstance(addresses, Unreached) or set(addresses) == set(lease.domain.addresses):
            return lease  # an unreachable domain is detected by its requests
        change = partial(claim.change_addresses, self.db, lease, addresses, exempt=exempt)
        return await retry_until_available(lambda _: change(), about=lease.domain.authority)

    async def run_crawl(self, store: LeasedStore) -> LeaseResult:
        lease = store.lease

        def progress(stats: CrawlStats) -> None:
            self.unpublished.add(lease.domain.id)
            self.recorded.set()
            self.hooks.progress(lease, stats)

        async def crawl_locally(stop: asyncio.Event) -> LeaseResult:
            limits = CrawlLimits(max_visits=self.visits_left, stop=stop)
            return await crawl_lease(store, self.resources, limits=limits, progress=progress)

        return await self.workers.crawl(lease, crawl_locally=crawl_locally, progress=progress)

    async def publish_changes(self) -> None:
        """Append recorded changes to the feed during the shift, so that subscribers are notified soon."""
        while True:
            await self.recorded.wait()
            await asyncio.sleep(FEED_DELAY.total_seconds())
            self.recorded.clear()
            domain_ids, self.unpublished = self.unpublished, set()
            try:
                await report.append_to_feed(self.db, at=self.clock.now(), only=domain_ids)
            except StoreUnavailable:  # the leases report it
                self.unpublished |= domain_ids
                self.recorded.set()

    async def wait_for_change(self, *, only: Collection[Domain] | None) -> None:
        """Wait until a lease ends or, if there is a free slot, until a domain may be claimable."""
        timeout: float | None = None
        if self.has_free_slot:
            delay = await self.compute_claim_wait(only)
            timeout = min(delay or CLAIM_INTERVAL, CLAIM_INTERVAL).total_seconds()
        if not self.running:
            return  # the last one ended during the store call
        await asyncio.wait(self.running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    async def wait_for_claim(self, *, only: Collection[Domain] | None) -> bool:
        """Wait until a domain can be claimed; return False if none can or the shift must stop."""
        delay = await self.compute_claim_wait(only)
        if delay is None:
            return False
        try:
            async with asyncio.timeout(delay.total_seconds()):
                await self.stop.wait()
        except TimeoutError:
            return True
        return False
