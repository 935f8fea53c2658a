"""The gate before a domain's server: never sooner than its delay, never without a lease that outlasts the request."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from crawler.core.domain import Lease


class Pacer:
    """Spaces one lease's requests: a delay after the last send and after the end of the last answer."""

    def __init__(self, *, delay: timedelta, wait: timedelta) -> None:
        self.delay = delay
        self._free_at = time.monotonic() + wait.total_seconds()
        self._turn = asyncio.Lock()

    @property
    def wait(self) -> timedelta:
        """How long until the next request may be sent."""
        return timedelta(seconds=max(self._free_at - time.monotonic(), 0.0))

    async def pass_through(self, room: Callable[[], Awaitable[None]]) -> None:
        """Wait for one's turn, and for room under the lease; one request may be sent after it.

        Both within the turn: those who wait for room together may not be let through together.
        """
        if not self.delay and self._free_at <= time.monotonic():
            await room()
            return
        async with self._turn:
            await room()
            # An answer that comes meanwhile puts it off further.
            while (left := self._free_at - time.monotonic()) > 0:
                await asyncio.sleep(left)
                await room()
            self._close()

    def answered(self) -> None:
        """An answer came, or none will."""
        if self.delay:
            self._close()

    def _close(self) -> None:
        self._free_at = max(self._free_at, time.monotonic() + self.delay.total_seconds())


class LeaseDeadline:
    """The holder's own clock of its lease, started before each claim or renewal was sent: late requests end here."""

    def __init__(self, lease: Lease, *, since: float) -> None:
        self._term = lease.term.total_seconds()
        self._ends_at = since + self._term
        self._renewed = asyncio.Event()

    def renewed(self, *, since: float) -> None:
        """A renewal that was sent at `since` (monotonic seconds) succeeded."""
        self._ends_at = max(self._ends_at, since + self._term)
        self._renewed.set()

    async def room_for(self, longest: timedelta) -> None:
        """Wait until the lease lasts longer than a request may take: while the store is silent, nothing is sent."""
        while self._ends_at - time.monotonic() < longest.total_seconds():
            self._renewed.clear()
            await self._renewed.wait()
