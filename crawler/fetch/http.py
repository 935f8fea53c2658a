"""One request, one deadline, one answer: whatever a server does becomes a value.

The cookies of one domain are kept in memory by the rules of RFC 6265; aiohttp's jar has the rules.
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

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_FRAMING = 8  # bytes that come for each one of a body of which only the beginning is wanted, at most
DNS_TTL = timedelta(minutes=5)
IDLE_TIMEOUT = timedelta(seconds=15)  # how long an unused connection is kept
LOOKUP_DEADLINE = timedelta(seconds=10)
MAX_COOKIES = 50  # RFC 6265, 6.1: at least so many of a domain; more is nobody's session
MAX_COOKIE_BYTES = 4096  # of one, likewise
_LOOKUP_THREADS = 8
_CONDITIONS = ("If-None-Match", "If-Modified-Since")


class DomainCookies:
    """A jar whose cookies are sent where they were set, and nowhere else. They are secrets: nothing here shows them.

    More than MAX_COOKIES are not kept, nor one of more than MOST_BYTES. To be used within a running loop.
    """

    def __init__(self) -> None:
        # Addresses are hosts as good as names here: one's own servers have no other.
        self._jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)

    def get_header(self, url: Url) -> str:
        """The value of the header Cookie for a request; empty for none."""
        cookies = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in cookies.items())

    def store_cookies(self, url: Url, set_cookie_headers: Sequence[str]) -> None:
        """Keep what an answer has set. set_cookie_headers: the values of its headers Set-Cookie."""
        names = {morsel.key for morsel in self._jar}
        for header in set_cookie_headers:
            name = header.partition("=")[0].strip()
            if len(header) <= MAX_COOKIE_BYTES and header.isprintable() and (name in names or len(names) < MAX_COOKIES):
                self._jar.update_cookies_from_headers([header], URL(url, encoded=True))
                names.add(name)


@dataclass(kw_only=True, eq=False, repr=False)
class Http:
    """Asks for one URL at a time, follows nothing, remembers nothing but connections and addresses.

    user_agent: the whole header; it should name a page or an address where the owner of a site finds a person.
    allow_private: private and loopback addresses may be asked; link-local ones (cloud metadata) never.
    max_body_bytes: of a body as it comes and as it expands; above it the answer is TOO_LARGE.
    connections: open at once, over all domains; more requests wait, and their deadlines run.
    ssl_context: whose certificates are believed; None: those that the machine believes.  proxy: by which all is asked.
    What is asked is resolved and checked here all the same. To be used in `async with`, by any number of tasks.
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
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, thread_name_prefix="lookup")
        self._resolver = guard.Resolver(self._threads, self.lookup)
        connector = connection.Connector(
            proxy=self.proxy,
            find_refusal=self._find_refusal,
            limit=self.connections,
            resolver=self._resolver,
            ttl_dns_cache=round(DNS_TTL.total_seconds()),
            keepalive_timeout=IDLE_TIMEOUT.total_seconds(),
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
        self._threads.shutdown(wait=False, cancel_futures=True)  # a look-up can take minutes, and cannot be stopped

    async def relay(
        self,
        request: BrowserRequest,
        *,
        deadline: timedelta,
        limits: RequestLimits = DEFAULT_LIMITS,
        auth: RequestAuth = NO_AUTH,
    ) -> BrowserResponse | Unreached:
        """What the server says to a page's own request, with all its headers; bounded and guarded as `fetch` is."""
        assert self._session is not None, "use Http in `async with`"
        exchange = connection.Exchange(
            asyncio.get_running_loop().time(), max_bytes=self.max_body_bytes, public_only=limits.public_only
        )
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
        """What the server says to one request for the URL, exactly as it is spelt.

        validators: sent back verbatim.  deadline: for everything, waiting for a connection included.
        language: the header Accept-Language; none is sent where it is empty.  limits: of this request alone.
        auth: what is shown beside; of what came, its cookies are told.
        Never raises for anything that a server, a network or a name does.
        """
        assert self._session is not None, "use Http in `async with`"
        first_bytes = limits.first_bytes
        limit = self.max_body_bytes if first_bytes is None else max(self.max_body_bytes, MAX_FRAMING * first_bytes)
        exchange = connection.Exchange(
            asyncio.get_running_loop().time(), max_bytes=limit, public_only=limits.public_only
        )
        return await self._run_bounded(
            exchange,
            self._fetch(url, method, _build_headers(validators, language), exchange, limits=limits, auth=auth),
            deadline,
        )

    async def _run_bounded(
        self, exchange: connection.Exchange, operation: Awaitable[T], deadline: timedelta
    ) -> T | Unreached:
        """What comes of a request within its deadline; whatever the web does to it is a value."""
        token = connection.EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await operation
        except TimeoutError:
            return responses.build_unreached(
                FailureReason.DEADLINE, f"no answer within {deadline.total_seconds():g} s", exchange
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return responses.build_unreached(*(exchange.excess or responses.classify_error(error, exchange)), exchange)
        finally:
            connection.EXCHANGE.reset(token)

    async def resolve_addresses(
        self, authority: Authority, *, deadline: timedelta = LOOKUP_DEADLINE
    ) -> tuple[str, ...] | Unreached:
        """The addresses behind an authority that may be asked; at least one, or why there is none."""
        exchange = connection.Exchange(asyncio.get_running_loop().time())
        host = get_host(authority)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                is_literal = guard.find_refusal(host, allow_private=True) != guard.NOT_AN_ADDRESS
                resolved = (host,) if is_literal else await self._resolver.look_up_all(host)
        except TimeoutError:
            return responses.build_unreached(
                FailureReason.DEADLINE, f"{host} was not resolved within {deadline.total_seconds():g} s", exchange
            )
        except OSError as error:
            return responses.build_unreached(
                FailureReason.DNS, f"{host}: {responses.format_one_line(error.strerror or str(error))}", exchange
            )
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
        first_bytes, form = limits.first_bytes, list(auth.form) if method == "POST" else None
        response, body = await self._send_and_read(
            method, url, headers, exchange, auth=auth, form=form, first_bytes=first_bytes
        )
        if response.status == 304:
            return responses.build_not_modified(
                response, exchange, is_conditional=not headers.keys().isdisjoint(_CONDITIONS)
            )
        if isinstance(body, Unreached):
            return body
        return responses.build_fetched(response, url, body if first_bytes is None else body[:first_bytes], exchange)

    async def _relay_request(
        self, request: BrowserRequest, exchange: connection.Exchange, auth: RequestAuth
    ) -> BrowserResponse | Unreached:
        # Where a jar is kept of the domain, the browser has none of it.
        headers = {name: value for name, value in request.headers if auth.cookies is None or name != "cookie"}
        response, body = await self._send_and_read(request.method, request.url, headers, exchange, auth=auth)
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
        *,
        auth: RequestAuth,
        form: Sequence[tuple[str, str]] | None = None,
        first_bytes: int | None = None,
    ) -> tuple[aiohttp.ClientResponse, bytes | Unreached]:
        """Send a request; return the response, and its body as decoded, or why that cannot be had.

        first_bytes: how many bytes of the body are wanted; None for all.
        """
        assert self._session is not None
        sent_headers = _add_auth(headers, url, auth)
        response = await self._session.request(
            method, URL(url, encoded=True), headers=sent_headers, data=form, allow_redirects=False
        )
        try:
            if auth.cookies is not None:
                auth.cookies.store_cookies(url, response.headers.getall("Set-Cookie", ()))
            if response.status == 304:
                return response, b""
            declared = response.content_length
            if method == "GET" and first_bytes is None and declared is not None and declared > self.max_body_bytes:
                return response, responses.build_unreached(
                    FailureReason.TOO_LARGE, f"a body of {declared} bytes", exchange
                )
            body = await self._read_body(response, exchange, first_bytes)
        finally:
            response.release()  # what was not read to its end is closed, not reused
        if not isinstance(body, FailureReason):
            body = responses.decode_body(
                body,
                response.headers.get("Content-Encoding", ""),
                limit_bytes=self.max_body_bytes if first_bytes is None else first_bytes,
                is_part=first_bytes is not None,
            )
        return response, responses.build_unreached(body, connection.BODY_DETAILS[body], exchange) if isinstance(
            body, FailureReason
        ) else body

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
        """Why an address may not be asked for the request under way; None if it may."""
        return guard.find_refusal(
            address, allow_private=self.allow_private and not connection.EXCHANGE.get().public_only
        )

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


def _build_headers(validators: Validators, language: str) -> dict[str, str]:
    values = dict(zip(_CONDITIONS, (validators.etag, validators.last_modified), strict=True))
    conditions = {name: value for name, value in values.items() if value and responses.can_be_sent(value)}
    return conditions | ({"Accept-Language": language} if language else {})


def _add_auth(headers: dict[str, str], url: Url, auth: RequestAuth) -> dict[str, str]:
    """The headers with those that let us in; a cookie of the user's own goes with those of the jar."""
    sent_headers = headers | dict(auth.headers)
    cookie = auth.cookies.get_header(url) if auth.cookies is not None else ""
    if cookie:
        cookie_name = next((name for name in sent_headers if name.lower() == "cookie"), "Cookie")
        sent_headers[cookie_name] = "; ".join(filter(None, (sent_headers.get(cookie_name), cookie)))
    return sent_headers
