"""Slow values are computed once for concurrent callers, and again after they expire or are invalidated."""

import asyncio

from crawler.server.timed_cache import LIFETIME_FACTOR, MAX_LIFETIME_SECONDS, MIN_COMPUTE_SECONDS, TimedCache


class Work:
    """A computation that returns 1, 2, 3, ... and takes a fixed time."""

    def __init__(self, *, seconds: float) -> None:
        self.now, self.seconds, self.done = 0.0, seconds, 0

    async def __call__(self) -> int:
        await asyncio.sleep(0)
        self.now += self.seconds
        self.done += 1
        return self.done


async def test_lifetime_is_proportional_to_computing_time() -> None:
    work = Work(seconds=5.0)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await kept.get("a", work) == 1
    work.now += 5.0 * LIFETIME_FACTOR - 1
    assert await kept.get("a", work) == 1
    assert await kept.get("b", work) == 2
    work.now += 2
    assert await kept.get("a", work) == 3


async def test_fast_values_are_not_cached() -> None:
    work = Work(seconds=MIN_COMPUTE_SECONDS)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert [await kept.get("a", work) for _ in range(3)] == [1, 2, 3]


async def test_values_expire_and_can_be_invalidated() -> None:
    work = Work(seconds=1e6)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await kept.get("a", work) == 1
    kept.invalidate("never there".__eq__)
    assert await kept.get("a", work) == 1
    kept.invalidate("a".__eq__)
    assert await kept.get("a", work) == 2
    work.now += MAX_LIFETIME_SECONDS
    assert await kept.get("a", work) == 3


async def test_concurrent_callers_share_one_computation() -> None:
    work = Work(seconds=2.0)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await asyncio.gather(*(kept.get("a", work) for _ in range(5))) == [1] * 5
