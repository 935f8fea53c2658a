"""Endless bodies and headers, and slow servers: everything is limited."""

import asyncio
import gzip
from collections.abc import Callable
from datetime import timedelta

import pytest

from crawler.core.http.response import FailureReason, Fetched, RequestLimits, Unreached, Validators
from tests.fetch.asking import MEGABYTE, SOON, http, one, reason
from tests.fetch.server import Request, Send, answer, serving
from tests.patience import PATIENCE_S


async def test_a_gigabyte_that_is_declared_is_not_read() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
            while True:
                await send(bytes(65536))

        found = await one(server.does("/", reply))
        async with asyncio.timeout(PATIENCE_S):
            await server.hung_up.wait()
    assert reason(found) is FailureReason.TOO_LARGE
    assert server.sent < 16 * MEGABYTE  # what fits into the buffers of two sockets


async def test_a_gigabyte_that_is_streamed_is_read_only_to_the_limit() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await send(b"10000\r\n" + bytes(65536) + b"\r\n")

        found = await one(server.does("/", reply))
        async with asyncio.timeout(PATIENCE_S):
            await server.hung_up.wait()
    assert reason(found) is FailureReason.TOO_LARGE
    assert isinstance(found, Unreached)
    assert found.received_bytes < 2 * MEGABYTE
    assert server.sent < 16 * MEGABYTE


async def test_a_body_of_exactly_the_limit_is_accepted() -> None:
    async with serving() as server:
        found = await one(server.says("/", answer(b"a" * MEGABYTE)))
        assert isinstance(found, Fetched)
        assert found.received_bytes == MEGABYTE
        assert reason(await one(server.says("/", answer(b"a" * (MEGABYTE + 1))))) is FailureReason.TOO_LARGE


async def test_a_bomb_is_too_large() -> None:
    bomb = gzip.compress(bytes(50 * MEGABYTE))
    assert len(bomb) < MEGABYTE
    async with serving() as server:
        found = await one(server.says("/", answer(bomb, "Content-Encoding: gzip")))
    assert reason(found) is FailureReason.TOO_LARGE


