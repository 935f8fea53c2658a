"""What a crawling process and its helper say to each other, through a socket at the helper's stdin."""

import asyncio
import pickle
import struct
from dataclasses import dataclass
from logging import LogRecord
from uuid import UUID

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.engine.requests.session import FindSecret
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.settings import Settings

LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a helper works with; the first message that it gets, and through no other way, since secrets are in it.

    database_url, connections: of the store.  readers: processes that read pages.  log_level: of what it tells.
    """

    settings: Settings
    database_url: str
    connections: int
    readers: int
    clock: Clock
    find_secret: FindSecret
    log_level: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Crawl this lease. claimed: monotonic seconds of the machine, read before the claim was sent."""

    lease: Lease
    claimed: float


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
    """A lease has ended."""

    token: UUID
    result: LeaseResult


@dataclass(frozen=True, slots=True)
class Failed:
    """A lease was ended by an error, which whoever waits for it is to raise."""

    token: UUID
    error: Exception


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log, for whoever listens to the process that the helper helps."""

    record: LogRecord


ToHelper = Equipment | Begin | End
FromHelper = Ready | BatchRecorded | Done | Failed | Logged


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
