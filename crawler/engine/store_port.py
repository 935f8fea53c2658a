"""The store operations of one lease. Most are retried while Postgres is unavailable."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import TypeVar

from crawler.clock import Clock
from crawler.core.budget.ledger import NO_REFUND, Refund
from crawler.core.change.mask import NoiseMask
from crawler.core.domain import Lease, RobotsCopy, Suspension
from crawler.core.http.urls import PageKey
from crawler.core.page.snapshot import Parsed
from crawler.core.rendering.memory import RenderMemory
from crawler.core.soft_errors import SoftErrorMemory
from crawler.core.visit.visit import Target, Visit
from crawler.errors import StoreUnavailable
from crawler.plugins import add_plugin_defaults, is_known_policy
from crawler.settings import Settings
from crawler.store import claim, frontier, record
from crawler.store.claim import Grant, LeaseEnd
from crawler.store.database import Database
from crawler.store.learned.domain_memory import load_memories
from crawler.store.record import Batch, ListChunk, ListChunkResult, StoredBody

log = logging.getLogger("recrawl.crawl")
T = TypeVar("T")

STORE_RETRY = timedelta(seconds=1)
STORE_PATIENCE = timedelta(minutes=10)  # a restart or a failover of Postgres is shorter


@cache
def _warn_unknown_policy(revisit: str, domain: str, plugins: tuple[str, ...]) -> None:
    """Warn once if a domain's revisit policy is unknown; then the policy `value` is used instead."""
    if not is_known_policy(revisit, plugins):
        log.warning("revisit.unknown", extra={"policy": revisit, "domain": domain, "instead": "value"})


