"""A helper seen from outside: started, given leases, listened to, ended; and lost, if it must be.

The messages between a crawling process and its helper go through a socket at the helper's stdin.
"""

import asyncio
import contextlib
import logging
import pickle
import struct
from asyncio.subprocess import Process
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from logging import LogRecord
from uuid import UUID

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.engine.machine import SINGLE_THREAD_ENVIRONMENT, start_child
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.settings import Settings

HELPER = ("-m", "crawler.engine.processes.worker_process")
START_TIMEOUT = timedelta(minutes=1)  # a second on a machine that has nothing else to do
END_TIMEOUT = timedelta(seconds=15)  # to record what is under way, and give leases back
LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a helper works with; the first message that it gets, and through no other way, since secrets are in it.

    database_url: of the store.  log_level: of what it tells.
    """

    settings: Settings
    database_url: str
    clock: Clock
    find_secret: FindSecret
    log_level: int


@dataclass(frozen=True, slots=True)
class EndLease:
    """End this lease early. at_once: without waiting for what is under way."""

    token: UUID
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The helper can crawl."""


@dataclass(frozen=True, slots=True)
class BatchRecorded:
    """A lease has recorded a batch. stats: of the lease so far."""

    token: UUID
    stats: CrawlStats


@dataclass(frozen=True, slots=True)
class LeaseDone:
    """A lease has ended. result: or the error that ended it, which whoever waits for it is to raise."""

    token: UUID
    result: LeaseResult | Exception


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log, for whoever listens to the process that the helper helps."""

    record: LogRecord


ToWorker = WorkerOptions | Lease | EndLease  # a lease is to be crawled
FromWorker = WorkerReady | BatchRecorded | LeaseDone | LogLine


def pack_message(message: ToWorker | FromWorker) -> bytes:
    """A message as it goes through the socket, behind its length."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


async def receive_message(stream: asyncio.StreamReader) -> object | None:
    """The next message; None where the other end is gone."""
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        message: object = pickle.loads(await stream.readexactly(length))  # noqa: S301  from a process of our own
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message


class WorkerLost(Exception):
    """A helper is gone, and with it what it had not recorded of a lease. stats: of what it had."""

    def __init__(self, problem: str, stats: CrawlStats) -> None:
        super().__init__(problem)
        self.stats = stats


@dataclass(slots=True)
class _RemoteLease:
    """A lease that a helper crawls."""

    result: "asyncio.Future[LeaseResult]"
    progress: Callable[[CrawlStats], None]
    stats: CrawlStats = field(default_factory=CrawlStats)  # at its last record


class Worker:
    """One process that crawls leases for this one."""

    def __init__(self, process: Process, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._process, self._incoming, self._outgoing = process, incoming, outgoing
        self._remote_leases: dict[UUID, _RemoteLease] = {}
        self._listener: asyncio.Task[None] | None = None
        self.is_lost = False

    @classmethod
    async def start(cls, options: WorkerOptions) -> "Worker":
        """A helper that is ready. OSError where it does not start."""
        worker = cls(*await start_child(*HELPER, extra=SINGLE_THREAD_ENVIRONMENT))
        try:
            await worker._send_options(options)
        except BaseException:
            await worker.end(patience=timedelta(0))
            raise
        worker._listener = asyncio.create_task(worker._listen(), name="listen-to-helper")
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _gone_message(self) -> str:
        return f"process {self.pid} is gone"

    @property
    def lease_count(self) -> int:
        """How many leases it crawls."""
        return len(self._remote_leases)

    async def crawl(self, lease: Lease, *, stop: asyncio.Event, progress: Callable[[CrawlStats], None]) -> LeaseResult:
        """What came of a lease that it has crawled. stop: ends it early when set.

        Raises HelperLost where the process is gone, and whatever else has ended the lease.
        """
        if self.is_lost:
            raise WorkerLost(self._gone_message, CrawlStats())
        remote_lease = _RemoteLease(asyncio.get_running_loop().create_future(), progress)
        self._remote_leases[lease.token] = remote_lease
        self._outgoing.write(pack_message(lease))
        ending = asyncio.create_task(self._end_when_stopped(stop, lease.token), name="end-lent-lease")
        try:
            return await remote_lease.result
        except asyncio.CancelledError:
            self._outgoing.write(pack_message(EndLease(lease.token, at_once=True)))
            raise
        finally:
            ending.cancel()
            del self._remote_leases[lease.token]

    async def end(self, *, patience: timedelta = END_TIMEOUT) -> None:
        """End the process: asked to, by the end of its input; killed, if it takes longer."""
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
        """Give it what it works with, and wait until it is ready."""
        self._outgoing.write(pack_message(options))
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()):
                while not isinstance(message := await receive_message(self._incoming), WorkerReady):
                    if message is None:
                        break
                    self._handle_message(message)
        except TimeoutError as error:
            raise OSError(f"a helper does not start within {START_TIMEOUT.total_seconds():g} s") from error
        if message is None:
            raise OSError("a helper ends as it starts")

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
                pass  # of a lease that was given up meanwhile


def _resolve(waiting: "asyncio.Future[LeaseResult]", result: LeaseResult | Exception) -> None:
    """Tell whoever waits for a lease how it ended, unless it was given up in the very moment."""
    if waiting.done():
        return
    if isinstance(result, Exception):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
