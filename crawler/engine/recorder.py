"""Collect finished visits and record them in batches, one transaction each."""

import time
from collections.abc import Collection

from msgspec.structs import replace

from crawler.core.http.urls import PageKey
from crawler.core.visit.decide import reconsider_visit
from crawler.core.visit.visit import DomainKnowledge, Visit
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.store_port import LeasedStore
from crawler.engine.visitor import Visitor
from crawler.plugins import load_plugins
from crawler.store.record import Batch

BATCH_BYTES = 8 << 20  # size of bodies and texts at which a batch is recorded, even with few visits


class Recorder:
    """The recorder of the finished visits of one lease. stored: what the store knows of the domain."""

    def __init__(
        self, store: LeasedStore, budget: LeaseBudget, breaker: CircuitBreaker, stored: DomainKnowledge
    ) -> None:
        self._store, self._budget, self._breaker, self._settings = store, budget, breaker, store.settings
        self._stored = stored
        self._finished: list[Visit] = []
        self._batch_bytes = 0  # size of the bodies and texts of these visits
        self._oldest_at = 0.0  # when the first of these visits finished, in monotonic seconds

    @property
    def is_empty(self) -> bool:
        """Return whether all finished visits are recorded."""
        return not self._finished

    @property
    def is_full(self) -> bool:
        """Return whether the batch is so large that it must be recorded before further pages are fetched."""
        return self._batch_bytes >= BATCH_BYTES

    @property
    def is_due(self) -> bool:
        """Return whether the batch is full or old enough to be recorded."""
        is_old = not self.is_empty and self._time_left <= 0
        return is_old or self.is_full or len(self._finished) >= self._settings.max_batch_size

    @property
    def seconds_until_due(self) -> float | None:
        """Return the seconds until the batch is old enough; None if it is empty."""
        return max(self._time_left, 0.01) if self._finished else None

    @property
    def _time_left(self) -> float:
        return self._oldest_at + self._settings.max_batch_age.total_seconds() - time.monotonic()

    def add(self, visits: Collection[Visit]) -> None:
        """Add visits to the batch."""
        if visits and not self._finished:
            self._oldest_at = time.monotonic()
        self._finished += visits
        self._batch_bytes += sum(len(each.snapshot.body) + len(each.snapshot.text) for each in visits if each.snapshot)

    async def record(self, visitor: Visitor, *, dispatched: Collection[PageKey]) -> tuple[list[Visit], int, float]:
        """Record the finished visits and the visitor's new knowledge of the domain. dispatched: as in Batch.

        Return the visits, the number of new pages, and when the batch was sent (monotonic): it also renews the lease.
        """
        finished, self._finished, self._batch_bytes = self._finished, [], 0
        visits = await self._store.judge_moves(finished)
        # No await from here to the record: the visitor's knowledge could change meanwhile.
        visits = [reconsider_visit(visit, visitor.knowledge) for visit in visits]
        edit = visitor.pop_boilerplate_edit(at=max(visit.at for visit in visits))
        to_render = visitor.pop_pages_to_render(is_exhausted=False)
        knowledge, since = visitor.knowledge, time.monotonic()
        batch = Batch(
            visits,
            max_pages=self._store.max_pages,
            refund=self._budget.settle_record(sum(visit.received_bytes for visit in visits)),
            is_shared=self._settings.shared_budget.is_limited,
            suspension=self._breaker.suspension,
            mask=None if knowledge.mask is self._stored.mask else knowledge.mask,
            soft_errors=None if knowledge.soft_errors == self._stored.soft_errors else knowledge.soft_errors,
            renders=None if knowledge.renders is self._stored.renders else knowledge.renders,
            edit=edit,
            page_score=load_plugins(self._settings.plugins).page_score,
            dispatched=dispatched,
            to_render=to_render,
        )
        new_pages = await self._store.record(batch)
        self._stored = knowledge
        return visits, new_pages, since

    async def request_renders(self, visitor: Visitor) -> bool:
        """Request the rendering of pages that wait until no other page is left; return whether there were any."""
        if not (pages := visitor.pop_pages_to_render(is_exhausted=True)):
            return False
        await self._store.request_renders(pages, visitor.knowledge.renders)
        self._stored = replace(self._stored, renders=visitor.knowledge.renders)
        return True
