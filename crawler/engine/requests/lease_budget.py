"""What one lease has taken from the budgets of a day and not used yet: requests, and the bytes that they may bring."""

import asyncio
from datetime import UTC, date, datetime

from crawler.core.budget.ledger import NO_REFUND, Refund
from crawler.engine.store_port import LeasedStore
from crawler.store.claim import Grant


class LeaseBudget:
    """The requests and bytes of one lease; nobody else writes these numbers.

    Requests are taken in advance, and what is not needed is given back by a record or at the release. A grant ends with
    its day: nothing of it is sent or given back on the account of another.
    day: of the last grant.  not_before: the budgets have nothing for this domain until then (knowledge time).
    """

    def __init__(self, store: LeasedStore) -> None:
        self._store, self._clock = store, store.clock
        self.day: date | None = None
        self.not_before: datetime | None = None
        self._spare = 0  # requests that were granted and that nobody needs
        self._assigned = 0  # requests of pages that were handed out, until their looks end
        self._granted_bytes = 0  # not settled by a record
        self.unrecorded_bytes = 0  # received for pages, and in no record yet
        self._counts_bytes = False  # somebody limits them
        self.is_limited = True  # requests or bytes of the day, as far as is known: what is taken, others do not have
        self._take_lock = asyncio.Lock()

    @property
    def has_bytes(self) -> bool:
        """More bytes may be received; what is under way then may go over, by a body to each looker."""
        return not self._counts_bytes or self._granted_bytes > self.unrecorded_bytes

    @property
    def is_day_over(self) -> bool:
        """The day of the last grant is over."""
        return self.day is not None and self._clock.now().astimezone(UTC).date() > self.day

    @property
    def is_idle(self) -> bool:
        """No page that was handed out is being looked at or waits for it."""
        return self._assigned == 0

    async def take_requests(self, max_requests: int) -> Grant:
        """Take up to so many requests from the budgets of the day, to be used or given back."""
        async with self._take_lock:  # or two would give the same bytes back
            spare = Refund(self.day, received_bytes=max(self._granted_bytes - self.unrecorded_bytes, 0))
            grant = await self._store.debit(max_requests, waiting=self._assigned, spare=spare)
            self.not_before, self.is_limited = grant.next_at, grant.is_limited
            if grant.day != self.day:  # what is left of the one before is lost
                self.day, self._spare, self._granted_bytes = grant.day, 0, 0
                spare = NO_REFUND
            self._counts_bytes = grant.received_bytes is not None
            if grant.received_bytes is not None:
                self._granted_bytes += grant.received_bytes - spare.received_bytes
            return grant

    async def take_request(self) -> bool:
        """Take one request, of those that nobody needs if there are any; whether there was one."""
        if self._spare and not self.is_day_over:
            self._spare -= 1
            return True
        return (await self.take_requests(1)).requests == 1

    def assign_to_pages(self, pages: int) -> None:
        """Use requests that were taken for pages that were handed out."""
        self._assigned += pages

    def return_requests(self, requests: int, *, day: date | None) -> None:
        """Return requests that were taken on that day and that nobody will send."""
        if day == self.day:
            self._spare += requests

    def return_assigned(self, pages: int, *, day: date | None) -> None:
        """Return the requests of pages that were handed out on that day and whose looks were not begun."""
        self._assigned -= pages
        self.return_requests(pages, day=day)

    def end_visit(self, requests: int) -> None:
        """One look has ended. requests: 1, or 0 where the page was decided without asking."""
        self._assigned -= 1
        self._spare += 1 - requests

    def count_received(self, received_bytes: int, *, is_visit: bool) -> None:
        """Count what an answer brought. is_visit: a record will tell of it; of other answers nothing is given back."""
        if is_visit:
            self.unrecorded_bytes += received_bytes
        elif self._counts_bytes:
            self._granted_bytes -= received_bytes

    def settle_record(self, received_bytes: int) -> Refund:
        """What a record of looks that received so much gives back."""
        # Below nothing where robots.txt took more than was guessed.
        refund = Refund(self.day, self._spare, min(self._granted_bytes, received_bytes))
        self._spare = 0
        self._granted_bytes -= refund.received_bytes
        self.unrecorded_bytes -= received_bytes
        return refund

    def compute_refund(self) -> Refund:
        """What the release gives back."""
        return Refund(self.day, self._spare, self._granted_bytes)
