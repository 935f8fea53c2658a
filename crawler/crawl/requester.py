"""Asking a domain, one request at a time: at its pace, within the lease, and on the account of the day."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from crawler.core.domain import Lease
from crawler.core.http import NO_VALIDATORS, Answer, Method, NotModified, Url, Validators
from crawler.crawl.lease_budget import Allowance
from crawler.crawl.pacer import Fence, Gate
from crawler.crawl.stats import Tally
from crawler.settings import Settings


class Web(Protocol):
    """One request to the web."""

    async def fetch(
        self, url: Url, *, validators: Validators = NO_VALIDATORS, deadline: timedelta, method: Method = "GET"
    ) -> Answer: ...


def received_of(answer: Answer) -> int:
    """Bytes of a body that came over the wire."""
    return 0 if isinstance(answer, NotModified) else answer.received_bytes


class Asker:
    """Sends the requests of one lease. claimed: monotonic seconds, read before the claim was sent.

    is_ending: whether anybody wants the lease to end.  tally: where requests are counted that are no looks.
    """

    def __init__(
        self,
        lease: Lease,
        web: Web,
        allowance: Allowance,
        *,
        settings: Settings,
        claimed: float,
        is_ending: Callable[[], bool],
        tally: Tally,
    ) -> None:
        self.lease, self.web, self.allowance, self.tally = lease, web, allowance, tally
        self.is_ending = is_ending
        self.fence = Fence(lease, since=claimed)
        self.gate = Gate(delay=settings.delay_of(lease.domain.wishes), wait=lease.wait)
        self.deadline = min(settings.deadline, lease.term / 2)  # of a request: a longer one could outlast the lease

    @property
    def is_stopping(self) -> bool:
        """Nothing new is begun; a domain whose next request is far off is released, not held."""
        return self.is_ending() or self.gate.wait > self.lease.term / 2

    async def look(self, url: Url, *, validators: Validators = NO_VALIDATORS, method: Method = "GET") -> Answer | None:
        """The request that was taken from the budget when a page was handed out; None if it was not begun."""
        day = self.allowance.day
        await self.gate.pass_through(self.room)
        if self.allowance.is_over or day != self.allowance.day:
            return None
        if self.is_ending() or not self.allowance.has_bytes:
            self.allowance.requests += 1
            return None
        return await self._fetch(url, validators, method, is_look=True)

    async def look_on(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """The second request of a look; None where the budget has none left, or the lease is ending."""
        return None if self.is_stopping else await self._ask(url, validators, is_look=True)

    async def ask(self, url: Url, *, validators: Validators = NO_VALIDATORS) -> Answer | None:
        """One request more, for what is no look; None where the budget has none left."""
        return await self._ask(url, validators, is_look=False)

    async def _ask(self, url: Url, validators: Validators, *, is_look: bool) -> Answer | None:
        if await self.allowance.debit(1) != 1:
            return None
        await self.gate.pass_through(self.room)
        answer = await self._fetch(url, validators, "GET", is_look=is_look)
        self.tally.requests += 1
        return answer

    async def _fetch(self, url: Url, validators: Validators, method: Method, *, is_look: bool) -> Answer:
        answer = await self.web.fetch(url, validators=validators, deadline=self.deadline, method=method)
        self.gate.answered()
        if is_look:
            self.allowance.bytes_taken += received_of(answer)
        elif self.allowance.counts_bytes:
            self.allowance.received_bytes -= received_of(answer)  # in no record, so nothing of it is given back
        return answer

    async def room(self) -> None:
        """Wait until the lease lasts longer than a request may take."""
        await self.fence.room_for(self.deadline)
