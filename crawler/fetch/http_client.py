"""Send one request within one deadline and return one value, whatever the server does.

The cookies of one domain are kept in memory by the rules of RFC 6265, which aiohttp's jar implements.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self, TypeVar

import aiohttp
from yarl import URL

from crawler.core.http.credentials import NO_AUTH, RequestAuth
from crawler.core.http.response import (
    DEFAULT_LIMITS,
    NO_VALIDATORS,
    BrowserRequest,
    BrowserResponse,
    FailureReason,
    Method,
    RequestLimits,
    Response,
    Unreached,
    Validators,
)
from crawler.core.http.urls import Authority, Url, get_host
from crawler.fetch import connection, guard, responses
from crawler.fetch.request_headers import CONDITIONS, add_auth, build_headers

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_FRAMING = 8  # if only the beginning of a body is wanted: received bytes per wanted byte, or max_body_bytes if more
LOOKUP_DEADLINE = timedelta(seconds=10)
MAX_COOKIES = 50  # per domain; RFC 6265, 6.1, demands at least this
MAX_COOKIE_BYTES = 4096  # of one cookie with its attributes; from the same section


class DomainCookies:
    """A cookie jar that sends cookies only where they were set. They are secrets and never shown.

    It keeps at most MAX_COOKIES names, and no cookie above MAX_COOKIE_BYTES. Use it within a running event loop.
    """

    def __init__(self) -> None:
        # Accept cookies from hosts that are IP addresses, as private servers often are.
        self._jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)

    def get_header(self, url: Url) -> str:
        """Return the value of the Cookie header for a request; empty if there is none."""
        cookies = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in cookies.items())

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Store the cookies of a response. set_cookie_headers: the values of its Set-Cookie headers."""
        names = {morsel.key for morsel in self._jar}
        for header in set_cookie_headers:
            name = header.partition("=")[0].strip()
            if len(header) <= MAX_COOKIE_BYTES and header.isprintable() and (name in names or len(names) < MAX_COOKIES):
                self._jar.update_cookies_from_headers([header], URL(url, encoded=True))
                names.add(name)


