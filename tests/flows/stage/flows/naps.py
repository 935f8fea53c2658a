"""Two real flows: one that ends by itself, and one that holds on until it is cancelled and says so in a file."""

import asyncio
from pathlib import Path

from prefect import flow

from flows.ending import end_early, told_to_end


@flow
async def nap(seconds: float = 0) -> None:
    await asyncio.sleep(seconds)


@flow
async def hold(place: Path) -> None:
    with told_to_end() as told:
        (place / "begun").touch()
        await told.wait()
        (place / "released").touch()
    await end_early()
