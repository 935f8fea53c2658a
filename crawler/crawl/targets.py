"""The pages that a lease has ahead of it: handed out before they are needed, taken back if nobody gets to them."""

from collections import deque
from collections.abc import Iterable

from crawler.clock import Clock
from crawler.core.domain import Lease
from crawler.core.http import PageKey
from crawler.core.visit import Target, Visit
from crawler.crawl.patience import until_available
from crawler.crawl.requester import Requester
from crawler.settings import Settings
from crawler.store import hand_out
from crawler.store.database import Database

BATCHES_AHEAD = 2


class TargetQueue:
    """Pages handed out under one lease. pages: so many at most.

    queue: those that nobody looks at yet.  looking: how many are being looked at.
    """

    def __init__(
        self, db: Database, lease: Lease, requester: Requester, *, settings: Settings, clock: Clock, pages: int | None
    ) -> None:
        self.db, self.lease, self.requester, self.settings, self.clock = db, lease, requester, settings, clock
        self.pages_left = pages
        self.waiting: deque[Target] = deque()
        self.looking = 0
        self.handed_out: set[PageKey] = set()  # and not recorded
        self.is_dry = False  # there was nothing more when the frontier was asked last

    @property
    def is_quiet(self) -> bool:
        """Nobody looks, and there is nothing to look at."""
        return not self.waiting and not self.looking

    @property
    def parallelism(self) -> int:
        domain_settings = self.lease.domain.settings
        own = self.settings.private_parallelism if domain_settings.allow_private else self.settings.parallelism
        return domain_settings.parallelism or own

    @property
    def lookahead(self) -> int:
        """Pages to hand out ahead: two batches, or what the delay lets through in the time of two."""
        most, delay = BATCHES_AHEAD * self.settings.batch_visits, self.requester.pacer.delay
        if delay:
            most = min(most, int(BATCHES_AHEAD * self.settings.batch_age / delay) + 1)
        return max(most, self.parallelism)

    async def refill(self, *, is_recorded: bool, one: bool = False) -> None:
        """Hand out more. is_recorded: there is no look that no record has.  one: no more than that at a time."""
        is_stopping, has_bytes = self.requester.is_stopping, self.requester.budget.has_bytes
        if self.requester.budget.is_over:
            self.take_back(refund=0)
        elif is_stopping or not has_bytes:
            self.take_back(refund=len(self.waiting))
        if is_stopping or (not has_bytes and (self.looking or not is_recorded)):
            return  # how much is left of the bytes is known when all is recorded
        if one and not (self.is_quiet and is_recorded):
            return
        wanted = 1 if one else self.lookahead - len(self.waiting)
        if self.pages_left is not None:
            wanted = min(wanted, self.pages_left)
        if self.is_dry or len(self.waiting) > self.lookahead // 2:
            return
        targets = await self._hand_out(wanted) if wanted > 0 else []
        self.is_dry = not targets
        self.handed_out.update(target.key for target in targets)
        self.waiting.extend(targets)

    def take_back(self, *, refund: int) -> None:
        """Nobody looks at what waits; the budget may get the requests back."""
        self.requester.budget.requests += refund
        if self.pages_left is not None:
            self.pages_left += len(self.waiting)
        self.handed_out.difference_update(target.key for target in self.waiting)
        self.waiting.clear()

    def put_back(self, target: Target) -> None:
        """Its look was not begun."""
        self.handed_out.discard(target.key)
        self.pages_left = None if self.pages_left is None else self.pages_left + 1

    def recorded(self, batch: Iterable[Visit]) -> None:
        """These are in the store, with the links that they made known."""
        self.handed_out.difference_update(visit.target.key for visit in batch)
        self.is_dry = False

    async def _hand_out(self, wanted: int) -> list[Target]:
        now, defaults = self.clock.now(), self.settings.defaults
        granted = await self.requester.budget.debit(wanted)
        if not granted:
            return []
        targets = await until_available(
            self.lease,
            lambda _again: hand_out.hand_out(
                self.db, self.lease, most=granted, at=now, without=self.handed_out, defaults=defaults
            ),
        )
        self.requester.budget.requests += granted - len(targets)
        if self.pages_left is not None:
            self.pages_left -= len(targets)
        return targets
