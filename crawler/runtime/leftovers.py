"""What a dead worker leaves: processes that nobody waits for, and domains that their leases still hold."""

import asyncio

from crawler.runtime.children import end, tagged
from crawler.runtime.machine import Process
from crawler.runtime.parts import WORKER_END_SECONDS, Report
from crawler.store.database import open_database
from crawler.store.domains import expire_leases


def clear_away(tag: str, *, without: Process | None, database_url: str, report: Report) -> None:
    """End what a dead worker, or one for another server, left behind, and free the domains that its runs held."""
    end([each for each in tagged(tag) if each != without], patience_seconds=WORKER_END_SECONDS)

    async def free_leases() -> int:
        async with open_database(database_url, connections=1) as db:
            return await expire_leases(db, holder_prefix=f"{tag}/")

    freed = asyncio.run(free_leases())
    if freed:
        report(f"Leases: {freed} freed that a dead worker held")
