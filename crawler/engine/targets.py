"""The queue of pages to fetch under a lease. Pages are selected ahead of time, and returned if not fetched."""

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

BATCH_AGES_AHEAD = 2  # the time for which pages are selected ahead, if the delay is long
# Requests of a limited budget that are debited ahead. If the crawl is killed, they are lost for the day: the next
# worker cannot refund them, because it is unknown how many were sent.
LIMITED_AHEAD = 16


class TargetQueue:
    """The pages selected under one lease. max_visits: the maximum number of pages; None: no limit."""

    def __init__(self, store: LeasedStore, budget: LeaseBudget, requester: Requester, max_visits: int | None) -> None:
        self._store, self._budget, self._requester, self._settings = store, budget, requester, store.settings
        self.visits_left = max_visits  # how many more pages may be selected; None: no limit
        self._waiting: deque[Target] = deque()  # selected and not taken by a worker
        self._day: date | None = None  # the day on which the requests of the waiting pages were debited
        self._dispatched: set[PageKey] = set()  # selected and not recorded
        self.is_exhausted = False  # whether the last selection found nothing or was not allowed

    @property
    def dispatched(self) -> frozenset[PageKey]:
        """Return the pages that are selected and not yet recorded."""
        return frozenset(self._dispatched)

    @property
    def is_empty(self) -> bool:
        """Return whether no page waits to be fetched."""
        return not self._waiting

    @cached_property
    def parallelism(self) -> int:
        """Return how many pages of the domain are fetched at the same time."""
        domain = self._store.lease.domain
        return self._settings.choose_parallelism(domain.settings, is_own=domain.is_own_server)

    @property
    def _is_stepwise(self) -> bool:
        """Return whether nothing is selected ahead: depth-first order continues from the page fetched last."""
        return self._store.lease.domain.settings.ordering.order is Order.DEPTH

    @property
    def lookahead(self) -> int:
        """Return how many pages to select ahead: a batch, or fewer if the delay is long; at least the parallelism.

        With a limited budget, LIMITED_AHEAD is the limit instead if that is lower.
        """
        max_pages, delay = self._settings.max_batch_size, self._requester.pacer.delay
        if self._budget.is_limited:
            max_pages = min(max_pages, LIMITED_AHEAD)
        if delay:
            max_pages = min(max_pages, int(BATCH_AGES_AHEAD * self._settings.max_batch_age / delay) + 1)
        return max(max_pages, self.parallelism)

    def pop_target(self) -> Target | None:
        """Return the next page to fetch; None if none waits whose request was debited on the day of the last grant."""
        self._return_outdated()
        return self._waiting.popleft() if self._waiting else None

    async def refill(self, *, all_recorded: bool, only_one: bool = False) -> None:
        """Refill the queue from the frontier.

        all_recorded: whether every finished visit is stored.  only_one: select at most one page (circuit half open).
        """
        is_stopping, has_bytes = self._requester.is_stopping, self._budget.has_bytes
        self._return_outdated()
        if self._budget.is_day_over or is_stopping or not has_bytes:
            self.return_waiting()
        if is_stopping or (not has_bytes and not (self._budget.is_idle and all_recorded)):
            return  # the remaining bytes are known only when everything is recorded
        if only_one and not (self._budget.is_idle and all_recorded):
            return
        if self._is_stepwise and not all_recorded:
            return  # the links of the page just fetched come first
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
        """Select up to `count` pages from the frontier; return whether there were any."""
        grant = await self._budget.take_requests(count)
        if not grant.requests:
            return False
        self._return_outdated()
        day, dispatched = self._budget.day, self._dispatched
        targets = await self._store.select_targets(grant.requests, grant.requested_only, dispatched)
        self._budget.return_requests(grant.requests - len(targets), day=day)
        self._budget.assign_to_pages(len(targets))
        if self.visits_left is not None:
            self.visits_left -= len(targets)
        self._day = day
        self._dispatched.update(target.key for target in targets)
        self._waiting.extend(targets)
        return bool(targets)

    def return_waiting(self) -> None:
        """Return all waiting pages to the frontier."""
        self._budget.return_assigned(len(self._waiting), day=self._day)
        if self.visits_left is not None:
            self.visits_left += len(self._waiting)
        self._dispatched.difference_update(target.key for target in self._waiting)
        self._waiting.clear()

    def _return_outdated(self) -> None:
        """Return the waiting pages if their requests were debited before the day of the last grant."""
        if self._waiting and self._day != self._budget.day:
            self.return_waiting()

    def return_target(self, target: Target) -> None:
        """Return a page whose visit did not start and whose request is refunded."""
        self._dispatched.discard(target.key)
        self.visits_left = None if self.visits_left is None else self.visits_left + 1

    def mark_recorded(self, batch: Iterable[Visit]) -> None:
        """Note that these visits and their links are in the store."""
        self._dispatched.difference_update(visit.target.key for visit in batch)
        self.is_exhausted = False
