"""One request, one deadline, one answer: whatever a server does becomes a value."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.tracing import Trace
from yarl import URL

from crawler.core.http import (
    NO_ACCESS,
    USUAL_BOUNDS,
    Access,
    Answer,
    Authority,
    Bounds,
    Fetched,
    Method,
    NotModified,
    Reason,
    Relay,
    Relayed,
    Unreached,
    Url,
    Validators,
    host_of,
    kept_headers,
    normalise,
)
from crawler.web import encoding, guard
from crawler.web.proxy import Proxy, ProxyError

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_HEADER_BYTES = 16 * 1024  # one line; content security policies and cookies do grow beyond 8 kB
MAX_HEADERS = 128
MAX_INTERIM = 16  # answers before the answer (1xx); a server that sends more sends no other
MAX_FRAMING = 8  # bytes that come for each one of a body of which only the beginning is wanted, at most
MAX_VALIDATOR_CHARS = 2048
MAX_STALE_CONNECTIONS = 16  # met in a row before it counts as the server's fault: all that may be open
DNS_TTL = timedelta(minutes=5)
IDLE = timedelta(seconds=15)  # how long an unused connection is kept
LOOKUP_DEADLINE = timedelta(seconds=10)
NO_VALIDATORS = Validators()
_LOOKUP_THREADS = 8
_BODY_DETAILS = {
    Reason.TOO_LARGE: "a body beyond the limit, as it came or as it expands",
    Reason.RESET: "the compressed body ends early",
    Reason.GARBAGE: "the body is not in the encoding that was stated, or in one that was not asked for",
}
_CONDITIONS = ("If-None-Match", "If-Modified-Since")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class _Trip:
    """What happened below the client while one request was made."""

    __slots__ = (
        *("address", "began", "body", "excess", "forbidden", "fresh", "head", "interim", "is_framed", "limit"),
        *("public_only", "tried", "wire"),
    )

    def __init__(self, began: float, *, limit: int = 0, public_only: bool = False) -> None:
        self.began = began  # of the send, once there is a connection
        self.limit = limit  # bytes that may come beside the head of the answer
        self.public_only = public_only
        self.address: str | None = None
        self.forbidden: str | None = None  # why an address was refused
        self.tried = False  # an address that is allowed was asked
        self.fresh = False  # the connection was made for this request
        self.body = 0  # bytes of body
        self.wire = 0  # bytes of all that came
        self.interim = 0  # answers before the answer (1xx)
        self.head: int | None = None  # bytes of the answer's own head, once it is there
        self.is_framed = False  # the body comes in chunks
        self.excess: tuple[Reason, str] | None = None  # why no more was read

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
                self.excess = Reason.TOO_LARGE, _BODY_DETAILS[Reason.TOO_LARGE]
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
_TRIP: ContextVar[_Trip] = ContextVar("trip")


class _SilentError(aiohttp.ClientError):
    """The connection broke before the first byte of an answer."""


class _CountingProtocol(ResponseHandler):
    """Counts what comes, since the client does not tell of frames and interim answers, and ends what is too much."""

    trip: _Trip | None = None  # for which request it comes
    behind_proxy: str | None = None  # the address that a tunnel leads to

    def data_received(self, data: bytes) -> None:
        if self.trip is not None:
            self.trip.count(len(data))
        super().data_received(data)
        self._end_excess()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        if self.trip is not None:
            self.trip.take_head(data[0])
        super().feed_data(data, size)

    def _end_excess(self) -> None:
        if self.trip is not None and self.trip.excess is not None and self.transport is not None:
            self.transport.abort()


class _Connector(aiohttp.TCPConnector):
    """Connects directly, or through a proxy. may_ask: why an address may not be asked, for the request under way."""

    def __init__(self, *, proxy: Proxy | None, may_ask: Callable[[str], str | None], **options: Any) -> None:
        super().__init__(**options)
        self._proxy, self._why_not = proxy, may_ask
        self._factory = cast("partial[ResponseHandler]", partial(_CountingProtocol, loop=asyncio.get_running_loop()))

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the client's own signature
    ) -> Connection:
        trip = _TRIP.get()
        trip.fresh = False
        connection = await super().connect(req, traces, timeout)
        transport = connection.transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        trip.address = str(peer[0]) if peer else None
        if isinstance(connection.protocol, _CountingProtocol) and connection.protocol.behind_proxy is not None:
            trip.address = connection.protocol.behind_proxy
        if trip.public_only and trip.address is not None and not trip.fresh:
            # It was opened for a request that might go there.
            why = guard.refusal(trip.address, allow_private=False)
            if why is not None:
                connection.release()
                trip.forbidden = f"{trip.address} is {why}"
                raise guard.ForbiddenAddressError(trip.forbidden)
        if isinstance(connection.protocol, _CountingProtocol):
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
        assert isinstance(protocol, _CountingProtocol)
        protocol.behind_proxy = address
        return transport, protocol

    async def _allowed_address(self, req: aiohttp.ClientRequest) -> str:
        """An address behind the name of a request that may be asked. Raises ForbiddenAddressError if there is none."""
        trip = _TRIP.get()
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


class Http:
    """Asks for one URL at a time, follows nothing, remembers nothing but connections and addresses.

    user_agent: the whole header; it should name a page or an address where the owner of a site finds a person.
    allow_private: private and loopback addresses may be asked; link-local ones (cloud metadata) never.
    max_body_bytes: of a body as it comes and as it expands; above it the answer is TOO_LARGE.
    connections: open at once, over all domains; more requests wait, and their deadlines run.
    trust: whose certificates are believed; None: those that the machine believes.  proxy: by which all is asked. What
    is asked is resolved and checked here all the same.
    To be used in `async with`, by any number of tasks.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        allow_private: bool = False,
        max_body_bytes: int = 10 * 1024 * 1024,
        connections: int = 16,
        lookup: guard.Lookup = guard.look_up,
        trust: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self.user_agent = user_agent
        self.allow_private = allow_private
        self.max_body_bytes = max_body_bytes
        self.connections = connections
        self._lookup = lookup
        self._trust = trust
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, thread_name_prefix="lookup")
        self._resolver = guard.Resolver(self._threads, self._lookup)
        connector = _Connector(
            proxy=self._proxy,
            may_ask=self._why_not,
            limit=self.connections,
            resolver=self._resolver,
            ttl_dns_cache=round(DNS_TTL.total_seconds()),
            keepalive_timeout=IDLE.total_seconds(),
            socket_factory=self._open_socket,
            ssl=self._trust or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self.user_agent, "Accept": ACCEPT, "Accept-Encoding": encoding.ACCEPTED},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the caller's deadline is the only one
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
            middlewares=(_ask_again_if_stale,),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._threads.shutdown(wait=False, cancel_futures=True)  # a look-up can take minutes, and cannot be stopped

    async def relay(
        self, request: Relay, *, deadline: timedelta, bounds: Bounds = USUAL_BOUNDS, access: Access = NO_ACCESS
    ) -> Relayed | Unreached:
        """What the server says to a page's own request, with all its headers; bounded and guarded as `fetch` is."""
        assert self._session is not None, "use Http in `async with`"
        trip = _Trip(asyncio.get_running_loop().time(), limit=self.max_body_bytes, public_only=bounds.public_only)
        return await self._bounded(trip, self._relay(request, trip, access), deadline)

    async def fetch(
        self,
        url: Url,
        *,
        validators: Validators = NO_VALIDATORS,
        deadline: timedelta,
        method: Method = "GET",
        language: str = "",
        bounds: Bounds = USUAL_BOUNDS,
        access: Access = NO_ACCESS,
    ) -> Answer:
        """What the server says to one request for the URL, exactly as it is spelt.

        validators: sent back verbatim.  deadline: for everything, waiting for a connection included.
        language: the header Accept-Language; none is sent where it is empty.  bounds: of this request alone.
        access: what is shown beside; of what came, its cookies are told.
        Never raises for anything that a server, a network or a name does.
        """
        assert self._session is not None, "use Http in `async with`"
        first = bounds.first_bytes
        limit = self.max_body_bytes if first is None else max(self.max_body_bytes, MAX_FRAMING * first)
        trip = _Trip(asyncio.get_running_loop().time(), limit=limit, public_only=bounds.public_only)
        return await self._bounded(
            trip, self._ask(url, method, _headers(validators, language), trip, bounds=bounds, access=access), deadline
        )

    async def _bounded(self, trip: _Trip, asking: Awaitable[T], deadline: timedelta) -> T | Unreached:
        """What comes of a request within its deadline; whatever the web does to it is a value."""
        token = _TRIP.set(trip)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await asking
        except TimeoutError:
            return _unreached(Reason.DEADLINE, f"no answer within {deadline.total_seconds():g} s", trip)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _unreached(*(trip.excess or _reason(error, trip)), trip)
        finally:
            _TRIP.reset(token)

    async def addresses(
        self, authority: Authority, *, deadline: timedelta = LOOKUP_DEADLINE
    ) -> tuple[str, ...] | Unreached:
        """The addresses behind an authority that may be asked; at least one, or why there is none."""
        trip = _Trip(asyncio.get_running_loop().time())
        host = host_of(authority)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                found = (host,) if _is_literal(authority) else await self._resolver.addresses(host)
        except TimeoutError:
            return _unreached(Reason.DEADLINE, f"{host} was not resolved within {deadline.total_seconds():g} s", trip)
        except OSError as error:
            return _unreached(Reason.DNS, f"{host}: {_one_line(error.strerror or str(error))}", trip)
        refused = {address: guard.refusal(address, allow_private=self.allow_private) for address in found}
        allowed = tuple(address for address, why in refused.items() if why is None)
        if allowed:
            return allowed
        if not refused:
            return _unreached(Reason.DNS, f"{host} has no address", trip)
        address, why = next(iter(refused.items()))
        return _unreached(Reason.ADDRESS, f"{address} is {why}", trip)

    async def _ask(
        self, url: Url, method: Method, headers: dict[str, str], trip: _Trip, *, bounds: Bounds, access: Access
    ) -> Answer:
        assert self._session is not None
        first = bounds.first_bytes
        response = await self._session.request(
            method,
            URL(url, encoded=True),
            headers=_with_access(headers, url, access),
            data=list(access.form) if method == "POST" else None,
            allow_redirects=False,
        )
        try:
            if access.cookies is not None:
                access.cookies.take(url, response.headers.getall("Set-Cookie", ()))
            if response.status == 304:
                return _not_modified(response, trip, was_asked=not headers.keys().isdisjoint(_CONDITIONS))
            declared = response.content_length
            if method == "GET" and first is None and declared is not None and declared > self.max_body_bytes:
                return _unreached(Reason.TOO_LARGE, f"a body of {declared} bytes", trip)
            body = await self._read(response, trip, first)
        finally:
            response.release()  # what was not read to its end is closed, not reused
        if not isinstance(body, Reason):
            body = encoding.decoded(
                body,
                response.headers.get("Content-Encoding", ""),
                limit_bytes=self.max_body_bytes if first is None else first,
                is_part=first is not None,
            )
        if isinstance(body, Reason):
            return _unreached(body, _BODY_DETAILS[body], trip)
        return _fetched(response, url, body if first is None else body[:first], trip)

    async def _relay(self, request: Relay, trip: _Trip, access: Access) -> Relayed | Unreached:
        assert self._session is not None
        # Where a jar is kept of the domain, the browser has none of it.
        headers = {name: value for name, value in request.headers if access.cookies is None or name != "cookie"}
        headers = _with_access(headers, request.url, access)
        response = await self._session.request(
            request.method, URL(request.url, encoded=True), headers=headers, allow_redirects=False
        )
        try:
            if access.cookies is not None:
                access.cookies.take(request.url, response.headers.getall("Set-Cookie", ()))
            body = await self._read(response, trip, None)
        finally:
            response.release()
        if not isinstance(body, Reason):
            form = response.headers.get("Content-Encoding", "")
            body = encoding.decoded(body, form, limit_bytes=self.max_body_bytes)
        if isinstance(body, Reason):
            return _unreached(body, _BODY_DETAILS[body], trip)
        return Relayed(
            status=response.status if 200 <= response.status <= 599 else 500,
            headers=tuple(response.headers.items()),
            body=body,
            received_bytes=trip.received,
        )

    async def _read(self, response: aiohttp.ClientResponse, trip: _Trip, first: int | None) -> bytes | Reason:
        parts: list[bytes] = []
        try:
            while part := await response.content.readany():
                trip.body += len(part)
                parts.append(part)
                if first is not None and trip.body >= first:
                    break
                if first is None and trip.received > self.max_body_bytes:
                    return Reason.TOO_LARGE
        except aiohttp.ClientError:
            if first is None or trip.excess is None:
                raise
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _why_not(self, address: str) -> str | None:
        """Why an address may not be asked for the request under way; None if it may."""
        return guard.refusal(address, allow_private=self.allow_private and not _TRIP.get().public_only)

    def _open_socket(self, info: guard.AddressInfo) -> socket.socket:
        trip = _TRIP.get()
        trip.fresh = True
        try:
            opened = guard.open_socket(info, allow_private=self.allow_private and not trip.public_only)
        except guard.ForbiddenAddressError as error:
            trip.forbidden = trip.forbidden or str(error)
            raise
        trip.tried = True
        return opened


