"""Leases in worker processes: crawled as in this process, surviving lost processes, and shared when it is busy."""

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from uuid import UUID

import psutil
import pytest

from crawler.clock import Clock
from crawler.core.domain import Domain, Lease
from crawler.engine import machine_load
from crawler.engine.processes.worker_handle import Worker, WorkerLost, WorkerOptions
from crawler.engine.requests.session import read_environment_secret
from crawler.engine.resources import open_resources
from crawler.engine.shift import ShiftHooks, run_shift
from crawler.engine.stats import CrawlStats, ShiftResult
from crawler.errors import LeaseLost
from crawler.store import claim, domains
from crawler.store.database import Database
from tests.engine.crawls import QUICK, START, coins_missing, crawl, register, rows, versions
from tests.engine.disturbed import page
from tests.patience import PATIENCE_S
from tests.ports import next_port

PAGES = 145  # of a site, including its root
SETTINGS = QUICK.model_copy(update={"max_batch_size": 10})


class Site:
    """A site whose server makes requests wait while its gate is shut."""

    def __init__(self) -> None:
        self.gate, self.asked, self.waiting = asyncio.Event(), Counter[str](), asyncio.Event()
        self.free = PAGES  # pages that get a response at once, even if the gate is shut
        self.url = ""
        self.gate.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                target = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                self.asked[target] += 1
                if sum(self.asked.values()) > self.free:
                    self.waiting.set()
                    await self.gate.wait()
                writer.write(page(target))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:  # a handler that waits is canceled when the loop ends
            writer.close()

    @property
    def pages_asked(self) -> Counter[str]:
        """Return how often each of its pages was requested."""
        return Counter({path: times for path, times in self.asked.items() if path == "/" or path[1:].isdigit()})


@asynccontextmanager
async def site_up(host: str = "127.0.0.1") -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, host, next_port())
    site.url = f"http://{host}:{server.sockets[0].getsockname()[1]}/"
    try:
        yield site
    finally:
        server.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with site_up() as up:
        yield up


@asynccontextmanager
async def worker_for(db: Database) -> AsyncIterator[Worker]:
    equipment = WorkerOptions(
        settings=SETTINGS.model_copy(update={"parser_processes": 1}),
        database_url=db.url,
        clock=Clock.from_instant(START),
        find_secret=read_environment_secret,
        log_level=logging.INFO,
    )
    helper = await Worker.start(equipment)
    try:
        yield helper
    finally:
        await helper.end()


async def claimed(db: Database, domain: Domain) -> Lease:
    lease = await claim.claim(db, at=START, holder="test", term=SETTINGS.lease_term, only=[domain])
    assert lease is not None
    return lease


async def is_free(db: Database, domain: Domain) -> bool:
    return (await domains.read_status(db, domain, at=START)).holder is None


