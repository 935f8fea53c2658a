"""Postgres is down for up to nine minutes, read-only, or out of disk space: the crawl waits and continues."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from crawler.runtime.postgres.cluster import find_running_postgres
from crawler.store.database import open_database
from tests.engine.crawls import START
from tests.engine.disturbed import Disturbed, disturbed_crawl

ROOM = "400m"  # size of the file system that is filled
BEGUN = 40  # requests before the outage, of a hundred and forty-five
REST_S = 120.0  # for the rest of the crawl after the outage

Outage = Callable[[Disturbed], Awaitable[None]]


def away(seconds: float) -> Outage:
    """Return an outage in which Postgres is stopped and started again later."""

    async def happens(disturbed: Disturbed) -> None:
        await asyncio.to_thread(disturbed.cluster.stop)
        await asyncio.sleep(seconds)
        await disturbed.back()

    return happens


def read_only(seconds: float) -> Outage:
    """Return an outage in which Postgres is read-only, as before a failover."""

    async def happens(disturbed: Disturbed) -> None:
        for value in ("on", "off"):
            server = disturbed.cluster.build_url("postgres")
            async with open_database(server, max_connections=1) as admin, admin.pool.connection() as connection:
                await connection.set_autocommit(True)
                await connection.execute(f"ALTER DATABASE crawl SET default_transaction_read_only = {value}".encode())
                await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='crawl'")
            await asyncio.sleep(seconds if value == "on" else 0)

    return happens


def full(seconds: float) -> Outage:
    """Return an outage without disk space; later there is space again, and Postgres is started if it has ended."""

    async def happens(disturbed: Disturbed) -> None:
        filler = disturbed.home / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass
        await asyncio.sleep(seconds)
        filler.unlink()
        if find_running_postgres(disturbed.home) is None:
            await disturbed.back()

    return happens


async def outlives(home: Path, outage: Outage) -> str:
    """Crawl in the home during an outage of its Postgres, check that nothing is missing, and return the log."""
    async with disturbed_crawl(home) as disturbed:
        domain = await disturbed.registered()
        process = disturbed.start(START)
        assert await disturbed.under_way(process, BEGUN)
        await outage(disturbed)
        assert process.poll() is None
        await disturbed.ended(process, within_s=REST_S)
        said = disturbed.said()
        assert process.returncode == 0, said
        assert "Traceback" not in said
        assert await disturbed.coins_missing() == 0
        await disturbed.check(domain)
    return said


@pytest.mark.soak
@pytest.mark.parametrize(
    "outage",
    [
        pytest.param(away(5), id="away 5 s"),
        pytest.param(away(60), id="away 60 s"),
        pytest.param(away(540), id="away 9 minutes"),
        pytest.param(read_only(30), id="read-only 30 s"),
    ],
)
async def test_a_crawl_outlives_its_postgres_being_out_of_order(
    outage: Outage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert "store.silent" in await outlives(tmp_path_factory.mktemp("outage"), outage)


@pytest.fixture
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount a small file system."""
    home = tmp_path_factory.mktemp("small")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(home)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nobody but root can make a file system to fill, and not on every machine")
    yield home
    subprocess.run(["umount", "--lazy", str(home)], check=True)


@pytest.mark.soak
async def test_a_crawl_outlives_a_full_disk(small_home: Path) -> None:
    await outlives(small_home, full(30))  # its log was on that disk, too
