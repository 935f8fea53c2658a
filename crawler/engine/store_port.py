"""The store's verbs for one lease, as a crawl sees them: each is repeated while Postgres is away."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from functools import cache
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
from crawler.store.learned.memories import load_memories
from crawler.store.record import Batch, ListChunk, ListChunkResult, StoredBody

log = logging.getLogger("recrawl.crawl")
T = TypeVar("T")

STORE_RETRY = timedelta(seconds=1)
STORE_PATIENCE = timedelta(minutes=10)  # a restart or a failover of Postgres is shorter


@cache
def _warn_unknown_policy(revisit: str, domain: str, plugins: tuple[str, ...]) -> None:
    """Say once that a domain's revisit policy is of a plugin that is not used any more, so that the price decides."""
    if not is_known_policy(revisit, plugins):
        log.warning("revisit.unknown", extra={"policy": revisit, "domain": domain, "instead": "price"})


class LeasedStore:
    """What a crawl asks of the store under one lease; each verb is repeated while Postgres is away.

    settings: by which the lease is crawled.  clock: the knowledge time that is written.  patience: how long a verb is
    repeated; nothing: it is tried once.
    Every verb raises LeaseLost where another worker has the domain, and StoreUnavailable where Postgres stays away.
    """

    def __init__(
        self,
        db: Database,
        lease: Lease,
        *,
        settings: Settings,
        clock: Clock,
        patience: timedelta = STORE_PATIENCE,
    ) -> None:
        self.lease, self.clock = lease, clock
        self.settings, self._db, self._patience = settings, db, patience
        self.uses_whole_budget = settings.uses_whole_budget(lease.domain.settings)
        self._defaults = add_plugin_defaults(settings.defaults, settings.plugins)
        _warn_unknown_policy(lease.domain.settings.revisit, lease.domain.authority, settings.plugins)

    @property
    def max_pages(self) -> int:
        """How many pages of the leased domain are kept."""
        return self.lease.domain.settings.max_pages or self.settings.max_pages

    async def debit(self, max_requests: int, *, waiting: int, spare: Refund) -> Grant:
        """Take requests from the budgets of the day; see claim.debit. A repeated debit gives no bytes back."""
        # The first attempt may have given the spare bytes back already.
        return await self._retry_until_available(
            lambda retrying: claim.debit(
                self._db,
                self.lease,
                max_requests=max_requests,
                at=self.clock.now(),
                paced=self.settings.pace,
                shared=self.settings.shared_budget,
                waiting=waiting,
                refund=NO_REFUND if retrying else spare,
            )
        )

    async def drain_inbox(self) -> bool:
        """Apply a chunk of the domain's inbox, and say whether there was any."""
        return await self._retry_until_available(
            lambda _: record.drain_inbox(
                self._db,
                self.lease,
                at=self.clock.now(),
                defaults=self._defaults,
                max_pages=self.max_pages,
            )
        )

    async def update_due_times(self) -> bool:
        """Give a slice of the domain's pages the due times of today's price; whether any waited for that."""
        defaults = self._defaults
        return await self._retry_until_available(
            lambda _: frontier.update_due_times(self._db, self.lease, at=self.clock.now(), defaults=defaults)
        )

    async def select_targets(
        self, max_targets: int, *, requested_only: int, dispatched: Collection[PageKey]
    ) -> list[Target]:
        """The pages worth a fetch now, at most so many.

        requested_only: how many of them may only be pages that a user has requested.  dispatched: those that are handed
        out already.
        """
        defaults = self._defaults
        return await self._retry_until_available(
            lambda _: frontier.select_targets(
                self._db,
                self.lease,
                max_targets=max_targets,
                requested_only=requested_only,
                at=self.clock.now(),
                dispatched=dispatched,
                defaults=defaults,
            )
        )

    async def load_memories(self) -> tuple[NoiseMask, SoftErrorMemory, RenderMemory]:
        return await self._retry_until_available(lambda _: load_memories(self._db, self.lease.domain.id))

    async def write_delay(self, delay: timedelta) -> None:
        """Say what delay is in force, before the first request that it spaces."""
        await self._retry_until_available(lambda _: claim.write_delay(self._db, self.lease, delay=delay))

    async def save_robots(self, copy: RobotsCopy, *, changed: bool) -> None:
        """Keep what came of asking for robots.txt. changed: refused pages are asked about again."""
        await self._retry_until_available(lambda _: claim.save_robots(self._db, self.lease, copy, changed=changed))

    async def load_stored_body(self, target: Target, parsed: Parsed) -> StoredBody | None:
        """The body of the page's last Snapshot, if it is kept. parsed: what the page says now."""
        if target.version is None:
            return None
        number, digest = target.version.number, parsed.version.text_digest
        return await self._retry_until_available(
            lambda _: record.load_stored_body(self._db, self.lease.domain.id, target.key, number, text_digest=digest)
        )

    async def judge_moves(self, visits: Sequence[Visit]) -> list[Visit]:
        """The visits as they are to be recorded: a move that may be an outage is no move in them."""
        return await self._retry_until_available(lambda _: record.judge_moves(self._db, self.lease, visits))

    async def record(self, batch: Batch) -> int:
        """Write all that the visits changed, once, and renew the lease; gives how many new pages were admitted."""
        return await self._retry_until_available(
            lambda retrying: record.record_visits(self._db, self.lease, batch, retrying=retrying)
        )

    async def request_renders(self, pages: Sequence[PageKey], renders: RenderMemory) -> None:
        """Make stored pages due at once, to be read by a browser. renders: what is known of that, to be kept."""
        at = self.clock.now()
        await self._retry_until_available(lambda _: record.request_renders(self._db, self.lease, pages, renders, at=at))

    async def admit_list_chunk(self, chunk: ListChunk) -> ListChunkResult:
        """Admit what a sitemap or a feed names, and compare its dates with those it gave before."""
        return await self._retry_until_available(
            lambda _: record.admit_list_chunk(
                self._db,
                self.lease,
                chunk,
                at=self.clock.now(),
                max_pages=self.max_pages,
                defaults=self._defaults,
            )
        )

    async def suspend_domain(self, suspension: Suspension) -> None:
        """Leave the domain alone until an instant of knowledge time."""
        await self._retry_until_available(lambda _: claim.suspend_domain(self._db, self.lease, suspension))

    async def renew(self) -> bool:
        """Keep the lease for another term, in one attempt; False if the domain's user has paused it meanwhile."""
        return await claim.renew(self._db, self.lease)

    async def release(self, end: LeaseEnd) -> None:
        """Give the domain back, in one attempt. A lost lease is no error any more."""
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
    """What the store says, once it does. `ask` is told if an answer, and with it a commit, may have been lost.

    about: for the log.  Raises StoreUnavailable after so much patience, or when it is away and the caller is ending.
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
