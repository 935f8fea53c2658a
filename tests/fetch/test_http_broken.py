"""Servers that break the connection or the protocol, and reused connections."""

import asyncio
import socket

import pytest

from crawler.core.http.response import FailureReason, Fetched
from crawler.core.http.urls import Url
from tests.fetch.asking import SOON, http, one, reason
from tests.fetch.server import Request, Send, answer, serving


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", FailureReason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-", FailureReason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", FailureReason.RESET),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", FailureReason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc", FailureReason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nabc", FailureReason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", FailureReason.GARBAGE),
        (b"HTTP/1.1 OK\r\n\r\n", FailureReason.GARBAGE),
        (b"SSH-2.0-OpenSSH_9.2\r\n", FailureReason.GARBAGE),
        (b"\x00\x01\x02\x03\r\n\r\n", FailureReason.GARBAGE),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel",
            FailureReason.GARBAGE,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"0" * 5000 + b"3\r\n\r\nabc", None),
        (b"<html>hello</html>", FailureReason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", FailureReason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", FailureReason.GARBAGE),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 50, None),
        (b"\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", None),
    ],
)
async def test_a_broken_response_is_a_finding(raw: bytes, why: FailureReason | None) -> None:
    async with serving() as server:
        found = await one(server.says("/", raw, close=True))
    if why is not None:
        assert reason(found) is why
    assert len(server.heard) == 1


async def test_a_server_that_closes_a_new_connection_gets_one_request() -> None:
    async with serving() as server:
        assert reason(await one(server.says("/", b"", close=True))) is FailureReason.RESET
    assert len(server.heard) == 1


async def test_a_half_closed_connection_is_still_read() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    loop = asyncio.get_running_loop()

    async def half_close() -> None:
        taken, _ = await loop.sock_accept(listener)
        await loop.sock_recv(taken, 4096)
        await loop.sock_sendall(taken, b"HTTP/1.1 200 OK\r\n\r\nthe rest")
        taken.shutdown(socket.SHUT_WR)
        assert await loop.sock_recv(taken, 4096) == b""  # the other side closes as well
        taken.close()

    with listener:
        async with asyncio.TaskGroup() as both:
            both.create_task(half_close())
            found = await one(Url(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
    assert isinstance(found, Fetched)
    assert found.body == b"the rest"


async def test_a_reset_during_the_body_is_a_reset() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    loop = asyncio.get_running_loop()

    async def reset() -> None:
        taken, _ = await loop.sock_accept(listener)
        await loop.sock_recv(taken, 4096)
        await loop.sock_sendall(taken, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        taken.close()

    with listener:
        async with asyncio.TaskGroup() as both:
            both.create_task(reset())
            found = await one(Url(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
    assert reason(found) is FailureReason.RESET


async def test_bytes_after_a_body_are_no_response_to_the_next_request() -> None:
    async with serving() as server, http() as web:
        forged = answer(b"forged")
        first = await web.fetch(server.says("/a", answer(b"true") + forged), deadline=SOON)
        second = await web.fetch(server.says("/b", answer(b"true")), deadline=SOON)
    assert isinstance(first, Fetched)
    assert isinstance(second, Fetched)
    assert first.body == second.body == b"true"


async def test_bytes_after_a_head_response_are_no_response_to_the_next_request() -> None:
    async with serving() as server, http() as web:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
        first = await web.fetch(server.says("/a", head + answer(b"forged")), deadline=SOON, method="HEAD")
        second = await web.fetch(server.says("/b", answer(b"true")), deadline=SOON)
        third = await web.fetch(server.says("/c", head), deadline=SOON, method="HEAD")
        fourth = await web.fetch(server.says("/b", answer(b"true")), deadline=SOON)
    assert [isinstance(each, Fetched) and each.body for each in (first, second, third, fourth)] == [
        b"",
        b"true",
        b"",
        b"true",
    ]
    assert server.connections == 2  # only what ends with its head leaves a connection that can be used again


FINAL = b'HTTP/1.1 200 OK\r\nETag: "a"\r\n'


@pytest.mark.parametrize(
    ("raw", "closes"),
    [
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + FINAL + b"Content-Length: 5\r\n\r\nhello", False),
        (FINAL + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nT: 1\r\n\r\n", False),
        (b'HTTP/1.0 200 OK\r\nETag: "a"\r\n\r\nhello', True),
        (b'HTTP/1.1 200\nETag: "a"\nContent-Length: 5\n\nhello', False),
    ],
)
async def test_a_response_in_single_bytes_is_the_same(raw: bytes, *, closes: bool) -> None:
    async def drip(_: Request, send: Send) -> None:
        for byte in raw:
            await send(bytes([byte]))
        if closes:
            raise ConnectionAbortedError

    async with serving() as server:
        found = await one(server.does("/", drip))
    assert isinstance(found, Fetched)
    assert (found.status, found.body, found.validators.etag) == (200, b"hello", '"a"')


async def test_connections_are_reused() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", answer(b"x" * 20_000))
        for _ in range(20):
            assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
    assert len(server.heard) == 20
    assert server.connections == 1


async def test_never_more_connections_than_allowed() -> None:
    async with serving() as server, http(connections=4) as web, asyncio.TaskGroup() as crowd:
        url = server.says("/", answer(b"x"))
        for _ in range(50):
            crowd.create_task(web.fetch(url, deadline=SOON))
    assert len(server.heard) == 50
    assert server.connections <= 4


async def test_a_connection_that_the_server_closed_is_replaced() -> None:
    async with serving() as server, http() as web:

        async def resumed(request: Request, send: Send) -> None:
            # Closes when the second request on a connection arrives, like a server whose timeout has just expired.
            if sum(other.connection == request.connection for other in server.heard) > 1:
                raise ConnectionAbortedError
            await send(answer(b"x"))

        url = server.does("/", resumed)
        found = [await web.fetch(url, deadline=SOON) for _ in range(3)]
    assert all(isinstance(each, Fetched) for each in found)
    assert server.connections == 3


async def test_a_request_is_not_repeated_once_a_response_has_begun() -> None:
    async with serving() as server, http() as web:

        async def begins(request: Request, send: Send) -> None:
            if sum(other.connection == request.connection for other in server.heard) > 1:
                await send(b"HTTP/1.1 200 OK\r\nContent-Le")
                raise ConnectionAbortedError
            await send(answer(b"x"))

        url = server.does("/", begins)
        assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
        assert reason(await web.fetch(url, deadline=SOON)) is FailureReason.RESET
    assert len(server.heard) == 2


async def test_a_server_that_closes_all_connections_at_once_still_gets_the_request() -> None:
    """A restarting server does so; the next request finds the closed connections one after the other."""
    async with serving() as server, http() as web:
        many = 12

        async def resumed(request: Request, send: Send) -> None:
            if sum(other.connection == request.connection for other in server.heard) > 1:
                raise ConnectionAbortedError
            while len(server.heard) < many:
                await asyncio.sleep(0)
            await send(answer(b"x"))

        url = server.does("/", resumed)
        async with asyncio.TaskGroup() as crowd:
            for _ in range(many):
                crowd.create_task(web.fetch(url, deadline=SOON))
        assert server.connections == many
        assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
