"""Services of the web server: a parser process, metrics, its address for other commands, and background work.

The background work counts large domains with old figures, and syncs the search index of the API.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from crawler.app.database import AppDatabase
from crawler.app.running.users import INVITATION_PATH
from crawler.core.domain import Domain
from crawler.engine.machine_load import build_child_environment, trim_memory
from crawler.engine.machine_load import prepare_memory as release_memory
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.errors import CrawlerError
from crawler.plugins import load_plugins
from crawler.runtime.background_processes import TAG
from crawler.runtime.keys.feeds import FEED_PATH
from crawler.runtime.keys.home_keys import (
    LOGIN_PATH,
    LOGIN_PURPOSE,
    LOOPBACK_NAMES,
    MAX_NONCE_CHARS,
    PROOF_PATH,
    Signer,
    compute_proof,
    ensure_key,
)
from crawler.runtime.keys.home_keys import build_login_link as login_link
from crawler.runtime.machine import get_search_file
from crawler.runtime.web_ui import DEFAULT_PORT, note_web_ui
from crawler.settings import Settings
from crawler.store import report
from crawler.store.report import CountState

log = logging.getLogger("recrawl.pages")

SYNC_INTERVAL = timedelta(minutes=1)  # from the end of a sync to the start of the next
MAX_ERROR_CHARS = 300
TERMINATE_SECONDS = 5


def open_parsers(settings: Settings) -> ParserPool:
    """Open the process that parses pages for the web UI, with the enabled plugins."""
    return ParserPool(1, plugins=load_plugins(settings.plugins))


def announce_server(settings: Settings, *, port: int) -> AbstractContextManager[None]:
    """Note in RECRAWL_HOME, for the duration of the block, that this process serves the web UI on this port."""
    address = settings.web_origins[0] if settings.web_origins else None
    return note_web_ui(settings.home.resolve(), port=port, address=address)


@contextmanager
def serve_metrics(db: AppDatabase) -> Iterator[None]:
    """Serve the metrics of domains and subscriptions if a port is set. Call it within the event loop of `db`."""
    settings = db.settings
    if settings.metrics_port is None:
        yield
        return
    from crawler.runtime.metrics.endpoint import serve_web_ui_metrics  # noqa: PLC0415  takes 3 MB and is rarely needed

    host, port = settings.metrics_host, settings.metrics_port
    with serve_web_ui_metrics(host, port, db, settings.home.resolve(), stack=os.environ.get(TAG)):
        yield


class DomainCounter:
    """Counts the pages of queued large domains, one domain at a time. now: returns the knowledge time."""

    def __init__(self, db: AppDatabase, *, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._waiting: asyncio.Queue[Domain] = asyncio.Queue()
        self._pending_ids: set[int] = set()

    async def has_figures(self, domain: Domain) -> bool:
        """Return whether a domain was ever counted. If it was not, or its figures are old, queue it."""
        counting = await report.read_count_state(self._db, domain, at=self._now())
        if counting is not CountState.DONE and domain.id not in self._pending_ids:
            self._pending_ids.add(domain.id)
            self._waiting.put_nowait(domain)
        return counting is not CountState.NEVER

    async def run(self) -> None:
        """Count the queued domains, without end. Failures are logged; the next request queues the domain again."""
        while True:
            domain = await self._waiting.get()
            try:
                await report.store_figures(self._db, domain, at=self._now())
            except CrawlerError as error:
                log.warning("figures.not_counted", extra={"figures": {"domain": domain.authority, "error": str(error)}})
            finally:
                self._pending_ids.discard(domain.id)


class IndexSyncer:
    """Syncs the search index of a home on request, one sync at a time and at most one per minute.

    Each sync is a `recrawl sync` process, so its memory is freed afterwards.
    """

    def __init__(self, home: Path, *, pause: timedelta = SYNC_INTERVAL) -> None:
        self._home, self._pause = home, pause
        self._sync_requested = asyncio.Event()
        self._last_error = ""

    def request_sync(self) -> str:
        """Request a sync soon; return the one-line error of the last sync, empty if there is none."""
        self._sync_requested.set()
        return self._last_error

    async def run(self) -> None:
        """Sync the index whenever it is requested, without end."""
        while True:
            await self._sync_requested.wait()
            self._sync_requested.clear()
            self._last_error = await self._sync()
            if self._last_error:
                logging.getLogger("recrawl.api").warning("search.not_synced", extra={"error": self._last_error})
            await asyncio.sleep(self._pause.total_seconds())

    async def _sync(self) -> str:
        """Run `recrawl sync`; return its error, empty if it succeeded."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "crawler", "sync", str(get_search_file(self._home))),
            env=build_child_environment({"RECRAWL_HOME": str(self._home)}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, stderr = await child.communicate()
        finally:
            if child.returncode is None:
                child.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(child.wait(), TERMINATE_SECONDS)
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode == 0:
            return ""
        last = stderr.decode("utf-8", errors="replace").strip().splitlines()[-1:]
        return " ".join(last)[:MAX_ERROR_CHARS] or f"recrawl sync exited with code {child.returncode}"
