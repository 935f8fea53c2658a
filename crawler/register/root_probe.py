"""Asking the roots of domains that are not registered yet: politely, and within what budgets leave."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.core.http import Answer, Authority, Url, authority_of
from crawler.crawl import PacedWeb, Pacer, received_of
from crawler.web import Http


class RootProbe:
    """Asks roots, those of one authority one after the other, never sooner than `delay` after the last answer.

    left: requests that all of them together may still take; None: no limit.  language: as in Http.fetch.
    """

    def __init__(self, web: Http, *, delay: timedelta, left: int | None = None, language: str = "") -> None:
        self.web, self.left, self.language = web, left, language
        self.requests = self.received_bytes = 0
        self._turns: defaultdict[Authority, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._pacers: defaultdict[Authority, Pacer] = defaultdict(lambda: Pacer(delay=delay))

    @property
    def is_spent(self) -> bool:
        """No more may be asked."""
        return self.left is not None and self.requests >= self.left

    async def ask(self, url: Url, *, deadline: timedelta) -> Answer:
        """One request, when the authority's turn has come."""
        authority = authority_of(url)
        self.requests += 1
        async with self._turns[authority]:
            server = PacedWeb(self.web, self._pacers[authority], deadline=deadline, language=self.language)
            answer = await server.fetch(url)
        self.received_bytes += received_of(answer)
        return answer


@dataclass(slots=True)
class RedirectChain:
    """The names that a root's redirects led through, and what following them took.

    at: the root that was reached.  most: requests; None: no limit.
    """

    roots: RootProbe
    at: Url
    deadline: timedelta
    most: int | None = None
    names: list[Authority] = field(default_factory=list)
    requests: int = 0
    received_bytes: int = 0

    def may_ask(self) -> bool:
        """Whether the budgets leave one more request."""
        return not self.roots.is_spent and (self.most is None or self.requests < self.most)

    async def ask(self, url: Url) -> Answer:
        """One request, counted for this chain."""
        self.requests += 1
        answer = await self.roots.ask(url, deadline=self.deadline)
        self.received_bytes += received_of(answer)
        return answer
