"""The Prefect worker of the local stack, and what has to be cleared away after one that is dead.

Import this only after the variables of environment.py are set.
"""

import asyncio
import secrets
import shutil
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime import children
from crawler.runtime.environment import Api, worker_command, worker_environment
from crawler.runtime.machine import private_folder
from crawler.runtime.prefect.api import bury_dead_runs, forget_late_runs, has_worker

START_SECONDS = 900  # 5 on a machine that does nothing else


def find_worker(home: Path, *, api: Api, database_url: str) -> children.Child | None:
    """The running worker, if it works for this server and this database."""
    worker = children.noted(home, children.WORKER)
    return worker if worker is not None and worker.facts == _facts_of(api, database_url) else None


def _facts_of(api: Api, database_url: str) -> dict[str, str]:
    auth = {"auth": children.digest(api.auth)} if api.auth is not None else {}
    return {"api_url": api.url, "database": children.digest(database_url), **auth}


def clear_runs(api: Api, *, report: children.Report) -> None:
    """Set the server right about the runs of a pool that has no worker."""
    crashed = asyncio.run(bury_dead_runs(api))
    if crashed:
        report(f"Runs: {crashed} marked as crashed, whose processes were gone")
    asyncio.run(forget_late_runs(api))


def start_worker(home: Path, *, api: Api, database_url: str, report: children.Report) -> children.Child:
    """Start a worker and wait until the server has heard of it."""
    tag = children.tag_of(home)
    name = f"recrawl-{tag}-{secrets.token_hex(2)}"
    shutil.rmtree(home / "tmp", ignore_errors=True)
    private_folder(home, "tmp")
    worker = children.start(
        home,
        children.WORKER,
        worker_command(name),
        environment=worker_environment(home, api, tag=tag, database_url=database_url),
        facts=_facts_of(api, database_url),
    )
    if children.comes_about(
        lambda: asyncio.run(has_worker(api, name)), of=worker, what="Worker", seconds=START_SECONDS, report=report
    ):
        return worker
    if worker.process.is_running():
        raise StackFailed(f"the worker does not report to {api.url}: see {children.log_of(home, children.WORKER)}")
    raise StackFailed(f"the worker ended: {children.last_words(home, children.WORKER)}")
