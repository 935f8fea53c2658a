"""The main process's handle of a worker process, and the messages between them.

The messages go through a socket at the worker's stdin.
"""

import asyncio
import contextlib
import logging
import pickle
import struct
from asyncio.subprocess import Process
from datetime import timedelta
from logging import LogRecord
from uuid import UUID

from msgspec import Struct, field

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.engine.machine_load import SINGLE_THREAD_ENVIRONMENT, start_child
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import CrawlStats, LeaseResult, Progress
from crawler.settings import Settings

START_TIMEOUT = timedelta(minutes=1)  # a start takes a second on an idle machine
END_TIMEOUT = timedelta(seconds=15)  # enough to record visits in progress and to release leases
LENGTH = struct.Struct(">I")


class WorkerOptions(Struct, frozen=True):
    """The options of a worker process, sent as the first message. As arguments, their secrets would be visible.

    database_url: URL of the store.  log_level: the lowest level of the log records that the worker sends.
    """

    settings: Settings
    database_url: str
    clock: Clock
    find_secret: FindSecret
    log_level: int


class EndLease(Struct, frozen=True):
    """A request to end a lease early. at_once: whether to abort visits in progress."""

    token: UUID
    at_once: bool = False


class WorkerReady(Struct, frozen=True):
    """The message that the worker is ready to crawl."""


class BatchRecorded(Struct, frozen=True):
    """The message that a lease has recorded a batch. stats: the lease's counts so far."""

    token: UUID
    stats: CrawlStats


class LeaseDone(Struct, frozen=True):
    """The message that a lease has ended. result: its result, or the exception to raise in the main process."""

    token: UUID
    result: LeaseResult | Exception


class LogLine(Struct, frozen=True):
    """A log record, to be handled in the main process."""

    record: LogRecord


ToWorker = WorkerOptions | Lease | EndLease  # a Lease is a request to crawl it
FromWorker = WorkerReady | BatchRecorded | LeaseDone | LogLine


def pack_message(message: ToWorker | FromWorker) -> bytes:
    """Serialize a message, with its length as a prefix."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


async def receive_message(stream: asyncio.StreamReader) -> object | None:
    """Receive the next message; return None when the other end has closed."""
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        message: object = pickle.loads(await stream.readexactly(length))  # noqa: S301  from our own process
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message


class WorkerLost(Exception):
    """A worker process ended unexpectedly; its unrecorded visits are lost. stats: counts of the recorded visits."""

    def __init__(self, problem: str, stats: CrawlStats) -> None:
        super().__init__(problem)
        self.stats = stats


class _RemoteLease(Struct):
    """A lease that a worker process crawls."""

    result: "asyncio.Future[LeaseResult]"
    progress: Progress
    stats: CrawlStats = field(default_factory=CrawlStats)  # as of the last recorded batch


class Worker:
    """A worker process, as the main process sees it."""

    def __init__(self, process: Process, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._process, self._incoming, self._outgoing = process, incoming, outgoing
        self._remote_leases: dict[UUID, _RemoteLease] = {}
        self._listener: asyncio.Task[None] | None = None
        self.is_lost = False

    @classmethod
    async def start(cls, options: WorkerOptions) -> "Worker":
        """Start a worker process and wait until it is ready. Raise OSError if it does not start."""
        command = ("-m", "crawler.engine.processes.worker_process")
        worker = cls(*await start_child(*command, extra=SINGLE_THREAD_ENVIRONMENT))
        try:
            await worker._send_options(options)
        except BaseException:
            await worker.end(patience=timedelta(0))
            raise
        worker._listener = asyncio.create_task(worker._listen(), name="listen-to-worker")
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _gone_message(self) -> str:
        return f"worker process {self.pid} ended unexpectedly"

    @property
    def lease_count(self) -> int:
        """Return how many leases the worker crawls."""
        return len(self._remote_leases)

    async def crawl(self, lease: Lease, *, stop: asyncio.Event, progress: Progress) -> LeaseResult:
        """Crawl a lease in the worker process and return its result. stop: ends it early when set.

        Raise WorkerLost if the process ended, or the exception that ended the lease.
        """
        if self.is_lost:
            raise WorkerLost(self._gone_message, CrawlStats())
        remote_lease = _RemoteLease(asyncio.get_running_loop().create_future(), progress)
        self._remote_leases[lease.token] = remote_lease
        self._outgoing.write(pack_message(lease))
        ending = asyncio.create_task(self._end_when_stopped(stop, lease.token), name="end-remote-lease")
        try:
            return await remote_lease.result
        except asyncio.CancelledError:
            self._outgoing.write(pack_message(EndLease(lease.token, at_once=True)))
            raise
        finally:
            ending.cancel()
            del self._remote_leases[lease.token]

    async def end(self, *, patience: timedelta = END_TIMEOUT) -> None:
        """End the process by closing its input; kill it if it takes longer than `patience`."""
        self._outgoing.close()
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listener is not None:
            await self._listener

    async def _end_when_stopped(self, stop: asyncio.Event, token: UUID) -> None:
        await stop.wait()
        self._outgoing.write(pack_message(EndLease(token)))

    async def _send_options(self, options: WorkerOptions) -> None:
        """Send the options and wait until the worker is ready."""
        self._outgoing.write(pack_message(options))
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()):
                while not isinstance(message := await receive_message(self._incoming), WorkerReady):
                    if message is None:
                        break
                    self._handle_message(message)
        except TimeoutError as error:
            raise OSError(f"a worker process did not start within {START_TIMEOUT.total_seconds():g} s") from error
        if message is None:
            raise OSError("a worker process ended during its start")

    async def _listen(self) -> None:
        while (message := await receive_message(self._incoming)) is not None:
            self._handle_message(message)
        self.is_lost = True
        for remote_lease in self._remote_leases.values():
            _resolve(remote_lease.result, WorkerLost(self._gone_message, remote_lease.stats))

    def _handle_message(self, message: object) -> None:
        match message:
            case BatchRecorded(token, stats) if token in self._remote_leases:
                self._remote_leases[token].stats = stats
                self._remote_leases[token].progress(stats)
            case LeaseDone(token, result) if token in self._remote_leases:
                _resolve(self._remote_leases[token].result, result)
            case LogLine(record):
                logging.getLogger(record.name).handle(record)
            case _:
                pass  # for a lease that was cancelled meanwhile


def _resolve(waiting: "asyncio.Future[LeaseResult]", result: LeaseResult | Exception) -> None:
    """Set the result of a lease, unless it was cancelled meanwhile."""
    if waiting.done():
        return
    if isinstance(result, Exception):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
