"""The Prefect worker of the local stack, and what has to be cleared away after one that is dead.

Import this only after the variables of environment.py are set.
"""

import asyncio
import os
import secrets
import shutil
import sys
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime.children import TAG, Child, comes_about, noted, start
from crawler.runtime.environment import Api, client_environment
from crawler.runtime.parts import POLL_SECONDS, Report, digest, last_words, worker_note
from crawler.runtime.prefect.api import POOL, bury_dead_runs, forget_late_runs, has_worker
from crawler.runtime.private import private_folder

START_SECONDS = 900  # 5 on a machine that does nothing else


def find_worker(home: Path, *, api: Api, database_url: str) -> Child | None:
    """The running worker, if it works for this server and this database."""
    worker = noted(worker_note(home))
    return worker if worker is not None and worker.facts == facts_of(api, database_url) else None


def facts_of(api: Api, database_url: str) -> dict[str, str]:
    auth = {"auth": digest(api.auth)} if api.auth is not None else {}
    return {"api_url": api.url, "database": digest(database_url), **auth}


def clear_runs(api: Api, *, report: Report) -> None:
    """Set the server right about the runs of a pool that has no worker."""
    crashed = asyncio.run(bury_dead_runs(api))
    if crashed:
        report(f"Runs: {crashed} marked as crashed, whose processes were gone")
    asyncio.run(forget_late_runs(api))


def start_worker(home: Path, *, tag: str, api: Api, database_url: str, report: Report) -> Child:
    """Start a worker and wait until the server has heard of it."""
    name = f"recrawl-{tag}-{secrets.token_hex(2)}"
    options = ["--name", name, "--pool", POOL, "--type", "process", "--install-policy", "never"]
    beside_python = str(Path(sys.executable).parent)
    log = home / "logs" / "worker.log"
    # Its own: Prefect keeps runs' files in a folder of one name for all users of the machine.
    shutil.rmtree(home / "tmp", ignore_errors=True)
    temporary = private_folder(home, "tmp")
    worker = start(
        [sys.executable, "-m", "prefect", "worker", "start", *options],
        environment={
            **client_environment(home, api),
            TAG: tag,
            "RECRAWL_HOME": str(home),
            "TMPDIR": str(temporary),
            "RECRAWL_DATABASE_URL": database_url,
            # Runs are started as "python", which has to be this one.
            "PATH": os.pathsep.join([beside_python, os.environ.get("PATH", os.defpath)]),
        },
        folder=home,
        log=log,
        note=worker_note(home),
        facts=facts_of(api, database_url),
    )
    reports = comes_about(
        lambda: asyncio.run(has_worker(api, name)),
        of=worker.process,
        seconds=START_SECONDS,
        poll_seconds=POLL_SECONDS,
        still=lambda: report("Worker: still starting"),
    )
    if not reports and worker.process.is_running():
        raise StackFailed(f"the worker does not report to {api.url}: see {log}")
    if not reports:
        raise StackFailed(f"the worker ended: {last_words(log)}")
    return worker
