"""Asking the roots of domains that are not registered yet: politely, and within what budgets leave."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.core.http import Answer, Authority, NotModified, Url, authority_of
from crawler.web import Http


class RootProbe:
    """Asks roots, one authority's never sooner than `delay` after its last answer.

    left: requests that all of them together may still take; None: no limit.  language: as in Http.fetch.
    """

    def __init__(self, web: Http, *, delay: timedelta, left: int | None = None, language: str = "") -> None:
        self.web, self.delay, self.left, self.language = web, delay, left, language
        self.requests = self.received_bytes = 0
        self._turns: defaultdict[Authority, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._free_at: dict[Authority, float] = {}

    @property
    def is_spent(self) -> bool:
        return self.left is not None and self.requests >= self.left

    async def ask(self, url: Url, *, deadline: timedelta) -> Answer:
        authority = authority_of(url)
        self.requests += 1
        async with self._turns[authority]:
            await asyncio.sleep(max(self._free_at.get(authority, 0.0) - time.monotonic(), 0.0))
            try:
                answer = await self.web.fetch(url, deadline=deadline, language=self.language)
            finally:
                self._free_at[authority] = time.monotonic() + self.delay.total_seconds()
        self.received_bytes += received_of(answer)
        return answer


@dataclass(slots=True)
class RedirectChain:
    """The names that the root's redirects led through, and what following them took. most: requests, None: no limit."""

    roots: RootProbe
    at: Url
    deadline: timedelta
    most: int | None = None
    names: list[Authority] = field(default_factory=list)
    requests: int = 0
    received_bytes: int = 0

    def may_ask(self) -> bool:
        return not self.roots.is_spent and (self.most is None or self.requests < self.most)

    async def ask(self, url: Url) -> Answer:
        self.requests += 1
        answer = await self.roots.ask(url, deadline=self.deadline)
        self.received_bytes += received_of(answer)
        return answer


def received_of(answer: Answer) -> int:
    """Bytes of a body that came over the wire."""
    return 0 if isinstance(answer, NotModified) else answer.received_bytes
