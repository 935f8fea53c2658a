"""What takes long is reckoned once for all who want it at once, and anew when its time is over or it was changed."""

import asyncio

from crawler.server.timed_cache import LIFETIME_FACTOR, MAX_LIFETIME_SECONDS, MIN_COMPUTE_SECONDS, TimedCache


class Work:
    """Gives numbers, each of which takes its time."""

    def __init__(self, *, seconds: float) -> None:
        self.now, self.seconds, self.done = 0.0, seconds, 0

    async def __call__(self) -> int:
        await asyncio.sleep(0)
        self.now += self.seconds
        self.done += 1
        return self.done


async def test_what_takes_long_is_kept_in_proportion() -> None:
    work = Work(seconds=5.0)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await kept.get("a", work) == 1
    work.now += 5.0 * LIFETIME_FACTOR - 1
    assert await kept.get("a", work) == 1
    assert await kept.get("b", work) == 2
    work.now += 2
    assert await kept.get("a", work) == 3


async def test_what_takes_no_time_is_always_new() -> None:
    work = Work(seconds=MIN_COMPUTE_SECONDS)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert [await kept.get("a", work) for _ in range(3)] == [1, 2, 3]


async def test_nothing_is_kept_for_ever_and_what_was_changed_not_at_all() -> None:
    work = Work(seconds=1e6)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await kept.get("a", work) == 1
    kept.invalidate("a")
    kept.invalidate("never there")
    assert await kept.get("a", work) == 2
    work.now += MAX_LIFETIME_SECONDS
    assert await kept.get("a", work) == 3


async def test_who_wants_the_same_at_once_waits_for_one_reckoning() -> None:
    work = Work(seconds=2.0)
    kept: TimedCache[int] = TimedCache(clock=lambda: work.now)
    assert await asyncio.gather(*(kept.get("a", work) for _ in range(5))) == [1] * 5
