"""A program that calls the Prefect server for a worker, so that the worker need not import prefect.

    python -m crawler.runtime.service.runs pool               create or fix the work pool
    python -m crawler.runtime.service.runs cancel RUN...      cancel runs
    python -m crawler.runtime.service.runs cancelled RUN...   mark killed runs as canceled

The server is that of PREFECT_API_URL.
"""

import asyncio
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from crawler.runtime.environment import PrefectApi
from crawler.runtime.service.health import get_api
from crawler.settings import get_settings

POOL, CANCEL, CANCELLED = "pool", "cancel", "cancelled"  # actions
RESPONSE_SECONDS = 45.0  # less than the allowed time without a heartbeat


def run_program(action: str, runs: Collection[UUID] = (), *, environment: Mapping[str, str]) -> bool:
    """Run this program and return whether it succeeded. environment: as from `build_client_environment`."""
    command = [sys.executable, "-m", "crawler.runtime.service.runs", action, *map(str, runs)]
    try:
        return subprocess.run(command, env=environment, timeout=RESPONSE_SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


async def perform_action(action: str, runs: Sequence[UUID], *, api: PrefectApi) -> None:
    """Perform an action of this program."""
    from crawler.runtime.prefect.api import cancel_runs, ensure_pool, mark_cancelled, open_client  # noqa: PLC0415

    if action == POOL:
        async with open_client(api) as client:
            await ensure_pool(client, is_ours=False)
    elif action == CANCEL:
        await cancel_runs(api, only=runs)
    else:
        await mark_cancelled(api, runs)


if __name__ == "__main__":
    asyncio.run(perform_action(sys.argv[1], [UUID(run) for run in sys.argv[2:]], api=get_api(get_settings())))
