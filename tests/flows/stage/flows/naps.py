"""Two flows: one that ends by itself, and one that runs until it is canceled and notes that in a file."""

import asyncio
from pathlib import Path

from prefect import flow, task

from flows.run_ending import end_early, stop_on_sigterm


@flow
async def nap(seconds: float = 0) -> None:
    await asyncio.sleep(seconds)


@flow
async def hold(place: Path) -> None:
    with stop_on_sigterm() as told:

        @task
        async def waiting() -> None:
            (place / "begun").touch()
            await told.wait()

        await waiting()
        (place / "released").touch()
    await end_early()
