"""Three hundred rounds of disturbances of a crawl, compared with an undisturbed crawl."""

import asyncio
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psutil
import pytest

from crawler.store import domains
from tests.engine.crawls import DAY, START, crawl
from tests.engine.disturbed import Disturbed, disturbed_crawl
from tests.engine.test_kill import expire

ROUNDS = 300
TERM_S = 2  # of a lease, in seconds


@dataclass(slots=True)
class Rounds:
    """What happens to a crawl, one round after the other."""

    of: Disturbed
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)

    def start(self, at: datetime) -> subprocess.Popen[bytes]:
        return self.of.start(at, RECRAWL_LEASE_TERM=str(TERM_S))

    async def kill_crawler(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        process.kill()

    async def kill_readers(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()

    async def kill_postgres(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        await self.of.kill_postgres()

    async def cut_connections(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        await self.of.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    async def stop_longer_than_the_lease(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(TERM_S)
        await self.start_a_second(process, at + timedelta(seconds=TERM_S))
        process.send_signal(signal.SIGCONT)

    async def start_a_second(self, process: subprocess.Popen[bytes], at: datetime) -> None:
        await self.of.ended(self.start(at))

    async def round(self, number: int) -> None:
        happens: list[Callable[[subprocess.Popen[bytes], datetime], Awaitable[None]]] = [
            *[self.kill_crawler] * 10,
            *[self.kill_readers] * 2,
            self.kill_postgres,
            self.cut_connections,
            self.stop_longer_than_the_lease,
            self.start_a_second,
        ]
        at, what = START + timedelta(minutes=number), self.chance.choice(happens)
        process = self.start(at)
        if await self.of.under_way(process, self.chance.randint(1, 60)):
            await what(process, at)
            self.done[what.__name__] += 1
        await self.of.ended(process)


@pytest.mark.soak
async def test_whatever_happens_three_hundred_times_the_copy_is_that_of_a_twin_that_nothing_happened_to(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with disturbed_crawl(tmp_path_factory.mktemp("disturbed")) as disturbed:
        rounds = Rounds(disturbed, random.Random(300))
        domain = await disturbed.registered()
        number = 0
        while rounds.done.total() < ROUNDS:
            await rounds.round(number)
            number += 1
            assert await disturbed.coins_missing() == 0, (number, rounds.done)
            async with disturbed.database() as db:
                await expire(db)
                await domains.request_refresh(db, domain, prefix=domain.root, at=START + timedelta(minutes=number))
        async with disturbed.database() as db:
            await crawl(db, at=START + DAY)
        await disturbed.check(domain)
    print(rounds.done)  # noqa: T201  with -s, shows how often each disturbance happened
    assert set(rounds.done) == {
        "kill_crawler",
        "kill_readers",
        "kill_postgres",
        "cut_connections",
        "stop_longer_than_the_lease",
        "start_a_second",
    }
