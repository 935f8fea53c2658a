"""A server that sends any bytes that a test chooses, even invalid ones."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from crawler.core.http.urls import Url
from tests.ports import next_port

Send = Callable[[bytes], Awaitable[None]]
Reply = Callable[["Request", Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """One request, with the number of its connection."""

    line: bytes
    head: bytes
    connection: int

    def header(self, name: str) -> bytes | None:
        for line in self.head.split(b"\r\n"):
            key, _, value = line.partition(b": ")
            if key.lower() == name.lower().encode():
                return value
        return None


@dataclass(slots=True)
class Server:
    """A server with its requests and its replies by path; a reply that returns leaves the connection open.

    hung_up: set when a client has closed a connection.
    """

    port: int = 0
    replies: dict[str, Reply] = field(default_factory=dict)
    heard: list[Request] = field(default_factory=list)
    connections: int = 0
    sent: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/") -> Url:
        return Url(f"http://127.0.0.1:{self.port}{path}")

    def says(self, path: str, raw: bytes, *, close: bool = False) -> Url:
        """Send these bytes for the path, and close the connection if `close` is set."""

        async def reply(_: Request, send: Send) -> None:
            await send(raw)
            if close:
                raise ConnectionAbortedError

        return self.does(path, reply)

    def does(self, path: str, reply: Reply) -> Url:
        self.replies[path] = reply
        return self.url(path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections

        async def send(data: bytes) -> None:
            writer.write(data)
            self.sent += len(data)
            await writer.drain()

        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, _, rest = head.partition(b"\r\n")
                request = Request(line, rest, number)
                self.heard.append(request)
                await self.replies[line.split(b" ")[1].decode()](request, send)
        self.hung_up.set()
        writer.close()


@contextlib.asynccontextmanager
async def serving(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server on a free loopback port."""
    server = Server()
    listener = await asyncio.start_server(server._serve, "127.0.0.1", next_port(), ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    """Return a correct response with a Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
