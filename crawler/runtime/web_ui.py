"""The server of one's own pages, beside the stack: `recrawl serve` as a process that stays."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.keys.home_keys import build_login_link, ensure_key, is_own_server, list_own_origins
from crawler.runtime.machine import choose_port, find_process

DEFAULT_PORT = 4280
START_SECONDS = 120  # two on a machine that does nothing else
END_SECONDS = 10


def ensure_web_ui(home: Path, *, database_url: str, report: Report) -> None:
    """See to the server of the pages of `home`, started where it is not running; where it cannot be, that is reported.

    The crawl needs none of it, so that nothing else fails with it.
    """
    key = ensure_key(home)
    facts = {"database": children.hash_secret(database_url), "key": children.hash_secret(key)}
    running = children.find_child(home, children.WEB_UI)
    if running is not None and facts.items() <= running.facts.items() and is_own_server(running.port, key):
        report("Pages: running")
        return
    children.end_part(home, children.WEB_UI, timeout_seconds=END_SECONDS)  # one that serves another database, too
    port = choose_port(home / "run" / "pages-port", default=DEFAULT_PORT, key=f"{home} pages")
    report("Pages: starting")
    started = children.start_child(
        home,
        children.WEB_UI,
        [sys.executable, "-m", "crawler", "serve", "--port", str(port), "--quiet"],
        environment={"RECRAWL_HOME": str(home), "RECRAWL_DATABASE_URL": database_url},
        facts={**facts, "port": str(port)},
    )
    if not children.wait_until(
        lambda: is_own_server(port, key), child=started, label="Pages", seconds=START_SECONDS, report=report
    ):
        children.end_processes([started.process], timeout_seconds=END_SECONDS)
        report(f"Pages: not to be had, all else runs: {children.read_last_line(home, children.WEB_UI)}")


def find_web_ui(home: Path) -> Child | None:
    """The process that serves the pages of `home`: the stack's, or else one of the user's own."""
    return children.find_child(home, children.WEB_UI) or children.find_child(home, children.USER_WEB_UI)


@contextmanager
def note_web_ui(home: Path, *, port: int, address: str | None = None) -> Iterator[None]:
    """Let other commands know, while the block runs, that this process serves the pages on a port.

    address: the origin by which browsers reach it; None for this machine's own.
    """
    own_process = find_process(os.getpid())
    if (
        own_process is None or children.find_child(home, children.USER_WEB_UI) is not None
    ):  # another terminal serves them, too
        yield
        return
    facts = {"port": str(port)} | ({"address": address} if address is not None else {})
    children.write_note(home, children.USER_WEB_UI, Child(own_process, facts))
    try:
        yield
    finally:
        children.remove_note(home, children.USER_WEB_UI)


def find_web_ui_origin(home: Path) -> str | None:
    """Where the pages of `home` are, for links that whoever was let in can follow; None where nothing serves them."""
    running = find_web_ui(home)
    return None if running is None else _get_origin(running)


def create_login_link(home: Path) -> str | None:
    """An address that lets into the pages of `home` once; None where nothing serves them."""
    running, key = find_web_ui(home), ensure_key(home)
    # Who else listens on that port of a dead server must not be told a code.
    if running is None or not is_own_server(running.port, key):
        return None
    return build_login_link(_get_origin(running), key, at=datetime.now(UTC))


def _get_origin(web_ui: Child) -> str:
    return web_ui.facts.get("address") or list_own_origins(web_ui.port)[0]
