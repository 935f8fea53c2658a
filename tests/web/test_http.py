"""One request against real servers, good and bad, on loopback."""

import asyncio
import datetime as dt
import gzip
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawler.core.answer import Answer, Fetched, NotModified, Reason, Unreached, Validators
from crawler.core.urls import Authority, Url, normalise
from crawler.web.http import ACCEPT, Http
from tests.web.server import Request, Send, answer, serving

AGENT = "recrawl/test (+https://example.com/about-our-crawler)"
SOON = timedelta(seconds=20)  # never waited for
MEGABYTE = 1024 * 1024


def http(
    *,
    allow_private: bool = True,
    max_body_bytes: int = MEGABYTE,
    connections: int = 16,
    lookup: Callable[[str], Sequence[str]] | None = None,
    trust: ssl.SSLContext | None = None,
) -> Http:
    if lookup is None:
        return Http(
            user_agent=AGENT,
            allow_private=allow_private,
            max_body_bytes=max_body_bytes,
            connections=connections,
            trust=trust,
        )
    return Http(user_agent=AGENT, allow_private=allow_private, lookup=lookup, trust=trust)


async def one(url: Url, **options: bool | int) -> Answer:
    async with http(**options) as web:  # type: ignore[arg-type]
        return await web.fetch(url, deadline=SOON)


def reason(found: Answer) -> Reason:
    assert isinstance(found, Unreached), found
    assert found.detail
    assert "\n" not in found.detail
    return found.reason


# What is asked


async def test_a_request_says_who_asks_and_nothing_that_is_not_so() -> None:
    async with serving() as server:
        await one(server.says("/", answer(b"x")))
    (request,) = server.heard
    assert request.line == b"GET / HTTP/1.1"
    headers = dict(line.split(b": ", 1) for line in request.head.strip().split(b"\r\n"))
    assert headers == {
        b"Host": f"127.0.0.1:{server.port}".encode(),
        b"User-Agent": AGENT.encode(),
        b"Accept": ACCEPT.encode(),
        b"Accept-Encoding": b"gzip, deflate",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/a%20b/%C3%A4/%2F%3F?q=%27a%27&b=c+d%2Be",
        "/a|b/[c]/'d'/(e)?f=[]|{}`",
        "//double//slash//",
        "/~a/;p=1,2/@:!$&*+=",
        "/100%/%zz?%",
        "/a?b?c/d",
        "/" + "x" * 8000,
    ],
)
async def test_the_url_goes_over_the_wire_as_it_is_spelt(path: str) -> None:
    async with serving() as server:
        url = normalise(server.says(path, answer()))
        assert url == server.url(path)
        assert isinstance(await one(url), Fetched)
    assert server.heard[0].line == f"GET {path} HTTP/1.1".encode()


async def test_validators_go_back_verbatim() -> None:
    validators = Validators(etag='W/"a, b;  \u00e4"', last_modified="yesterday, by the server's own skewed clock")
    async with serving() as server, http() as web:
        url = server.says("/", answer(status="304 Not Modified"))
        found = await web.fetch(url, validators=validators, deadline=SOON)
    assert isinstance(found, NotModified)
    assert server.heard[0].header("If-None-Match") == 'W/"a, b;  \u00e4"'.encode()
    assert server.heard[0].header("If-Modified-Since") == b"yesterday, by the server's own skewed clock"


async def test_validators_that_would_break_the_request_are_not_sent() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", answer(b"x"))
        found = await web.fetch(
            url, validators=Validators(etag='"a"\r\nEvil: 1', last_modified="\ud800"), deadline=SOON
        )
    assert isinstance(found, Fetched)
    assert server.heard[0].header("If-None-Match") is None
    assert server.heard[0].header("Evil") is None


async def test_no_cookie_is_kept() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", answer(b"x", "Set-Cookie: session=1; Path=/"))
        await web.fetch(url, deadline=SOON)
        await web.fetch(url, deadline=SOON)
    assert len(server.heard) == 2
    assert [request.header("Cookie") for request in server.heard] == [None, None]


async def test_only_the_head_is_asked_for_where_only_it_is_wanted() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", b'HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\nETag: "a"\r\n\r\n')
        found = await web.fetch(url, deadline=SOON, method="HEAD")
    assert server.heard[0].line == b"HEAD / HTTP/1.1"
    assert isinstance(found, Fetched)
    assert (found.body, found.received_bytes, found.validators.etag) == (b"", 0, '"a"')
    assert found.declared_bytes == 999_999_999