@dataclass(kw_only=True, eq=False, repr=False)
class Http:
    """An HTTP client that follows no redirects. Between requests it keeps only connections and resolved addresses.

    user_agent: the whole header; it should name a page or an address by which site owners can contact you.
    allow_private: allow private and loopback addresses; link-local ones (cloud metadata) are never allowed.
    max_body_bytes: limit of a body, compressed and decompressed; a larger one is TOO_LARGE if all of it is wanted.
    connections: maximum number open at once, for all domains; further requests wait while their deadlines run.
    ssl_context: the trusted certificates; None: the system's.  proxy: used for all requests; hosts are still resolved
    and checked here. Use the client in `async with`, with any number of tasks.
    """

    user_agent: str
    allow_private: bool = False
    max_body_bytes: int = 10 * 1024 * 1024
    connections: int = 16
    lookup: guard.Lookup = guard.look_up
    ssl_context: ssl.SSLContext | None = None
    proxy: connection.Proxy | None = None
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="lookup")
        self._resolver = guard.Resolver(self._threads, self.lookup)
        connector = connection.Connector(
            proxy=self.proxy,
            find_refusal=self._find_refusal,
            limit=self.connections,
            resolver=self._resolver,
            ttl_dns_cache=300,  # seconds
            keepalive_timeout=15,  # seconds that an unused connection is kept
            socket_factory=self._open_socket,
            ssl=self.ssl_context or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self.user_agent, "Accept": ACCEPT, "Accept-Encoding": responses.ACCEPTED_ENCODINGS},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the caller's deadline is the only one
            max_line_size=connection.MAX_HEADER_BYTES,
            max_field_size=connection.MAX_HEADER_BYTES,
            max_headers=connection.MAX_HEADERS,
            middlewares=(connection.retry_if_stale,),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self._threads.shutdown(wait=False, cancel_futures=True)  # a lookup can take minutes and cannot be stopped

    async def relay(
        self,
        request: BrowserRequest,
        *,
        deadline: timedelta,
        limits: RequestLimits = DEFAULT_LIMITS,
        auth: RequestAuth = NO_AUTH,
    ) -> BrowserResponse | Unreached:
        """Send a request of a page in the browser with its headers, with the limits and address checks of `fetch`."""
        assert self._session is not None, "use Http in `async with`"
        exchange = _begin_exchange(self.max_body_bytes, limits)
        return await self._run_bounded(exchange, self._relay_request(request, exchange, auth), deadline)

    async def fetch(
        self,
        url: Url,
        *,
        validators: Validators = NO_VALIDATORS,
        deadline: timedelta,
        method: Method = "GET",
        language: str = "",
        limits: RequestLimits = DEFAULT_LIMITS,
        auth: RequestAuth = NO_AUTH,
    ) -> Response:
        """Request the URL exactly as it is written and return the response.

        validators: make the request conditional.  deadline: for everything, including the wait for a connection.
        language: the Accept-Language header; not sent if empty.  limits: limits of this request only.
        auth: headers, form (for POST) and cookie jar; the response's cookies are stored in the jar.
        Never raise because of a server, a network or a name.
        """
        assert self._session is not None, "use Http in `async with`"
        first_bytes = limits.first_bytes
        limit = self.max_body_bytes if first_bytes is None else max(self.max_body_bytes, MAX_FRAMING * first_bytes)
        exchange, headers = _begin_exchange(limit, limits), build_headers(validators, language)
        operation = self._fetch(url, method, headers, exchange, limits=limits, auth=auth)
        return await self._run_bounded(exchange, operation, deadline)

    async def _run_bounded(
        self, exchange: connection.Exchange, operation: Awaitable[T], deadline: timedelta
    ) -> T | Unreached:
        """Run a request within its deadline; turn failures of the web into values."""
        token = connection.EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await operation
        except TimeoutError:
            detail = f"no response within {deadline.total_seconds():g} s"
            return responses.build_unreached(FailureReason.DEADLINE, detail, exchange)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return responses.build_unreached(*(exchange.excess or responses.classify_error(error, exchange)), exchange)
        finally:
            connection.EXCHANGE.reset(token)

    async def resolve_addresses(
        self, authority: Authority, *, deadline: timedelta = LOOKUP_DEADLINE
    ) -> tuple[str, ...] | Unreached:
        """Return the allowed addresses of an authority: at least one, or why there is none."""
        exchange = connection.Exchange(asyncio.get_running_loop().time())
        host = get_host(authority)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                is_literal = guard.find_refusal(host, allow_private=True) != guard.NOT_AN_ADDRESS
                resolved = (host,) if is_literal else await self._resolver.look_up_all(host)
        except TimeoutError:
            detail = f"{host} was not resolved within {deadline.total_seconds():g} s"
            return responses.build_unreached(FailureReason.DEADLINE, detail, exchange)
        except OSError as error:
            detail = f"{host}: {responses.format_one_line(error.strerror or str(error))}"
            return responses.build_unreached(FailureReason.DNS, detail, exchange)
        refusals = {address: guard.find_refusal(address, allow_private=self.allow_private) for address in resolved}
        allowed = tuple(address for address, why in refusals.items() if why is None)
        if allowed:
            return allowed
        if not refusals:
            return responses.build_unreached(FailureReason.DNS, f"{host} has no address", exchange)
        address, reason = next(iter(refusals.items()))
        return responses.build_unreached(FailureReason.ADDRESS, f"{address} is {reason}", exchange)

    async def _fetch(
        self,
        url: Url,
        method: Method,
        headers: dict[str, str],
        exchange: connection.Exchange,
        *,
        limits: RequestLimits,
        auth: RequestAuth,
    ) -> Response:
        first, form = limits.first_bytes, list(auth.form) if method == "POST" else None
        response, body = await self._send_and_read(method, url, headers, exchange, auth, form=form, first_bytes=first)
        if response.status == 304:
            is_conditional = not headers.keys().isdisjoint(CONDITIONS)
            return responses.build_not_modified(response, exchange, is_conditional=is_conditional)
        if isinstance(body, Unreached):
            return body
        return responses.build_fetched(response, url, body[:first], exchange)

    async def _relay_request(
        self, request: BrowserRequest, exchange: connection.Exchange, auth: RequestAuth
    ) -> BrowserResponse | Unreached:
        # If the domain has a cookie jar, the browser's own cookies are not sent.
        headers = {name: value for name, value in request.headers if auth.cookies is None or name != "cookie"}
        response, body = await self._send_and_read(request.method, request.url, headers, exchange, auth)
        if isinstance(body, Unreached):
            return body
        return BrowserResponse(
            status=response.status if 200 <= response.status <= 599 else 500,
            headers=tuple(response.headers.items()),
            body=body,
            received_bytes=exchange.received_bytes,
        )

    async def _send_and_read(
        self,
        method: str,
        url: Url,
        headers: dict[str, str],
        exchange: connection.Exchange,
        auth: RequestAuth,
        *,
        form: Sequence[tuple[str, str]] | None = None,
        first_bytes: int | None = None,
    ) -> tuple[aiohttp.ClientResponse, bytes | Unreached]:
        """Send a request; return the response with its decoded body, or with the reason why there is none.

        first_bytes: how many bytes of the body are wanted; None for all.
        """
        assert self._session is not None
        target, sent_headers = URL(url, encoded=True), add_auth(headers, url, auth)
        response = await self._session.request(method, target, headers=sent_headers, data=form, allow_redirects=False)
        try:
            if auth.cookies is not None:
                auth.cookies.store_cookies(url, response.headers.getall("Set-Cookie", ()))
            if response.status == 304:
                return response, b""
            declared = response.content_length
            if method == "GET" and first_bytes is None and declared is not None and declared > self.max_body_bytes:
                detail = f"the body has {declared} bytes"
                return response, responses.build_unreached(FailureReason.TOO_LARGE, detail, exchange)
            body = await self._read_body(response, exchange, first_bytes)
        finally:
            response.release()  # closes a connection that was not read to its end
        if not isinstance(body, FailureReason):
            limit, is_part = (self.max_body_bytes, False) if first_bytes is None else (first_bytes, True)
            encoding = response.headers.get("Content-Encoding", "")
            body = responses.decode_body(body, encoding, limit_bytes=limit, is_part=is_part)
        if isinstance(body, FailureReason):
            return response, responses.build_unreached(body, connection.BODY_DETAILS[body], exchange)
        return response, body

    async def _read_body(
        self, response: aiohttp.ClientResponse, exchange: connection.Exchange, first_bytes: int | None
    ) -> bytes | FailureReason:
        parts: list[bytes] = []
        try:
            while part := await response.content.readany():
                exchange.body_bytes += len(part)
                parts.append(part)
                if first_bytes is not None and exchange.body_bytes >= first_bytes:
                    break
                if first_bytes is None and exchange.received_bytes > self.max_body_bytes:
                    return FailureReason.TOO_LARGE
        except aiohttp.ClientError:
            if first_bytes is None or exchange.excess is None:
                raise
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _find_refusal(self, address: str) -> str | None:
        """Return why an address is not allowed for the current request; None if it is."""
        allow_private = self.allow_private and not connection.EXCHANGE.get().public_only
        return guard.find_refusal(address, allow_private=allow_private)

    def _open_socket(self, info: guard.AddressInfo) -> socket.socket:
        exchange = connection.EXCHANGE.get()
        exchange.is_new_connection = True
        try:
            sock = guard.open_socket(info, allow_private=self.allow_private and not exchange.public_only)
        except guard.ForbiddenAddressError as error:
            exchange.forbidden_reason = exchange.forbidden_reason or str(error)
            raise
        exchange.has_tried_address = True
        return sock


def _begin_exchange(max_bytes: int, limits: RequestLimits) -> connection.Exchange:
    now = asyncio.get_running_loop().time()
    return connection.Exchange(now, max_bytes=max_bytes, public_only=limits.public_only)