async def _ask_again_if_stale(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Ask once more where a server had let go of an idle connection just as we used it: it has not seen the request.

    The client would do so on new connections, too, and ask twice a server that has just hung up on us.
    """
    trip = _TRIP.get()
    for _ in range(MAX_STALE_CONNECTIONS):
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            broken = error
            if trip.fresh or trip.excess is not None or trip.forbidden is not None:
                break
    raise _SilentError(_one_line(str(broken))) from broken


def _headers(validators: Validators, language: str) -> dict[str, str]:
    return _conditions(validators) | ({"Accept-Language": language} if language else {})


def _with_access(headers: dict[str, str], url: Url, access: Access) -> dict[str, str]:
    """The headers with those that let us in; a cookie of the user's own goes with those of the jar."""
    shown = headers | dict(access.headers)
    said = access.cookies.header_for(url) if access.cookies is not None else ""
    if said:
        own = next((name for name in shown if name.lower() == "cookie"), "Cookie")
        shown[own] = "; ".join(filter(None, (shown.get(own), said)))
    return shown


def _conditions(validators: Validators) -> dict[str, str]:
    said = dict(zip(_CONDITIONS, (validators.etag, validators.last_modified), strict=True))
    return {name: value for name, value in said.items() if value and _can_be_sent(value)}


def _fetched(response: aiohttp.ClientResponse, url: Url, body: bytes, trip: _Trip) -> Fetched:
    headers = response.headers
    status = response.status
    robots_tags = headers.getall("X-Robots-Tag", ())
    return Fetched(
        status=status if 100 <= status <= 599 else 500,  # RFC 9110, 15: what is no status counts as a server's error
        body=body,
        received_bytes=trip.received,
        elapsed=_since(trip),
        content_type=_printable(headers.get("Content-Type", "")),
        validators=_validators(response),
        date=_stated(response, "Date"),
        location=_location(response, url) if 300 <= status <= 399 else None,
        retry_after=_stated(response, "Retry-After"),
        robots_tag=_printable(", ".join(robots_tags)) if robots_tags else None,
        refresh=_stated(response, "Refresh"),
        address=trip.address,
        declared_bytes=response.content_length,
        headers=kept_headers((name, _printable(value)) for name, value in headers.items() if name.isprintable()),
    )


def _not_modified(response: aiohttp.ClientResponse, trip: _Trip, *, was_asked: bool) -> NotModified | Unreached:
    if not was_asked:
        return _unreached(Reason.GARBAGE, "not modified, though nothing was said of a copy", trip)
    return NotModified(
        elapsed=_since(trip),
        validators=_validators(response),
        date=_stated(response, "Date"),
        address=trip.address,
        received_bytes=trip.received,
    )


def _validators(response: aiohttp.ClientResponse) -> Validators:
    return Validators(etag=_verbatim(response, "ETag"), last_modified=_verbatim(response, "Last-Modified"))


def _verbatim(response: aiohttp.ClientResponse, name: str) -> str | None:
    value = response.headers.get(name)
    return value if value and _can_be_sent(value) else None


def _can_be_sent(value: str) -> bool:
    """Whether a validator can be stored and sent back as it came: no control characters, no bytes that are no UTF-8."""
    return value.isprintable() and len(value) <= MAX_VALIDATOR_CHARS


def _stated(response: aiohttp.ClientResponse, name: str) -> str | None:
    value = response.headers.get(name)
    return None if value is None else _printable(value)


def _location(response: aiohttp.ClientResponse, url: Url) -> Url | None:
    target = response.headers.get("Location")
    if target is None:
        return None
    # Bytes that are no UTF-8 are escaped one by one, as browsers do.
    if not target.isascii():
        target = quote(target.encode("utf-8", "surrogateescape"), safe=_ASCII)
    return normalise(target, base=url)


# The first that fits: the client's exceptions are also each other's.
_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (ProxyError, Reason.REFUSED),
    (aiohttp.ClientConnectorDNSError, Reason.DNS),
    (aiohttp.ClientSSLError, Reason.TLS),
    (aiohttp.ClientConnectorError, Reason.REFUSED),
    (aiohttp.ClientPayloadError, Reason.RESET),
    (aiohttp.ClientConnectionError, Reason.RESET),
    (_SilentError, Reason.RESET),
    (aiohttp.ClientError, Reason.GARBAGE),
    (ValueError, Reason.GARBAGE),
    (OSError, Reason.RESET),
)


def _reason(error: Exception, trip: _Trip) -> tuple[Reason, str]:
    """What an exception of the client means, with a line for a person."""
    if trip.forbidden and not trip.tried:
        return Reason.ADDRESS, trip.forbidden
    reason = next(reason for kind, reason in _REASONS if isinstance(error, kind))
    said = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        said = error.os_error.strerror or said
        if reason is Reason.REFUSED and isinstance(error.os_error, ConnectionResetError | BrokenPipeError):
            reason = Reason.RESET  # in the middle of the TLS handshake
    return reason, _one_line(said)


def _unreached(reason: Reason, detail: str, trip: _Trip) -> Unreached:
    return Unreached(reason, _since(trip), detail, trip.received)


def _since(trip: _Trip) -> timedelta:
    return timedelta(seconds=asyncio.get_running_loop().time() - trip.began)


def _one_line(text: str) -> str:
    return _printable(" ".join(text.split()))[:200]


def _printable(text: str) -> str:
    """Text that can be stored and shown: nothing but printable characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def _is_literal(authority: Authority) -> bool:
    return guard.refusal(host_of(authority), allow_private=True) != guard.NOT_AN_ADDRESS
