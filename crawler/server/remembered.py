"""Figures that take long to reckon, kept for a while: a minute later they are much the same in a large domain."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

WORTH_KEEPING = 1.0  # seconds: what takes less is reckoned each time
KEPT_FOR = 20.0  # times as long as it took, so that a reader who reloads costs the database a twentieth of its time
LONGEST = 600.0  # seconds
MOST = 200  # values


class Remembered(Generic[T]):
    """Values by key. Two who want the same one at once wait for one reckoning."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[Hashable, tuple[T, float]] = {}  # until when each is kept
        self._turns: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, key: Hashable, find: Callable[[], Awaitable[T]]) -> T:
        """The value that is kept, or else what `find` gives."""
        async with self._turns[key]:
            kept = self._kept.get(key)
            began = self._clock()
            if kept is not None and began < kept[1]:
                return kept[0]
            value = await find()
            ended = self._clock()
            if ended - began > WORTH_KEEPING:
                if len(self._kept) >= MOST:
                    self._kept.clear()
                self._kept[key] = (value, ended + min(KEPT_FOR * (ended - began), LONGEST))
            return value

    def forget(self, key: Hashable) -> None:
        """Reckon it anew next time: somebody has changed what it is of."""
        self._kept.pop(key, None)
