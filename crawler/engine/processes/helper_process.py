"""A process that crawls leases which another one has claimed.

It ends when its socket does, and so with whoever started it, however that ended; what is under way then is still
recorded, and the leases are given back.
"""

import asyncio
import logging
import os
import pickle
import socket
from logging.handlers import QueueHandler
from queue import SimpleQueue
from uuid import UUID

from crawler.core.domain import Lease
from crawler.engine.coordinator import CrawlLimits, crawl_lease
from crawler.engine.machine import settle_memory
from crawler.engine.processes.helper import (
    BatchRecorded,
    Done,
    End,
    Equipment,
    FromHelper,
    Logged,
    Ready,
    packed,
    received,
)
from crawler.engine.resources import CrawlResources, open_resources
from crawler.engine.stats import LeaseResult
from crawler.engine.store_port import LeasedStore
from crawler.store.database import Database, open_database


class _Told(QueueHandler):
    """Sends lines of the log to whoever is helped."""

    def __init__(self, channel: "_Channel") -> None:
        super().__init__(SimpleQueue())
        self._channel = channel

    def enqueue(self, record: logging.LogRecord) -> None:
        self._channel.send(Logged(record))


class _Channel:
    """The socket to whoever is helped. What nobody reads any more is dropped: then this process is about to end."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self.incoming, self._outgoing = incoming, outgoing

    def send(self, message: FromHelper) -> None:
        if not self._outgoing.is_closing():
            self._outgoing.write(packed(message))

    async def flush(self) -> None:
        """Wait until all that was sent is through."""
        try:
            await self._outgoing.drain()
            self._outgoing.close()
            await self._outgoing.wait_closed()
        except ConnectionError:
            return


class _Work:
    """The leases under way in this process."""

    def __init__(self, db: Database, webs: CrawlResources, equipment: Equipment, channel: _Channel) -> None:
        self._db, self._webs, self._equipment, self._channel = db, webs, equipment, channel
        self._under_way: dict[UUID, tuple[asyncio.Task[None], asyncio.Event]] = {}  # the event ends it early

    def begin(self, lease: Lease) -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(self._crawl(lease, stop), name=f"lease-{lease.domain.authority}")
        self._under_way[lease.token] = task, stop
        task.add_done_callback(lambda _: self._under_way.pop(lease.token))

    def end(self, message: End) -> None:
        if message.token in self._under_way:
            task, stop = self._under_way[message.token]
            stop.set()
            if message.at_once:
                task.cancel()

    async def end_all(self) -> None:
        """Give all leases back, with what is under way recorded."""
        for _, stop in self._under_way.values():
            stop.set()
        await asyncio.gather(*(task for task, _ in self._under_way.values()), return_exceptions=True)

    async def _crawl(self, lease: Lease, stop: asyncio.Event) -> None:
        store = LeasedStore(self._db, lease, settings=self._equipment.settings, clock=self._equipment.clock)
        result: LeaseResult | Exception
        try:
            result = await crawl_lease(
                store,
                self._webs,
                limits=CrawlLimits(stop=stop),
                progress=lambda stats: self._channel.send(BatchRecorded(lease.token, stats)),
            )
        except Exception as error:  # noqa: BLE001  whoever waits for the lease raises it
            result = _portable(error)
        self._channel.send(Done(lease.token, result))


def _portable(error: Exception) -> Exception:
    """An error as another process can raise it: itself, or one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  what was packed a moment ago
    except Exception:  # noqa: BLE001  classes of libraries do not always know how they were made
        return RuntimeError(repr(error))
    return error


async def help_out(stream: socket.socket) -> None:
    """Crawl what is asked for at the other end of a socket, until that is closed."""
    channel = _Channel(*await asyncio.open_connection(sock=stream))
    equipment = await received(channel.incoming)
    if not isinstance(equipment, Equipment):
        return
    log = logging.getLogger("recrawl")
    log.setLevel(equipment.log_level)
    log.addHandler(_Told(channel))
    log.propagate = False
    settings = equipment.settings
    async with (
        open_database(equipment.database_url, connections=2 * settings.leases_at_once + 2) as db,
        open_resources(settings, find_secret=equipment.find_secret) as webs,
    ):
        settle_memory()
        work = _Work(db, webs, equipment, channel)
        channel.send(Ready())
        while message := await received(channel.incoming):
            match message:
                case Lease():
                    work.begin(message)
                case End():
                    work.end(message)
                case _:
                    raise TypeError(f"nobody sends {message!r}")
        await work.end_all()
    await channel.flush()


if __name__ == "__main__":
    asyncio.run(help_out(socket.socket(fileno=os.dup(0))))
