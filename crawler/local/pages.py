"""The server of one's own pages, beside the stack: `recrawl serve` as a process that stays."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from crawler.local.auth import proves_itself
from crawler.local.children import TAG, Child, comes_about, end, noted, start
from crawler.local.entrance import ensure_key, entrance
from crawler.local.machine import free_port, port_is_free
from crawler.local.own_address import own_origins
from crawler.local.parts import POLL_SECONDS, Report, digest, last_words, pages_note, port_of
from crawler.local.private import write_private

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


def pages_origin(home: Path) -> str | None:
    """Where the pages of `home` are, for links that whoever was let in can follow; None where nothing serves them."""
    found = noted(pages_note(home))
    return None if found is None else own_origins(port_of(found))[0]


def pages_entrance(home: Path) -> str | None:
    """An address that lets into the pages of `home` once; None where nothing serves them."""
    found, key = noted(pages_note(home)), ensure_key(home)
    # Who else listens on that port of a dead server must not be told a code.
    if found is None or not proves_itself(port_of(found), key):
        return None
    return entrance(own_origins(port_of(found))[0], key, at=datetime.now(UTC))


def _port(home: Path) -> int:
    """The port of last time, else the usual one, else any that is free: a browser's bookmarks go on."""
    recorded = home / "run" / "pages-port"
    last = int(recorded.read_text(encoding="ascii")) if recorded.exists() else USUAL_PORT
    port = last if port_is_free(last) else free_port(f"{home} pages")
    write_private(recorded, str(port))
    return port
