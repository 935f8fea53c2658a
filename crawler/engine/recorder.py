"""Visits that are decided and not stored yet, and how they are stored: many in one transaction."""

import time
from collections.abc import Collection
from dataclasses import replace

from crawler.core.http.urls import PageKey
from crawler.core.visit.decide import reconsider
from crawler.core.visit.visit import Known, Visit
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.store_port import LeasedStore
from crawler.engine.visitor import Visitor
from crawler.plugins import load
from crawler.store.record import Batch

BATCH_BYTES = 8 << 20  # of bodies and texts, from which on a batch is recorded however few visits it has


class Recorder:
    """Collects the finished visits of one lease and records them. kept: what the store knows of the domain."""

    def __init__(self, store: LeasedStore, budget: LeaseBudget, breaker: CircuitBreaker, *, kept: Known) -> None:
        self._store, self._budget, self._breaker, self._settings = store, budget, breaker, store.settings
        self._kept = kept  # as the store has it
        self._done: list[Visit] = []
        self._bytes = 0  # of what they bring
        self._oldest = 0.0  # monotonic seconds, when the first of them was complete

    @property
    def is_empty(self) -> bool:
        """Every finished visit is stored."""
        return not self._done

    @property
    def is_full(self) -> bool:
        """Return whether so much waits for a record that no further page may be fetched before."""
        return self._bytes >= BATCH_BYTES

    @property
    def is_due(self) -> bool:
        """The batch is full, or old."""
        is_old = not self.is_empty and self._time_left <= 0
        return is_old or self.is_full or len(self._done) >= self._settings.batch_visits

    @property
    def patience(self) -> float | None:
        """Seconds to wait until the batch is old enough; None: there is none."""
        return max(self._time_left, 0.01) if self._done else None

    @property
    def _time_left(self) -> float:
        return self._oldest + self._settings.batch_age.total_seconds() - time.monotonic()

    def add(self, visits: Collection[Visit]) -> None:
        """Take in visits that can be recorded."""
        if visits and not self._done:
            self._oldest = time.monotonic()
        self._done += visits
        self._bytes += sum(len(each.snapshot.body) + len(each.snapshot.text) for each in visits if each.snapshot)

    async def record(self, visitor: Visitor, *, handed_out: Collection[PageKey]) -> tuple[list[Visit], int, float]:
        """Store what is finished, with what it taught the visitor of the domain. handed_out: as in Batch.

        Return the visits, how many pages they made known, and when the lease was renewed by it (monotonic seconds).
        """
        done, self._done, self._bytes = self._done, [], 0
        visits = await self._store.judge_moves(done)
        # No wait from here to the record: what the visitor knows may grow meanwhile.
        visits = [reconsider(visit, visitor.known) for visit in visits]
        edit = visitor.take_site_edits(at=max(visit.at for visit in visits))
        to_render = visitor.take_pages_to_render(is_dry=False)
        known, since = visitor.known, time.monotonic()
        batch = Batch(
            visits,
            max_pages=self._store.max_pages,
            refund=self._budget.settle(sum(visit.received_bytes for visit in visits)),
            is_shared=self._settings.shared_budget.is_limited,
            hold=self._breaker.hold,
            mask=None if known.mask is self._kept.mask else known.mask,
            soft_errors=None if known.soft_errors == self._kept.soft_errors else known.soft_errors,
            renders=None if known.renders is self._kept.renders else known.renders,
            edit=edit,
            page_score=load(self._settings.plugins).page_score,
            handed_out=handed_out,
            to_render=to_render,
        )
        new = await self._store.record(batch)
        self._kept = known
        return visits, new, since

    async def request_renders(self, visitor: Visitor) -> bool:
        """Have pages rendered that waited until the domain has no other page to fetch; whether there are any."""
        if not (pages := visitor.take_pages_to_render(is_dry=True)):
            return False
        await self._store.request_renders(pages, visitor.known.renders)
        self._kept = replace(self._kept, renders=visitor.known.renders)
        return True
