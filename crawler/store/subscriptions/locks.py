"""Who delivers to a subscription: one process at a time, and nobody for a process that has ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from crawler.errors import StoreUnavailable
from crawler.store.database import Connection, Database, one_line

DELIVERY_LOCK = 0x6E6F7465  # "note": the first half of the name of a subscription's lock


class DeliveryLocks:
    """Locks of subscriptions, held by one connection: they end with it, so that no kill leaves one behind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = asyncio.Lock()  # a connection answers one question at a time

    async def take(self, number: int) -> bool:
        """Whether a subscription is ours to deliver to from now on."""
        return await self._ask("SELECT pg_try_advisory_lock(%s, %s)", number)

    async def give_back(self, number: int) -> None:
        """Let others deliver to a subscription."""
        await self._ask("SELECT pg_advisory_unlock(%s, %s)", number)

    async def _ask(self, question: str, number: int) -> bool:
        try:
            async with self._asking:
                cursor = await self._connection.execute(question.encode(), (DELIVERY_LOCK, number))
                row = await cursor.fetchone()
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"the database does not answer: {one_line(error)}") from error
        return bool(row and row[0])


@asynccontextmanager
async def delivery_locks(db: Database) -> AsyncIterator[DeliveryLocks]:
    """Locks for as long as the block runs. It has one connection of the pool for itself."""
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)  # a transaction that stays open keeps Postgres from tidying up
        try:
            yield DeliveryLocks(connection)
        finally:
            if not connection.closed:
                await connection.execute("SELECT pg_advisory_unlock_all()")
                await connection.set_autocommit(False)
