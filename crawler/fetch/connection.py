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

from crawler.core.http.credentials import basic
from crawler.core.http.response import Reason
from crawler.fetch import guard

MOST_HEAD = 16 * 1024  # bytes of the proxy's answer
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")

MAX_HEADER_BYTES = 16 * 1024  # one line; content security policies and cookies do grow beyond 8 kB
MAX_HEADERS = 128
MAX_INTERIM = 16  # answers before the answer (1xx); a server that sends more sends no other
MAX_STALE_CONNECTIONS = 16  # met in a row before it counts as the server's fault: all that may be open
BODY_DETAILS = {
    Reason.TOO_LARGE: "a body beyond the limit, as it came or as it expands",
    Reason.RESET: "the compressed body ends early",
    Reason.GARBAGE: "the body is not in the encoding that was stated, or in one that was not asked for",
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

    async def tunnel(self, connected: socket.socket, address: str, port: int) -> None:
        """Have the proxy at the other end of a connection pass on what comes to an address. Raises ProxyError."""
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.user or self.password:
            lines.append(f"Proxy-Authorization: {basic(self.user, self.password)}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connected, "\r\n".join([*lines, "", ""]).encode())
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            # One by one: what follows belongs to whoever is behind the proxy.
            byte = await loop.sock_recv(connected, 1)
            head += byte
            if not byte or len(head) > MOST_HEAD:
                raise ProxyError("the proxy hangs up, or gives no answer that is HTTP")
        status = _STATUS.match(bytes(head))
        if status is None:
            raise ProxyError("the proxy gives no answer that is HTTP")
        if status[1] == b"407":
            raise ProxyError("the proxy asks for other credentials (status 407)")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the proxy opens no tunnel (status {status[1].decode()})")


@dataclass(slots=True)
class Trip:
    """What happened below the client while one request was made."""

    began: float  # of the send, once there is a connection
    limit: int = 0  # bytes that may come beside the head of the answer
    public_only: bool = False
    address: str | None = None
    forbidden: str | None = None  # why an address was refused
    tried: bool = False  # an address that is allowed was asked
    fresh: bool = False  # the connection was made for this request
    body: int = 0  # bytes of body
    wire: int = 0  # bytes of all that came
    interim: int = 0  # answers before the answer (1xx)
    head: int | None = None  # bytes of the answer's own head, once it is there
    is_framed: bool = False  # the body comes in chunks
    excess: tuple[Reason, str] | None = None  # why no more was read

    @property
    def received(self) -> int:
        """Bytes that came: of the body, of the frames of its chunks and of interim answers."""
        if not self.is_framed and not self.interim:
            return self.body
        return max(self.body, self.wire - (self.head or 0))

    def reused(self) -> None:
        """Begin to count at the first byte behind what came on the connection before."""
        self.wire, self.interim, self.head, self.is_framed = 0, 0, None, False

    def count(self, size: int) -> None:
        """Count bytes that came, and see whether they are more than may come."""
        self.wire += size
        if self.head is not None:
            if self.wire - self.head > self.limit:
                self.excess = Reason.TOO_LARGE, BODY_DETAILS[Reason.TOO_LARGE]
        elif self.wire > MAX_HEADERS * MAX_HEADER_BYTES:
            self.excess = Reason.GARBAGE, "a head beyond the limit"

    def take_head(self, message: RawResponseMessage) -> None:
        """Note the head of an answer, or of an interim one."""
        if 100 <= message.code <= 199 and message.code != 101:
            self.interim += 1
            if self.interim > MAX_INTERIM:
                self.excess = Reason.GARBAGE, f"more than {MAX_INTERIM} interim answers"
            return
        fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in message.raw_headers)
        self.head = len(f"HTTP/1.1 {message.code} {message.reason}\r\n\r\n") + fields
        self.is_framed = message.chunked


# A request runs in one task from fetch to socket, so this is its own; the client has no other way to hand it down.
TRIP: ContextVar[Trip] = ContextVar("trip")


class SilentError(aiohttp.ClientError):
    """The connection broke before the first byte of an answer."""


class CountingProtocol(ResponseHandler):
    """Counts what comes, since the client does not tell of frames and interim answers, and ends what is too much."""

    trip: Trip | None = None  # for which request it comes
    behind_proxy: str | None = None  # the address that a tunnel leads to

    def data_received(self, data: bytes) -> None:
        if self.trip is not None:
            self.trip.count(len(data))
        super().data_received(data)
        if self.trip is not None and self.trip.excess is not None and self.transport is not None:
            self.transport.abort()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        if self.trip is not None:
            self.trip.take_head(data[0])
        super().feed_data(data, size)


class Connector(aiohttp.TCPConnector):
    """Connects directly, or through a proxy. may_ask: why an address may not be asked, for the request under way."""

    def __init__(self, *, proxy: Proxy | None, may_ask: Callable[[str], str | None], **options: Any) -> None:
        super().__init__(**options)
        self._proxy, self._why_not = proxy, may_ask
        self._factory = cast("partial[ResponseHandler]", partial(CountingProtocol, loop=asyncio.get_running_loop()))

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the client's own signature
    ) -> Connection:
        trip = TRIP.get()
        trip.fresh = False
        connection = await super().connect(req, traces, timeout)
        transport = connection.transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        trip.address = str(peer[0]) if peer else None
        if isinstance(connection.protocol, CountingProtocol) and connection.protocol.behind_proxy is not None:
            trip.address = connection.protocol.behind_proxy
        if trip.public_only and trip.address is not None and not trip.fresh:
            # It was opened for a request that might go there.
            why = guard.refusal(trip.address, allow_private=False)
            if why is not None:
                connection.release()
                trip.forbidden = f"{trip.address} is {why}"
                raise guard.ForbiddenAddressError(trip.forbidden)
        if isinstance(connection.protocol, CountingProtocol):
            trip.reused()
            connection.protocol.trip = trip
        trip.began = asyncio.get_running_loop().time()
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
        address = await self._allowed_address(req)
        tunnel = await self._tunnel(self._proxy, address, req.port or 80)
        trust = self._get_ssl_context(req)
        name = (req.url.raw_host or "").rstrip(".") if trust is not None else None
        try:
            transport, protocol = await asyncio.get_running_loop().create_connection(
                self._factory, sock=tunnel, ssl=trust, server_hostname=name
            )
        except ssl.CertificateError as error:
            raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        assert isinstance(protocol, CountingProtocol)
        protocol.behind_proxy = address
        return transport, protocol

    async def _allowed_address(self, req: aiohttp.ClientRequest) -> str:
        """An address behind the name of a request that may be asked. Raises ForbiddenAddressError if there is none."""
        trip = TRIP.get()
        trip.fresh = True
        assert req.url.raw_host is not None
        try:
            found = await self._resolve_host(req.url.raw_host, req.port or 80)
        except OSError as error:
            raise aiohttp.ClientConnectorDNSError(req.connection_key, error) from error
        for each in found:
            why = self._why_not(each["host"])
            if why is None:
                trip.tried = True
                return each["host"]
            trip.forbidden = trip.forbidden or f"{each['host']} is {why}"
        raise guard.ForbiddenAddressError(trip.forbidden or "no address")

    async def _tunnel(self, proxy: Proxy, address: str, port: int) -> socket.socket:
        """A connection to an address through the proxy, which its user named: it may stand at a private one."""
        try:
            (first, *_) = await self._resolve_host(proxy.host, proxy.port)
            family = socket.AF_INET6 if ":" in first["host"] else socket.AF_INET
            info = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (first["host"], proxy.port))
            opened = guard.open_socket(info, allow_private=True)
        except OSError as error:
            raise ProxyError(f"the proxy has no address that may be asked ({error.strerror or error})") from error
        try:
            opened.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            await asyncio.get_running_loop().sock_connect(opened, (first["host"], proxy.port))
            await proxy.tunnel(opened, address, port)
        except OSError as error:
            opened.close()
            raise ProxyError(f"the proxy cannot be reached ({error.strerror or error})") from error
        except BaseException:
            opened.close()
            raise
        return opened


async def ask_again_if_stale(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Ask once more where a server had let go of an idle connection just as we used it: it has not seen the request.

    The client would do so on new connections, too, and ask twice a server that has just hung up on us.
    """
    trip = TRIP.get()
    for _ in range(MAX_STALE_CONNECTIONS):
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            broken = error
            if trip.fresh or trip.excess is not None or trip.forbidden is not None:
                break
    raise SilentError(str(broken)) from broken


def trust_of(*, ca_file: str = "", insecure: bool = False) -> ssl.SSLContext | None:
    """Return whose certificates are believed: a file's and no others, or any; None for those that the machine believes.

    OSError for a file that cannot be read, or holds no certificate (ssl.SSLError).
    """
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=ca_file) if ca_file else None
