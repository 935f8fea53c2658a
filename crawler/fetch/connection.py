"""Connections whose addresses are checked and whose received bytes are counted.

Connections through an HTTP proxy are tunnels (CONNECT, RFC 9110, 9.3.6). The proxy gets an address that was resolved
and checked here, never a name, which it might resolve differently. Requests for http URLs use tunnels too: with an
absolute URL in the request, the proxy would resolve the name itself (RFC 9112, 3.2.2).
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, cast

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.tracing import Trace
from msgspec import Struct

from crawler.core.http.credentials import format_basic_auth
from crawler.core.http.response import FailureReason
from crawler.fetch import guard

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")

MAX_HEADER_BYTES = 16 * 1024  # of one line; content security policies and cookies may exceed 8 kB
MAX_HEADERS = 128
MAX_INTERIM = 16  # interim responses (1xx) to one request; a server that sends more is broken
MAX_STALE_CONNECTIONS = 16  # attempts on idle connections that the server has closed; then the request fails
BODY_DETAILS = {
    FailureReason.TOO_LARGE: "the body exceeds the size limit, compressed or decompressed",
    FailureReason.RESET: "the compressed body ends early",
    FailureReason.GARBAGE: "the body does not match its Content-Encoding, or has one that is not supported",
}


class ProxyError(aiohttp.ClientError):
    """The proxy cannot be reached or opens no tunnel. The message contains no credentials."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy with its credentials."""

    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    async def open_tunnel(self, sock: socket.socket, address: str, port: int) -> None:
        """Have the proxy at the other end of `sock` open a tunnel to an address. Raise ProxyError or OSError."""
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.user or self.password:
            lines.append(f"Proxy-Authorization: {format_basic_auth(self.user, self.password)}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            # Read byte by byte: what follows the head comes from the server behind the proxy.
            byte = await loop.sock_recv(sock, 1)
            head += byte
            if not byte or len(head) > 16 * 1024:
                raise ProxyError("the proxy closed the connection or sent no HTTP response")
        status = _STATUS.match(bytes(head))
        if status is None:
            raise ProxyError("the proxy sent no HTTP response")
        if status[1] == b"407":
            raise ProxyError("the proxy requires other credentials (status 407)")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the proxy refused the tunnel (status {status[1].decode()})")


class Exchange(Struct):
    """The facts of one request that aiohttp does not report."""

    began_at: float  # loop time when the request was sent; until there is a connection, when the wait for it began
    max_bytes: int = 0  # how many bytes may be received in addition to the head of the response
    public_only: bool = False
    address: str | None = None
    forbidden_reason: str | None = None  # why an address was refused
    has_tried_address: bool = False  # whether an allowed address was tried
    is_new_connection: bool = False  # whether the connection was opened for this request
    body_bytes: int = 0
    wire_bytes: int = 0  # all received bytes
    interim_count: int = 0  # interim responses (1xx)
    head_bytes: int | None = None  # size of the final response's head, once received
    is_chunked: bool = False  # whether the body is in chunks
    excess: tuple[FailureReason, str] | None = None  # why reading was stopped

    @property
    def received_bytes(self) -> int:
        """Return the received bytes of the body, its chunk framing and interim responses."""
        if not self.is_chunked and not self.interim_count:
            return self.body_bytes
        return max(self.body_bytes, self.wire_bytes - (self.head_bytes or 0))

    def reset_counts(self) -> None:
        """Restart counting for a new request on this connection."""
        self.wire_bytes, self.interim_count, self.head_bytes, self.is_chunked = 0, 0, None, False

    def count_bytes(self, size: int) -> None:
        """Count received bytes and check them against the limits."""
        self.wire_bytes += size
        if self.head_bytes is not None:
            if self.wire_bytes - self.head_bytes > self.max_bytes:
                self.excess = FailureReason.TOO_LARGE, BODY_DETAILS[FailureReason.TOO_LARGE]
        elif self.wire_bytes > MAX_HEADERS * MAX_HEADER_BYTES:
            self.excess = FailureReason.GARBAGE, "the response head exceeds the size limit"

    def note_head(self, message: RawResponseMessage) -> None:
        """Note the head of a response, which may be an interim one."""
        if 100 <= message.code <= 199 and message.code != 101:
            self.interim_count += 1
            if self.interim_count > MAX_INTERIM:
                self.excess = FailureReason.GARBAGE, f"more than {MAX_INTERIM} interim responses"
            return
        headers = message.raw_headers
        fields = sum(map(len, chain.from_iterable(headers))) + len(headers) * len(b": \r\n")
        self.head_bytes = len(f"HTTP/1.1 {message.code} {message.reason}\r\n\r\n") + fields
        self.is_chunked = message.chunked


# A request runs in one task from fetch to socket, so a context variable can pass it through aiohttp.
EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


class SilentError(aiohttp.ClientError):
    """The connection was lost before the whole head of a response was received."""


class CountingProtocol(ResponseHandler):
    """A protocol that counts received bytes and aborts the connection if they exceed a limit of the exchange."""

    exchange: Exchange | None = None  # the current request
    tunnel_address: str | None = None  # the address behind a tunnel

    def data_received(self, data: bytes) -> None:
        if self.exchange is not None:
            self.exchange.count_bytes(len(data))
        super().data_received(data)
        if self.exchange is not None and self.exchange.excess is not None and self.transport is not None:
            self.transport.abort()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        if self.exchange is not None:
            self.exchange.note_head(data[0])
        super().feed_data(data, size)


class Connector(aiohttp.TCPConnector):
    """A connector that connects directly or through a proxy.

    find_refusal: returns why the current request must not get a tunnel to an address, or None.
    """

    def __init__(self, *, proxy: Proxy | None, find_refusal: Callable[[str], str | None], **options: Any) -> None:
        super().__init__(**options)
        self._proxy, self._find_refusal = proxy, find_refusal
        self._factory = cast("partial[ResponseHandler]", partial(CountingProtocol, loop=asyncio.get_running_loop()))

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the client's own signature
    ) -> Connection:
        exchange = EXCHANGE.get()
        exchange.is_new_connection = False
        connection = await super().connect(req, traces, timeout)
        transport = connection.transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        exchange.address = str(peer[0]) if peer else None
        if isinstance(connection.protocol, CountingProtocol) and connection.protocol.tunnel_address is not None:
            exchange.address = connection.protocol.tunnel_address
        if exchange.public_only and exchange.address is not None and not exchange.is_new_connection:
            # The reused connection may have been opened for a request without this restriction.
            reason = guard.find_refusal(exchange.address, allow_private=False)
            if reason is not None:
                connection.release()
                exchange.forbidden_reason = f"{exchange.address} is {reason}"
                raise guard.ForbiddenAddressError(exchange.forbidden_reason)
        if isinstance(connection.protocol, CountingProtocol):
            exchange.reset_counts()
            connection.protocol.exchange = exchange
        exchange.began_at = asyncio.get_running_loop().time()
        return connection

    async def _create_direct_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the client's own signature
        *,
        client_error: type[Exception] = aiohttp.ClientConnectorError,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        if self._proxy is None:
            return await super()._create_direct_connection(req, traces, timeout, client_error=client_error)
        address = await self._resolve_allowed(req)
        tunnel = await self._open_tunnel(self._proxy, address, req.port or 80)
        ssl_context = self._get_ssl_context(req)
        name = (req.url.raw_host or "").rstrip(".") if ssl_context is not None else None
        try:
            transport, protocol = await asyncio.get_running_loop().create_connection(
                self._factory, sock=tunnel, ssl=ssl_context, server_hostname=name
            )
        except ssl.CertificateError as error:
            raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        assert isinstance(protocol, CountingProtocol)
        protocol.tunnel_address = address
        return transport, protocol

    async def _resolve_allowed(self, req: aiohttp.ClientRequest) -> str:
        """Return the first allowed address of the host. Raise ClientConnectorDNSError or ForbiddenAddressError."""
        exchange = EXCHANGE.get()
        exchange.is_new_connection = True
        assert req.url.raw_host is not None
        try:
            addresses = await self._resolve_host(req.url.raw_host, req.port or 80)
        except OSError as error:
            raise aiohttp.ClientConnectorDNSError(req.connection_key, error) from error
        for each in addresses:
            reason = self._find_refusal(each["host"])
            if reason is None:
                exchange.has_tried_address = True
                return each["host"]
            exchange.forbidden_reason = exchange.forbidden_reason or f"{each['host']} is {reason}"
        raise guard.ForbiddenAddressError(exchange.forbidden_reason or "no address")

    async def _open_tunnel(self, proxy: Proxy, address: str, port: int) -> socket.socket:
        """Connect to an address through the proxy. The proxy itself may have a private address."""
        try:
            (first, *_) = await self._resolve_host(proxy.host, proxy.port)
            family = socket.AF_INET6 if ":" in first["host"] else socket.AF_INET
            info = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (first["host"], proxy.port))
            sock = guard.open_socket(info, allow_private=True)
        except OSError as error:
            raise ProxyError(f"the proxy has no allowed address ({error.strerror or error})") from error
        try:
            sock.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            await asyncio.get_running_loop().sock_connect(sock, (first["host"], proxy.port))
            await proxy.open_tunnel(sock, address, port)
        except BaseException as error:
            sock.close()
            if isinstance(error, OSError):
                raise ProxyError(f"the proxy cannot be reached ({error.strerror or error})") from error
            raise
        return sock


async def retry_if_stale(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Retry a request if the reused connection on which it was sent is lost before a response. Raise SilentError.

    aiohttp's own retry also applies to new connections, so a server that drops them would get two requests.
    """
    exchange = EXCHANGE.get()
    for _ in range(MAX_STALE_CONNECTIONS):
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            broken = error
            if exchange.is_new_connection or exchange.excess is not None or exchange.forbidden_reason is not None:
                break
    raise SilentError(str(broken)) from broken


def build_ssl_context(*, ca_file: str = "", insecure: bool = False) -> ssl.SSLContext | None:
    """Build an SSL context that trusts only the certificates of a file, or any if insecure; None if neither is set.

    Raise OSError if the file cannot be read or contains no certificate (ssl.SSLError).
    """
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=ca_file) if ca_file else None
