"""A pool of connections whose addresses are checked, directly or through an HTTP proxy.

Connections through a proxy are tunnels (CONNECT, RFC 9110, 9.3.6). The proxy gets an address that was resolved and
checked here, never a name, which it might resolve differently. Requests for http URLs use tunnels too: with an absolute
URL in the request, the proxy would resolve the name itself (RFC 9112, 3.2.2).
"""

import asyncio
import re
import socket
import ssl
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple, Self

from aiohappyeyeballs import start_connection

from crawler.core.http.credentials import format_basic_auth
from crawler.core.http.response import FailureReason
from crawler.fetch import guard
from crawler.fetch.connection import Exchange, FetchError, HttpConnection, HttpRequest, ResponseHead

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")

MAX_STALE_CONNECTIONS = 16  # attempts on idle connections that the server has closed; then the request fails
MAX_ADDRESSES = 1000  # hosts whose addresses are kept
ADDRESS_SECONDS = 300  # how long they are kept
NEXT_ADDRESS_SECONDS = 0.25  # until the next address of a host is tried, too (RFC 8305)
MAX_PORT = 65535
DEFAULT_PORTS = {"http": 80, "https": 443}


class Server(NamedTuple):
    """Where a connection leads. host: a name or an IP address, without brackets."""

    scheme: str
    host: str
    port: int


def split_url(url: str) -> tuple[Server, str, str]:
    """Return the server of a URL, its authority, and its target (path and query). Raise ValueError if it has none."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    scheme = scheme.lower()
    end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
    authority, target = rest[:end], rest[end:]
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    if not host or "@" in authority or scheme not in DEFAULT_PORTS:
        raise ValueError("the URL has no host, or credentials, or another scheme than http and https")
    server = Server(scheme, host.strip("[]"), int(port) if port else DEFAULT_PORTS[scheme])
    if not 0 < server.port <= MAX_PORT:
        raise ValueError("the port is not between 1 and 65535")
    return server, authority, target if target.startswith("/") else f"/{target}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy with its credentials."""

    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    async def open_tunnel(self, sock: socket.socket, address: str, port: int) -> None:
        """Have the proxy at the other end of `sock` open a tunnel to an address. Raise FetchError or OSError."""
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
                raise FetchError(FailureReason.REFUSED, "the proxy closed the connection or sent no HTTP response")
        status = _STATUS.match(bytes(head))
        if status is None:
            raise FetchError(FailureReason.REFUSED, "the proxy sent no HTTP response")
        if status[1] == b"407":
            raise FetchError(FailureReason.REFUSED, "the proxy requires other credentials (status 407)")
        if not status[1].startswith(b"2"):
            raise FetchError(FailureReason.REFUSED, f"the proxy refused the tunnel (status {status[1].decode()})")


