"""The processes of the local stack's Prefect server and worker, and cleanup after a dead worker."""

import asyncio
import secrets
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime import background_processes, environment
from crawler.runtime.background_processes import Child, Report
from crawler.runtime.environment import PrefectApi
from crawler.runtime.keys.home_keys import ensure_auth, is_own_server, renew_auth
from crawler.runtime.machine import choose_port, ensure_private_folder, is_port_free, read_recorded_port
from crawler.settings import Settings

DEFAULT_PORT = 4200
START_SECONDS = 900  # 5 to 10 are enough on an idle machine; the first start of a server creates 100 tables


def ensure_server(home: Path, settings: Settings, *, database_url: str, report: Report) -> Child:
    """Return the server of `home`. If it is not running, start it; then it may not respond yet.

    database_url: a database that only Prefect uses.
    """
    auth = ensure_auth(home)
    facts = {"database": background_processes.hash_secret(database_url), "auth": background_processes.hash_secret(auth)}
    running = background_processes.find_child(home, background_processes.SERVER)
    # The facts differ if Postgres has moved to another port.
    is_same = running is not None and facts.items() <= running.facts.items()
    if running is not None and is_same and _wait_until_ready(home, running, report=report):
        report("Prefect server: running")
        return running
    background_processes.end_part(home, background_processes.SERVER)
    last = read_recorded_port(_get_port_file(home), default=DEFAULT_PORT)
    port = _choose_port(home, settings.prefect_port, last, report=report)
    if port != last:
        # A worker that outlived the server may have sent the auth string to the program that has the old port now.
        facts["auth"] = background_processes.hash_secret(auth := renew_auth(home))
    report("Prefect server: starting")
    variables = environment.build_server_environment(
        home, port=port, auth=auth, url=database_url, keep_runs=settings.run_retention
    )
    command, facts = [sys.executable, "-m", "crawler.runtime.prefect.program"], {**facts, "port": str(port)}
    return background_processes.start_child(
        home, background_processes.SERVER, command, environment=variables, facts=facts
    )


def _wait_until_ready(home: Path, server: Child, *, report: Report) -> bool:
    """Wait until the server responds, ends or times out. Return whether it responds.

    The response must come from the server of this home: a server that was just killed may look alive, and the server of
    another home may have taken the port.
    """
    is_ready = partial(is_own_server, server.port, ensure_auth(home))
    return background_processes.wait_until(
        is_ready, child=server, label="Prefect server", seconds=START_SECONDS, report=report
    )


def wait_for_server(home: Path, server: Child, *, restart: Callable[[], Child], report: Report) -> Child:
    """Wait for the server, and restart it if another program took its port before the start. Raises StackFailed."""
    for _ in range(3):
        if _wait_until_ready(home, server, report=report):
            return server
        if server.process.is_running():
            log = background_processes.get_log_file(home, background_processes.SERVER)
            raise StackFailed(f"the Prefect server does not respond: see {log}")
        if is_port_free(server.port):
            break
        server = restart()
    raise StackFailed(
        f"the Prefect server ended: {background_processes.read_last_line(home, background_processes.SERVER)}"
    )


def _choose_port(home: Path, requested_port: int | None, last: int, *, report: Report) -> int:
    """Return the port of the settings, else the last port (at first Prefect's default) if it is free, else another."""
    if requested_port is not None:
        if not is_port_free(requested_port):
            problem = f"port {requested_port} (RECRAWL_PREFECT_PORT) is taken by another program"
            raise StackFailed(f"{problem}: stop that program or set another port")
        return requested_port
    port = choose_port(_get_port_file(home), default=DEFAULT_PORT, key=str(home))
    if port != last:
        report(f"Port {last} is taken by another program, so Prefect uses port {port}")
    return port


def _get_port_file(home: Path) -> Path:
    return home / "run" / "port"


def find_worker(home: Path, *, api: PrefectApi, database_url: str) -> Child | None:
    """Return the running worker if it uses this server and this database."""
    worker = background_processes.find_child(home, background_processes.WORKER)
    return worker if worker is not None and worker.facts == _build_facts(api, database_url) else None


def _build_facts(api: PrefectApi, database_url: str) -> dict[str, str]:
    auth = {"auth": background_processes.hash_secret(api.auth)} if api.auth is not None else {}
    return {"api_url": api.url, "database": background_processes.hash_secret(database_url), **auth}


def clear_runs(api: PrefectApi, *, report: Report) -> None:
    """Mark dead runs as crashed and delete late ones, in a pool that has no worker."""
    from crawler.runtime.prefect.api import delete_late_runs, mark_dead_runs

    if crashed := asyncio.run(mark_dead_runs(api)):
        report(f"Runs: {crashed} marked as crashed, because their processes were gone")
    asyncio.run(delete_late_runs(api))


def start_worker(home: Path, *, api: PrefectApi, database_url: str, report: Report) -> Child:
    """Start a worker and wait until it is online. Raises StackFailed if it does not get online."""
    from crawler.runtime.prefect.api import has_worker

    tag = background_processes.ensure_tag(home)
    name = f"recrawl-{tag}-{secrets.token_hex(2)}"
    shutil.rmtree(home / "tmp", ignore_errors=True)
    ensure_private_folder(home, "tmp")
    command, facts = environment.build_worker_command(name), _build_facts(api, database_url)
    variables = environment.build_worker_environment(home, api, tag=tag, database_url=database_url)
    worker = background_processes.start_child(
        home, background_processes.WORKER, command, environment=variables, facts=facts
    )

    def is_online() -> bool:
        return asyncio.run(has_worker(api, name))

    if background_processes.wait_until(is_online, child=worker, label="Worker", seconds=START_SECONDS, report=report):
        return worker
    if worker.process.is_running():
        log = background_processes.get_log_file(home, background_processes.WORKER)
        raise StackFailed(f"the worker does not connect to {api.url}: see {log}")
    raise StackFailed(f"the worker ended: {background_processes.read_last_line(home, background_processes.WORKER)}")
