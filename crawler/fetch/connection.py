"""Connections that are checked and counted: which address is asked, and how much comes from it.

Through an http proxy they are tunnels (CONNECT, RFC 9110, 9.3.6). The proxy is told an address that was resolved and
checked here, never a name, so that it cannot look up another one than was checked. That goes for http as for https:
asked in the other way, with the whole URL, a proxy goes by the name (RFC 9112, 3.2.2).
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.tracing import Trace

from crawler.core.http.credentials import format_basic_auth
from crawler.core.http.response import FailureReason
from crawler.fetch import guard

MAX_PROXY_HEAD_BYTES = 16 * 1024  # bytes of the proxy's answer
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")

MAX_HEADER_BYTES = 16 * 1024  # one line; content security policies and cookies do grow beyond 8 kB
MAX_HEADERS = 128
MAX_INTERIM = 16  # answers before the answer (1xx); a server that sends more sends no other
MAX_STALE_CONNECTIONS = 16  # met in a row before it counts as the server's fault: all that may be open
BODY_DETAILS = {
    FailureReason.TOO_LARGE: "a body beyond the limit, as it came or as it expands",
    FailureReason.RESET: "the compressed body ends early",
    FailureReason.GARBAGE: "the body is not in the encoding that was stated, or in one that was not asked for",
}


class ProxyError(aiohttp.ClientError):
    """The proxy cannot be reached, or opens no tunnel. The message tells no credentials."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An http proxy, and what it is shown."""

    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    async def open_tunnel(self, sock: socket.socket, address: str, port: int) -> None:
        """Have the proxy at the other end of a connection pass on what comes to an address. Raises ProxyError."""
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.user or self.password:
            lines.append(f"Proxy-Authorization: {format_basic_auth(self.user, self.password)}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            # One by one: what follows belongs to whoever is behind the proxy.
            byte = await loop.sock_recv(sock, 1)
            head += byte
            if not byte or len(head) > MAX_PROXY_HEAD_BYTES:
                raise ProxyError("the proxy hangs up, or gives no answer that is HTTP")
        status = _STATUS.match(bytes(head))
        if status is None:
            raise ProxyError("the proxy gives no answer that is HTTP")
        if status[1] == b"407":
            raise ProxyError("the proxy asks for other credentials (status 407)")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the proxy opens no tunnel (status {status[1].decode()})")


@dataclass(slots=True)
class Exchange:
    """What happened below the client while one request was made."""

    began_at: float  # of the send, once there is a connection
    max_bytes: int = 0  # bytes that may come beside the head of the answer
    public_only: bool = False
    address: str | None = None
    forbidden_reason: str | None = None  # why an address was refused
    has_tried_address: bool = False  # an address that is allowed was asked
    is_new_connection: bool = False  # the connection was made for this request
    body_bytes: int = 0  # bytes of body
    wire_bytes: int = 0  # bytes of all that came
    interim_count: int = 0  # answers before the answer (1xx)
    head_bytes: int | None = None  # bytes of the answer's own head, once it is there
    is_framed: bool = False  # the body comes in chunks
    excess: tuple[FailureReason, str] | None = None  # why no more was read

    @property
    def received_bytes(self) -> int:
        """Bytes that came: of the body, of the frames of its chunks and of interim answers."""
        if not self.is_framed and not self.interim_count:
            return self.body_bytes
        return max(self.body_bytes, self.wire_bytes - (self.head_bytes or 0))

    def reset_counts(self) -> None:
        """Begin to count at the first byte behind what came on the connection before."""
        self.wire_bytes, self.interim_count, self.head_bytes, self.is_framed = 0, 0, None, False

    def count_bytes(self, size: int) -> None:
        """Count bytes that came, and see whether they are more than may come."""
        self.wire_bytes += size
        if self.head_bytes is not None:
            if self.wire_bytes - self.head_bytes > self.max_bytes:
                self.excess = FailureReason.TOO_LARGE, BODY_DETAILS[FailureReason.TOO_LARGE]
        elif self.wire_bytes > MAX_HEADERS * MAX_HEADER_BYTES:
            self.excess = FailureReason.GARBAGE, "a head beyond the limit"

    def note_head(self, message: RawResponseMessage) -> None:
        """Note the head of an answer, or of an interim one."""
        if 100 <= message.code <= 199 and message.code != 101:
            self.interim_count += 1
            if self.interim_count > MAX_INTERIM:
                self.excess = FailureReason.GARBAGE, f"more than {MAX_INTERIM} interim answers"
            return
        fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in message.raw_headers)
        self.head_bytes = len(f"HTTP/1.1 {message.code} {message.reason}\r\n\r\n") + fields
        self.is_framed = message.chunked


# A request runs in one task from fetch to socket, so this is its own; the client has no other way to hand it down.
EXCHANGE: ContextVar[Exchange] = ContextVar("trip")


class SilentError(aiohttp.ClientError):
    """The connection broke before the first byte of an answer."""


class CountingProtocol(ResponseHandler):
    """Counts what comes, since the client does not tell of frames and interim answers, and ends what is too much."""

    exchange: Exchange | None = None  # for which request it comes
    tunnel_address: str | None = None  # the address that a tunnel leads to

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
    """Connects directly, or through a proxy.

    find_refusal: why an address may not be asked, for the request under way.
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
            # It was opened for a request that might go there.
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
        """An address behind the name of a request that may be asked. Raises ForbiddenAddressError if there is none."""
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
        """A connection to an address through the proxy, which its user named: it may stand at a private one."""
        try:
            (first, *_) = await self._resolve_host(proxy.host, proxy.port)
            family = socket.AF_INET6 if ":" in first["host"] else socket.AF_INET
            info = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (first["host"], proxy.port))
            sock = guard.open_socket(info, allow_private=True)
        except OSError as error:
            raise ProxyError(f"the proxy has no address that may be asked ({error.strerror or error})") from error
        try:
            sock.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            await asyncio.get_running_loop().sock_connect(sock, (first["host"], proxy.port))
            await proxy.open_tunnel(sock, address, port)
        except OSError as error:
            sock.close()
            raise ProxyError(f"the proxy cannot be reached ({error.strerror or error})") from error
        except BaseException:
            sock.close()
            raise
        return sock


async def retry_if_stale(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Ask once more where a server had let go of an idle connection just as we used it: it has not seen the request.

    The client would do so on new connections, too, and ask twice a server that has just hung up on us.
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
    """Return whose certificates are believed: a file's and no others, or any; None for those that the machine believes.

    OSError for a file that cannot be read, or holds no certificate (ssl.SSLError).
    """
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=ca_file) if ca_file else None
