"""The server of one's own pages, beside the stack: `recrawl serve` as a process that stays."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.keys.own_keys import ensure_key, entrance, own_origins, proves_itself
from crawler.runtime.machine import process, remember_port

USUAL_PORT = 4280
START_SECONDS = 120  # two on a machine that does nothing else
PATIENCE_SECONDS = 10


def ensure_pages(home: Path, *, database_url: str, report: Report) -> None:
    """See to the server of the pages of `home`, started where it is not running; where it cannot be, that is reported.

    The crawl needs none of it, so that nothing else fails with it.
    """
    key = ensure_key(home)
    facts = {"database": children.digest(database_url), "key": children.digest(key)}
    found = children.noted(home, children.PAGES)
    if found is not None and facts.items() <= found.facts.items() and proves_itself(found.port, key):
        report("Pages: running")
        return
    children.end_part(home, children.PAGES, patience_seconds=PATIENCE_SECONDS)  # one that serves another database, too
    port = remember_port(home / "run" / "pages-port", usual=USUAL_PORT, key=f"{home} pages")
    report("Pages: starting")
    made = children.start(
        home,
        children.PAGES,
        [sys.executable, "-m", "crawler", "serve", "--port", str(port), "--quiet"],
        environment={"RECRAWL_HOME": str(home), "RECRAWL_DATABASE_URL": database_url},
        facts={**facts, "port": str(port)},
    )
    if not children.comes_about(
        lambda: proves_itself(port, key), of=made, what="Pages", seconds=START_SECONDS, report=report
    ):
        children.end([made.process], patience_seconds=PATIENCE_SECONDS)
        report(f"Pages: not to be had, all else runs: {children.last_words(home, children.PAGES)}")


def serving_pages(home: Path) -> Child | None:
    """The process that serves the pages of `home`: the stack's, or else one of the user's own."""
    return children.noted(home, children.PAGES) or children.noted(home, children.OWN_PAGES)


@contextmanager
def noted_as_serving(home: Path, *, port: int, address: str | None = None) -> Iterator[None]:
    """Let other commands know, while the block runs, that this process serves the pages on a port.

    address: the origin by which browsers reach it; None for this machine's own.
    """
    own = process(os.getpid())
    if own is None or children.noted(home, children.OWN_PAGES) is not None:  # another terminal serves them, too
        yield
        return
    facts = {"port": str(port)} | ({"address": address} if address is not None else {})
    children.write_note(home, children.OWN_PAGES, Child(own, facts))
    try:
        yield
    finally:
        children.forget(home, children.OWN_PAGES)


def pages_origin(home: Path) -> str | None:
    """Where the pages of `home` are, for links that whoever was let in can follow; None where nothing serves them."""
    found = serving_pages(home)
    return None if found is None else _origin_of(found)


def pages_entrance(home: Path) -> str | None:
    """An address that lets into the pages of `home` once; None where nothing serves them."""
    found, key = serving_pages(home), ensure_key(home)
    # Who else listens on that port of a dead server must not be told a code.
    if found is None or not proves_itself(found.port, key):
        return None
    return entrance(_origin_of(found), key, at=datetime.now(UTC))


def _origin_of(pages: Child) -> str:
    return pages.facts.get("address") or own_origins(pages.port)[0]