async def test_a_head_that_tells_of_a_compressed_body_is_not_taken_for_one_that_ends_early() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", b"HTTP/1.1 200 OK\r\nContent-Length: 321\r\nContent-Encoding: gzip\r\n\r\n")
        found = await web.fetch(url, deadline=SOON, method="HEAD")
    assert isinstance(found, Fetched)
    assert (found.body, found.declared_bytes) == (b"", 321)


# What is answered


async def test_an_answer_carries_what_the_server_said() -> None:
    headers = (
        "Content-Type: text/html; charset=latin-1",
        'ETag: W/"abc"',
        "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT",
        "Date: not a date at all",
        "X-Robots-Tag: noindex",
        "x-robots-tag: otherbot: nofollow",
        "Retry-After: 7",
    )
    async with serving() as server:
        found = await one(server.says("/", answer(b"<p>hello", *headers, status="503 Busy")))
    assert isinstance(found, Fetched)
    assert found.status == 503
    assert (found.body, found.received_bytes) == (b"<p>hello", 8)
    assert found.content_type == "text/html; charset=latin-1"
    assert found.validators == Validators('W/"abc"', "Sat, 01 Jan 2000 00:00:00 GMT")
    assert found.date == "not a date at all"
    assert found.robots_tag == "noindex, otherbot: nofollow"
    assert found.retry_after == "7"
    assert found.location is None
    assert found.address == "127.0.0.1"
    assert timedelta(0) < found.elapsed < SOON


async def test_a_304_is_not_modified_and_brings_its_new_validators() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", b'HTTP/1.1 304 Not Modified\r\nETag: "b"\r\nDate: now\r\n\r\n')
        found = await web.fetch(url, validators=Validators(etag='"a"'), deadline=SOON)
    assert isinstance(found, NotModified)
    assert (found.validators, found.date, found.address) == (Validators(etag='"b"'), "now", "127.0.0.1")


async def test_a_304_that_nobody_asked_for_is_garbage() -> None:
    async with serving() as server:
        assert reason(await one(server.says("/", answer(status="304 Not Modified")))) is Reason.GARBAGE


@pytest.mark.parametrize(
    ("status", "seen"), [("204 No Content", 204), ("418 Teapot", 418), ("599 x", 599), ("999 x", 500)]
)
async def test_every_status_is_an_answer(status: str, seen: int) -> None:
    async with serving() as server:
        found = await one(server.says("/", answer(status=status)))
    assert isinstance(found, Fetched)
    assert found.status == seen


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"page" * 1000, mtime=0)),
        ("deflate", zlib.compress(b"page" * 1000)),
        ("utf-8", b"page" * 1000),
    ],
)
async def test_a_body_is_given_without_its_encoding(encoding: str, body: bytes) -> None:
    async with serving() as server:
        found = await one(server.says("/", answer(body, f"Content-Encoding: {encoding}")))
    assert isinstance(found, Fetched)
    assert found.body == b"page" * 1000
    assert found.received_bytes == len(body)


async def test_a_chunked_body_and_one_that_ends_with_the_connection_are_whole() -> None:
    async with serving() as server:
        chunked = await one(
            server.says("/c", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        )
        until_closed = await one(server.says("/h", b"HTTP/1.0 200 OK\r\n\r\nabcde", close=True))
    assert isinstance(chunked, Fetched)
    assert isinstance(until_closed, Fetched)
    assert chunked.body == until_closed.body == b"abcde"


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("/b", "http://127.0.0.1:{port}/b"),
        ("b?c#d", "http://127.0.0.1:{port}/a/b?c"),
        ("https://EXAMPLE.com:443", "https://example.com/"),
        ("//example.com/x y", "http://example.com/x%20y"),
        ("/\u00e4", "http://127.0.0.1:{port}/%C3%A4"),
        ("http://", None),
        ("", "http://127.0.0.1:{port}/a/"),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
    ],
)
async def test_a_redirect_is_an_answer_with_a_location_and_is_not_followed(header: str, target: str | None) -> None:
    async with serving() as server:
        raw = f"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: {header}\r\n\r\n".encode()
        found = await one(server.says("/a/", raw))
    assert isinstance(found, Fetched)
    assert found.status == 301
    assert found.location == (target and target.format(port=server.port))
    assert len(server.heard) == 1


async def test_a_location_in_another_charset_keeps_its_bytes() -> None:
    async with serving() as server:
        raw = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /caf\xe9?a=%20\r\n\r\n"
        found = await one(server.says("/", raw))
    assert isinstance(found, Fetched)
    assert found.location == server.url("/caf%E9?a=%20")


