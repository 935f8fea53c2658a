"""HTTP/1.1 on sockets: one thread per kept-alive connection; all connections end when the server closes."""

import socket
import socketserver
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

from labs.demo.server.faults import NOTHING
from labs.demo.server.journal import Entry, Journal
from labs.demo.site import Ask, Reply

CONTROL = "/-/"  # paths below it control the server; they are neither logged nor counted
MAX_BODY_BYTES = 1_000_000  # bytes, of a control call

Accepted = socket.socket | tuple[bytes, socket.socket]  # the base class's type: the second is for datagrams


class Served(Protocol):
    """The handler of requests."""

    journal: Journal

    def answer(self, ask: Ask) -> Reply: ...

    def control(self, method: str, path: str, body: bytes) -> Reply: ...


class Server(ThreadingHTTPServer):
    """A server that can end its connections."""

    daemon_threads = True
    request_queue_size = 512  # a crawler opens all its connections at the same time

    def __init__(self, address: tuple[str, int], served: Served) -> None:
        self.served = served
        self._connections: set[Accepted] = set()
        self._lock = Lock()
        super().__init__(address, Connection)

    def server_bind(self) -> None:
        # Not HTTPServer's method, which resolves the machine's name.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Accepted, client_address: object) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Accepted) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """End all connections, also idle ones that were kept alive."""
        with self._lock:
            open_ones = list(self._connections)
        for connection in open_ones:
            assert isinstance(connection, socket.socket)
            with suppress(OSError):  # the other side has already closed
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Accepted, client_address: object) -> None:
        """Ignore clients that disconnect; show other errors as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Connection(BaseHTTPRequestHandler):
    """A connection with its requests, one after the other."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.reply_to("GET")

    def do_HEAD(self) -> None:
        self.reply_to("HEAD")

    def do_POST(self) -> None:
        self.reply_to("POST")

    def reply_to(self, method: str) -> None:
        if self.path.startswith(CONTROL):
            body = self.rfile.read(min(MAX_BODY_BYTES, int(self.headers.get("Content-Length", 0))))
            self.send(self.server.served.control(method, self.path, body), method)
        elif method == "POST":
            self.close_connection = True  # the body is not read
            self.send(Reply(405, b"Read only.\n", (("Allow", "GET, HEAD"), ("Content-Type", "text/plain"))), method)
        else:
            self.reply_and_record(method)

    def reply_and_record(self, method: str) -> None:
        """Respond to a request for the site and record it, also if it fails."""
        journal, began = self.server.served.journal, monotonic()
        asked = self.headers.get("If-None-Match"), self.headers.get("If-Modified-Since")
        status = sent_bytes = body_bytes = 0
        journal.begin()
        try:
            answer = self.server.served.answer(Ask(urlsplit(self.path).path, *asked))
            status, body_bytes = answer.status, 0 if method == "HEAD" else len(answer.body)
            sent_bytes = self.send(answer, method)
        finally:
            entry = Entry(
                method=method,
                path=self.path,
                status=status,
                sent_bytes=sent_bytes,
                body_bytes=body_bytes,
                began=began,
                ended=monotonic(),
                if_none_match=asked[0],
                if_modified_since=asked[1],
                agent=self.headers.get("User-Agent"),
            )
            journal.end(entry)

    def send(self, answer: Reply, method: str) -> int:
        """Send the response in one write; return its size in bytes."""
        if answer.status == NOTHING:
            self.close_connection = True
            return 0
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", "Server: living-site"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if answer.status != HTTPStatus.NOT_MODIFIED:
            lines.append(f"Content-Length: {len(answer.body)}")
        if self.close_connection:
            lines.append("Connection: close")
        data = "\r\n".join((*lines, "", "")).encode("latin-1") + (b"" if method == "HEAD" else answer.body)
        self.wfile.write(data)
        return len(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing: the journal has all requests."""
