"""Idle connections are closed, so that requests are served however many clients connect."""

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from crawler.app import system
from crawler.runtime.keys.home_keys import RESPONSE_SECONDS
from crawler.server import connections
from crawler.server.connections import MAX_CONNECTIONS, BoundedConnection
from crawler.server.server import Uvicorn
from tests.patience import PATIENCE_S
from tests.server.conftest import Visitor, served

CLIENTS = 1100
DESCRIPTORS = 1024  # of the server process, a common limit
REQUEST = b"GET /style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SENT_BEFORE = {
    "nothing": b"",
    "half of the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "a request before": REQUEST,
}


@pytest.fixture
def _enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * CLIENTS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_enough_descriptors")
@pytest.mark.parametrize(
    "sent",
    [pytest.param(sent, marks=() if sent == "half of the headers" else pytest.mark.soak) for sent in SENT_BEFORE],
)
def test_request_is_served_while_1100_clients_hold_connections(process_visitor: Visitor, sent: str) -> None:
    resource.prlimit(process_visitor.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    address = urlsplit(process_visitor.address)
    assert address.hostname is not None
    assert address.port is not None
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            client = stack.enter_context(socket.create_connection((address.hostname, address.port)))
            client.sendall(SENT_BEFORE[sent])
            if sent == "a request before":
                assert client.recv(10) == b"HTTP/1.1 4"
        seen = [process_visitor.get("/").status for _ in range(3)]

    assert seen == [200] * 3


@asynccontextmanager
async def server_of(app: Any) -> AsyncIterator[int]:
    """Serve an application with bounded connections and return the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Uvicorn(uvicorn.Config(app, http=BoundedConnection, log_level="error", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    """Read until the other side closes the connection or resets it."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def well(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"well"})


@pytest.mark.parametrize(
    "before",
    [b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n"],
    ids=["first request", "second request", "body of the first"],
)
async def test_slow_request_headers_are_cut_off_in_time(before: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    async with server_of(well) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(before)
        if before:
            assert (await reader.readuntil(b"well")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET / HTTP/1.1\r\n")
        ended = asyncio.create_task(read_to_end(reader))
        async with asyncio.timeout(PATIENCE_S):
            while not ended.done():  # a byte now and then, for as long as the server listens
                writer.write(b"x")
                await asyncio.wait([ended], timeout=0.05)
        writer.close()

    assert ended.result() == b""


async def test_slow_response_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    others_gone = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await others_gone.wait()
        await well(scope, receive, send)

    async with server_of(slow) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS + 1)]
        for idle_reader, idle_writer in idle:
            await read_to_end(idle_reader)
            idle_writer.close()
        others_gone.set()
        assert (await reader.read()).endswith(b"well")
        writer.close()


def test_overview_does_not_wait_for_a_prefect_server_that_hangs(database_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:  # accepts connections and never responds
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}/api"
        with served(database_url, tmp_path, PREFECT_API_URL=url) as visitor:
            visitor.log_in()
            started = time.monotonic()
            words = visitor.get("/").words
            seconds = time.monotonic() - started
            details = visitor.get("/system").words

    assert "Prefect server: no response." in words
    assert system.PATIENCE_S <= seconds < RESPONSE_SECONDS
    assert "no response within 2 s" in details
