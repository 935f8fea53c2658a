"""The pages that a lease has ahead of it: handed out before they are needed, taken back if nobody gets to them."""

from collections import deque
from collections.abc import Iterable
from datetime import date
from functools import cached_property

from crawler.core.http.urls import PageKey
from crawler.core.opic.order import Order
from crawler.core.visit.visit import Target, Visit
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.requester import Requester
from crawler.engine.store_port import LeasedStore

BATCHES_AHEAD = 2
# Requests of a limited budget that are taken ahead: those are lost to the day when the crawl is killed. What was taken
# cannot be given back by whoever takes over, since nobody knows how much of it was sent.
LIMITED_AHEAD = 16


class TargetQueue:
    """Pages handed out under one lease. max_visits: so many at most; None: no limit."""

    def __init__(
        self, store: LeasedStore, budget: LeaseBudget, requester: Requester, *, max_visits: int | None
    ) -> None:
        self._store, self._budget, self._requester, self._settings = store, budget, requester, store.settings
        self.visits_left = max_visits  # that may still be handed out
        self._waiting: deque[Target] = deque()  # at which nobody looks yet
        self._day: date | None = None  # on which the requests of those were taken
        self._dispatched: set[PageKey] = set()  # and not recorded
        self.is_exhausted = False  # the frontier had nothing more when it was asked last

    @property
    def dispatched(self) -> frozenset[PageKey]:
        """The pages that were handed out and are in no record yet."""
        return frozenset(self._dispatched)

    @property
    def is_empty(self) -> bool:
        """No page waits to be looked at."""
        return not self._waiting

    @cached_property
    def parallelism(self) -> int:
        """How many pages of the domain are looked at at a time."""
        domain = self._store.lease.domain
        return self._settings.choose_parallelism(domain.settings, is_own=domain.is_own_server)

    @property
    def _is_stepwise(self) -> bool:
        """Nothing is handed out ahead: depth first goes on from the page that was read last."""
        return self._store.lease.domain.settings.ordering.order is Order.DEPTH

    @property
    def lookahead(self) -> int:
        """Pages to hand out ahead: two batches, or what the delay lets through in the time of two.

        Of a limited budget a few only, so that a crawl that is killed takes few requests with it.
        """
        max_pages, delay = BATCHES_AHEAD * self._settings.max_batch_size, self._requester.pacer.delay
        if self._budget.is_limited:
            max_pages = min(max_pages, LIMITED_AHEAD)
        if delay:
            max_pages = min(max_pages, int(BATCHES_AHEAD * self._settings.max_batch_age / delay) + 1)
        return max(max_pages, self.parallelism)

    def pop_target(self) -> Target | None:
        """The next page to look at; None where none waits whose request the present day has paid."""
        self._drop_outdated()
        return self._waiting.popleft() if self._waiting else None

    async def refill(self, *, all_recorded: bool, only_one: bool = False) -> None:
        """Top up the queue from the frontier.

        all_recorded: every finished visit is stored.  only_one: hand out at most one page (circuit half open).
        """
        is_stopping, has_bytes = self._requester.is_stopping, self._budget.has_bytes
        self._drop_outdated()
        if self._budget.is_day_over or is_stopping or not has_bytes:
            self.return_waiting()
        if is_stopping or (not has_bytes and not (self._budget.is_idle and all_recorded)):
            return  # how much is left of the bytes is known when all is recorded
        if only_one and not (self._budget.is_idle and all_recorded):
            return
        if self._is_stepwise and not all_recorded:
            return  # what a page just read links to comes before all that was known
        count = 1 if only_one else self.lookahead - len(self._waiting)
        if self._is_stepwise:
            count = min(count, self.parallelism - len(self._dispatched))
            if count <= 0:
                return
        if self.visits_left is not None:
            count = min(count, self.visits_left)
        if self.is_exhausted or len(self._waiting) > self.lookahead // 2:
            return
        self.is_exhausted = not (count > 0 and await self._select_targets(count))

    async def _select_targets(self, count: int) -> bool:
        """Ask the frontier for so many pages; whether there was any."""
        grant = await self._budget.take_requests(count)
        if not grant.requests:
            return False
        self._drop_outdated()
        day = self._budget.day
        targets = await self._store.select_targets(
            grant.requests, requested_only=grant.requested_only, dispatched=self._dispatched
        )
        self._budget.return_requests(grant.requests - len(targets), day=day)
        self._budget.assign_to_pages(len(targets))
        if self.visits_left is not None:
            self.visits_left -= len(targets)
        self._day = day
        self._dispatched.update(target.key for target in targets)
        self._waiting.extend(targets)
        return bool(targets)

    def return_waiting(self) -> None:
        """Let go of what waits: nobody will look at it."""
        self._budget.return_assigned(len(self._waiting), day=self._day)
        if self.visits_left is not None:
            self.visits_left += len(self._waiting)
        self._dispatched.difference_update(target.key for target in self._waiting)
        self._waiting.clear()

    def _drop_outdated(self) -> None:
        """Let go of what was handed out on the account of another day."""
        if self._waiting and self._day != self._budget.day:
            self.return_waiting()

    def return_target(self, target: Target) -> None:
        """Let go of a page whose look was not begun, and whose request is given back."""
        self._dispatched.discard(target.key)
        self.visits_left = None if self.visits_left is None else self.visits_left + 1

    def mark_recorded(self, batch: Iterable[Visit]) -> None:
        """These visits are in the store, with the links that they made known."""
        self._dispatched.difference_update(visit.target.key for visit in batch)
        self.is_exhausted = False
