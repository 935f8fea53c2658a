"""The HTTP endpoint for Prometheus and probes, in a worker or in the web UI.

It runs in a separate thread, so it responds while the process is busy.
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
from crawler.runtime.metrics.counting import ensure_metrics_folder, sum_counts
from crawler.store import subscriptions
from crawler.store.database import Database
from crawler.store.report import read_domain_gauges

log = logging.getLogger("recrawl.metrics")

RESPONSE_SECONDS = 30  # time limit of the database in a scrape
CACHE_SECONDS = 60.0
TEXT = "text/plain; charset=utf-8"


@contextmanager
def serve_worker_metrics(host: str, port: int, home: Path, *, tag: str, is_alive: Callable[[], bool]) -> Iterator[None]:
    """Serve the metrics of the crawl runs of a home. tag: of their processes.  is_alive: whether /alive returns 200."""
    folder = ensure_metrics_folder(home)

    def collect() -> Iterator[Metric]:
        yield from families.build_crawl_families(sum_counts(folder))
        yield from families.build_process_families(tag)

    with serve_metrics(host, port, collect=collect, is_alive=is_alive):
        yield


@contextmanager
def serve_web_ui_metrics(host: str, port: int, db: Database, home: Path, *, stack: str | None) -> Iterator[None]:
    """Serve the metrics of domains and subscriptions. Call it in the event loop of the database.

    stack: the tag of the local stack of this web UI, whose crawl runs are included; None if it belongs to none.
    """
    loop, gauges = asyncio.get_running_loop(), StoredGauges(db, now=lambda: datetime.now(UTC))
    folder = ensure_metrics_folder(home) if stack is not None else None

    def collect() -> Iterator[Metric]:
        yield from asyncio.run_coroutine_threadsafe(gauges.read_families(), loop).result(RESPONSE_SECONDS)
        if folder is not None:
            yield from families.build_crawl_families(sum_counts(folder))
        yield from families.build_process_families(stack)

    with serve_metrics(host, port, collect=collect, is_alive=lambda: True):
        yield


class StoredGauges:
    """The gauges of domains and subscriptions in a database, cached. now: returns the current time."""

    def __init__(self, db: Database, *, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._cached: list[Metric] = []
        self._read_at: float | None = None

    async def read_families(self) -> list[Metric]:
        """Return all gauges, at most CACHE_SECONDS old."""
        if self._read_at is None or time.monotonic() - self._read_at > CACHE_SECONDS:
            now = self._now()
            domains, calibration = await read_domain_gauges(self._db, at=now, max_domains=families.MAX_DOMAINS)
            all_subscriptions = await subscriptions.list_subscriptions(self._db)
            self._cached = list(families.build_domain_families(domains, calibration))
            self._cached += families.build_subscription_families(all_subscriptions, at=now)
            self._read_at = time.monotonic()
        return self._cached


Collect = Callable[[], Iterable[Metric]]


class _FamilyCollector(Collector):
    """A collector that calls a function in each scrape."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


@contextmanager
def serve_metrics(host: str, port: int, *, collect: Collect, is_alive: Callable[[], bool]) -> Iterator[None]:
    """Serve metrics on a port during the block. Raises StackFailed if that fails. Both functions run in threads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FamilyCollector(collect))

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:  # named by http.server
            match self.path.partition("?")[0]:
                case "/metrics":
                    encode, kind = choose_encoder(self.headers.get("Accept", ""))
                    try:
                        body = encode(registry)
                    except Exception as error:  # noqa: BLE001  no error of a collector may stop the service
                        log.warning("metrics.not_collected", extra={"error": repr(error)})
                        self._respond(503, TEXT, f"the metrics cannot be collected: {error}\n".encode())
                    else:
                        self._respond(200, kind, body)
                case "/alive":
                    alive = is_alive()
                    self._respond(200 if alive else 503, TEXT, b"alive\n" if alive else b"silent\n")
                case _:
                    self._respond(404, TEXT, b"not found: use /metrics or /alive\n")

        def _respond(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    class MetricsServer(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in host else AddressFamily.AF_INET
        daemon_threads = True

    try:
        server = MetricsServer((host, port), Handler)
    except OSError as error:
        raise StackFailed(f"cannot listen on {host} port {port} (RECRAWL_METRICS_PORT): {error.strerror}") from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
