"""Distribute leases over this process and worker processes, which are started when this process is busy.

A crawling process uses one core, beside its parser processes. As long as it mostly waits for servers because of their
delays, a second process does not help. When it is busy with several leases, worker processes are started, at most one
process per lease, and per core unless `crawl_processes` is set. Leases that move are ended early and claimed again.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.engine.machine_load import LoadMeter, count_usable_cores
from crawler.engine.processes.worker_handle import Worker, WorkerOptions
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import LeaseResult, Progress
from crawler.settings import Settings
from crawler.store.database import Database

log = logging.getLogger("recrawl.workers")

CrawlLocally = Callable[[asyncio.Event], Awaitable[LeaseResult]]


class _LocalLease(Struct, frozen=True):
    """A lease that this process crawls. stop: ends it early when set."""

    lease: Lease
    stop: asyncio.Event

    @property
    def is_movable(self) -> bool:
        """Return whether another process can continue the lease. Cookies and logins exist only in this process."""
        return not self.lease.domain.settings.is_special


class WorkerPool:
    """A crawling process with its worker processes; see `open_worker_pool`. stop: ends all leases early when set."""

    def __init__(self, options: WorkerOptions, *, stop: asyncio.Event) -> None:
        self._options, self._stop = options, stop
        self._max_processes = options.settings.crawl_processes or count_usable_cores()
        self._local_leases: list[_LocalLease] = []
        self._workers: list[Worker] = []

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Return the running worker processes."""
        return tuple(worker for worker in self._workers if not worker.is_lost)

    async def crawl(self, lease: Lease, *, crawl_locally: CrawlLocally, progress: Progress) -> LeaseResult:
        """Crawl a lease in the process with the fewest leases, or here if it cannot be moved.

        crawl_locally: crawls the lease here, until the given event is set.  progress: called after each recorded
        batch.  Raise WorkerLost if its worker process ended unexpectedly.
        """
        local_lease = _LocalLease(lease, asyncio.Event())
        worker = min(self.workers, key=lambda each: each.lease_count, default=None)
        if worker is not None and worker.lease_count < len(self._local_leases) and local_lease.is_movable:
            return await worker.crawl(lease, stop=self._stop, progress=progress)
        self._local_leases.append(local_lease)
        if self._stop.is_set():
            local_lease.stop.set()
        try:
            return await crawl_locally(local_lease.stop)
        finally:
            self._local_leases.remove(local_lease)

    async def share_leases(self) -> None:
        """Start worker processes, and end those leases of this process that they should continue."""
        count = min(self._max_processes, len(self._local_leases)) - 1
        results = await asyncio.gather(*(Worker.start(self._options) for _ in range(count)), return_exceptions=True)
        for worker in results:
            if isinstance(worker, Worker):
                self._workers.append(worker)
            elif isinstance(worker, OSError):
                log.warning("worker.not_started", extra={"error": str(worker)})
            else:
                raise worker
        local_count = math.ceil(len(self._local_leases) / (1 + len(self.workers)))
        moved = [each for each in self._local_leases if each.is_movable][local_count:]
        for each in moved:
            each.stop.set()
        log.info("work.shared", extra={"workers": [worker.pid for worker in self.workers], "moved": len(moved)})

    async def watch_load(self) -> None:
        """Wait until this process is too busy, then distribute the leases, once."""
        load, busy_intervals = LoadMeter(), 0
        while busy_intervals < 2:  # in a row, so that a short burst starts no worker process
            is_busy = await load.measure_interval()
            busy_intervals = busy_intervals + 1 if is_busy and len(self._local_leases) > 1 else 0
        await self.share_leases()

    async def propagate_stop(self) -> None:
        """End the leases of this process when `stop` is set; those of worker processes are ended in `Worker.crawl`."""
        await self._stop.wait()
        for each in self._local_leases:
            each.stop.set()

    async def end(self) -> None:
        """End all worker processes."""
        await asyncio.gather(*(worker.end() for worker in self._workers))


@asynccontextmanager
async def open_worker_pool(
    db: Database, settings: Settings, *, clock: Clock, find_secret: FindSecret, stop: asyncio.Event
) -> AsyncIterator[WorkerPool]:
    """Open a worker pool until the block ends.

    find_secret: looks up secrets; it is sent to worker processes, so it must be picklable.  stop: as in WorkerPool.
    """
    options = WorkerOptions(
        settings=settings.model_copy(update={"parser_processes": 2}),  # a lease uses one; the other is for other leases
        database_url=db.url,
        clock=clock,
        find_secret=find_secret,
        log_level=logging.getLogger("recrawl").getEffectiveLevel(),
    )
    workers = WorkerPool(options, stop=stop)
    tasks = [asyncio.create_task(workers.propagate_stop(), name="propagate-stop")]
    if settings.crawl_processes != 1 and count_usable_cores() > 1:
        tasks.append(asyncio.create_task(workers.watch_load(), name="watch-load"))
    try:
        yield workers
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await workers.end()