@pytest.mark.parametrize(
    "headers",
    [
        b"X: " + b"a" * 100_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % n for n in range(10_000)),
        b"a" * 100_000,
    ],
)
async def test_a_flood_of_headers_is_garbage(headers: bytes) -> None:
    async with serving() as server:
        found = await one(server.says("/", b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n"))
    assert reason(found) is FailureReason.GARBAGE


async def test_endless_headers_are_aborted() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\n")
            while True:
                await send(b"X: " + b"a" * 1000 + b"\r\n")

        assert reason(await one(server.does("/", reply))) is FailureReason.GARBAGE


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
async def test_a_silent_server_meets_the_deadline(before: bytes) -> None:
    async with serving() as server, http() as web:
        url = server.says("/", before)
        found = await web.fetch(url, deadline=timedelta(seconds=1))
        assert reason(found) is FailureReason.DEADLINE
        async with asyncio.timeout(PATIENCE_S):
            await server.hung_up.wait()


async def test_a_slow_drip_meets_the_deadline() -> None:
    async with serving() as server, http() as web:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                await send(b"a")
                await asyncio.sleep(0.01)

        found = await web.fetch(server.does("/", reply), deadline=timedelta(seconds=1))
    assert reason(found) is FailureReason.DEADLINE
    assert isinstance(found, Unreached)
    assert found.received_bytes > 0


async def test_waiting_for_a_connection_counts_toward_the_deadline() -> None:
    async with serving() as server, http(connections=1) as web, asyncio.TaskGroup() as both:
        url = server.says("/", b"")
        first = both.create_task(web.fetch(url, deadline=timedelta(seconds=2)))
        second = both.create_task(web.fetch(url, deadline=timedelta(seconds=1)))
    assert reason(first.result()) is reason(second.result()) is FailureReason.DEADLINE
    assert len(server.heard) == 1


async def test_a_cancelled_fetch_is_cancelled_and_closes_its_connection() -> None:
    async with serving() as server, http() as web:
        asked = asyncio.Event()

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\n")
            asked.set()

        task = asyncio.create_task(web.fetch(server.does("/", reply), deadline=SOON))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE_S):
            await server.hung_up.wait()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"


async def test_chunk_framing_and_trailers_count_as_received_bytes() -> None:
    body = b"1\r\na\r\n" * 1000 + b"0\r\nX-Sum: 12\r\n\r\n"
    async with serving() as server, http() as web:
        url = server.says("/", CHUNKED + body)
        for _ in range(2):  # the second on the same connection
            found = await web.fetch(url, deadline=SOON)
            assert isinstance(found, Fetched)
            assert (found.body, found.received_bytes) == (b"a" * 1000, len(body))
    assert server.connections == 1


async def test_interim_responses_count_as_received_bytes() -> None:
    async with serving() as server, http() as web:
        hello = await web.fetch(server.says("/", HINT * 3 + answer(b"hello")), deadline=SOON)
        copy = Validators(etag='"a"')
        same = await web.fetch(
            server.says("/", HINT + b"HTTP/1.1 304 Not Modified\r\n\r\n"), validators=copy, deadline=SOON
        )
        plain = await web.fetch(server.says("/", answer(b"hello")), deadline=SOON)
    assert isinstance(hello, Fetched)
    assert (hello.body, hello.received_bytes) == (b"hello", 3 * len(HINT) + 5)
    assert (same.received_bytes, plain.received_bytes) == (len(HINT), 5)


@pytest.mark.parametrize(
    ("begin", "again", "why"),
    [
        (b"", HINT, FailureReason.GARBAGE),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", FailureReason.GARBAGE),
        (CHUNKED, b"1\r\na\r\n" * 1000, FailureReason.TOO_LARGE),
        (CHUNKED + b"5;x=", b"a" * 1000, FailureReason.TOO_LARGE),
        (CHUNKED + b"0\r\n", b"X: " + b"a" * 1000 + b"\r\n", None),
    ],
    ids=["hints", "continue", "frames", "extension of a chunk", "trailers"],
)
async def test_what_is_sent_beside_an_endless_body_is_limited(
    begin: bytes, again: bytes, why: FailureReason | None
) -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(begin)
            while True:
                await send(again)

        found = await one(server.does("/", reply))
        async with asyncio.timeout(PATIENCE_S):
            await server.hung_up.wait()
    assert isinstance(found, Unreached)
    assert found.reason is why or why is None
    assert found.reason in {FailureReason.TOO_LARGE, FailureReason.GARBAGE, FailureReason.RESET}
    assert found.received_bytes < 2 * MEGABYTE
    assert server.sent < 16 * MEGABYTE
    assert len(server.heard) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["as it is", "packed"])
async def test_the_beginning_of_a_body_beyond_the_limit_can_be_read(pack: Callable[[bytes], bytes]) -> None:
    whole = bytes(range(256)) * (3 * MEGABYTE // 256)
    headers = ("Content-Encoding: gzip",) if pack is gzip.compress else ()
    async with serving() as server, http() as web:
        url = server.says("/", answer(pack(whole), *headers))
        found = await web.fetch(url, deadline=SOON, limits=RequestLimits(first_bytes=500_000))
        short = await web.fetch(
            server.says("/", answer(pack(b"hello"), *headers)), deadline=SOON, limits=RequestLimits(first_bytes=500_000)
        )
    assert isinstance(found, Fetched)
    assert found.body == whole[:500_000]
    assert isinstance(short, Fetched)
    assert short.body == b"hello"


async def test_the_beginning_of_a_stream_in_small_chunks_can_be_read() -> None:
    async with serving() as server, http() as web:

        async def reply(_: Request, send: Send) -> None:
            await send(CHUNKED)
            while True:
                await send(b"1\r\na\r\n" * 1000)

        found = await web.fetch(server.does("/", reply), deadline=SOON, limits=RequestLimits(first_bytes=50_000))
    assert isinstance(found, Fetched)
    assert found.body == b"a" * 50_000


async def test_a_public_only_request_never_reuses_a_connection_to_a_private_address() -> None:
    async with serving() as server, http(allow_private=True) as web:
        url = server.says("/", answer(b"hello"))
        assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
        assert (
            reason(await web.fetch(url, deadline=SOON, limits=RequestLimits(public_only=True))) is FailureReason.ADDRESS
        )
    assert len(server.heard) == 1
