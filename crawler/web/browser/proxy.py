"""The only way out of the browser: a proxy on loopback that answers each request of its pages by asking our own client.

A page's requests are HTTP requests of ours in the end, whatever made them: redirects, frames, workers, fetch. So the
proxy ends TLS itself (certificate.py), and what is no request that it can read (WebSockets, QUIC, anything else in a
tunnel) finds a closed door. Each tab has a listener of its own, by which its requests are told from other tabs'.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import h11

from crawler.core.http import Url
from crawler.web.browser.certificate import server_context
from crawler.web.browser.messages import HOP_BY_HOP, AnswerRequest, BrowserAnswer, BrowserRequest

READ_BYTES = 64 << 10
MOST_BODY_BYTES = 64 << 10  # of a request; none of ours has one
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # each with the account that opened it
_UID, _LOCAL = 7, 1  # columns


class _Origin(NamedTuple):
    """Where a tunnel leads: what the paths in it are put behind."""

    scheme: str
    authority: str


class LoopbackProxy:
    """A listener for the browser's requests. answer: of each of them.  in_flight: how many are being answered."""

    def __init__(self, answer: AnswerRequest) -> None:
        self._answer = answer
        self.in_flight = 0
        self.port = 0
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["LoopbackProxy"]:
        """Listen on a free port of loopback until the block ends; then every connection is cut."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for each in list(self._connections):
                each.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if _is_own_account(writer):
                await self._converse(reader, writer, None)
        except (OSError, ValueError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the browser went away, said what is no HTTP, or the tab was closed
        finally:
            self._connections.discard(task)
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, origin: _Origin | None
    ) -> None:
        """Answer the requests of one connection. origin: of the tunnel that it is; None: a proxy's own connection."""
        connection = h11.Connection(h11.SERVER)
        while True:
            request = await _next_request(connection, reader)
            if request is None:
                return
            if request.method == b"CONNECT" and origin is None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.drain()
                await writer.start_tls(server_context())
                await self._converse(reader, writer, _Origin("https", request.target.decode("ascii")))
                return
            answer = await self._answered(request, origin)
            if answer is None:
                return
            for event in _events(answer, is_head=request.method == b"HEAD"):
                writer.write(connection.send(event) or b"")
            await writer.drain()
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()

    async def _answered(self, request: h11.Request, origin: _Origin | None) -> BrowserAnswer | None:
        target = request.target.decode("ascii")
        if origin is not None:
            url = f"{origin.scheme}://{origin.authority.removesuffix(':443')}{target}"
        elif "://" in target:
            url = target
        else:
            return None  # somebody takes this for a web server
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers)
        self.in_flight += 1
        try:
            return await self._answer(BrowserRequest(request.method.decode("ascii"), Url(url), headers))
        finally:
            self.in_flight -= 1


async def _next_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The next request of a connection, its body read and dropped; None at the end of the connection."""
    request: h11.Request | None = None
    body_bytes = 0
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                connection.receive_data(await reader.read(READ_BYTES))
            case h11.Request():
                request = event
                if request.method == b"CONNECT":
                    return request
            case h11.Data():
                body_bytes += len(event.data)
                if body_bytes > MOST_BODY_BYTES:
                    return None
            case h11.EndOfMessage():
                return request
            case _:  # the connection is closed, or is to become something else than HTTP
                return None


def _events(answer: BrowserAnswer, *, is_head: bool) -> list[h11.Event]:
    headers = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in answer.headers
        if name.lower() not in HOP_BY_HOP and name.lower() != "content-length"
    ]
    bodiless = is_head or answer.status in {204, 304}
    if not bodiless:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    start = h11.Response(status_code=answer.status, headers=headers, reason=b"")
    data = [] if bodiless or not answer.body else [h11.Data(data=answer.body)]
    return [start, *data, h11.EndOfMessage()]


def _is_own_account(writer: asyncio.StreamWriter) -> bool:
    """Whether a process of our own account is at the other end: nobody else of this machine asks the web by us.

    Where the system does not tell, as on macOS, everybody may: a listener answers only for the page that a tab has.
    """
    peer = writer.get_extra_info("peername")
    if not SOCKETS[0].exists():
        return True
    wanted = f":{peer[1]:04X}"
    for table in SOCKETS:
        with contextlib.suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                columns = line.split()
                if columns[_LOCAL].endswith(wanted) and int(columns[_UID]) == os.getuid():
                    return True
    return False
