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

from crawler.core.http.credentials import NO_ACCESS, Access
from crawler.core.http.response import (
    NO_VALIDATORS,
    USUAL_BOUNDS,
    Answer,
    Bounds,
    Method,
    Reason,
    Relay,
    Relayed,
    Unreached,
    Validators,
)
from crawler.core.http.urls import Authority, Url, host_of
from crawler.fetch import answers, connection, guard

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MAX_FRAMING = 8  # bytes that come for each one of a body of which only the beginning is wanted, at most
DNS_TTL = timedelta(minutes=5)
IDLE = timedelta(seconds=15)  # how long an unused connection is kept
LOOKUP_DEADLINE = timedelta(seconds=10)
MOST_COOKIES = 50  # RFC 6265, 6.1: at least so many of a domain; more is nobody's session
MOST_BYTES = 4096  # of one, likewise
_LOOKUP_THREADS = 8
_CONDITIONS = ("If-None-Match", "If-Modified-Since")


class DomainCookies:
    """A jar whose cookies are sent where they were set, and nowhere else. They are secrets: nothing here shows them.

    More than MOST_COOKIES are not kept, nor one of more than MOST_BYTES. To be used within a running loop.
    """

    def __init__(self) -> None:
        # Addresses are hosts as good as names here: one's own servers have no other.
        self._jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)

    def header_for(self, url: Url) -> str:
        """The value of the header Cookie for a request; empty for none."""
        sent = self._jar.filter_cookies(URL(url, encoded=True))
        return "; ".join(f"{name}={morsel.coded_value}" for name, morsel in sent.items())

    def take(self, url: Url, said: Sequence[str]) -> None:
        """Keep what an answer has set. said: the values of its headers Set-Cookie."""
        kept = {morsel.key for morsel in self._jar}
        for one in said:
            name = one.partition("=")[0].strip()
            if len(one) <= MOST_BYTES and one.isprintable() and (name in kept or len(kept) < MOST_COOKIES):
                self._jar.update_cookies_from_headers([one], URL(url, encoded=True))
                kept.add(name)


