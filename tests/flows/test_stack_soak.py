"""Forty rounds of kill -9 of parts of a running stack during a crawl: `recrawl up` repairs it."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.runtime.background_processes import ensure_tag, list_tagged
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.postgres.cluster import find_running_postgres
from crawler.runtime.stack import Stack
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database, open_database
from labs.demo.server import living_process
from tests.engine.crawls import coins_missing, rows
from tests.flows.stage import ENDED, run_state, start_run
from tests.patience import until

ROUNDS = 40
START = datetime.now(UTC).replace(microsecond=0)
T = TypeVar("T")


@pytest.fixture
def settings() -> Iterator[Settings]:
    home = Path(tempfile.mkdtemp(prefix="recrawl-soak-"))
    home.chmod(0o755)
    settings = Settings(home=home, database_url=None, PREFECT_API_URL=None)
    yield settings
    stop_stack(settings, report=print)
    shutil.rmtree(home)


def in_database(stack: Stack, work: Callable[[Database], Awaitable[T]]) -> T:
    async def with_database() -> T:
        async with open_database(stack.database_url) as db:
            return await work(db)

    return asyncio.run(with_database())


def is_held(stack: Stack, domain: Domain) -> bool:
    return in_database(stack, lambda db: domains.read_status(db, domain, at=datetime.now(UTC))).holder is not None


def victims(stack: Stack) -> dict[str, list[int]]:
    """Return the process ids that a round may kill, by part."""
    postgres = find_running_postgres(stack.home)
    assert postgres is not None
    assert stack.server is not None
    assert stack.worker is not None
    runs = [each.pid for each in psutil.Process(stack.worker.pid).children(recursive=True)]
    return {
        "postgres": [postgres.pid],
        "server": [stack.server.pid],
        "worker": [stack.worker.pid],
        "runs": runs,
        "a reader": runs[-1:],
        "postgres and worker": [postgres.pid, stack.worker.pid],
        "all": [each.pid for each in list_tagged(ensure_tag(stack.home))],
    }


def kill_in_a_crawl(stack: Stack, domain: Domain, settings: Settings, chance: random.Random) -> tuple[str, Stack]:
    """Kill a part during a crawl and restart the stack; return the part and the stack."""
    in_database(stack, lambda db: domains.request_refresh(db, domain, prefix=domain.root, at=datetime.now(UTC)))
    run = start_run(stack.api, "recrawl/recrawl", domain=domain.authority)
    until(lambda: is_held(stack, domain) or run_state(stack.api, run) in ENDED)
    what, pids = chance.choice(sorted(victims(stack).items()))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it may have ended with another process
            os.kill(pid, signal.SIGKILL)
    after = start_stack(settings, report=print)
    until(lambda: run_state(after.api, run) in ENDED)
    return what, after


@pytest.mark.soak
def test_a_stack_killed_forty_times_loses_nothing_and_notifies_once(settings: Settings) -> None:
    stack, chance, done = start_stack(settings, report=print), random.Random(5), Counter[str]()
    wanted = DomainSettings(allow_private=True, delay=timedelta(0), parallelism=4, exclude=("/-/",))
    with living_process(7, pages=90, start=START, days=3) as site:
        authority = Authority(site.url.removeprefix("http://"))
        domain = in_database(
            stack, lambda db: domains.register(db, authority, scheme="http", domain_settings=wanted, at=START)
        )
        site.slow(0.15)
        for _ in range(ROUNDS):
            what, stack = kill_in_a_crawl(stack, domain, settings, chance)
            done[what] += 1
            assert in_database(stack, coins_missing) == 0, done
        site.slow(0)
        last = start_run(stack.api, "recrawl/recrawl", domain=domain.authority)
        until(lambda: run_state(stack.api, last) in ENDED)
        assert run_state(stack.api, last) == "Completed"
    print(done)  # noqa: T201  shown with -s

    def found(query: str) -> list[tuple[object, ...]]:
        return in_database(stack, lambda db: rows(db, query))

    assert found("SELECT key, at FROM visit GROUP BY 1, 2 HAVING count(*) > 1") == []
    assert found("SELECT key FROM visit WHERE change = 'added' GROUP BY 1 HAVING count(*) > 1") == []
    assert found("SELECT max(number) = count(*) FROM event") == [(True,)]
    assert found("SELECT count(*) FROM frontier WHERE state = 'queued'") == [(0,)]
    assert set(done) == set(victims(stack))
