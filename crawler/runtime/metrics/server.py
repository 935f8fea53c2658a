"""A port for Prometheus and for probes, served by a thread of its own: it answers while the process is busy."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, AddressFamily

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from crawler.errors import StackFailed

log = logging.getLogger("recrawl.metrics")

METRICS, ALIVE = "/metrics", "/alive"
TEXT = "text/plain; charset=utf-8"


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
