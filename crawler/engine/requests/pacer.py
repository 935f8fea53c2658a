"""Decide when a request may be sent: not before the server's delay is over, nor if it might outlast the lease."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from crawler.clock import Clock
from crawler.core.budget.hours import ALWAYS, Hours, get_speed
from crawler.core.domain import Lease

# Maximum delay caused by latency, like Heritrix's maxDelayMs; a longer configured delay is not shortened. As latency
# factor, Heritrix uses 5 and Mercator 10 (Heydon and Najork, World Wide Web 2 (4), 1999).
MAX_LATENCY_DELAY = timedelta(seconds=30)
SMOOTHING = 0.25  # weight of the newest response, so that one slow page does not slow down the domain
POLL_SECONDS = 0.25  # how often a waiting request checks whether it is still needed


class Pacer:
    """The pacer of one server: it delays each request, counted from the start and from the end of the last one.

    delay: real time between two requests; zero: no delay, regardless of latency.  wait: time until the first request.
    hours: crawl hours, whose speed divides the delay, by the knowledge time of `clock`.
    latency_factor: the delay is at least this multiple of the smoothed latency, up to MAX_LATENCY_DELAY; 0: no effect.
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
        self._last_at: float | None = None  # when the last request was sent or finished, in monotonic seconds
        self._slot = asyncio.Lock()

    @property
    def _speed(self) -> float:
        """Return the speed factor of the current hour; 0 while the hours are closed."""
        return 1.0 if self._hours.is_always else get_speed(self._hours, self._clock.now())

    def is_closed(self) -> bool:
        """Return whether the hours are closed, so that no request of any kind may be sent now."""
        return not self._speed

    @property
    def delay(self) -> timedelta:
        """Return the current real time between two requests."""
        if not self._base_delay and not self._min_delay:
            return self._min_delay
        speed = self._speed or 1.0  # while the hours are closed, nothing is sent anyway
        delay = max(self._base_delay / speed, self._min_delay)
        latency_delay = min(self._latency_factor * (self._latency or timedelta(0)), MAX_LATENCY_DELAY)
        return max(delay, latency_delay) if delay else delay

    @property
    def max_delay(self) -> timedelta:
        """Return the real time between two requests in the slowest hour, without regard to latency."""
        return max(self._base_delay / min(window.speed for window in self._hours.windows), self._min_delay)

    @property
    def wait(self) -> timedelta:
        """Return the time until the next request may be sent."""
        return timedelta(seconds=max(self._free_at - time.monotonic(), 0.0))

    def raise_delay(self, delay: timedelta) -> None:
        """Set a minimum delay that also applies in faster hours, starting from the last request."""
        self._min_delay = max(self._min_delay, delay)
        if self._last_at is not None:
            self._free_at = max(self._free_at, self._last_at + self.delay.total_seconds())

    async def wait_for_slot(
        self, wait_for_lease: Callable[[], Awaitable[None]], *, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until the delay is over and the lease lasts long enough; then one request may be sent.

        wait_for_lease: waits for the lease; called inside the lock, so that waiting requests do not start together.
        is_over: returns whether requests are no longer needed; then return early. The caller must check again.
        """
        if not self.delay and self._free_at <= time.monotonic():
            await wait_for_lease()
            return
        async with self._slot:
            await wait_for_lease()
            # A response that arrives meanwhile extends the wait.
            while (seconds_left := self._free_at - time.monotonic()) > 0:
                if is_over():
                    return
                await asyncio.sleep(min(seconds_left, POLL_SECONDS))
                await wait_for_lease()
            self._start_delay()

    def note_response(self, latency: timedelta | None = None) -> None:
        """Note that a request has ended. latency: time from the send to the end of the response; None: unknown."""
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
    """The end of a lease by its holder's clock, which blocks requests that might outlast it."""

    def __init__(self, lease: Lease) -> None:
        self._term = lease.term.total_seconds()
        self._ends_at = lease.since + self._term
        self._renewal = asyncio.Event()

    def extend(self, *, since: float) -> None:
        """Note a successful renewal that was sent at `since` (monotonic seconds)."""
        self._ends_at = max(self._ends_at, since + self._term)
        self._renewal.set()

    async def wait_for_time_left(self, max_duration: timedelta) -> None:
        """Wait until the lease lasts longer than a request may take. Without renewals, nothing is sent."""
        while self._ends_at - time.monotonic() < max_duration.total_seconds():
            self._renewal.clear()
            await self._renewal.wait()
