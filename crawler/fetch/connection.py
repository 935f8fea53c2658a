"""One HTTP/1.1 connection: it sends one request at a time and reads the response within limits."""

import asyncio
import re
from collections.abc import Callable
from itertools import chain
from typing import cast

import httptools
from msgspec import Struct

from crawler.core.http.response import FailureReason

MAX_HEADER_BYTES = 16 * 1024  # of one header; content security policies and cookies may exceed 8 kB
MAX_HEADERS = 128
MAX_LENGTH_DIGITS = 19  # of a Content-Length; the parser rejects larger numbers
MAX_INTERIM = 16  # interim responses (1xx) to one request; a server that sends more is broken
BODY_DETAILS = {
    FailureReason.TOO_LARGE: "the body exceeds the size limit, compressed or decompressed",
    FailureReason.RESET: "the compressed body ends early",
    FailureReason.GARBAGE: "the body does not match its Content-Encoding, or has one that is not supported",
}
_UNSAFE = re.compile(r"[\0\r\n]")  # would end a header


class FetchError(Exception):
    """There is no response.

    detail: why, as a line for users.  is_silent: whether the connection was lost before a response began.
    """

    def __init__(self, reason: FailureReason, detail: str, *, is_silent: bool = False) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.is_silent = reason, detail, is_silent


class Exchange(Struct):
    """One request and what was received for it.

    began_at: loop time when the request was sent; until there is a connection, when the wait for it began.
    max_bytes: how many bytes may be received in addition to the head of the response.  address: of the server.
    """

    began_at: float
    max_bytes: int = 0
    public_only: bool = False
    address: str | None = None
    body_bytes: int = 0
    wire_bytes: int = 0  # all received bytes
    interim_count: int = 0  # interim responses (1xx)
    head_bytes: int | None = None  # size of the final response's head, once received
    is_chunked: bool = False  # whether the body is in chunks

    @property
    def received_bytes(self) -> int:
        """Return the received bytes of the body, its chunk framing and interim responses."""
        if not self.is_chunked and not self.interim_count:
            return self.body_bytes
        return max(self.body_bytes, self.wire_bytes - (self.head_bytes or 0))

    def count_bytes(self, size: int) -> None:
        """Count received bytes. Raise FetchError if there are too many."""
        self.wire_bytes += size
        if self.head_bytes is not None:
            if self.wire_bytes - self.head_bytes > self.max_bytes:
                raise FetchError(FailureReason.TOO_LARGE, BODY_DETAILS[FailureReason.TOO_LARGE])
        elif self.wire_bytes > MAX_HEADERS * MAX_HEADER_BYTES:
            raise FetchError(FailureReason.GARBAGE, "the response head exceeds the size limit")


