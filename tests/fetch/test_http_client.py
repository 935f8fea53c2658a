"""What one request sends and returns, with real servers on loopback."""

import asyncio
import gzip
import time
import zlib
from datetime import timedelta

import pytest

from crawler.core.http.response import FailureReason, Fetched, NotModified, Validators
from crawler.core.http.urls import normalize_url
from crawler.fetch.http_client import ACCEPT
from tests.fetch.asking import AGENT, SOON, http, one, reason
from tests.fetch.server import answer, serving


async def test_a_request_identifies_the_crawler_and_sends_no_false_headers() -> None:
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
async def test_the_url_is_sent_as_it_is_written(path: str) -> None:
    async with serving() as server:
        url = normalize_url(server.says(path, answer()))
        assert url == server.url(path)
        assert isinstance(await one(url), Fetched)
    assert server.heard[0].line == f"GET {path} HTTP/1.1".encode()


async def test_validators_are_sent_back_verbatim() -> None:
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


async def test_a_head_request_returns_only_the_head() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", b'HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\nETag: "a"\r\n\r\n')
        found = await web.fetch(url, deadline=SOON, method="HEAD")
    assert server.heard[0].line == b"HEAD / HTTP/1.1"
    assert isinstance(found, Fetched)
    assert (found.body, found.received_bytes, found.validators.etag) == (b"", 0, '"a"')
    assert found.declared_bytes == 999_999_999


async def test_head_of_a_compressed_body_is_not_taken_for_a_truncated_one() -> None:
    async with serving() as server, http() as web:
        url = server.says("/", b"HTTP/1.1 200 OK\r\nContent-Length: 321\r\nContent-Encoding: gzip\r\n\r\n")
        found = await web.fetch(url, deadline=SOON, method="HEAD")
    assert isinstance(found, Fetched)
    assert (found.body, found.declared_bytes) == (b"", 321)


async def test_a_response_has_what_the_server_sent() -> None:
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


async def test_a_304_is_not_modified_and_has_its_new_validators() -> None:
    async with serving() as server, http() as web:
        url = server.says(
            "/", b'HTTP/1.1 304 Not Modified\r\nContent-Length: 99999999\r\nETag: "b"\r\nDate: now\r\n\r\n'
        )
        found = await web.fetch(url, validators=Validators(etag='"a"'), deadline=SOON)
    assert isinstance(found, NotModified)
    assert (found.validators, found.date, found.address) == (Validators(etag='"b"'), "now", "127.0.0.1")


async def test_an_unrequested_304_is_garbage() -> None:
    async with serving() as server:
        assert reason(await one(server.says("/", answer(status="304 Not Modified")))) is FailureReason.GARBAGE


@pytest.mark.parametrize(
    ("status", "seen"), [("204 No Content", 204), ("418 Teapot", 418), ("599 x", 599), ("999 x", 500)]
)
async def test_every_status_is_a_response(status: str, seen: int) -> None:
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
async def test_a_body_is_returned_without_its_encoding(encoding: str, body: bytes) -> None:
    async with serving() as server:
        found = await one(server.says("/", answer(body, f"Content-Encoding: {encoding}")))
    assert isinstance(found, Fetched)
    assert found.body == b"page" * 1000
    assert found.received_bytes == len(body)


async def test_chunked_bodies_and_those_that_end_with_the_connection_are_complete() -> None:
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
async def test_a_redirect_is_a_response_with_a_location_and_is_not_followed(header: str, target: str | None) -> None:
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


async def test_invalid_header_bytes_can_be_stored() -> None:
    async with serving() as server:
        odd = b'ETag: "\xff\xfe"\r\nContent-Type: text/\xff\r\nDate: \xc3'
        found = await one(server.says("/", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + odd + b"\r\n\r\n"))
    assert isinstance(found, Fetched)
    assert found.validators.etag is None
    assert (found.content_type, found.date) == ("text/\ufffd", "\ufffd")


async def test_a_page_takes_little_cpu_time() -> None:
    """Client and server together: 16 in flight, 14 kB each. The client alone takes 0.1 ms on an idle machine."""
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
