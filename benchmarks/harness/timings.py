"""Timings of single calls: percentiles, and the CPU time of the server side of a connection."""

from collections.abc import Sequence
from pathlib import Path

from crawler.store.database import Database


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    ordered = sorted(seconds)
    return 1000 * ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)]


async def backend_of(db: Database) -> int:
    """Return the process ID of the backend that serves the connection."""
    async with db.transaction() as connection:
        return connection.info.backend_pid


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process (Linux only, to the nanosecond)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
