"""When a request may be sent: never sooner than the server's delay, never under a lease that it could outlast."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.budget.hours import ALWAYS, Hours, speed_at
from crawler.core.domain import Lease

# Of smoothed latency, a pause is never longer for it, as Heritrix has it (maxDelayMs; its delayFactor is 5, that of
# Mercator 10: Heydon and Najork, World Wide Web 2 (4), 1999). A delay that is longer by itself stays.
LONGEST_FOR_LATENCY = timedelta(seconds=30)
SMOOTHING = 0.25  # of the newest answer; one slow page among fast ones does not stop the domain
LOOK_UP_S = 0.25  # who waits for a turn sees so often whether it is wanted still


class Pacer:
    """Spaces the requests to one server: a delay after the last send and after the end of the last answer.

    delay: real time between two requests; none: they are not spaced.  wait: until the first.  hours: by whose speed the
    delay is shorter or longer, by the knowledge time of `clock`.  latency_factor: a delay is at least so many times the
    smoothed latency of the answers, up to LONGEST_FOR_LATENCY; 0: it is not. Without a delay nothing is spaced, however
    slow the server is.
    """

    def __init__(
        self,
        *,
        delay: timedelta,
        wait: timedelta = timedelta(0),
        hours: Hours = ALWAYS,
        clock: Clock | None = None,
        latency_factor: float = 0.0,
    ) -> None:
        self._usual, self._hours, self._clock = delay, hours, clock or Clock.at(None)
        self._latency_factor = latency_factor
        self._latency: timedelta | None = None  # smoothed
        self._least = timedelta(0)
        self._free_at = time.monotonic() + wait.total_seconds()
        self._last: float | None = None  # monotonic, when the last request was sent or answered
        self._turn = asyncio.Lock()

    @property
    def _speed(self) -> float:
        """How fast requests may be sent now, as a factor; 0 while the hours are closed."""
        return 1.0 if self._hours.is_always else speed_at(self._hours, self._clock.now())

    def is_closed(self) -> bool:
        """Return whether the hours are closed, so that no request of any kind may be sent now."""
        return not self._speed

    @property
    def delay(self) -> timedelta:
        """Real time between two requests now."""
        speed = self._speed or 1.0  # while the hours are closed nothing is sent at all
        delay = max(self._usual / speed, self._least)
        for_latency = min(self._latency_factor * (self._latency or timedelta(0)), LONGEST_FOR_LATENCY)
        return max(delay, for_latency) if delay else delay

    @property
    def longest_delay(self) -> timedelta:
        """Real time between two requests in the slowest of the hours, however fast the server answers."""
        return max(self._usual / min(window.speed for window in self._hours.windows), self._least)

    @property
    def wait(self) -> timedelta:
        """How long until the next request may be sent."""
        return timedelta(seconds=max(self._free_at - time.monotonic(), 0.0))

    def slow_down(self, delay: timedelta) -> None:
        """Space requests by so much at least, whatever the hours say, from the last one on."""
        self._least = max(self._least, delay)
        if self._last is not None:
            self._free_at = max(self._free_at, self._last + self.delay.total_seconds())

    async def pass_through(
        self, room: Callable[[], Awaitable[None]], *, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for one's turn, and for room under the lease; one request may be sent after it.

        The wait for room is part of the turn: those who wait for it together are not let through together.
        is_over: nobody wants to send any more, and so nobody waits; who was let through has to ask again.
        """
        if not self.delay and self._free_at <= time.monotonic():
            await room()
            return
        async with self._turn:
            await room()
            # An answer that comes meanwhile puts it off further.
            while (left := self._free_at - time.monotonic()) > 0:
                if is_over():
                    return
                await asyncio.sleep(min(left, LOOK_UP_S))
                await room()
            self._close()

    def answered(self, latency: timedelta | None = None) -> None:
        """Note that an answer came, or that none will. latency: from the send to the end of an answer, if one came."""
        if latency is not None:
            before = latency if self._latency is None else self._latency
            self._latency = before + SMOOTHING * (latency - before)
        self._last = time.monotonic()
        if self.delay:
            self._close()

    def _close(self) -> None:
        self._last = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + self.delay.total_seconds())


class LeaseDeadline:
    """The end of a lease by its holder's own clock, which fences late requests."""

    def __init__(self, lease: Lease) -> None:
        self._term = lease.term.total_seconds()
        self._ends_at = lease.since + self._term
        self._renewed = asyncio.Event()

    def renewed(self, *, since: float) -> None:
        """Note that a renewal succeeded which was sent at `since` (monotonic seconds)."""
        self._ends_at = max(self._ends_at, since + self._term)
        self._renewed.set()

    async def room_for(self, longest: timedelta) -> None:
        """Wait until the lease lasts longer than a request may take: while the store is silent, nothing is sent."""
        while self._ends_at - time.monotonic() < longest.total_seconds():
            self._renewed.clear()
            await self._renewed.wait()
