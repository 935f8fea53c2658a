"""The requests and bytes that one lease has debited from the day's budgets and not used yet."""

import asyncio
from datetime import UTC, date, datetime

from crawler.core.budget.ledger import NO_REFUND, Refund
from crawler.engine.store_port import LeasedStore
from crawler.store.claim import Grant


class LeaseBudget:
    """The debited requests and bytes of one lease; only this class changes these numbers.

    Requests are debited in advance; unused ones are refunded when a batch is recorded and at the end of the lease. The
    rest of a grant is lost with the next day's grant.
    day: the day of the last grant.  not_before: when the budgets allow the next request (knowledge time); None: now.
    """

    def __init__(self, store: LeasedStore) -> None:
        self._store, self._clock = store, store.clock
        self.day: date | None = None
        self.not_before: datetime | None = None
        self._spare = 0  # granted requests that are not needed
        self._assigned = 0  # requests of dispatched pages until their visits end
        self._granted_bytes = 0  # without those of recorded visits
        self.unrecorded_bytes = 0  # received by visits that are not recorded yet
        self._counts_bytes = False  # whether a budget of bytes is set
        self.is_limited = True  # whether requests or bytes are limited, so that debits reduce what others can use
        self._take_lock = asyncio.Lock()

    @property
    def has_bytes(self) -> bool:
        """Return whether more bytes may be received. Requests in flight may exceed the limit, by one body each."""
        return not self._counts_bytes or self._granted_bytes > self.unrecorded_bytes

    @property
    def is_day_over(self) -> bool:
        """Return whether the day of the last grant is over."""
        return self.day is not None and self._clock.now().astimezone(UTC).date() > self.day

    @property
    def is_idle(self) -> bool:
        """Return whether no dispatched page is being visited or waits for its visit."""
        return self._assigned == 0

    async def take_requests(self, max_requests: int) -> Grant:
        """Debit up to `max_requests` requests from the day's budgets. The caller must use or return each."""
        async with self._take_lock:  # otherwise two calls would refund the same bytes
            spare = Refund(self.day, received_bytes=max(self._granted_bytes - self.unrecorded_bytes, 0))
            grant = await self._store.debit(max_requests, waiting=self._assigned, spare=spare)
            self.not_before, self.is_limited = grant.next_at, grant.is_limited
            if grant.day != self.day:  # the rest of the previous grant is lost
                self.day, self._spare, self._granted_bytes = grant.day, 0, 0
                spare = NO_REFUND
            self._counts_bytes = grant.received_bytes is not None
            if grant.received_bytes is not None:
                self._granted_bytes += grant.received_bytes - spare.received_bytes
            return grant

    async def take_request(self) -> bool:
        """Take one request, a spare one if possible; return whether there was one."""
        if self._spare and not self.is_day_over:
            self._spare -= 1
            return True
        return (await self.take_requests(1)).requests == 1

    def assign_to_pages(self, pages: int) -> None:
        """Assign debited requests to dispatched pages."""
        self._assigned += pages

    def return_requests(self, requests: int, *, day: date | None) -> None:
        """Return requests that were debited on `day` and will not be sent."""
        if day == self.day:
            self._spare += requests

    def return_assigned(self, pages: int, *, day: date | None) -> None:
        """Return the requests of pages that were dispatched on `day` and whose visits did not start."""
        self._assigned -= pages
        self.return_requests(pages, day=day)

    def end_visit(self, requests: int) -> None:
        """Note the end of a visit. requests: 1, or 0 if the page was decided without a request."""
        self._assigned -= 1
        self._spare += 1 - requests

    def count_received(self, received_bytes: int, *, is_visit: bool) -> None:
        """Count received bytes. is_visit: whether they belong to a visit, which is charged when it is recorded."""
        if is_visit:
            self.unrecorded_bytes += received_bytes
        elif self._counts_bytes:
            self._granted_bytes -= received_bytes

    def settle_record(self, received_bytes: int) -> Refund:
        """Return what to refund when visits that received `received_bytes` are recorded."""
        # The granted bytes are negative if responses without a visit, such as robots.txt, exceeded them.
        refund = Refund(self.day, self._spare, min(self._granted_bytes, received_bytes))
        self._spare = 0
        self._granted_bytes -= refund.received_bytes
        self.unrecorded_bytes -= received_bytes
        return refund

    def compute_refund(self) -> Refund:
        """Return what to refund at the end of the lease."""
        return Refund(self.day, self._spare, self._granted_bytes)
