"""What one lease has taken from the budgets of a day and not used yet: requests, and the bytes that they may bring."""

from collections.abc import Callable
from datetime import UTC, date, datetime

from crawler.clock import Clock
from crawler.core.budget import NO_REFUND, Refund
from crawler.core.domain import Lease
from crawler.crawl.patience import until_available
from crawler.settings import Settings
from crawler.store import claim
from crawler.store.database import Database


class LeaseBudget:
    """Taken in advance, given back by a record or at the release; a grant ends with its day.

    waiting: how many requests for pages are taken and under way, or about to be.  begins: called where a debit falls
    on another day than the one before; it says how many of the new day's requests are used up already.
    """

    def __init__(
        self,
        db: Database,
        lease: Lease,
        *,
        settings: Settings,
        clock: Clock,
        waiting: Callable[[], int],
        begins: Callable[[], int],
    ) -> None:
        self.db, self.lease, self.settings, self.clock = db, lease, settings, clock
        self.waiting, self.begins = waiting, begins
        self.day: date | None = None  # that it was taken from
        self.not_before: datetime | None = None  # the budget has nothing for this domain until then
        self.requests = 0
        self.received_bytes = 0  # not settled by a record
        self.counts_bytes = False  # somebody limits them
        self.bytes_taken = 0  # received for pages, and in no record yet

    @property
    def has_bytes(self) -> bool:
        """More of them may be received; what is under way then may go over, by a body to each looker."""
        return not self.counts_bytes or self.received_bytes > self.bytes_taken

    @property
    def is_over(self) -> bool:
        """The day that the waiting requests were taken from."""
        return self.day is not None and self.clock.now().astimezone(UTC).date() > self.day

    async def debit(self, most: int) -> int:
        """Take up to so many requests from the budgets of the day."""
        now = self.clock.now()
        spare = unused = Refund(self.day, received_bytes=max(self.received_bytes - self.bytes_taken, 0))
        granted = await until_available(
            self.lease,
            lambda again: claim.debit(
                self.db,
                self.lease,
                most=most,
                at=now,
                paced=self.settings.pace,
                shared=self.settings.shared_budget,
                waiting=self.waiting(),
                spare=NO_REFUND if again else unused,
            ),
        )
        self.not_before = granted.next_at
        if granted.day != self.day:
            # What another day has left over is that day's: neither sent nor given back on this one's account.
            self.day, self.received_bytes = granted.day, 0
            self.requests = -self.begins()
            spare = NO_REFUND
        self.counts_bytes = granted.received_bytes is not None
        if granted.received_bytes is not None:
            self.received_bytes += granted.received_bytes - spare.received_bytes
        return granted.requests

    def settle(self, received_bytes: int) -> tuple[int, int]:
        """What a record of looks that received so much gives back: requests, and bytes that were debited for them."""
        refund, self.requests = self.requests, 0
        debited = min(self.received_bytes, received_bytes)  # below nothing where robots.txt took more than was guessed
        self.received_bytes -= debited
        self.bytes_taken -= received_bytes
        return refund, debited
