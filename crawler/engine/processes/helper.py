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
from crawler.engine.machine import NO_THREADS, start_child
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.settings import Settings

HELPER = ("-m", "crawler.engine.processes.helper_process")
START = timedelta(minutes=1)  # a second on a machine that has nothing else to do
END = timedelta(seconds=15)  # to record what is under way, and give leases back
LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a helper works with; the first message that it gets, and through no other way, since secrets are in it.

    database_url: of the store.  log_level: of what it tells.
    """

    settings: Settings
    database_url: str
    clock: Clock
    find_secret: FindSecret
    log_level: int


@dataclass(frozen=True, slots=True)
class End:
    """End this lease early. at_once: without waiting for what is under way."""

    token: UUID
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The helper can crawl."""


@dataclass(frozen=True, slots=True)
class BatchRecorded:
    """A lease has recorded a batch. stats: of the lease so far."""

    token: UUID
    stats: CrawlStats


@dataclass(frozen=True, slots=True)
class Done:
    """A lease has ended. result: or the error that ended it, which whoever waits for it is to raise."""

    token: UUID
    result: LeaseResult | Exception


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log, for whoever listens to the process that the helper helps."""

    record: LogRecord


ToHelper = Equipment | Lease | End  # a lease is to be crawled
FromHelper = Ready | BatchRecorded | Done | Logged


def packed(message: ToHelper | FromHelper) -> bytes:
    """A message as it goes through the socket, behind its length."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


async def received(stream: asyncio.StreamReader) -> object | None:
    """The next message; None where the other end is gone."""
    try:
        (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        message: object = pickle.loads(await stream.readexactly(length))  # noqa: S301  from a process of our own
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message


class HelperLost(Exception):
    """A helper is gone, and with it what it had not recorded of a lease. stats: of what it had."""

    def __init__(self, why: str, stats: CrawlStats) -> None:
        super().__init__(why)
        self.stats = stats


@dataclass(slots=True)
class _Lent:
    """A lease that a helper crawls."""

    result: "asyncio.Future[LeaseResult]"
    progress: Callable[[CrawlStats], None]
    stats: CrawlStats = field(default_factory=CrawlStats)  # at its last record


class Helper:
    """One process that crawls leases for this one."""

    def __init__(self, process: Process, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._process, self._incoming, self._outgoing = process, incoming, outgoing
        self._lent: dict[UUID, _Lent] = {}
        self._listening: asyncio.Task[None] | None = None
        self.is_lost = False

    @classmethod
    async def started(cls, equipment: Equipment) -> "Helper":
        """A helper that is ready. OSError where it does not start."""
        helper = cls(*await start_child(*HELPER, more=NO_THREADS))
        try:
            await helper._equip(equipment)
        except BaseException:
            await helper.end(patience=timedelta(0))
            raise
        helper._listening = asyncio.create_task(helper._listen(), name="listen-to-helper")
        return helper

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _gone(self) -> str:
        return f"process {self.pid} is gone"

    @property
    def leases(self) -> int:
        """How many leases it crawls."""
        return len(self._lent)

    async def crawl(self, lease: Lease, *, stop: asyncio.Event, progress: Callable[[CrawlStats], None]) -> LeaseResult:
        """What came of a lease that it has crawled. stop: ends it early when set.

        Raises HelperLost where the process is gone, and whatever else has ended the lease.
        """
        if self.is_lost:
            raise HelperLost(self._gone, CrawlStats())
        lent = _Lent(asyncio.get_running_loop().create_future(), progress)
        self._lent[lease.token] = lent
        self._outgoing.write(packed(lease))
        ending = asyncio.create_task(self._end_when(stop, lease.token), name="end-lent-lease")
        try:
            return await lent.result
        except asyncio.CancelledError:
            self._outgoing.write(packed(End(lease.token, at_once=True)))
            raise
        finally:
            ending.cancel()
            del self._lent[lease.token]

    async def end(self, *, patience: timedelta = END) -> None:
        """End the process: asked to, by the end of its input; killed, if it takes longer."""
        self._outgoing.close()
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _end_when(self, stop: asyncio.Event, token: UUID) -> None:
        await stop.wait()
        self._outgoing.write(packed(End(token)))

    async def _equip(self, equipment: Equipment) -> None:
        """Give it what it works with, and wait until it is ready."""
        self._outgoing.write(packed(equipment))
        try:
            async with asyncio.timeout(START.total_seconds()):
                while not isinstance(message := await received(self._incoming), Ready):
                    if message is None:
                        break
                    self._take_in(message)
        except TimeoutError as error:
            raise OSError(f"a helper does not start within {START.total_seconds():g} s") from error
        if message is None:
            raise OSError("a helper ends as it starts")

    async def _listen(self) -> None:
        while (message := await received(self._incoming)) is not None:
            self._take_in(message)
        self.is_lost = True
        for lent in self._lent.values():
            _settle(lent.result, HelperLost(self._gone, lent.stats))

    def _take_in(self, message: object) -> None:
        match message:
            case BatchRecorded(token, stats) if token in self._lent:
                self._lent[token].stats = stats
                self._lent[token].progress(stats)
            case Done(token, result) if token in self._lent:
                _settle(self._lent[token].result, result)
            case Logged(record):
                logging.getLogger(record.name).handle(record)
            case _:
                pass  # of a lease that was given up meanwhile


def _settle(waiting: "asyncio.Future[LeaseResult]", result: LeaseResult | Exception) -> None:
    """Tell whoever waits for a lease how it ended, unless it was given up in the very moment."""
    if waiting.done():
        return
    if isinstance(result, Exception):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
