"""Transactions of the connection pool."""

import asyncio

from crawler.store.database import open_database


async def run_loop(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def test_a_task_that_is_cancelled_while_it_gets_a_connection_ends(database_url: str) -> None:
    async def use_one() -> None:
        async with db.transaction() as connection:
            await connection.execute("SELECT 1")

    async with open_database(database_url, max_connections=1) as db:
        for steps in range(12):
            async with db.transaction():
                waiting = asyncio.create_task(use_one())
                await run_loop(10)  # until it waits
            await run_loop(steps)  # a connection arrives a few steps after its release
            if waiting.cancel():
                await asyncio.wait([waiting])
                assert waiting.cancelled(), f"after {steps} steps"
        async with db.transaction() as connection:  # the pool has not lost its connection
            await connection.execute("SELECT 1")
