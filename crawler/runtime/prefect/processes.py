"""The Prefect server of the local stack and its worker, and what has to be cleared away after a worker that is dead."""

import asyncio
import secrets
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.environment import Api, server_environment, worker_command, worker_environment
from crawler.runtime.keys.own_keys import ensure_auth, proves_itself, renew_auth
from crawler.runtime.machine import port_is_free, private_folder, recorded_port, remember_port
from crawler.settings import Settings

USUAL_PORT = 4200
START_SECONDS = 900  # 5 to 10 on a machine that does nothing else; the first start of a server makes 100 tables
PORT_ATTEMPTS = 3


def ensure_server(home: Path, settings: Settings, *, database_url: str, report: Report) -> Child:
    """The server of `home`, started where it is not running; it need not answer yet.

    database_url: a database that is Prefect's alone.
    """
    auth = ensure_auth(home)
    facts = {"database": children.digest(database_url), "auth": children.digest(auth)}
    found = children.noted(home, children.SERVER)
    # Postgres may have moved to another port.
    if found is not None and facts.items() <= found.facts.items() and _comes_to_answer(home, found, report=report):
        report("Prefect server: running")
        return found
    children.end_part(home, children.SERVER)
    last = recorded_port(_port_file(home), usual=USUAL_PORT)
    port = _choose_port(home, settings.prefect_port, last, report=report)
    if port != last:
        # Whoever has the last one now may have been told the string by a worker that has outlived the server.
        facts["auth"] = children.digest(auth := renew_auth(home))
    report("Prefect server: starting")
    environment = server_environment(
        home, port=port, auth=auth, database_url=database_url, keep_runs=settings.keep_runs
    )
    return children.start(
        home,
        children.SERVER,
        [sys.executable, "-m", "crawler.runtime.prefect.program"],
        environment=environment,
        facts={**facts, "port": str(port)},
    )


def _comes_to_answer(home: Path, server: Child, *, report: Report) -> bool:
    """Wait until the server answers, or ends, or takes too long; whether it answers.

    One that was killed an instant ago may look alive at first, and another home's may have been quicker to take the
    port: what answers there has to be this home's.
    """
    is_ready = partial(proves_itself, server.port, ensure_auth(home))
    return children.comes_about(is_ready, of=server, what="Prefect server", seconds=START_SECONDS, report=report)


def wait_for_server(home: Path, server: Child, *, start_again: Callable[[], Child], report: Report) -> Child:
    """The server once it answers: this one, or another where its port was taken between the choice and the start."""
    for _ in range(PORT_ATTEMPTS):
        if _comes_to_answer(home, server, report=report):
            return server
        if server.process.is_running():
            raise StackFailed(f"the Prefect server does not answer: see {children.log_of(home, children.SERVER)}")
        if port_is_free(server.port):
            break
        server = start_again()
    raise StackFailed(f"the Prefect server ended: {children.last_words(home, children.SERVER)}")


def _choose_port(home: Path, named: int | None, last: int, *, report: Report) -> int:
    """The port that the user names, else the one of last time, else Prefect's usual one, else any that is free."""
    if named is not None:
        if not port_is_free(named):
            raise StackFailed(
                f"port {named} (RECRAWL_PREFECT_PORT) is taken by another program: stop that, or name another port"
            )
        return named
    port = remember_port(_port_file(home), usual=USUAL_PORT, key=str(home))
    if port != last:
        report(f"Port {last} is taken by another program, so Prefect gets {port}")
    return port


def _port_file(home: Path) -> Path:
    return home / "run" / "port"


def find_worker(home: Path, *, api: Api, database_url: str) -> children.Child | None:
    """The running worker, if it works for this server and this database."""
    worker = children.noted(home, children.WORKER)
    return worker if worker is not None and worker.facts == _facts_of(api, database_url) else None


def _facts_of(api: Api, database_url: str) -> dict[str, str]:
    auth = {"auth": children.digest(api.auth)} if api.auth is not None else {}
    return {"api_url": api.url, "database": children.digest(database_url), **auth}


def clear_runs(api: Api, *, report: children.Report) -> None:
    """Set the server right about the runs of a pool that has no worker."""
    from crawler.runtime.prefect.api import bury_dead_runs, forget_late_runs

    crashed = asyncio.run(bury_dead_runs(api))
    if crashed:
        report(f"Runs: {crashed} marked as crashed, whose processes were gone")
    asyncio.run(forget_late_runs(api))


def start_worker(home: Path, *, api: Api, database_url: str, report: children.Report) -> children.Child:
    """Start a worker and wait until the server has heard of it."""
    from crawler.runtime.prefect.api import has_worker

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
