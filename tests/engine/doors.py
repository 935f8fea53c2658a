"""Servers that require credentials, and a proxy with tunnels; both record their requests."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from tests.ports import next_port


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. headers: by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    form: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def cookies(self) -> dict[str, str]:
        said = self.headers.get("cookie", "")
        return dict(one.strip().split("=", 1) for one in said.split(";") if "=" in one)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response. headers: lines of its head."""

    body: str = ""
    status: int = 200
    headers: tuple[str, ...] = ()


Answering = Callable[[Asked], Reply]


@dataclass(slots=True)
class DoorServer:
    """A server that records its requests."""

    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def pages(self) -> list[str]:
        """Return the targets of the requests, without robots.txt."""
        return [one.target for one in self.asked if one.target != "/robots.txt"]


@asynccontextmanager
async def door(answer: Answering, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[DoorServer]:
    """Run a server on loopback that keeps connections open."""
    served = DoorServer(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = await _asked(reader)
                served.asked.append(asked)
                writer.write(_bytes(answer(asked)))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port(), ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()


async def _asked(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, dict(parse_qsl(body.decode(), keep_blank_values=True)), body)


def _bytes(reply: Reply) -> bytes:
    body = reply.body.encode()
    lines = [
        f"HTTP/1.1 {reply.status} X",
        "Content-Type: text/html",
        *reply.headers,
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


@dataclass(slots=True)
class TunnelProxy:
    """An HTTP proxy that opens tunnels. heads: heads of its requests.  wanted: required Proxy-Authorization, if any."""

    port: int = 0
    wanted: str = ""
    heads: list[str] = field(default_factory=list)

    @property
    def targets(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]


@asynccontextmanager
async def tunnel_proxy(*, wanted: str = "") -> AsyncIterator[TunnelProxy]:
    """Run a proxy on loopback. wanted: the Proxy-Authorization that it requires; empty: none."""
    proxy = TunnelProxy(wanted=wanted)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            proxy.heads.append(head)
            if not head.startswith("CONNECT "):
                writer.write(b"HTTP/1.1 405 Tunnels only\r\nContent-Length: 0\r\n\r\n")
            elif proxy.wanted and f"Proxy-Authorization: {proxy.wanted}\r\n" not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            else:
                host, _, port = head.split(" ")[1].rpartition(":")
                there, away = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pass_on(reader, away))
                    both.create_task(_pass_on(there, writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port())
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
