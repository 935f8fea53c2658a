"""Word that the feed has grown, by LISTEN: whoever waits for changes need not ask again and again.

Who appends to the feed notifies the channel `recrawl_changes` in the same transaction, once for all that it appends;
the payload is the position at which the feed ends then. It is word alone: what was missed is in the feed.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import timedelta

import psycopg

from crawler.store.database import Connection, Database
from crawler.store.report.feed import CHANNEL

# What a process recorded that was killed before it appended is appended by whoever looks next; and poolers of
# connections pass no notifications on.
POLL_INTERVAL = timedelta(seconds=5)
RECONNECT_DELAY = timedelta(seconds=1)  # until a server that is away is asked again


class FeedListener:
    """Wakes one reader of the feed. Its connection is made when it waits first, and made anew when it was lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None

    async def wait(self) -> None:
        """Wait until the feed has grown since the last wait, or may have: the first wait ends at once."""
        try:
            if self._connection is None:
                self._connection = await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, application_name="recrawl"
                )
                await self._connection.execute(f"LISTEN {CHANNEL}".encode())
                return  # what came until now was told to nobody
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
    """Word of what comes into the feed of this database, until the block ends."""
    return aclosing(FeedListener(db.url))
