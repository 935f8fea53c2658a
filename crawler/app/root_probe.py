"""Fetch the root pages of unregistered domains, within politeness rules and budgets."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from crawler.core.http.addresses import is_private
from crawler.core.http.response import DEFAULT_LIMITS, Fetched, RequestLimits, Response, Unreached
from crawler.core.http.robots import RobotsRules, parse_robots
from crawler.core.http.urls import Authority, Url, get_authority
from crawler.core.visit.state import OVERLOAD_STATUSES
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import PacedServer
from crawler.engine.requests.robots import fetch_robots
from crawler.store.claim import list_slot_addresses

if TYPE_CHECKING:  # slow to import
    from crawler.fetch import Http


@dataclass(slots=True)
class RootProbe:
    """Fetch root pages. Requests to one address are sequential, each at least `delay` after the last response.

    agent: the product token for robots.txt.
    max_requests: the limit of requests to all roots together; None for no limit.
    language: the Accept-Language header; not sent if empty.
    exempt: networks in which one address serves many independent sites.
    private_delay: the delay for private addresses; None for `delay`.
    deadline: the time limit of one request.  requests, received_bytes: the totals so far.
    """

    http_client: "Http"
    delay: timedelta
    agent: str = "recrawl"
    max_requests: int | None = None
    language: str = ""
    exempt: Sequence[str] = ()
    private_delay: timedelta | None = None
    deadline: timedelta = timedelta(seconds=20)
    requests: int = 0
    received_bytes: int = 0
    # Requests are paced by address, or by name if the address is unknown or shared by many sites.
    _pacing_keys: dict[Authority, str] = field(default_factory=dict)
    _slots: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _pacers: dict[str, Pacer] = field(default_factory=dict)

    @property
    def is_exhausted(self) -> bool:
        """Return whether the limit of requests is reached."""
        return self.max_requests is not None and self.requests >= self.max_requests

    async def slow_down(self, authority: Authority, delay: timedelta) -> None:
        """Raise the delay between requests to an authority to at least `delay`."""
        self._pacers[await self._find_pacing_key(authority)].raise_delay(delay)

    async def _find_pacing_key(self, authority: Authority) -> str:
        """Return the key by which requests to an authority are paced: its first address, else its name."""
        if authority not in self._pacing_keys:
            addresses = await self.http_client.resolve_addresses(authority)
            slotted_addresses = [] if isinstance(addresses, Unreached) else list_slot_addresses(addresses, self.exempt)
            pacing_key = self._pacing_keys[authority] = slotted_addresses[0] if slotted_addresses else authority
            is_own_server = not isinstance(addresses, Unreached) and all(map(is_private, addresses))
            delay = self.private_delay if is_own_server and self.private_delay is not None else self.delay
            self._pacers.setdefault(pacing_key, Pacer(delay=delay))
        return self._pacing_keys[authority]

    def exclude_request(self, response: Response) -> None:
        """Subtract a request from the counts, because the caller charges it to the domain's budget."""
        self.requests -= 1
        self.received_bytes -= response.received_bytes

    async def fetch(self, url: Url, limits: RequestLimits = DEFAULT_LIMITS) -> Response:
        """Send one request when the pace of the authority allows it."""
        self.requests += 1
        pacing_key = await self._find_pacing_key(get_authority(url))
        async with self._slots[pacing_key]:
            pacer = self._pacers[pacing_key]
            server = PacedServer(self.http_client, pacer, deadline=self.deadline, language=self.language)
            response = await server.fetch(url, limits=limits)
        self.received_bytes += response.received_bytes
        return response


@dataclass(slots=True)
class RedirectChain:
    """The state of following a root's redirects.

    current_root: the last root.  max_requests: None for no limit.  names: the authorities before the current one.
    robots_responses: the response of each root's robots.txt.  redirected_robots: roots whose robots.txt redirects.
    """

    probe: RootProbe
    current_root: Url
    max_requests: int | None = None
    names: list[Authority] = field(default_factory=list)
    robots_responses: dict[Url, Response] = field(default_factory=dict)
    redirected_robots: set[Url] = field(default_factory=set)
    requests: int = 0
    received_bytes: int = 0

    def may_request(self) -> bool:
        """Return whether the budgets allow one more request."""
        return not self.probe.is_exhausted and (self.max_requests is None or self.requests < self.max_requests)

    async def fetch_root(self, root: Url) -> Response | None:
        """Fetch a root after its robots.txt, and only if that allows it. Return None if it was not fetched.

        If the server does not respond to the request for robots.txt, that failure is returned. The root is not fetched
        if robots.txt is unavailable for another reason (RFC 9309), or requires a delay above the request's deadline.
        """
        if root not in self.robots_responses and not await self._fetch_robots(root):
            return None
        response = self.robots_responses[root]
        if isinstance(response, Unreached) and root not in self.redirected_robots:
            return response
        delay = self.get_robots_rules(root).get_crawl_delay(self.probe.agent) or timedelta(0)
        is_allowed = self.get_robots(root) is not None and self.allows(root)
        if not is_allowed or delay > self.probe.deadline or not self.may_request():
            return None
        await self.probe.slow_down(get_authority(root), delay)
        return await self._send(root)

    def allows(self, root: Url) -> bool:
        """Return whether the robots.txt of a root, as far as it is known, allows the root."""
        return self.get_robots_rules(root).allows(root, self.probe.agent)

    def get_robots_rules(self, root: Url) -> RobotsRules:
        """Return the rules of a root's robots.txt."""
        return parse_robots(self.get_robots(root) or b"")

    def get_robots(self, root: Url) -> bytes | None:
        """Return the robots.txt of a root: empty if there is none, None if it is unavailable or was not fetched."""
        response = self.robots_responses.get(root)
        if not isinstance(response, Fetched) or response.status >= 500 or response.status in OVERLOAD_STATUSES:
            return None
        return response.body if 200 <= response.status < 300 else b""

    async def _fetch_robots(self, root: Url) -> bool:
        async def fetch(url: Url, *, limits: RequestLimits = DEFAULT_LIMITS) -> Response | None:
            return await self._send(url, limits) if self.may_request() else None

        response, requests = await fetch_robots(fetch, root, own_authorities={get_authority(root)})
        if response is None:
            return False
        self.robots_responses[root] = response
        if requests > 1:
            self.redirected_robots.add(root)
        return True

    async def _send(self, url: Url, limits: RequestLimits = DEFAULT_LIMITS) -> Response:
        self.requests += 1
        response = await self.probe.fetch(url, limits)
        self.received_bytes += response.received_bytes
        return response
