"""What single calls take: percentiles, and the processor time of the server's side of one connection."""

from collections.abc import Sequence
from pathlib import Path

from crawler.store.database import Database


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    ordered = sorted(seconds)
    return 1000 * ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)]


async def backend_of(db: Database) -> int:
    """The process that serves the one connection."""
    async with db.transaction() as connection:
        return connection.info.backend_pid


def cpu_of(pid: int) -> float:
    """Seconds of processor time of a process; of Linux, which counts them to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
