"""The web UI of the local stack: `recrawl serve` as a background process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from crawler.runtime import background_processes
from crawler.runtime.background_processes import Child, Report
from crawler.runtime.keys.home_keys import build_login_link, ensure_key, is_own_server, list_own_origins
from crawler.runtime.machine import choose_port, find_process

DEFAULT_PORT = 4280
START_SECONDS = 120  # two are enough on an idle machine
END_SECONDS = 10


def ensure_web_ui(home: Path, *, database_url: str, report: Report) -> None:
    """Start the web UI of `home` unless it is running. A failure is only reported, because crawls do not need it."""
    key = ensure_key(home)
    facts = {"database": background_processes.hash_secret(database_url), "key": background_processes.hash_secret(key)}
    running = background_processes.find_child(home, background_processes.WEB_UI)
    if running is not None and facts.items() <= running.facts.items() and is_own_server(running.port, key):
        report("Web UI: running")
        return
    # An old one may serve another database.
    background_processes.end_part(home, background_processes.WEB_UI, timeout_seconds=END_SECONDS)
    port = choose_port(home / "run" / "pages-port", default=DEFAULT_PORT, key=f"{home} pages")
    report("Web UI: starting")
    command = [sys.executable, "-m", "crawler", "serve", "--port", str(port), "--quiet"]
    variables = {"RECRAWL_HOME": str(home), "RECRAWL_DATABASE_URL": database_url}
    facts["port"] = str(port)
    started = background_processes.start_child(
        home, background_processes.WEB_UI, command, environment=variables, facts=facts
    )
    is_up = partial(is_own_server, port, key)
    if not background_processes.wait_until(is_up, child=started, label="Web UI", seconds=START_SECONDS, report=report):
        background_processes.end_processes([started.process], timeout_seconds=END_SECONDS)
        problem = background_processes.read_last_line(home, background_processes.WEB_UI)
        report(f"Web UI: did not start; crawls run without it: {problem}")


def find_web_ui(home: Path) -> Child | None:
    """Return the process of the web UI of `home`: that of the stack, else a `recrawl serve` of the user; else None."""
    return background_processes.find_child(home, background_processes.WEB_UI) or background_processes.find_child(
        home, background_processes.USER_WEB_UI
    )


@contextmanager
def note_web_ui(home: Path, *, port: int, address: str | None = None) -> Iterator[None]:
    """Write a note during the block, by which other commands find this web UI, unless another one has written it.

    address: the origin that browsers use; None for the loopback address.
    """
    own_process = find_process(os.getpid())
    # Whether another terminal has written the note.
    is_noted = background_processes.find_child(home, background_processes.USER_WEB_UI) is not None
    if own_process is None or is_noted:
        yield
        return
    facts = {"port": str(port)} | ({"address": address} if address is not None else {})
    background_processes.write_note(home, background_processes.USER_WEB_UI, Child(own_process, facts))
    try:
        yield
    finally:
        background_processes.remove_note(home, background_processes.USER_WEB_UI)


def find_web_ui_origin(home: Path) -> str | None:
    """Return the origin of the web UI of `home`, for links; None if it is not running."""
    running = find_web_ui(home)
    return None if running is None else _get_origin(running)


def create_login_link(home: Path) -> str | None:
    """Return a new login link to the web UI of `home`; None if it is not running."""
    running = find_web_ui(home)
    # After a crash, a program of another user may listen on that port; it must not get a login code.
    if running is None or not is_own_server(running.port, key := ensure_key(home)):
        return None
    return build_login_link(_get_origin(running), key, at=datetime.now(UTC))


def _get_origin(web_ui: Child) -> str:
    return web_ui.facts.get("address") or list_own_origins(web_ui.port)[0]
