"""Asking a domain, one request at a time: at its pace, within the lease, and on the account of the day."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from crawler.core.domain import Lease
from crawler.core.http import NO_VALIDATORS, Answer, Method, NotModified, Url, Validators
from crawler.crawl.lease_budget import LeaseBudget
from crawler.crawl.pacer import LeaseDeadline, Pacer
from crawler.crawl.stats import CrawlStats
from crawler.settings import Settings


class Web(Protocol):
    """One request to the web."""

    async def fetch(
        self,
        url: Url,
        *,
        validators: Validators = NO_VALIDATORS,
        deadline: timedelta,
        method: Method = "GET",
        language: str = "",
    ) -> Answer: ...


def received_of(answer: Answer) -> int:
    """Bytes of a body that came over the wire."""
    return 0 if isinstance(answer, NotModified) else answer.received_bytes


class Requester:
    """Sends the requests of one lease. claimed: monotonic seconds, read before the claim was sent.

    is_ending: whether anybody wants the lease to end.  stats: where requests are counted that are no looks.
    """

    def __init__(
        self,
        lease: Lease,
        web: Web,
        lease_budget: LeaseBudget,
        *,
        settings: Settings,
        claimed: float,
        is_ending: Callable[[], bool],
        stats: CrawlStats,
    ) -> None:
        self.lease, self.web, self.budget, self.stats = lease, web, lease_budget, stats
        self.is_ending = is_ending
        self.lease_deadline = LeaseDeadline(lease, since=claimed)
        self.pacer = Pacer(delay=settings.delay_of(lease.domain.settings), wait=lease.wait)
        self.deadline = min(settings.deadline, lease.term / 2)  # of a request: a longer one could outlast the lease

    @property
    def is_stopping(self) -> bool:
        """Nothing new is begun; a domain whose next request is far off is released, not held."""
        return self.is_ending() or self.pacer.wait > self.lease.term / 2

    async def look(self, url: Url, *, validators: Validators = NO_VALIDATORS, method: Method = "GET") -> Answer | None:
        """The request that was taken from the budget when a page was handed out; None if it was not begun."""
        day = self.budget.day
        await self.pacer.pass_through(self.room)
        if self.budget.is_over or day != self.budget.day:
            return None
        if self.is_ending() or not self.budget.has_bytes:
            self.budget.requests += 1
            return None
        return await self._fetch(url, validators, method, is_look=True)

    async def look_on(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """The second request of a look; None where the budget has none left, or the lease is ending."""
        return None if self.is_stopping else await self._ask(url, validators, is_look=True)

    async def ask(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """One request more, for what is no look; None where the budget has none left."""
        return await self._ask(url, validators, is_look=False)

    async def _ask(self, url: Url, validators: Validators, *, is_look: bool) -> Answer | None:
        if await self.budget.debit(1) != 1:
            return None
        await self.pacer.pass_through(self.room)
        answer = await self._fetch(url, validators, "GET", is_look=is_look)
        self.stats.requests += 1
        return answer

    async def _fetch(self, url: Url, validators: Validators, method: Method, *, is_look: bool) -> Answer:
        language = self.lease.domain.settings.language
        answer = await self.web.fetch(
            url, validators=validators, deadline=self.deadline, method=method, language=language
        )
        self.pacer.answered()
        if is_look:
            self.budget.bytes_taken += received_of(answer)
        elif self.budget.counts_bytes:
            self.budget.received_bytes -= received_of(answer)  # in no record, so nothing of it is given back
        return answer

    async def room(self) -> None:
        """Wait until the lease lasts longer than a request may take."""
        await self.lease_deadline.room_for(self.deadline)
