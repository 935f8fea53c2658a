"""Wait until the feed has grown, by LISTEN and by polling.

Each transaction that appends to the feed sends one NOTIFY on the channel `recrawl_changes`, with the position of the
new end of the feed. A missed notification loses nothing, because the changes are in the feed.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import timedelta

import psycopg

from crawler.store.database import Connection, Database
from crawler.store.report.feed import CHANNEL

# Poll as well: connection poolers do not pass notifications on, and if a process was killed before it appended its
# events to the feed, the next reader appends them.
POLL_INTERVAL = timedelta(seconds=5)
RECONNECT_DELAY = timedelta(seconds=1)  # before connecting again to an unreachable server


class FeedListener:
    """A listener that wakes one reader of the feed. It connects on the first wait and reconnects if necessary."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None

    async def wait(self) -> None:
        """Wait until the feed may have grown since the last wait. The first wait returns at once."""
        try:
            if self._connection is None:
                connect = psycopg.AsyncConnection.connect
                self._connection = await connect(self._url, autocommit=True, application_name="recrawl")
                await self._connection.execute(f"LISTEN {CHANNEL}".encode())
                return  # changes before LISTEN were not notified
            async for _ in self._connection.notifies(timeout=POLL_INTERVAL.total_seconds(), stop_after=1):
                pass
        except psycopg.OperationalError:
            await self.aclose()
            await asyncio.sleep(RECONNECT_DELAY.total_seconds())

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


def listen_to_feed(db: Database) -> AbstractAsyncContextManager[FeedListener]:
    """Return a listener to the feed of this database, which is closed at the end of the block."""
    return aclosing(FeedListener(db.url))
