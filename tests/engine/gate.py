"""A gate in front of Postgres: while it is shut, Postgres is unreachable and connections break."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Gate:
    """A forwarder from one port to another. url: the database's URL through the gate."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._behind = parts.hostname, parts.port
        self._url = url
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return self._url.replace(f":{self._behind[1]}/", f":{self._port}/")

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._open:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(*self._behind)
        if self._server is None:  # it was shut between the two connections
            writer.transport.abort()
            behind_writer.transport.abort()
            return
        both = {writer, behind_writer}
        self._open |= both
        with suppress(ConnectionError):
            await asyncio.gather(_copy(reader, behind_writer), _copy(behind_reader, writer))
        self._open -= both


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def gate_before(url: str) -> AsyncIterator[Gate]:
    """Open a gate in front of the database at a URL."""
    gate = Gate(url)
    await gate.open()
    try:
        yield gate
    finally:
        await gate.shut()
