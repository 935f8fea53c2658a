"""Asking the roots of domains that are not registered yet: politely, and within what budgets leave."""

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
from crawler.core.visit.visit import OVERLOAD_STATUSES
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import PacedServer
from crawler.engine.requests.robots import fetch_robots
from crawler.store.claim import list_slot_addresses

if TYPE_CHECKING:  # as in registration.py
    from crawler.fetch import Http


@dataclass(slots=True)
class RootProbe:
    """Asks roots, those on one address one after the other, never sooner than `delay` after the last answer.

    agent: the product token by which robots.txt names us.  max_requests: requests that all of them together may still
    take; None: no limit.  language: as in Http.fetch.  exempt: networks where one address serves many independent
    sites.  private_delay: in place of `delay` where all addresses are private ones.  deadline: of one request.
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
    # By address, or by name where there is none, or one that many share.
    _pacing_keys: dict[Authority, str] = field(default_factory=dict)
    _slots: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _pacers: dict[str, Pacer] = field(default_factory=dict)

    @property
    def is_exhausted(self) -> bool:
        """No more may be asked."""
        return self.max_requests is not None and self.requests >= self.max_requests

    async def slow_down(self, authority: Authority, delay: timedelta) -> None:
        """Ask an authority no sooner than so long after the last request."""
        self._pacers[await self._find_pacing_key(authority)].raise_delay(delay)

    async def _find_pacing_key(self, authority: Authority) -> str:
        """What is paced for this authority: its first address, whatever else stands there."""
        if authority not in self._pacing_keys:
            addresses = await self.http_client.resolve_addresses(authority)
            slotted_addresses = [] if isinstance(addresses, Unreached) else list_slot_addresses(addresses, self.exempt)
            pacing_key = self._pacing_keys[authority] = slotted_addresses[0] if slotted_addresses else authority
            is_own_server = not isinstance(addresses, Unreached) and all(map(is_private, addresses))
            delay = self.private_delay if is_own_server and self.private_delay is not None else self.delay
            self._pacers.setdefault(pacing_key, Pacer(delay=delay))
        return self._pacing_keys[authority]

    def exclude_request(self, response: Response) -> None:
        """Do not count a request that somebody else will account for."""
        self.requests -= 1
        self.received_bytes -= response.received_bytes

    async def fetch(self, url: Url, limits: RequestLimits = DEFAULT_LIMITS) -> Response:
        """One request, when the authority's turn has come."""
        self.requests += 1
        pacing_key = await self._find_pacing_key(get_authority(url))
        async with self._slots[pacing_key]:
            server = PacedServer(
                self.http_client, self._pacers[pacing_key], deadline=self.deadline, language=self.language
            )
            response = await server.fetch(url, limits=limits)
        self.received_bytes += response.received_bytes
        return response


@dataclass(slots=True)
class RedirectChain:
    """The names that a root's redirects led through, and what following them took.

    current_root: the root that was reached.  max_requests: requests; None: no limit.  robots_responses: what each
    root's robots.txt said.
    """

    probe: RootProbe
    current_root: Url
    max_requests: int | None = None
    names: list[Authority] = field(default_factory=list)
    robots_responses: dict[Url, Response] = field(default_factory=dict)
    redirected_robots: set[Url] = field(default_factory=set)  # whose robots.txt stands elsewhere
    requests: int = 0
    received_bytes: int = 0

    def may_request(self) -> bool:
        """Whether the budgets leave one more request."""
        return not self.probe.is_exhausted and (self.max_requests is None or self.requests < self.max_requests)

    async def fetch_root(self, root: Url) -> Response | None:
        """What a root says; it is asked after its robots.txt and only where that allows it. None if it was not asked.

        Where nobody answers the request for robots.txt, that is the answer. A robots.txt that cannot be had for another
        reason forbids to ask (RFC 9309), as does one that wants a longer delay than a request may take.
        """
        if root not in self.robots_responses and not await self._fetch_robots(root):
            return None
        response = self.robots_responses[root]
        if isinstance(response, Unreached) and root not in self.redirected_robots:
            return response
        delay = self.get_robots_rules(root).get_crawl_delay(self.probe.agent) or timedelta(0)
        if (
            self.get_robots(root) is None
            or not self.allows(root)
            or delay > self.probe.deadline
            or not self.may_request()
        ):
            return None
        await self.probe.slow_down(get_authority(root), delay)
        return await self._send(root)

    def allows(self, root: Url) -> bool:
        """Whether the robots.txt of a root, as far as it is known, lets it be asked."""
        return self.get_robots_rules(root).allows(root, self.probe.agent)

    def get_robots_rules(self, root: Url) -> RobotsRules:
        """The rules of a root's robots.txt."""
        return parse_robots(self.get_robots(root) or b"")

    def get_robots(self, root: Url) -> bytes | None:
        """The robots.txt of a root, empty where there is none; None where it could not be had."""
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
