"""The Prefect server of the local stack."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.environment import server_environment
from crawler.runtime.keys.own_keys import ensure_auth, proves_itself, renew_auth
from crawler.runtime.machine import port_is_free, recorded_port, remember_port
from crawler.settings import Settings

USUAL_PORT = 4200
START_SECONDS = 900  # 5 to 10 on a machine that does nothing else; its first start makes 100 tables
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
