"""Asking the roots of domains that are not registered yet: politely, and within what budgets leave."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from crawler.core.http.addresses import is_private
from crawler.core.http.response import USUAL_BOUNDS, Answer, Bounds, Fetched, Unreached
from crawler.core.http.robots import RobotsRules, parse_robots
from crawler.core.http.urls import Authority, Url, authority_of
from crawler.core.visit.visit import OVERLOADED
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import PacedWeb
from crawler.engine.requests.robots import ask_for_robots
from crawler.store.claim import slotted

if TYPE_CHECKING:  # as in registration.py
    from crawler.fetch import Http


@dataclass(slots=True)
class RootProbe:
    """Asks roots, those on one address one after the other, never sooner than `delay` after the last answer.

    agent: the product token by which robots.txt names us.  left: requests that all of them together may still take;
    None: no limit.  language: as in Http.fetch.  exempt: networks where one address serves many independent sites.
    own_delay: in place of `delay` where all addresses are private ones.  deadline: of one request.
    """

    web: "Http"
    delay: timedelta
    agent: str = "recrawl"
    left: int | None = None
    language: str = ""
    exempt: Sequence[str] = ()
    own_delay: timedelta | None = None
    deadline: timedelta = timedelta(seconds=20)
    requests: int = 0
    received_bytes: int = 0
    # By address, or by name where there is none, or one that many share.
    _places: dict[Authority, str] = field(default_factory=dict)
    _turns: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _pacers: dict[str, Pacer] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """No more may be asked."""
        return self.left is not None and self.requests >= self.left

    async def slow_down(self, authority: Authority, delay: timedelta) -> None:
        """Ask an authority no sooner than so long after the last request."""
        self._pacers[await self._place(authority)].slow_down(delay)

    async def _place(self, authority: Authority) -> str:
        """What is paced for this authority: its first address, whatever else stands there."""
        if authority not in self._places:
            found = await self.web.addresses(authority)
            taken = [] if isinstance(found, Unreached) else slotted(found, self.exempt)
            place = self._places[authority] = taken[0] if taken else authority
            is_own = not isinstance(found, Unreached) and all(map(is_private, found))
            delay = self.own_delay if is_own and self.own_delay is not None else self.delay
            self._pacers.setdefault(place, Pacer(delay=delay))
        return self._places[authority]

    def leave_out(self, answer: Answer) -> None:
        """Do not count a request that somebody else will account for."""
        self.requests -= 1
        self.received_bytes -= answer.received_bytes

    async def ask(self, url: Url, bounds: Bounds = USUAL_BOUNDS) -> Answer:
        """One request, when the authority's turn has come."""
        self.requests += 1
        place = await self._place(authority_of(url))
        async with self._turns[place]:
            server = PacedWeb(self.web, self._pacers[place], deadline=self.deadline, language=self.language)
            answer = await server.fetch(url, bounds=bounds)
        self.received_bytes += answer.received_bytes
        return answer


@dataclass(slots=True)
class RedirectChain:
    """The names that a root's redirects led through, and what following them took.

    at: the root that was reached.  most: requests; None: no limit.  robots: what each root's robots.txt said.
    """

    roots: RootProbe
    at: Url
    most: int | None = None
    names: list[Authority] = field(default_factory=list)
    robots: dict[Url, Answer] = field(default_factory=dict)
    led_away: set[Url] = field(default_factory=set)  # whose robots.txt stands elsewhere
    requests: int = 0
    received_bytes: int = 0

    def may_ask(self) -> bool:
        """Whether the budgets leave one more request."""
        return not self.roots.is_spent and (self.most is None or self.requests < self.most)

    async def ask(self, root: Url) -> Answer | None:
        """What a root says; it is asked after its robots.txt and only where that allows it. None if it was not asked.

        Where nobody answers the request for robots.txt, that is the answer. A robots.txt that cannot be had for another
        reason forbids to ask (RFC 9309), as does one that wants a longer delay than a request may take.
        """
        if root not in self.robots and not await self._ask_for_robots(root):
            return None
        said = self.robots[root]
        if isinstance(said, Unreached) and root not in self.led_away:
            return said
        delay = self.rules_of(root).crawl_delay(self.roots.agent) or timedelta(0)
        if self.robots_of(root) is None or not self.allows(root) or delay > self.roots.deadline or not self.may_ask():
            return None
        await self.roots.slow_down(authority_of(root), delay)
        return await self._send(root)

    def allows(self, root: Url) -> bool:
        """Whether the robots.txt of a root, as far as it is known, lets it be asked."""
        return self.rules_of(root).allows(root, self.roots.agent)

    def rules_of(self, root: Url) -> RobotsRules:
        """The rules of a root's robots.txt."""
        return parse_robots(self.robots_of(root) or b"")

    def robots_of(self, root: Url) -> bytes | None:
        """The robots.txt of a root, empty where there is none; None where it could not be had."""
        said = self.robots.get(root)
        if not isinstance(said, Fetched) or said.status >= 500 or said.status in OVERLOADED:
            return None
        return said.body if 200 <= said.status < 300 else b""

    async def _ask_for_robots(self, root: Url) -> bool:
        async def ask(url: Url, *, bounds: Bounds = USUAL_BOUNDS) -> Answer | None:
            return await self._send(url, bounds) if self.may_ask() else None

        said, requests = await ask_for_robots(ask, root, own={authority_of(root)})
        if said is None:
            return False
        self.robots[root] = said
        if requests > 1:
            self.led_away.add(root)
        return True

    async def _send(self, url: Url, bounds: Bounds = USUAL_BOUNDS) -> Answer:
        self.requests += 1
        answer = await self.roots.ask(url, bounds)
        self.received_bytes += answer.received_bytes
        return answer