@dataclass(kw_only=True, eq=False, repr=False)
class ConnectionPool:
    """The connections of a client. Use it in `async with`, with any number of tasks.

    allow_private: allow private and loopback addresses; link-local ones (cloud metadata) are never allowed.
    limit: maximum number of requests at once; further ones wait. As many unused connections are kept, for keep_seconds.
    ssl_context: the trusted certificates; None: the system's.
    """

    allow_private: bool
    limit: int
    lookup: guard.Lookup = guard.look_up
    keep_seconds: float = 15
    ssl_context: ssl.SSLContext | None = None
    proxy: Proxy | None = None

    async def __aenter__(self) -> Self:
        self._slots = asyncio.Semaphore(self.limit)
        self._idle_count = 0
        self._idle: defaultdict[Server, deque[tuple[HttpConnection, asyncio.TimerHandle]]] = defaultdict(deque)
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="lookup")
        self._addresses: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        return self

    async def __aexit__(self, *_: object) -> None:
        for connections in self._idle.values():
            for connection, timer in connections:
                timer.cancel()
                connection.close()
        for lookup in self._addresses.values():
            lookup.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)  # a lookup can take minutes and cannot be stopped

    async def request(self, server: Server, request: HttpRequest, exchange: Exchange) -> tuple[ResponseHead, bytes]:
        """Send a request and return the response. Raise FetchError if there is none, and ValueError for a bad request.

        A request is repeated if the reused connection on which it was sent is lost before a response. On a new
        connection it is not: a server that drops them would get two requests.
        """
        sent, lost = request.serialize(), None
        async with self._slots:
            for _ in range(MAX_STALE_CONNECTIONS):
                connection = self._take_idle(server)
                is_new = connection is None
                if connection is None:
                    connection = await self._connect(server, exchange)
                elif exchange.public_only and (why := guard.find_refusal(connection.address, allow_private=False)):
                    self._keep(server, connection)  # it was opened for a request without this restriction
                    raise FetchError(FailureReason.ADDRESS, f"{connection.address} is {why}")
                try:
                    response = await connection.request(request, sent, exchange)
                except FetchError as error:
                    if is_new or not error.is_silent:
                        raise
                    lost = error
                    continue
                if connection.is_reusable:
                    self._keep(server, connection)
                return response
        assert lost is not None
        raise lost

    async def look_up(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, allowed or not: itself if it is one. Raise OSError if there are none."""
        if guard.find_refusal(host, allow_private=True) != guard.NOT_AN_ADDRESS:
            return (host,)
        if host not in self._addresses:
            task = asyncio.create_task(self.look_up_now(host), name="lookup")
            self._addresses[host] = task
            loop, forget = asyncio.get_running_loop(), partial(self._forget_addresses, host)
            task.add_done_callback(lambda done: loop.call_later(0 if _has_failed(done) else ADDRESS_SECONDS, forget))
            if len(self._addresses) > MAX_ADDRESSES:
                self._forget_addresses(next(iter(self._addresses)))
        return await asyncio.shield(self._addresses[host])  # others may wait for it, too

    async def look_up_now(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, looked up in a thread, so that a slow name server delays no other work."""
        addresses = await asyncio.get_running_loop().run_in_executor(self._threads, self.lookup, host)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return tuple(addresses)

    def _forget_addresses(self, host: str) -> None:
        self._addresses.pop(host, None)

    def _take_idle(self, server: Server) -> HttpConnection | None:
        """Return the idle connection that was used last."""
        connections = self._idle.get(server)
        while connections:
            connection, timer = connections.pop()
            timer.cancel()
            self._idle_count -= 1
            if not connections:
                del self._idle[server]
            if connection.is_reusable:
                return connection
        return None

    def _keep(self, server: Server, connection: HttpConnection) -> None:
        if self._idle_count >= self.limit:
            self._close_oldest(next(iter(self._idle)))
        self._idle_count += 1
        timer = asyncio.get_running_loop().call_later(self.keep_seconds, self._close_oldest, server)
        self._idle[server].append((connection, timer))

    def _close_oldest(self, server: Server) -> None:
        connections = self._idle[server]
        connection, timer = connections.popleft()
        timer.cancel()
        connection.close()
        self._idle_count -= 1
        if not connections:
            del self._idle[server]

    async def _connect(self, server: Server, exchange: Exchange) -> HttpConnection:
        """Open a connection to an allowed address of a server. Raise FetchError."""
        allow_private = self.allow_private and not exchange.public_only
        try:
            addresses = await self.look_up(server.host)
        except OSError as error:
            raise FetchError(FailureReason.DNS, error.strerror or str(error)) from error
        refusals = {address: guard.find_refusal(address, allow_private=allow_private) for address in addresses}
        allowed = [address for address, why in refusals.items() if why is None]
        if not allowed:
            address, why = next(iter(refusals.items()))
            raise FetchError(FailureReason.ADDRESS, f"{address} is {why}")
        context = None
        if server.scheme == "https":
            context = self.ssl_context or load_default_certificates()
        sock = await self._open_socket(server, allowed, allow_private=allow_private)
        try:
            address = allowed[0] if self.proxy is not None else str(sock.getpeername()[0])
            name = server.host.rstrip(".") if context is not None else None
            _, connection = await asyncio.get_running_loop().create_connection(
                partial(HttpConnection, address), sock=sock, ssl=context, server_hostname=name
            )
        except BaseException as error:
            sock.close()
            if isinstance(error, ssl.SSLError | ssl.CertificateError):
                raise FetchError(FailureReason.TLS, error.strerror or str(error)) from error
            if isinstance(error, OSError):  # in the middle of the TLS handshake
                raise FetchError(FailureReason.RESET, error.strerror or str(error)) from error
            raise
        return connection

    async def _open_socket(self, server: Server, addresses: list[str], *, allow_private: bool) -> socket.socket:
        if self.proxy is not None:
            return await self._open_tunnel(self.proxy, addresses[0], server.port)
        try:
            return await _connect_socket(addresses, server.port, allow_private=allow_private)
        except OSError as error:
            raise FetchError(FailureReason.REFUSED, error.strerror or str(error)) from error

    async def _open_tunnel(self, proxy: Proxy, address: str, port: int) -> socket.socket:
        """Connect to an address through the proxy. The proxy itself may have a private address."""
        try:
            sock = await _connect_socket(await self.look_up(proxy.host), proxy.port, allow_private=True)
            try:
                await proxy.open_tunnel(sock, address, port)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            detail = f"the proxy cannot be reached ({error.strerror or error})"
            raise FetchError(FailureReason.REFUSED, detail) from error
        return sock


async def _connect_socket(addresses: list[str] | tuple[str, ...], port: int, *, allow_private: bool) -> socket.socket:
    """Connect to the first of some addresses that accepts. Raise OSError if none does."""
    infos: list[guard.AddressInfo] = []
    for address in addresses:
        family, end = (socket.AF_INET6, (address, port, 0, 0)) if ":" in address else (socket.AF_INET, (address, port))
        infos.append((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", end))
    return await start_connection(
        infos,
        happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
        interleave=1,
        socket_factory=partial(guard.open_socket, allow_private=allow_private),
    )


def _has_failed(task: asyncio.Task[tuple[str, ...]]) -> bool:
    return task.cancelled() or task.exception() is not None


@cache
def load_default_certificates() -> ssl.SSLContext:
    """Return an SSL context with the certificates that the system trusts. It takes 30 ms, once in a process."""
    return _offer_http_1(ssl.create_default_context())


def build_ssl_context(*, ca_file: str = "", insecure: bool = False) -> ssl.SSLContext | None:
    """Build an SSL context that trusts only the certificates of a file, or any if insecure; None if neither is set.

    Raise OSError if the file cannot be read or contains no certificate (ssl.SSLError).
    """
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return _offer_http_1(context)
    return _offer_http_1(ssl.create_default_context(cafile=ca_file)) if ca_file else None


def _offer_http_1(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context
