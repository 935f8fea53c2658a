"""The worker process: it crawls leases that the main process has claimed.

It ends when its socket closes, and thus with the main process, after it has recorded visits in progress and released
its leases.
"""

import asyncio
import logging
import os
import pickle
import socket
from contextlib import suppress
from logging.handlers import QueueHandler
from queue import SimpleQueue
from uuid import UUID

from crawler.core.domain import Lease
from crawler.engine.coordinator import CrawlLimits, crawl_lease
from crawler.engine.machine_load import prepare_memory
from crawler.engine.processes import worker_handle
from crawler.engine.processes.worker_handle import EndLease, WorkerOptions, receive_message
from crawler.engine.resources import CrawlResources, open_resources
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.engine.store_port import LeasedStore
from crawler.store.database import Database, open_database


class _LogForwarder(QueueHandler):
    """A log handler that sends records to the main process."""

    def __init__(self, channel: "_ParentChannel") -> None:
        super().__init__(SimpleQueue())
        self._channel = channel

    def enqueue(self, record: logging.LogRecord) -> None:
        self._channel.send(worker_handle.LogLine(record))


class _ParentChannel:
    """The socket to the main process. When it is closed, messages are dropped, since this process will end."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self.incoming, self._outgoing = incoming, outgoing

    def send(self, message: worker_handle.FromWorker) -> None:
        if not self._outgoing.is_closing():
            self._outgoing.write(worker_handle.pack_message(message))

    async def flush(self) -> None:
        """Wait until all messages are sent, then close the socket."""
        with suppress(ConnectionError):
            await self._outgoing.drain()
            self._outgoing.close()
            await self._outgoing.wait_closed()


class _WorkerLeases:
    """The leases that this process crawls."""

    def __init__(self, db: Database, resources: CrawlResources, options: WorkerOptions, parent: _ParentChannel) -> None:
        self._db, self._resources, self._options, self._channel = db, resources, options, parent
        # By token: the task of a lease, and the event that ends it early.
        self._running: dict[UUID, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def begin_lease(self, lease: Lease) -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(self._crawl(lease, stop), name=f"lease-{lease.domain.authority}")
        self._running[lease.token] = task, stop
        task.add_done_callback(lambda _: self._running.pop(lease.token))

    def end_lease(self, message: EndLease) -> None:
        if message.token in self._running:
            task, stop = self._running[message.token]
            stop.set()
            if message.at_once:
                task.cancel()

    async def end_all(self) -> None:
        """End all leases: record visits in progress and release the domains."""
        for _, stop in self._running.values():
            stop.set()
        await asyncio.gather(*(task for task, _ in self._running.values()), return_exceptions=True)

    async def _crawl(self, lease: Lease, stop: asyncio.Event) -> None:
        store = LeasedStore(self._db, lease, settings=self._options.settings, clock=self._options.clock)

        def progress(stats: CrawlStats) -> None:
            self._channel.send(worker_handle.BatchRecorded(lease.token, stats))

        result: LeaseResult | Exception
        try:
            result = await crawl_lease(store, self._resources, limits=CrawlLimits(stop=stop), progress=progress)
        except Exception as error:  # noqa: BLE001  the main process raises it
            result = _make_picklable(error)
        self._channel.send(worker_handle.LeaseDone(lease.token, result))


def _make_picklable(error: Exception) -> Exception:
    """Return the error itself if it can be pickled, else a RuntimeError with its description."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  our own data
    except Exception:  # noqa: BLE001  exception classes of libraries may fail in any way
        return RuntimeError(repr(error))
    return error


async def run_worker(stream: socket.socket) -> None:
    """Crawl the leases that are received through a socket until it is closed."""
    channel = _ParentChannel(*await asyncio.open_connection(sock=stream))
    options = await receive_message(channel.incoming)
    if not isinstance(options, WorkerOptions):
        return
    log = logging.getLogger("recrawl")
    log.setLevel(options.log_level)
    log.addHandler(_LogForwarder(channel))
    log.propagate = False
    settings = options.settings
    async with (
        open_database(options.database_url, max_connections=2 * settings.concurrent_domains + 2) as db,
        open_resources(settings, find_secret=options.find_secret) as resources,
    ):
        prepare_memory()
        leases = _WorkerLeases(db, resources, options, channel)
        channel.send(worker_handle.WorkerReady())
        while message := await receive_message(channel.incoming):
            match message:
                case Lease():
                    leases.begin_lease(message)
                case EndLease():
                    leases.end_lease(message)
                case _:
                    raise TypeError(f"unexpected message {message!r}")
        await leases.end_all()
    await channel.flush()


if __name__ == "__main__":
    asyncio.run(run_worker(socket.socket(fileno=os.dup(0))))