async def test_header_bytes_that_are_no_text_can_be_stored() -> None:
    async with serving() as server:
        odd = b'ETag: "\xff\xfe"\r\nContent-Type: text/\xff\r\nDate: \xc3'
        found = await one(server.says("/", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + odd + b"\r\n\r\n"))
    assert isinstance(found, Fetched)
    assert found.validators.etag is None
    assert (found.content_type, found.date) == ("text/\ufffd", "\ufffd")


# Limits


async def test_a_gigabyte_that_is_declared_is_not_read() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
            while True:
                await send(bytes(65536))

        found = await one(server.does("/", reply))
        async with asyncio.timeout(10):
            await server.hung_up.wait()
    assert reason(found) is Reason.TOO_LARGE
    assert server.sent < 16 * MEGABYTE  # what fits into the buffers of two sockets


async def test_a_gigabyte_that_is_streamed_is_read_only_to_the_limit() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await send(b"10000\r\n" + bytes(65536) + b"\r\n")

        found = await one(server.does("/", reply))
        async with asyncio.timeout(10):
            await server.hung_up.wait()
    assert reason(found) is Reason.TOO_LARGE
    assert isinstance(found, Unreached)
    assert found.received_bytes < 2 * MEGABYTE
    assert server.sent < 16 * MEGABYTE


async def test_a_body_of_exactly_the_limit_is_taken() -> None:
    async with serving() as server:
        found = await one(server.says("/", answer(b"a" * MEGABYTE)))
        assert isinstance(found, Fetched)
        assert found.received_bytes == MEGABYTE
        assert reason(await one(server.says("/", answer(b"a" * (MEGABYTE + 1))))) is Reason.TOO_LARGE


async def test_a_bomb_is_too_large() -> None:
    bomb = gzip.compress(bytes(50 * MEGABYTE))
    assert len(bomb) < MEGABYTE
    async with serving() as server:
        found = await one(server.says("/", answer(bomb, "Content-Encoding: gzip")))
    assert reason(found) is Reason.TOO_LARGE


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
    assert reason(found) is Reason.GARBAGE


async def test_headers_without_end_are_given_up() -> None:
    async with serving() as server:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\n")
            while True:
                await send(b"X: " + b"a" * 1000 + b"\r\n")

        assert reason(await one(server.does("/", reply))) is Reason.GARBAGE


# Deadlines


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
async def test_a_server_that_falls_silent_meets_the_deadline(before: bytes) -> None:
    async with serving() as server, http() as web:
        url = server.says("/", before)
        found = await web.fetch(url, deadline=timedelta(milliseconds=100))
        assert reason(found) is Reason.DEADLINE
        async with asyncio.timeout(10):
            await server.hung_up.wait()


async def test_a_slow_drip_meets_the_deadline() -> None:
    async with serving() as server, http() as web:

        async def reply(_: Request, send: Send) -> None:
            await send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                await send(b"a")
                await asyncio.sleep(0.01)

        began = time.monotonic()
        found = await web.fetch(server.does("/", reply), deadline=timedelta(milliseconds=200))
    assert reason(found) is Reason.DEADLINE
    assert isinstance(found, Unreached)
    assert found.received_bytes > 0
    assert time.monotonic() - began < 5


async def test_waiting_for_a_connection_counts_toward_the_deadline() -> None:
    async with serving() as server, http(connections=1) as web, asyncio.TaskGroup() as both:
        url = server.says("/", b"")
        first = both.create_task(web.fetch(url, deadline=timedelta(milliseconds=300)))
        second = both.create_task(web.fetch(url, deadline=timedelta(milliseconds=100)))
    assert reason(first.result()) is reason(second.result()) is Reason.DEADLINE
    assert len(server.heard) == 1


async def test_a_cancelled_fetch_is_cancelled_and_hangs_up() -> None:
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
        async with asyncio.timeout(10):
            await server.hung_up.wait()


# Broken servers


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", Reason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-", Reason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Reason.RESET),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Reason.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc", Reason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nabc", Reason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", Reason.GARBAGE),
        (b"HTTP/1.1 OK\r\n\r\n", Reason.GARBAGE),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Reason.GARBAGE),
        (b"\x00\x01\x02\x03\r\n\r\n", Reason.GARBAGE),
        (b"<html>hello</html>", Reason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", Reason.GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", Reason.GARBAGE),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 50, None),
        (b"\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", None),
    ],
)
async def test_a_broken_answer_is_a_finding(raw: bytes, why: Reason | None) -> None:
    async with serving() as server:
        found = await one(server.says("/", raw, close=True))
    if why is not None:
        assert reason(found) is why
    assert len(server.heard) == 1