@pytest.mark.soak
async def test_a_helper_crawls_a_lease_as_this_process_would(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    told: list[int] = []
    async with worker_for(db) as helper:
        done = await helper.crawl(
            await claimed(db, domain), stop=asyncio.Event(), progress=lambda stats: told.append(stats.visits)
        )
        assert helper.lease_count == 0

    assert done.stats.visits == PAGES
    assert done.suspension is None
    assert len(await versions(db, domain)) == PAGES
    assert set(site.pages_asked.values()) == {1}
    assert told == sorted(told)
    assert told[-1] == PAGES
    assert len(told) > 5  # one per record
    assert await is_free(db, domain)
    assert await coins_missing(db) == 0


async def test_a_helper_that_is_killed_loses_what_it_had_not_recorded_and_no_more(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    site.free = 60
    site.gate.clear()
    stats: list[CrawlStats] = []
    async with worker_for(db) as helper, asyncio.TaskGroup() as tasks:
        lease = await claimed(db, domain)
        crawling = tasks.create_task(
            caught(helper.crawl(lease, stop=asyncio.Event(), progress=stats.append)), name="crawling"
        )
        async with asyncio.timeout(PATIENCE_S):
            await site.waiting.wait()
        os.kill(helper.pid, signal.SIGKILL)
        error = await crawling
        assert helper.is_lost
        with pytest.raises(WorkerLost):
            await helper.crawl(lease, stop=asyncio.Event(), progress=stats.append)

    assert isinstance(error, WorkerLost)
    assert error.stats.visits == (stats[-1].visits if stats else 0)
    assert len(await versions(db, domain)) == error.stats.visits
    site.gate.set()
    await domains.expire_leases(db, holder_prefix="test")

    await crawl(db, at=START + timedelta(minutes=1), settings=SETTINGS)

    assert len(await versions(db, domain)) == PAGES
    assert await coins_missing(db) == 0


async def caught(crawling: object) -> Exception | None:
    try:
        await crawling  # type: ignore[misc]
    except Exception as error:  # noqa: BLE001  for the test to examine
        return error
    return None


async def test_a_lease_ends_early_in_a_helper_as_here_and_what_was_read_is_recorded(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    site.free = 60
    site.gate.clear()
    stop = asyncio.Event()
    async with worker_for(db) as helper, asyncio.TaskGroup() as tasks:
        lease = await claimed(db, domain)
        crawling = tasks.create_task(helper.crawl(lease, stop=stop, progress=lambda _: None))
        async with asyncio.timeout(PATIENCE_S):
            await site.waiting.wait()
        stop.set()
        site.gate.set()
        done = await crawling

    assert 0 < done.stats.visits < PAGES
    assert len(await versions(db, domain)) == done.stats.visits == site.pages_asked.total()
    assert await is_free(db, domain)


async def test_who_gives_a_lease_up_has_the_helper_give_it_back(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    site.free = 20
    site.gate.clear()
    async with worker_for(db) as helper:
        lease = await claimed(db, domain)
        crawling = asyncio.create_task(helper.crawl(lease, stop=asyncio.Event(), progress=lambda _: None))
        async with asyncio.timeout(PATIENCE_S):
            await site.waiting.wait()
            crawling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await crawling
            while not await is_free(db, domain):
                await asyncio.sleep(0.01)
        assert not helper.is_lost


async def test_a_helper_ends_when_nobody_is_there_to_be_helped(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    site.free = 20
    site.gate.clear()
    async with worker_for(db) as helper:
        crawling = asyncio.create_task(
            caught(helper.crawl(await claimed(db, domain), stop=asyncio.Event(), progress=lambda _: None))
        )
        async with asyncio.timeout(PATIENCE_S):
            await site.waiting.wait()
        process = psutil.Process(helper.pid)
        helper._outgoing.transport.abort()  # as the end of this process would
        site.gate.set()
        async with asyncio.timeout(PATIENCE_S):
            with suppress(psutil.NoSuchProcess):  # it may be gone between two questions
                while process.status() != psutil.STATUS_ZOMBIE:
                    await asyncio.sleep(0.01)
        assert isinstance(await crawling, WorkerLost)

    assert await is_free(db, domain)
    assert len(await versions(db, domain)) == site.pages_asked.total()


async def test_what_ends_a_lease_in_a_helper_is_raised_here(db: Database, site: Site) -> None:
    domain = await register(db, site.url)
    async with worker_for(db) as helper:
        lease = await claimed(db, domain)
        await domains.expire_leases(db, holder_prefix="test")
        other = await claim.claim(db, at=START, holder="other", term=SETTINGS.lease_term, only=[domain])
        assert other is not None
        with pytest.raises(LeaseLost):
            await helper.crawl(lease, stop=asyncio.Event(), progress=lambda _: None)


class LogCollector(logging.Handler):
    """A handler that keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


async def test_what_a_helper_logs_is_heard_here(db: Database) -> None:
    domain = await register(db, "http://127.0.0.1:9/", headers=("X-Key: env:NO_SUCH_KEY",))
    heard, log = LogCollector(), logging.getLogger("recrawl.session")
    log.addHandler(heard)
    try:
        async with worker_for(db) as helper:
            await helper.crawl(await claimed(db, domain), stop=asyncio.Event(), progress=lambda _: None)
    finally:
        log.removeHandler(heard)

    told = [record for record in heard.records if record.getMessage() == "secret.unusable"]
    assert [record.process for record in told] == [helper.pid]


class Shared(logging.Handler):
    """A handler that opens the gates of sites as soon as their leases are shared. helpers: worker process ids."""

    def __init__(self, *sites: Site) -> None:
        super().__init__()
        self.sites, self.helpers = sites, list[int]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "work.shared":
            self.helpers += record.__dict__["workers"]
            for site in self.sites:
                site.gate.set()


@asynccontextmanager
async def shared_sites(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, sites: int
) -> AsyncIterator[tuple[list[Site], Shared]]:
    """Serve sites of which a part can be fetched before their leases are shared by two processes, the rest after."""
    monkeypatch.setattr(machine_load, "BUSY_SHARE", 0.0)
    monkeypatch.setattr(machine_load, "LOAD_INTERVAL", 0.01)
    log = logging.getLogger("recrawl.workers")
    async with AsyncExitStack() as stack:
        up = [await stack.enter_async_context(site_up()) for _ in range(sites)]
        for each in up:
            await register(db, each.url)
            each.free = 40
            each.gate.clear()
        shared = Shared(*up)
        log.addHandler(shared)
        log.setLevel(logging.INFO)
        try:
            yield up, shared
        finally:
            log.removeHandler(shared)
            log.setLevel(logging.NOTSET)


async def shared_shift(db: Database, hooks: ShiftHooks) -> ShiftResult:
    settings = SETTINGS.model_copy(update={"crawl_processes": 2, "max_batch_age": timedelta(seconds=0.1)})
    async with open_resources(settings) as webs, asyncio.timeout(PATIENCE_S):
        return await run_shift(db, webs, settings=settings, clock=Clock.from_instant(START), holder="test", hooks=hooks)


async def test_a_busy_process_has_others_help_and_no_page_is_asked_for_twice(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Counter[str] = Counter()

    def progress(lease: Lease, stats: CrawlStats) -> None:
        told[f"{lease.token}"] = stats.visits

    async with shared_sites(db, monkeypatch, sites=2) as (sites, shared):
        shift = await shared_shift(db, ShiftHooks(progress))

    assert len(shared.helpers) == 1
    assert not psutil.pid_exists(shared.helpers[0])
    assert shift.stats.visits == told.total() == 2 * PAGES
    assert shift.stats.leases == 3  # one ended here and continued there
    for each in sites:
        assert set(each.pages_asked.values()) == {1}
        assert len(each.pages_asked) == PAGES
    assert await coins_missing(db) == 0


async def test_a_shift_goes_on_without_a_helper_that_is_killed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: dict[str, UUID] = {}

    async with shared_sites(db, monkeypatch, sites=2) as (sites, shared):

        def kill(lease: Lease, _stats: CrawlStats) -> None:
            if tokens.setdefault(lease.domain.authority, lease.token) != lease.token and shared.helpers:  # it was moved
                os.kill(shared.helpers.pop(), signal.SIGKILL)

        shift = await shared_shift(db, ShiftHooks(kill))
        assert not shared.helpers

    assert not shift.lost
    assert not shift.broken
    for each in sites:
        assert len(each.pages_asked) == PAGES
    assert (await rows(db, "SELECT count(*) FROM page WHERE version > 0"))[0][0] == 2 * PAGES
    assert await coins_missing(db) == 0


@pytest.mark.soak
async def test_one_process_alone_where_its_user_says_so(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load, "BUSY_SHARE", 0.0)
    monkeypatch.setattr(machine_load, "LOAD_INTERVAL", 0.01)
    async with site_up() as one, site_up() as two:
        for each in (one, two):
            await register(db, each.url)

        shift = await crawl(db, at=START, settings=SETTINGS.model_copy(update={"crawl_processes": 1}))

    assert shift.stats.leases == 2
