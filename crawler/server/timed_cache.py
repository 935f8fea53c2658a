"""Figures that take long to reckon, kept for a while: a minute later they are much the same in a large domain."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

MIN_COMPUTE_SECONDS = 1.0  # seconds: what takes less is reckoned each time
LIFETIME_FACTOR = (
    20.0  # times as long as it took, so that a reader who reloads costs the database a twentieth of its time
)
MAX_LIFETIME_SECONDS = 600.0  # seconds
MAX_VALUES = 200  # values


class TimedCache(Generic[T]):
    """Values by key. Two who want the same one at once wait for one reckoning."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[T, float]] = {}  # until when each is kept
        self._locks: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[T]]) -> T:
        """The value that is kept, or else what `find` gives."""
        async with self._locks[key]:
            cached = self._values.get(key)
            began = self._clock()
            if cached is not None and began < cached[1]:
                return cached[0]
            value = await compute()
            ended = self._clock()
            if ended - began > MIN_COMPUTE_SECONDS:
                if len(self._values) >= MAX_VALUES:
                    self._values.clear()
                self._values[key] = (value, ended + min(LIFETIME_FACTOR * (ended - began), MAX_LIFETIME_SECONDS))
            return value

    def invalidate(self, key: Hashable) -> None:
        """Reckon it anew next time: somebody has changed what it is of."""
        self._values.pop(key, None)