class LeasedStore:
    """The store operations of a crawl under one lease.

    clock: the source of the knowledge time that is written.  patience: how long to retry; zero: do not retry.
    Unless noted otherwise, operations are retried while Postgres is unavailable, and those that write raise LeaseLost
    if another worker has the domain. All raise StoreUnavailable if Postgres does not come back in time.
    """

    def __init__(
        self, db: Database, lease: Lease, settings: Settings, clock: Clock, *, patience: timedelta = STORE_PATIENCE
    ) -> None:
        self.lease, self.clock = lease, clock
        self.settings, self._db, self._patience = settings, db, patience
        self.uses_whole_budget = settings.uses_whole_budget(lease.domain.settings)
        self._defaults = add_plugin_defaults(settings.defaults, settings.plugins)
        _warn_unknown_policy(lease.domain.settings.revisit, lease.domain.authority, settings.plugins)

    @property
    def max_pages(self) -> int:
        """Return the maximum number of pages of the leased domain."""
        return self.lease.domain.settings.max_pages or self.settings.max_pages

    async def debit(self, max_requests: int, *, waiting: int, spare: Refund) -> Grant:
        """Debit requests from the day's budgets; see claim.debit, where `spare` is the refund."""
        paced, shared = self.settings.pace, self.settings.shared_budget
        debit = partial(claim.debit, self._db, self.lease, waiting=waiting, paced=paced, shared=shared)
        # A retry refunds nothing: the first attempt may have refunded the spare bytes already.
        return await self._retry_until_available(
            lambda again: debit(max_requests=max_requests, at=self.clock.now(), refund=NO_REFUND if again else spare)
        )

    async def drain_inbox(self) -> bool:
        """Apply a chunk of the domain's inbox; return whether there was one."""
        drain = partial(record.drain_inbox, self._db, self.lease, defaults=self._defaults, max_pages=self.max_pages)
        return await self._retry_until_available(lambda _: drain(at=self.clock.now()))

    async def update_due_times(self) -> bool:
        """Recompute the due times of a slice of the pages if this was requested; return whether it was done."""
        update = partial(frontier.update_due_times, self._db, self.lease, defaults=self._defaults)
        return await self._retry_until_available(lambda _: update(at=self.clock.now()))

    async def select_targets(self, count: int, requested_only: int, dispatched: Collection[PageKey]) -> list[Target]:
        """Select the pages to fetch now.

        count: the maximum number.  requested_only: how many of them must be requested pages or 404s to confirm.
        dispatched: pages that are dispatched already.
        """
        select = partial(frontier.select_targets, self._db, self.lease, dispatched=dispatched, defaults=self._defaults)
        return await self._retry_until_available(
            lambda _: select(max_targets=count, requested_only=requested_only, at=self.clock.now())
        )

    async def load_memories(self) -> tuple[NoiseMask, SoftErrorMemory, RenderMemory]:
        return await self._retry_until_available(lambda _: load_memories(self._db, self.lease.domain.id))

    async def write_delay(self, delay: timedelta) -> None:
        """Write the current delay, before the first request that it applies to."""
        await self._retry_until_available(lambda _: claim.write_delay(self._db, self.lease, delay=delay))

    async def save_robots(self, copy: RobotsCopy, *, changed: bool) -> None:
        """Store the result of fetching robots.txt. changed: if True, excluded pages are checked again."""
        await self._retry_until_available(lambda _: claim.save_robots(self._db, self.lease, copy, changed=changed))

    async def load_stored_body(self, target: Target, parsed: Parsed) -> StoredBody | None:
        """Load the body of the page's last snapshot, if it is stored. parsed: the page as it is now."""
        if target.version is None:
            return None
        number, digest = target.version.number, parsed.version.text_digest
        load = partial(record.load_stored_body, self._db, self.lease.domain.id, target.key, number, text_digest=digest)
        return await self._retry_until_available(lambda _: load())

    async def judge_moves(self, visits: Sequence[Visit]) -> list[Visit]:
        """Return the visits to record. Doubtful moves, perhaps caused by an outage, become visits without a move."""
        return await self._retry_until_available(lambda _: record.judge_moves(self._db, self.lease, visits))

    async def record(self, batch: Batch) -> int:
        """Record the visits exactly once and renew the lease; return how many discovered pages may be fetched."""
        write = partial(record.record_visits, self._db, self.lease, batch)
        return await self._retry_until_available(lambda retrying: write(retrying=retrying))

    async def request_renders(self, pages: Sequence[PageKey], renders: RenderMemory) -> None:
        """Make stored pages due at once, to be rendered by a browser. renders: the rendering memory to store."""
        at = self.clock.now()
        await self._retry_until_available(lambda _: record.request_renders(self._db, self.lease, pages, renders, at=at))

    async def admit_list_chunk(self, chunk: ListChunk) -> ListChunkResult:
        """Admit the entries of a sitemap or a feed, and compare their dates with the stored ones."""
        admit = partial(record.admit_list_chunk, self._db, self.lease, chunk, defaults=self._defaults)
        return await self._retry_until_available(lambda _: admit(at=self.clock.now(), max_pages=self.max_pages))

    async def suspend_domain(self, suspension: Suspension) -> None:
        """Suspend the domain until an instant of knowledge time."""
        at = self.clock.now()
        await self._retry_until_available(lambda _: claim.suspend_domain(self._db, self.lease, suspension, at=at))

    async def renew(self) -> bool:
        """Renew the lease for another term, without retries; return False if the user has paused the domain."""
        return await claim.renew(self._db, self.lease)

    async def release(self, end: LeaseEnd) -> None:
        """Release the domain, without retries. A lost lease is not an error here."""
        await claim.release(self._db, self.lease, end, at=self.clock.now())

    async def _retry_until_available(self, operation: Callable[[bool], Awaitable[T]]) -> T:
        return await retry_until_available(operation, about=self.lease.domain.authority, patience=self._patience)


async def retry_until_available(
    operation: Callable[[bool], Awaitable[T]],
    *,
    about: str,
    patience: timedelta = STORE_PATIENCE,
    is_ending: Callable[[], bool] = lambda: False,
) -> T:
    """Call an operation of the store until it succeeds, and return its result.

    operation: called with True if it is a retry; then an earlier attempt may have committed.
    about: a label for the log.  is_ending: returns whether to give up early.  Raise StoreUnavailable after `patience`,
    or when giving up early.
    """
    give_up_at = time.monotonic() + patience.total_seconds()
    retrying = False
    while True:
        try:
            return await operation(retrying)
        except StoreUnavailable as error:
            if time.monotonic() >= give_up_at or is_ending():
                raise
            log.warning("store.silent", extra={"about": about, "error": str(error)})
            retrying = True
            await asyncio.sleep(STORE_RETRY.total_seconds())