async def test_a_server_that_hangs_up_on_a_new_connection_is_asked_once() -> None:
    async with serving() as server:
        assert reason(await one(server.says("/", b"", close=True))) is Reason.RESET
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
        assert await loop.sock_recv(taken, 4096) == b""  # the other side closes in its turn
        taken.close()

    with listener:
        async with asyncio.TaskGroup() as both:
            both.create_task(half_close())
            found = await one(Url(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
    assert isinstance(found, Fetched)
    assert found.body == b"the rest"


async def test_a_reset_in_the_middle_is_a_reset() -> None:
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
    assert reason(found) is Reason.RESET


async def test_what_follows_a_body_never_answers_the_next_request() -> None:
    async with serving() as server, http() as web:
        forged = answer(b"forged")
        first = await web.fetch(server.says("/a", answer(b"true") + forged), deadline=SOON)
        second = await web.fetch(server.says("/b", answer(b"true")), deadline=SOON)
    assert isinstance(first, Fetched)
    assert isinstance(second, Fetched)
    assert first.body == second.body == b"true"


# Connections


async def test_connections_are_used_again() -> None:
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


async def test_a_connection_that_the_server_let_go_of_is_replaced() -> None:
    async with serving() as server, http() as web:

        async def let_go(request: Request, send: Send) -> None:
            # Hangs up when the second request on a connection comes: as a server does whose patience has just ended.
            if sum(other.connection == request.connection for other in server.heard) > 1:
                raise ConnectionAbortedError
            await send(answer(b"x"))

        url = server.does("/", let_go)
        found = [await web.fetch(url, deadline=SOON) for _ in range(3)]
    assert all(isinstance(each, Fetched) for each in found)
    assert server.connections == 3


# Names, addresses and ports


async def test_a_closed_port_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert reason(await one(Url(f"http://127.0.0.1:{port}/"))) is Reason.REFUSED


def no_such_name(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, f"{host} is not known")


async def test_a_name_that_does_not_resolve_is_a_dns_finding() -> None:
    async with http(lookup=no_such_name) as web:
        assert reason(await web.fetch(Url("http://nowhere.example/"), deadline=SOON)) is Reason.DNS
        found = await web.addresses(Authority("nowhere.example"))
    assert isinstance(found, Unreached)
    assert found.reason is Reason.DNS


async def test_a_name_with_an_impossible_label_is_a_dns_finding() -> None:
    assert reason(await one(Url("http://xn--a.xn--" + "a" * 60 + "/"))) is Reason.DNS


async def test_a_name_that_leads_to_a_private_address_is_not_asked() -> None:
    async with serving() as server, http(allow_private=False) as web:
        server.says("/", answer(b"secret"))
        for host in ("localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
            found = await web.fetch(Url(f"http://{host}:{server.port}/"), deadline=SOON)
            assert reason(found) is Reason.ADDRESS, host
            listed = await web.addresses(Authority(f"{host}:{server.port}"))
            assert isinstance(listed, Unreached)
            assert listed.reason is Reason.ADDRESS
    assert server.connections == 0


@pytest.mark.parametrize("answers", [("127.0.0.1",), ("10.0.0.1", "192.168.0.1"), ("::1", "127.0.0.1", "fe80::1")])
async def test_a_public_name_with_private_answers_is_not_asked(answers: Sequence[str]) -> None:
    async with serving() as server, http(allow_private=False, lookup=lambda _: answers) as web:
        found = await web.fetch(Url(f"http://rebound.example:{server.port}/"), deadline=SOON)
        assert reason(found) is Reason.ADDRESS
    assert server.connections == 0


async def test_a_redirect_to_a_private_address_is_not_asked() -> None:
    async with serving() as public, serving() as inside:
        inside.says("/secret", answer(b"secret"))
        public.says("/", answer(b"", f"Location: {inside.url('/secret')}", status="302 Found"))
        first = await one(public.url("/"))
        assert isinstance(first, Fetched)
        assert first.location == inside.url("/secret")
        assert reason(await one(first.location, allow_private=False)) is Reason.ADDRESS
    assert inside.connections == 0


async def test_a_name_whose_answer_changes_is_checked_at_every_connection() -> None:
    async with serving() as server:
        answers = iter([("127.0.0.1",), ("169.254.169.254",)])
        async with http(lookup=lambda _: next(answers)) as web:
            url = Url(f"http://rebound.example:{server.port}/")
            server.says("/", answer(b"x", "Connection: close"))
            assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
            other = Url(f"http://rebound.example:{server.port + 1}/")  # another port: looked up once more
            assert reason(await web.fetch(other, deadline=SOON)) is Reason.ADDRESS


async def test_of_several_addresses_those_that_may_be_asked_are_tried() -> None:
    async with serving() as server, http(lookup=lambda _: ("169.254.169.254", "127.0.0.1")) as web:
        server.says("/", answer(b"x"))
        found = await web.fetch(Url(f"http://both.example:{server.port}/"), deadline=SOON)
        assert await web.addresses(Authority("both.example")) == ("127.0.0.1",)
    assert isinstance(found, Fetched)
    assert found.address == "127.0.0.1"


async def test_the_addresses_of_an_ip_literal_are_itself() -> None:
    async with http(lookup=no_such_name) as web:
        assert await web.addresses(Authority("127.0.0.1:8001")) == ("127.0.0.1",)
        assert await web.addresses(Authority("[::1]:8001")) == ("::1",)


async def test_a_slow_name_server_meets_the_deadline() -> None:
    answered = threading.Event()

    def slow(_: str) -> Sequence[str]:
        answered.wait()
        return ()

    short = timedelta(milliseconds=100)
    try:
        async with http(lookup=slow) as web:
            found = await web.fetch(Url("http://slow.example/"), deadline=short)
            listed = await web.addresses(Authority("slow.example"), deadline=short)
    finally:
        answered.set()
    assert reason(found) is Reason.DEADLINE
    assert isinstance(listed, Unreached)
    assert listed.reason is Reason.DEADLINE


async def test_a_name_without_addresses_is_a_dns_finding() -> None:
    async with http(lookup=lambda _: ()) as web:
        assert reason(await web.fetch(Url("http://empty.example/"), deadline=SOON)) is Reason.DNS
        listed = await web.addresses(Authority("empty.example"))
    assert isinstance(listed, Unreached)
    assert listed.reason is Reason.DNS


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def test_a_trusted_certificate_is_spoken_to(certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))
    async with serving(tls=tls(certificate)) as server, http(trust=trust, lookup=lambda _: ("127.0.0.1",)) as web:
        server.says("/", answer(b"x"))
        found = await web.fetch(Url(f"https://localhost:{server.port}/"), deadline=SOON)
        wrong_name = await web.fetch(Url(f"https://other.example:{server.port}/"), deadline=SOON)
    assert isinstance(found, Fetched)
    assert reason(wrong_name) is Reason.TLS


async def test_a_certificate_that_nobody_vouches_for_is_a_tls_finding(certificate: Path) -> None:
    async with serving(tls=tls(certificate)) as server:
        assert reason(await one(Url(f"https://127.0.0.1:{server.port}/"))) is Reason.TLS
    assert server.heard == []


async def test_tls_on_a_plain_port_is_a_tls_finding() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    loop = asyncio.get_running_loop()

    async def speak_plainly() -> None:
        taken, _ = await loop.sock_accept(listener)
        await loop.sock_recv(taken, 4096)
        await loop.sock_sendall(taken, b"HTTP/1.1 400 Bad Request\r\n\r\n")
        taken.close()

    with listener:
        async with asyncio.TaskGroup() as both:
            both.create_task(speak_plainly())
            found = await one(Url(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
    assert reason(found) is Reason.TLS


async def test_plain_http_on_a_tls_port_is_a_finding(certificate: Path) -> None:
    async with serving(tls=tls(certificate)) as server:
        assert reason(await one(server.url())) in {Reason.RESET, Reason.GARBAGE}


# Cost


async def test_a_page_costs_little_processor_time() -> None:
    """Client and server together: 16 in flight, 14 kB each. Alone on a machine the client takes 0.1 ms."""
    async with serving() as server, http() as web:
        url = server.says("/", answer(b"x" * 14_000, "Content-Type: text/html", 'ETag: "a"'))

        async def ask(times: int) -> None:
            for _ in range(times):
                assert isinstance(await web.fetch(url, deadline=SOON), Fetched)

        await ask(10)
        began = time.process_time()
        async with asyncio.TaskGroup() as crowd:
            for _ in range(16):
                crowd.create_task(ask(30))
        assert (time.process_time() - began) / 480 < 0.002
