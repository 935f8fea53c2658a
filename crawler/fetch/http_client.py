"""Send one request within one deadline and return one value, whatever the server does."""

import asyncio
import ssl
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self, TypeVar
from urllib.parse import urlencode

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
from crawler.fetch import guard, responses
from crawler.fetch.connection import BODY_DETAILS, Exchange, FetchError, HttpRequest, ResponseHead
from crawler.fetch.pool import ConnectionPool, Proxy, split_url
from crawler.fetch.request_headers import CONDITIONS, add_auth, build_headers

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_FRAMING = 8  # if only the beginning of a body is wanted: received bytes per wanted byte, or max_body_bytes if more
LOOKUP_DEADLINE = timedelta(seconds=10)


@dataclass(kw_only=True, eq=False, repr=False)
class Http:
    """An HTTP client that follows no redirects. Between requests it keeps only connections and resolved addresses.

    user_agent: the whole header; it should name a page or an address by which site owners can contact you.
    allow_private: allow private and loopback addresses; link-local ones (cloud metadata) are never allowed.
    max_body_bytes: limit of a body, compressed and decompressed; a larger one is TOO_LARGE if all of it is wanted.
    connections: maximum number in use at once, for all domains; further requests wait while their deadlines run.
    ssl_context: the trusted certificates; None: the system's.  proxy: used for all requests; hosts are still resolved
    and checked here. Use the client in `async with`, with any number of tasks.
    """

    user_agent: str
    allow_private: bool = False
    max_body_bytes: int = 10 * 1024 * 1024
    connections: int = 16
    lookup: guard.Lookup = guard.look_up
    ssl_context: ssl.SSLContext | None = None
    proxy: Proxy | None = None
    _pool: ConnectionPool | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._pool = ConnectionPool(
            allow_private=self.allow_private,
            limit=self.connections,
            lookup=self.lookup,
            ssl_context=self.ssl_context,
            proxy=self.proxy,
        )
        await self._pool.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._pool is not None
        await self._pool.__aexit__(*error)

    async def relay(
        self,
        request: BrowserRequest,
        *,
        deadline: timedelta,
        limits: RequestLimits = DEFAULT_LIMITS,
        auth: RequestAuth = NO_AUTH,
    ) -> BrowserResponse | Unreached:
        """Send a request of a page in the browser with its headers, with the limits and address checks of `fetch`."""
        assert self._pool is not None, "use Http in `async with`"
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
        assert self._pool is not None, "use Http in `async with`"
        first_bytes = limits.first_bytes
        limit = self.max_body_bytes if first_bytes is None else max(self.max_body_bytes, MAX_FRAMING * first_bytes)
        exchange, headers = _begin_exchange(limit, limits), build_headers(validators, language)
        operation = self._fetch(url, method, headers, exchange, limits=limits, auth=auth)
        return await self._run_bounded(exchange, operation, deadline)

    async def _run_bounded(self, exchange: Exchange, operation: Awaitable[T], deadline: timedelta) -> T | Unreached:
        """Run a request within its deadline; turn failures of the web into values."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await operation
        except TimeoutError:
            detail = f"no response within {deadline.total_seconds():g} s"
            return responses.build_unreached(FailureReason.DEADLINE, detail, exchange)
        except FetchError as error:
            return responses.build_unreached(error.reason, error.detail, exchange)
        except OSError as error:
            return responses.build_unreached(FailureReason.RESET, error.strerror or str(error), exchange)
        except ValueError as error:
            return responses.build_unreached(FailureReason.GARBAGE, str(error), exchange)

    async def resolve_addresses(
        self, authority: Authority, *, deadline: timedelta = LOOKUP_DEADLINE
    ) -> tuple[str, ...] | Unreached:
        """Return the allowed addresses of an authority: at least one, or why there is none."""
        assert self._pool is not None, "use Http in `async with`"
        exchange, host = Exchange(asyncio.get_running_loop().time()), get_host(authority)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                is_literal = guard.find_refusal(host, allow_private=True) != guard.NOT_AN_ADDRESS
                resolved = (host,) if is_literal else await self._pool.look_up_now(host)
        except TimeoutError:
            detail = f"{host} was not resolved within {deadline.total_seconds():g} s"
            return responses.build_unreached(FailureReason.DEADLINE, detail, exchange)
        except OSError as error:
            detail = f"{host}: {error.strerror or error}"
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
        exchange: Exchange,
        *,
        limits: RequestLimits,
        auth: RequestAuth,
    ) -> Response:
        first, form = limits.first_bytes, urlencode(auth.form).encode() if method == "POST" else None
        head, body = await self._send_and_read(method, url, headers, exchange, auth, form=form, first_bytes=first)
        if head.status == 304:
            is_conditional = not headers.keys().isdisjoint(CONDITIONS)
            return responses.build_not_modified(head, exchange, is_conditional=is_conditional)
        return responses.build_fetched(head, url, body[:first], exchange)

    async def _relay_request(self, request: BrowserRequest, exchange: Exchange, auth: RequestAuth) -> BrowserResponse:
        # If the domain has a cookie jar, the browser's own cookies are not sent.
        headers = {name: value for name, value in request.headers if auth.cookies is None or name != "cookie"}
        head, body = await self._send_and_read(request.method, request.url, headers, exchange, auth)
        return BrowserResponse(
            status=head.status if 200 <= head.status <= 599 else 500,
            headers=tuple(head.headers),
            body=body,
            received_bytes=exchange.received_bytes,
        )

    async def _send_and_read(
        self,
        method: str,
        url: Url,
        headers: dict[str, str],
        exchange: Exchange,
        auth: RequestAuth,
        *,
        form: bytes | None = None,
        first_bytes: int | None = None,
    ) -> tuple[ResponseHead, bytes]:
        """Send a request; return the response with its decoded body. Raise FetchError if there is none.

        form: the fields of a POST.  first_bytes: how many bytes of the body are wanted; None for all.
        """
        assert self._pool is not None
        server, authority, target = split_url(url)
        sent_headers = [
            *add_auth(headers, url, auth).items(),
            ("User-Agent", self.user_agent),
            ("Accept", ACCEPT),
            ("Accept-Encoding", responses.ACCEPTED_ENCODINGS),
        ]
        if form is not None:
            sent_headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        request = HttpRequest(
            method, target, authority, sent_headers, form, first_bytes=first_bytes, max_body_bytes=self.max_body_bytes
        )
        head, raw_body = await self._pool.request(server, request, exchange)
        if auth.cookies is not None:
            auth.cookies.store_cookies(url, head.get_all("set-cookie"))
        limit, is_part = (self.max_body_bytes, False) if first_bytes is None else (first_bytes, True)
        encoding = head.get("content-encoding") or ""
        body = responses.decode_body(raw_body, encoding, limit_bytes=limit, is_part=is_part)
        if isinstance(body, FailureReason):
            raise FetchError(body, BODY_DETAILS[body])
        return head, body


def _begin_exchange(max_bytes: int, limits: RequestLimits) -> Exchange:
    now = asyncio.get_running_loop().time()
    return Exchange(now, max_bytes=max_bytes, public_only=limits.public_only)
