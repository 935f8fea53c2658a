"""A port for Prometheus and for probes, and what a worker and the server of the pages tell of there.

A thread of its own serves it: it answers while the process is busy.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6, AddressFamily

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from crawler.errors import StackFailed
from crawler.runtime.metrics import families
from crawler.runtime.metrics.counted import ensure_metrics_folder, totals
from crawler.store import subscriptions
from crawler.store.database import Database
from crawler.store.report import domain_gauges

log = logging.getLogger("recrawl.metrics")

ANSWER_SECONDS = 30  # that the database gets for a scrape
KEPT_SECONDS = 60.0
METRICS, ALIVE = "/metrics", "/alive"
TEXT = "text/plain; charset=utf-8"


@contextmanager
def worker_metrics(host: str, port: int, home: Path, *, tag: str, is_alive: Callable[[], bool]) -> Iterator[None]:
    """Serve what the runs of a home count and use. tag: of the runs' processes."""
    folder = ensure_metrics_folder(home)

    def collected() -> Iterator[Metric]:
        yield from families.crawl_families(totals(folder))
        yield from families.process_families(tag)

    with serving(host, port, collected=collected, is_alive=is_alive):
        yield


@contextmanager
def pages_metrics(host: str, port: int, db: Database, home: Path, *, stack: str | None) -> Iterator[None]:
    """Serve how domains and subscriptions are.

    To be called within the loop that the database is used in.
    stack: the tag of the local stack that the pages stand beside; then what its runs count is told of, too.
    """
    loop, figures = asyncio.get_running_loop(), StoredGauges(db, now=lambda: datetime.now(UTC))
    folder = ensure_metrics_folder(home) if stack is not None else None

    def collected() -> Iterator[Metric]:
        yield from asyncio.run_coroutine_threadsafe(figures.families(), loop).result(ANSWER_SECONDS)
        if folder is not None:
            yield from families.crawl_families(totals(folder))
        yield from families.process_families(stack)

    with serving(host, port, collected=collected, is_alive=lambda: True):
        yield


class StoredGauges:
    """The newest figures of a database. now: knowledge time."""

    def __init__(self, db: Database, *, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._kept: list[Metric] = []
        self._asked_at: float | None = None

    async def families(self) -> list[Metric]:
        """All gauges, not older than KEPT_SECONDS."""
        if self._asked_at is None or time.monotonic() - self._asked_at > KEPT_SECONDS:
            now = self._now()
            domains, calibration = await domain_gauges(self._db, at=now, most=families.MOST_DOMAINS)
            found = await subscriptions.every(self._db)
            self._kept = [
                *families.domain_families(domains, calibration),
                *families.subscription_families(found, at=now),
            ]
            self._asked_at = time.monotonic()
        return self._kept


class _Families(Collector):
    """What is asked for anew with each scrape."""

    def __init__(self, collected: Callable[[], Iterable[Metric]]) -> None:
        self._collected = collected

    def collect(self) -> Iterable[Metric]:
        return self._collected()


@contextmanager
def serving(
    host: str, port: int, *, collected: Callable[[], Iterable[Metric]], is_alive: Callable[[], bool]
) -> Iterator[None]:
    """Answer on a port until the block ends; both functions are called in threads. Raises StackFailed: port taken."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(collected))

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:  # as http.server calls it
            match self.path.partition("?")[0]:
                case "/metrics":
                    encode, kind = choose_encoder(self.headers.get("Accept", ""))
                    try:
                        said = encode(registry)
                    except Exception as error:  # noqa: BLE001  whatever ails a collector ends no service
                        log.warning("metrics.not_collected", extra={"error": repr(error)})
                        self._say(503, TEXT, f"not collected: {error}\n".encode())
                    else:
                        self._say(200, kind, said)
                case "/alive":
                    alive = is_alive()
                    self._say(200 if alive else 503, TEXT, b"alive\n" if alive else b"silent\n")
                case _:
                    self._say(404, TEXT, f"there are {METRICS} and {ALIVE}\n".encode())

        def _say(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Who scrapes is of no interest."""

    class MetricsServer(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in host else AddressFamily.AF_INET
        daemon_threads = True

    try:
        server = MetricsServer((host, port), Handler)
    except OSError as error:
        raise StackFailed(f"{host} port {port} (RECRAWL_METRICS_PORT) is not to be had: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
