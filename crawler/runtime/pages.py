"""The server of one's own pages, beside the stack: `recrawl serve` as a process that stays."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from crawler.runtime.children import TAG, Child, comes_about, end, noted, start, write_note
from crawler.runtime.keys.auth import proves_itself
from crawler.runtime.keys.entrance import ensure_key, entrance
from crawler.runtime.machine import free_port, port_is_free, process
from crawler.runtime.own_address import own_origins
from crawler.runtime.parts import POLL_SECONDS, Report, digest, last_words, own_pages_note, pages_note, port_of
from crawler.runtime.private import write_private

USUAL_PORT = 4280
START_SECONDS = 120  # two on a machine that does nothing else
END_SECONDS = 10


def ensure_pages(home: Path, *, database_url: str, tag: str, report: Report) -> Child | None:
    """The server of the pages of `home`, started where it is not running; None where it cannot be, which is reported.

    The crawl needs none of it, so that nothing else fails with it.
    """
    key = ensure_key(home)
    facts = {"database": digest(database_url), "key": digest(key)}
    found = noted(pages_note(home))
    if found is not None and facts.items() <= found.facts.items() and proves_itself(port_of(found), key):
        report("Pages: running")
        return found
    if found is not None:  # Postgres has moved to another port, or it does not answer
        end([found.process], patience_seconds=END_SECONDS)
    port = _port(home)
    report("Pages: starting")
    log = home / "logs" / "pages.log"
    made = start(
        [sys.executable, "-m", "crawler", "serve", "--port", str(port), "--quiet"],
        environment={TAG: tag, "RECRAWL_HOME": str(home), "RECRAWL_DATABASE_URL": database_url},
        folder=home,
        log=log,
        note=pages_note(home),
        facts={**facts, "port": str(port)},
    )
    answers = comes_about(
        lambda: proves_itself(port, key),
        of=made.process,
        seconds=START_SECONDS,
        poll_seconds=POLL_SECONDS,
        still=lambda: report("Pages: still starting"),
    )
    if answers:
        return made
    end([made.process], patience_seconds=END_SECONDS)
    report(f"Pages: not to be had, all else runs: {last_words(log)}")
    return None


def serving_pages(home: Path) -> Child | None:
    """The process that serves the pages of `home`: the stack's, or else one of the user's own."""
    return noted(pages_note(home)) or noted(own_pages_note(home))


@contextmanager
def noted_as_serving(home: Path, *, port: int, address: str | None = None) -> Iterator[None]:
    """Let other commands know, while the block runs, that this process serves the pages on a port.

    address: the origin by which browsers reach it; None for this machine's own.
    """
    own = process(os.getpid())
    if own is None or noted(own_pages_note(home)) is not None:  # another terminal serves them, too
        yield
        return
    facts = {"port": str(port)} | ({"address": address} if address is not None else {})
    write_note(own_pages_note(home), Child(own, facts))
    try:
        yield
    finally:
        own_pages_note(home).unlink(missing_ok=True)


def pages_origin(home: Path) -> str | None:
    """Where the pages of `home` are, for links that whoever was let in can follow; None where nothing serves them."""
    found = serving_pages(home)
    return None if found is None else address_of(found)


def address_of(pages: Child) -> str:
    """The origin by which browsers reach the pages that a process serves."""
    return pages.facts.get("address") or own_origins(port_of(pages))[0]


def pages_entrance(home: Path) -> str | None:
    """An address that lets into the pages of `home` once; None where nothing serves them."""
    found, key = serving_pages(home), ensure_key(home)
    # Who else listens on that port of a dead server must not be told a code.
    if found is None or not proves_itself(port_of(found), key):
        return None
    return entrance(address_of(found), key, at=datetime.now(UTC))


def _port(home: Path) -> int:
    """The port of last time, else the usual one, else any that is free: a browser's bookmarks go on."""
    recorded = home / "run" / "pages-port"
    last = int(recorded.read_text(encoding="ascii")) if recorded.exists() else USUAL_PORT
    port = last if port_is_free(last) else free_port(f"{home} pages")
    write_private(recorded, str(port))
    return port
