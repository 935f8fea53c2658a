"""A cache of figures that take long to compute and hardly change within minutes."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MIN_COMPUTE_SECONDS = 1.0  # values that are computed faster are not cached
LIFETIME_FACTOR = 20.0  # a value lives for this many times its computing time, up to MAX_LIFETIME_SECONDS
MAX_LIFETIME_SECONDS = 600.0


class TimedCache(Generic[T]):
    """Cached values by key. Concurrent callers of one key wait for each other, and share a value that is cached."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[T, float]] = {}  # each with its expiry time
        self._locks: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[T]]) -> T:
        """Return the cached value, or compute it."""
        async with self._locks[key]:
            cached = self._values.get(key)
            began = self._clock()
            if cached is not None and began < cached[1]:
                return cached[0]
            value = await compute()
            ended = self._clock()
            if ended - began > MIN_COMPUTE_SECONDS:
                if len(self._values) >= 200:
                    self._values.clear()
                self._values[key] = (value, ended + min(LIFETIME_FACTOR * (ended - began), MAX_LIFETIME_SECONDS))
            return value

    def invalidate(self, is_outdated: Callable[[Any], bool]) -> None:
        """Drop the cached values of some keys, because they are no longer right."""
        self._values = {key: value for key, value in self._values.items() if not is_outdated(key)}