class ResponseHead:
    """The status and the headers of a response. headers: in the order in which they were received."""

    def __init__(self, status: int, raw_headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self.headers = [
            (name.decode("utf-8", "surrogateescape"), value.strip(b" \t").decode("utf-8", "surrogateescape"))
            for name, value in raw_headers
        ]
        self._first = {name.lower(): value for name, value in reversed(self.headers)}

    def get(self, name: str) -> str | None:
        """Return the value of the first header with a name, which must be in lower case."""
        return self._first.get(name)

    def get_all(self, name: str) -> list[str]:
        """Return the values of all headers with a name, which must be in lower case."""
        return [value for key, value in self.headers if key.lower() == name] if name in self._first else []

    @property
    def content_length(self) -> int | None:
        """Return the Content-Length; None if there is none."""
        value = self._first.get("content-length", "")
        return int(value) if value.isdecimal() and len(value) <= MAX_LENGTH_DIGITS else None


class HttpRequest(Struct, frozen=True):
    """A request. headers: all except Host and Content-Length; the first of those with equal names is sent.

    target: path and query.  host: the Host header.  first_bytes: how many bytes of the response's body are wanted, or
    None for all; then a body above max_body_bytes is TOO_LARGE.
    """

    method: str
    target: str
    host: str
    headers: list[tuple[str, str]]
    body: bytes | None = None
    first_bytes: int | None = None
    max_body_bytes: int = 0

    def serialize(self) -> bytes:
        """Return the bytes to send. Raise ValueError if a part of the request would break it."""
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {self.host}"]
        names = {"host"}
        for name, value in self.headers:
            if (lower := name.lower()) not in names:
                names.add(lower)
                lines.append(f"{name}: {value}")
        if self.body is not None:
            lines.append(f"Content-Length: {len(self.body)}")
        if any(map(_UNSAFE.search, lines)) or " " in self.target:
            raise ValueError("the URL or a header contains a character that ends it")
        return "\r\n".join([*lines, "", ""]).encode() + (self.body or b"")


class _ResponseReader:
    """The reader of one response, with the callbacks of httptools. What a callback raises ends the parsing.

    head: of the final response, once received.  keeps_alive: whether the connection can be used again.
    """

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        self._request, self._exchange = request, exchange
        self.head: ResponseHead | None = None
        self.is_complete = self.keeps_alive = False
        self._status_text = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        # As browsers, accept what many servers send: odd bytes in headers, and lines that end without CR.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def body(self) -> bytes:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def feed(self, data: bytes) -> None:
        """Read received bytes. Raise FetchError."""
        self._exchange.count_bytes(len(data))
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, FetchError):
                raise error.__context__ from None
            if not isinstance(error.__context__, _ResponseEnded):
                raise
            # The server may have sent more than the response.
            self.keeps_alive &= self._request.method == "HEAD" and data.endswith((b"\r\n\r\n", b"\n\n"))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                detail = str(error) or "the server sent no valid HTTP response"
                raise FetchError(FailureReason.GARBAGE, detail) from error
            self.keeps_alive = False

    def feed_eof(self, error: Exception | None) -> None:
        """End the response with the connection. Raise FetchError if it is not complete."""
        self.keeps_alive = False
        if self.head is None:
            detail = f"the connection was lost ({error.strerror})" if isinstance(error, OSError) else ""
            detail = detail or "the server closed the connection without a response"
            raise FetchError(FailureReason.RESET, detail, is_silent=not self._exchange.wire_bytes)
        if error is not None or self._exchange.is_chunked or self.head.content_length is not None:
            raise FetchError(FailureReason.RESET, "the body ends early")
        self.is_complete = True

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise _ResponseEnded

    def on_status(self, text: bytes) -> None:
        self._status_text += text

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= MAX_HEADERS or len(name) + len(value) > MAX_HEADER_BYTES:
            raise FetchError(FailureReason.GARBAGE, "the response has too many headers, or one that is too large")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status, headers, self._headers = self._parser.get_status_code(), self._headers, []
        if status == 101:
            raise FetchError(FailureReason.GARBAGE, "the server switched protocols")
        if 100 <= status <= 199:
            self._status_text = b""
            self._exchange.interim_count += 1
            if self._exchange.interim_count > MAX_INTERIM:
                raise FetchError(FailureReason.GARBAGE, f"more than {MAX_INTERIM} interim responses")
            return
        self.head, self.keeps_alive = ResponseHead(status, headers), self._parser.should_keep_alive()
        size = sum(map(len, chain.from_iterable(headers))) + len(headers) * len(b": \r\n")
        self._exchange.head_bytes = len("HTTP/1.1 200 \r\n\r\n") + len(self._status_text) + size
        codings = ",".join(self.head.get_all("transfer-encoding")).lower().replace(" ", "").split(",")
        self._exchange.is_chunked = "chunked" in codings
        if not {"", "chunked", "identity"}.issuperset(codings):
            raise FetchError(FailureReason.GARBAGE, "the body has a transfer coding that is not supported")
        if self._request.method == "HEAD":
            self.is_complete = True
            raise _ResponseEnded
        declared, request = self.head.content_length or 0, self._request
        if status in {204, 304}:  # no body follows, whatever its length would be
            return
        if request.method == "GET" and request.first_bytes is None and declared > request.max_body_bytes:
            raise FetchError(FailureReason.TOO_LARGE, f"the body has {declared} bytes")

    def on_body(self, data: bytes) -> None:
        exchange, first_bytes = self._exchange, self._request.first_bytes
        exchange.body_bytes += len(data)
        self._parts.append(data)
        if first_bytes is None and exchange.body_bytes > self._request.max_body_bytes:
            raise FetchError(FailureReason.TOO_LARGE, BODY_DETAILS[FailureReason.TOO_LARGE])
        if first_bytes is not None and exchange.body_bytes >= first_bytes:
            self.is_complete, self.keeps_alive = True, False
            raise _ResponseEnded

    def on_message_complete(self) -> None:
        self.is_complete = self.head is not None  # else it was an interim response


class _ResponseEnded(Exception):
    """What the server sends after this is not wanted."""


class HttpConnection(asyncio.Protocol):
    """A connection to a server. address: of the server, also if the connection is a tunnel through a proxy.

    is_reusable: whether another request may be sent.
    """

    def __init__(self, address: str) -> None:
        self.address, self.is_reusable = address, False
        self._transport: asyncio.Transport | None = None
        self._reader: _ResponseReader | None = None  # of the current request
        self._response: asyncio.Future[tuple[ResponseHead, bytes]] | None = None  # to it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.is_reusable = cast("asyncio.Transport", transport), True

    async def request(self, request: HttpRequest, sent: bytes, exchange: Exchange) -> tuple[ResponseHead, bytes]:
        """Send a request and return the response. Raise FetchError if there is none; the connection is then closed.

        sent: the serialized request.
        """
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        exchange.began_at, exchange.address = loop.time(), self.address
        exchange.wire_bytes, exchange.interim_count = 0, 0
        self.is_reusable, self._reader, self._response = False, _ResponseReader(request, exchange), loop.create_future()
        if self._transport.is_closing():
            self.connection_lost(None)
        self._transport.write(sent)
        try:
            return await self._response
        finally:
            self._reader = self._response = None
            if not self.is_reusable:
                self._transport.abort()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._read(lambda reader: reader.feed(data))

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._read(lambda reader: reader.feed_eof(exc))

    def _read(self, feed: Callable[[_ResponseReader], None]) -> None:
        reader, response = self._reader, self._response
        self.is_reusable = False
        if reader is None or response is None or response.done():  # nobody asked for it
            if self._transport is not None:
                self._transport.abort()
            return
        try:
            feed(reader)
        except FetchError as error:
            response.set_exception(error)
        if reader.is_complete and reader.head is not None and not response.done():
            self.is_reusable = reader.keeps_alive
            response.set_result((reader.head, reader.body))
