"""Which metrics a worker tells of, and which the server of the pages."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.core import Metric

from crawler.runtime.metrics.families import crawl_families
from crawler.runtime.metrics.folder import ensure_metrics_folder, totals
from crawler.runtime.metrics.processes import process_families
from crawler.runtime.metrics.server import serving
from crawler.runtime.metrics.stored import StoredGauges
from crawler.settings import Settings
from crawler.store.database import Database

ANSWER_SECONDS = 30  # that the database gets for a scrape


@contextmanager
def worker_metrics(settings: Settings, home: Path, *, tag: str, is_alive: Callable[[], bool]) -> Iterator[None]:
    """Serve what the runs of a home count and use, where the settings name a port. tag: of the runs' processes."""
    if settings.metrics_port is None:
        yield
        return
    folder = ensure_metrics_folder(home)

    def collected() -> Iterator[Metric]:
        yield from crawl_families(totals(folder))
        yield from process_families(tag)

    with serving(settings.metrics_host, settings.metrics_port, collected=collected, is_alive=is_alive):
        yield


@contextmanager
def pages_metrics(settings: Settings, db: Database, home: Path, *, stack: str | None) -> Iterator[None]:
    """Serve how domains and subscriptions are, where the settings name a port.

    To be called within the loop that the database is used in.
    stack: the tag of the local stack that the pages stand beside; then what its runs count is told of, too.
    """
    if settings.metrics_port is None:
        yield
        return
    loop, figures = asyncio.get_running_loop(), StoredGauges(db, now=lambda: datetime.now(UTC))
    folder = ensure_metrics_folder(home) if stack is not None else None

    def collected() -> Iterator[Metric]:
        yield from asyncio.run_coroutine_threadsafe(figures.families(), loop).result(ANSWER_SECONDS)
        if folder is not None:
            yield from crawl_families(totals(folder))
        yield from process_families(stack)

    with serving(settings.metrics_host, settings.metrics_port, collected=collected, is_alive=lambda: True):
        yield