@dataclass(kw_only=True, eq=False, repr=False)
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

    user_agent: str
    allow_private: bool = False
    max_body_bytes: int = 10 * 1024 * 1024
    connections: int = 16
    lookup: guard.Lookup = guard.look_up
    trust: ssl.SSLContext | None = None
    proxy: connection.Proxy | None = None
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, thread_name_prefix="lookup")
        self._resolver = guard.Resolver(self._threads, self.lookup)
        connector = connection.Connector(
            proxy=self.proxy,
            may_ask=self._why_not,
            limit=self.connections,
            resolver=self._resolver,
            ttl_dns_cache=round(DNS_TTL.total_seconds()),
            keepalive_timeout=IDLE.total_seconds(),
            socket_factory=self._open_socket,
            ssl=self.trust or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self.user_agent, "Accept": ACCEPT, "Accept-Encoding": answers.ACCEPTED_ENCODINGS},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the caller's deadline is the only one
            max_line_size=connection.MAX_HEADER_BYTES,
            max_field_size=connection.MAX_HEADER_BYTES,
            max_headers=connection.MAX_HEADERS,
            middlewares=(connection.ask_again_if_stale,),
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
        trip = connection.Trip(
            asyncio.get_running_loop().time(), limit=self.max_body_bytes, public_only=bounds.public_only
        )
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
        trip = connection.Trip(asyncio.get_running_loop().time(), limit=limit, public_only=bounds.public_only)
        return await self._bounded(
            trip, self._ask(url, method, _headers(validators, language), trip, bounds=bounds, access=access), deadline
        )

    async def _bounded(self, trip: connection.Trip, asking: Awaitable[T], deadline: timedelta) -> T | Unreached:
        """What comes of a request within its deadline; whatever the web does to it is a value."""
        token = connection.TRIP.set(trip)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                return await asking
        except TimeoutError:
            return answers.unreached(Reason.DEADLINE, f"no answer within {deadline.total_seconds():g} s", trip)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return answers.unreached(*(trip.excess or answers.reason_of(error, trip)), trip)
        finally:
            connection.TRIP.reset(token)

    async def addresses(
        self, authority: Authority, *, deadline: timedelta = LOOKUP_DEADLINE
    ) -> tuple[str, ...] | Unreached:
        """The addresses behind an authority that may be asked; at least one, or why there is none."""
        trip = connection.Trip(asyncio.get_running_loop().time())
        host = host_of(authority)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                is_literal = guard.refusal(host, allow_private=True) != guard.NOT_AN_ADDRESS
                found = (host,) if is_literal else await self._resolver.addresses(host)
        except TimeoutError:
            return answers.unreached(
                Reason.DEADLINE, f"{host} was not resolved within {deadline.total_seconds():g} s", trip
            )
        except OSError as error:
            return answers.unreached(Reason.DNS, f"{host}: {answers.one_line(error.strerror or str(error))}", trip)
        refused = {address: guard.refusal(address, allow_private=self.allow_private) for address in found}
        allowed = tuple(address for address, why in refused.items() if why is None)
        if allowed:
            return allowed
        if not refused:
            return answers.unreached(Reason.DNS, f"{host} has no address", trip)
        address, why = next(iter(refused.items()))
        return answers.unreached(Reason.ADDRESS, f"{address} is {why}", trip)

    async def _ask(
        self,
        url: Url,
        method: Method,
        headers: dict[str, str],
        trip: connection.Trip,
        *,
        bounds: Bounds,
        access: Access,
    ) -> Answer:
        first, form = bounds.first_bytes, list(access.form) if method == "POST" else None
        response, body = await self._exchange(method, url, headers, trip, access=access, form=form, first=first)
        if response.status == 304:
            return answers.not_modified(response, trip, was_asked=not headers.keys().isdisjoint(_CONDITIONS))
        if isinstance(body, Unreached):
            return body
        return answers.fetched(response, url, body if first is None else body[:first], trip)

    async def _relay(self, request: Relay, trip: connection.Trip, access: Access) -> Relayed | Unreached:
        # Where a jar is kept of the domain, the browser has none of it.
        headers = {name: value for name, value in request.headers if access.cookies is None or name != "cookie"}
        response, body = await self._exchange(request.method, request.url, headers, trip, access=access)
        if isinstance(body, Unreached):
            return body
        return Relayed(
            status=response.status if 200 <= response.status <= 599 else 500,
            headers=tuple(response.headers.items()),
            body=body,
            received_bytes=trip.received,
        )

    async def _exchange(
        self,
        method: str,
        url: Url,
        headers: dict[str, str],
        trip: connection.Trip,
        *,
        access: Access,
        form: Sequence[tuple[str, str]] | None = None,
        first: int | None = None,
    ) -> tuple[aiohttp.ClientResponse, bytes | Unreached]:
        """Send a request; return the response, and its body as decoded, or why that cannot be had.

        first: how many bytes of the body are wanted; None for all.
        """
        assert self._session is not None
        shown = _with_access(headers, url, access)
        response = await self._session.request(
            method, URL(url, encoded=True), headers=shown, data=form, allow_redirects=False
        )
        try:
            if access.cookies is not None:
                access.cookies.take(url, response.headers.getall("Set-Cookie", ()))
            if response.status == 304:
                return response, b""
            declared = response.content_length
            if method == "GET" and first is None and declared is not None and declared > self.max_body_bytes:
                return response, answers.unreached(Reason.TOO_LARGE, f"a body of {declared} bytes", trip)
            body = await self._read(response, trip, first)
        finally:
            response.release()  # what was not read to its end is closed, not reused
        if not isinstance(body, Reason):
            body = answers.decoded(
                body,
                response.headers.get("Content-Encoding", ""),
                limit_bytes=self.max_body_bytes if first is None else first,
                is_part=first is not None,
            )
        return response, answers.unreached(body, connection.BODY_DETAILS[body], trip) if isinstance(
            body, Reason
        ) else body

    async def _read(self, response: aiohttp.ClientResponse, trip: connection.Trip, first: int | None) -> bytes | Reason:
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
        return guard.refusal(address, allow_private=self.allow_private and not connection.TRIP.get().public_only)

    def _open_socket(self, info: guard.AddressInfo) -> socket.socket:
        trip = connection.TRIP.get()
        trip.fresh = True
        try:
            opened = guard.open_socket(info, allow_private=self.allow_private and not trip.public_only)
        except guard.ForbiddenAddressError as error:
            trip.forbidden = trip.forbidden or str(error)
            raise
        trip.tried = True
        return opened


def _headers(validators: Validators, language: str) -> dict[str, str]:
    said = dict(zip(_CONDITIONS, (validators.etag, validators.last_modified), strict=True))
    conditions = {name: value for name, value in said.items() if value and answers.can_be_sent(value)}
    return conditions | ({"Accept-Language": language} if language else {})


def _with_access(headers: dict[str, str], url: Url, access: Access) -> dict[str, str]:
    """The headers with those that let us in; a cookie of the user's own goes with those of the jar."""
    shown = headers | dict(access.headers)
    said = access.cookies.header_for(url) if access.cookies is not None else ""
    if said:
        own = next((name for name in shown if name.lower() == "cookie"), "Cookie")
        shown[own] = "; ".join(filter(None, (shown.get(own), said)))
    return shown
