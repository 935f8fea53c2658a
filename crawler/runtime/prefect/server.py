"""The Prefect server of the local stack."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime.children import TAG, Child, comes_about, end, noted, start
from crawler.runtime.environment import server_environment
from crawler.runtime.keys.auth import ensure_auth, proves_itself, renew_auth
from crawler.runtime.machine import free_port, port_is_free
from crawler.runtime.parts import (
    POLL_SECONDS,
    SERVER_END_SECONDS,
    Report,
    digest,
    last_words,
    port_of,
    server_note,
)
from crawler.runtime.private import write_private

USUAL_PORT = 4200
START_SECONDS = 900  # 5 to 10 on a machine that does nothing else; its first start makes 100 tables
PORT_ATTEMPTS = 3


def ensure_server(
    home: Path, *, database_url: str, tag: str, named_port: int | None, keep_runs: timedelta, report: Report
) -> Child:
    """The server of `home`, started where it is not running; it need not answer yet.

    database_url: a database that is Prefect's alone.  named_port: the user's choice.
    keep_runs: for how long it keeps runs that have ended.
    """
    auth = ensure_auth(home)
    facts = {"database": digest(database_url), "auth": digest(auth)}
    found = noted(server_note(home))
    if found is not None and not facts.items() <= found.facts.items():
        # Postgres has moved to another port, or an earlier version of this has started it, for everybody.
        end([found.process], patience_seconds=SERVER_END_SECONDS)
    elif found is not None and comes_to_answer(home, found, report=report):
        report("Prefect server: running")
        return found
    last = recorded_port(home)
    port = choose_port(home, named_port, report=report)
    if port != last:
        # Whoever has the last one now may have been told the string by a worker that has outlived the server.
        facts["auth"] = digest(auth := renew_auth(home))
    report("Prefect server: starting")
    return start(
        [sys.executable, "-m", "crawler.runtime.prefect.program"],
        environment={
            **server_environment(home, port=port, auth=auth, database_url=database_url, keep_runs=keep_runs),
            TAG: tag,
        },
        folder=home,
        log=server_log(home),
        note=server_note(home),
        facts={**facts, "port": str(port)},
    )


def server_log(home: Path) -> Path:
    return home / "logs" / "prefect-server.log"


def comes_to_answer(home: Path, server: Child, *, report: Report) -> bool:
    """Wait until the server answers, or ends, or takes too long; whether it answers.

    One that was killed an instant ago may look alive at first, and another home's may have been quicker to take the
    port: what answers there has to be this home's.
    """
    return comes_about(
        lambda: proves_itself(port_of(server), ensure_auth(home)),
        of=server.process,
        seconds=START_SECONDS,
        poll_seconds=POLL_SECONDS,
        still=lambda: report("Prefect server: still starting"),
    )


def wait_for_server(home: Path, server: Child, *, start_again: Callable[[], Child], report: Report) -> Child:
    """The server once it answers: this one, or another where its port was taken between the choice and the start."""
    for _ in range(PORT_ATTEMPTS):
        if comes_to_answer(home, server, report=report):
            return server
        if server.process.is_running():
            raise StackFailed(f"the Prefect server does not answer: see {server_log(home)}")
        if port_is_free(port_of(server)):
            break
        server = start_again()
    raise StackFailed(f"the Prefect server ended: {last_words(server_log(home))}")


def choose_port(home: Path, named: int | None, *, report: Report) -> int:
    """The port that the user names, else the one of last time, else Prefect's usual one, else any that is free."""
    if named is not None:
        if not port_is_free(named):
            raise StackFailed(
                f"port {named} (RECRAWL_PREFECT_PORT) is taken by another program: stop that, or name another port"
            )
        return named
    last = recorded_port(home)
    port = last if port_is_free(last) else free_port(str(home))
    if port != last:
        report(f"Port {last} is taken by another program, so Prefect gets {port}")
    write_private(home / "run" / "port", str(port))
    return port


def recorded_port(home: Path) -> int:
    recorded = home / "run" / "port"
    return int(recorded.read_text(encoding="ascii")) if recorded.exists() else USUAL_PORT
