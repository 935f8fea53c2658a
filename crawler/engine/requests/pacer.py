"""When a request may be sent: never sooner than the server's delay, never under a lease that it could outlast."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.budget.hours import ALWAYS, Hours, get_speed
from crawler.core.domain import Lease

# Of smoothed latency, a pause is never longer for it, as Heritrix has it (maxDelayMs; its delayFactor is 5, that of
# Mercator 10: Heydon and Najork, World Wide Web 2 (4), 1999). A delay that is longer by itself stays.
MAX_LATENCY_DELAY = timedelta(seconds=30)
SMOOTHING = 0.25  # of the newest answer; one slow page among fast ones does not stop the domain
POLL_SECONDS = 0.25  # who waits for a turn sees so often whether it is wanted still


class Pacer:
    """Spaces the requests to one server: a delay after the last send and after the end of the last answer.

    delay: real time between two requests; none: they are not spaced.  wait: until the first.  hours: by whose speed the
    delay is shorter or longer, by the knowledge time of `clock`.  latency_factor: a delay is at least so many times the
    smoothed latency of the answers, up to MAX_LATENCY_DELAY; 0: it is not. Without a delay nothing is spaced, however
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
        self._base_delay, self._hours, self._clock = delay, hours, clock or Clock.from_instant(None)
        self._latency_factor = latency_factor
        self._latency: timedelta | None = None  # smoothed
        self._min_delay = timedelta(0)
        self._free_at = time.monotonic() + wait.total_seconds()
        self._last_at: float | None = None  # monotonic, when the last request was sent or answered
        self._slot = asyncio.Lock()

    @property
    def _speed(self) -> float:
        """How fast requests may be sent now, as a factor; 0 while the hours are closed."""
        return 1.0 if self._hours.is_always else get_speed(self._hours, self._clock.now())

    def is_closed(self) -> bool:
        """Return whether the hours are closed, so that no request of any kind may be sent now."""
        return not self._speed

    @property
    def delay(self) -> timedelta:
        """Real time between two requests now."""
        speed = self._speed or 1.0  # while the hours are closed nothing is sent at all
        delay = max(self._base_delay / speed, self._min_delay)
        latency_delay = min(self._latency_factor * (self._latency or timedelta(0)), MAX_LATENCY_DELAY)
        return max(delay, latency_delay) if delay else delay

    @property
    def max_delay(self) -> timedelta:
        """Real time between two requests in the slowest of the hours, however fast the server answers."""
        return max(self._base_delay / min(window.speed for window in self._hours.windows), self._min_delay)

    @property
    def wait(self) -> timedelta:
        """How long until the next request may be sent."""
        return timedelta(seconds=max(self._free_at - time.monotonic(), 0.0))

    def raise_delay(self, delay: timedelta) -> None:
        """Space requests by so much at least, whatever the hours say, from the last one on."""
        self._min_delay = max(self._min_delay, delay)
        if self._last_at is not None:
            self._free_at = max(self._free_at, self._last_at + self.delay.total_seconds())

    async def wait_for_slot(
        self, wait_for_lease: Callable[[], Awaitable[None]], *, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for one's turn, and for room under the lease; one request may be sent after it.

        The wait for room is part of the turn: those who wait for it together are not let through together.
        is_over: nobody wants to send any more, and so nobody waits; who was let through has to ask again.
        """
        if not self.delay and self._free_at <= time.monotonic():
            await wait_for_lease()
            return
        async with self._slot:
            await wait_for_lease()
            # An answer that comes meanwhile puts it off further.
            while (seconds_left := self._free_at - time.monotonic()) > 0:
                if is_over():
                    return
                await asyncio.sleep(min(seconds_left, POLL_SECONDS))
                await wait_for_lease()
            self._start_delay()

    def note_response(self, latency: timedelta | None = None) -> None:
        """Note that an answer came, or that none will. latency: from the send to the end of an answer, if one came."""
        if latency is not None:
            before = latency if self._latency is None else self._latency
            self._latency = before + SMOOTHING * (latency - before)
        self._last_at = time.monotonic()
        if self.delay:
            self._start_delay()

    def _start_delay(self) -> None:
        self._last_at = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + self.delay.total_seconds())


class LeaseDeadline:
    """The end of a lease by its holder's own clock, which fences late requests."""

    def __init__(self, lease: Lease) -> None:
        self._term = lease.term.total_seconds()
        self._ends_at = lease.since + self._term
        self._renewal = asyncio.Event()

    def extend(self, *, since: float) -> None:
        """Note that a renewal succeeded which was sent at `since` (monotonic seconds)."""
        self._ends_at = max(self._ends_at, since + self._term)
        self._renewal.set()

    async def wait_for_time_left(self, max_duration: timedelta) -> None:
        """Wait until the lease lasts longer than a request may take: while the store is silent, nothing is sent."""
        while self._ends_at - time.monotonic() < max_duration.total_seconds():
            self._renewal.clear()
            await self._renewal.wait()
