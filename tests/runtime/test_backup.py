"""Dump and restore on an empty machine, where crawling continues without repeated requests."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.runtime.postgres.cluster import find_running_postgres
from crawler.store import report
from crawler.store.database import Database, SchemaState, open_database, read_schema_state
from tests.commands import Done, Site, run_here, serving
from tests.engine.crawls import START, coins_missing, crawl, register, rows

PAGES = 30


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as found:
        names = ["".join(chr(97 + int(digit)) for digit in f"{n:02}") for n in range(PAGES)]
        found.page("/", *(f"/{name}" for name in names), text="the way to all of it")
        for n, name in enumerate(names):
            found.page(f"/{name}", text=" ".join(f"{other}{name}" for other in names[n:] + names[:n]))
        yield found


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a world-readable folder, and stop its Postgres afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="recrawl-restored-"))
    folder.chmod(0o755)
    yield folder
    cluster = find_running_postgres(folder)
    if cluster is not None:
        cluster.stop()
    shutil.rmtree(folder)


def half_crawled(database_url: str, site: Site) -> None:
    """Register a site, fetch ten of its pages, and append the changes to the feed."""

    async def work() -> None:
        async with open_database(database_url) as db:
            await register(db, site.url)
            await crawl(db, at=START, pages=11)
            await report.append_to_feed(db, at=START)

    asyncio.run(work())


async def everything(db: Database) -> list[object]:
    """Return the state that a restore must reproduce, including cash and due times."""
    return [
        await rows(db, f"SELECT * FROM {table} ORDER BY {order}")
        for table, order in (
            *(("page", "key"), ("frontier", "key"), ("cash", "key"), ("pool", "pool"), ("event", "number")),
            *(("feed", "position"), ("every_visit", "key, at"), ("snapshot", "key, number"), ("prior", "no")),
        )
    ]


def test_crawl_continues_from_a_dump_without_repeated_requests(
    site: Site, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    half_crawled(database_url, site)
    file = tmp_path / "crawl.dump"
    asked = Counter(site.asked)
    assert 11 <= asked.total() < PAGES

    def run(url: str, *words: str) -> Done:
        return run_here(*words, database_url=url, home=tmp_path)

    async def continue_crawl() -> None:
        async with open_database(database_url) as before, open_database(empty_database_url) as after:
            assert await everything(after) == await everything(before)
            assert await coins_missing(after) == 0
            await crawl(after, at=START + timedelta(minutes=1))  # pages that are not due are not requested
            assert await report.check_invariants(after) == []
            assert await report.append_to_feed(after, at=START) == 0
            found = await rows(after, "SELECT position FROM feed ORDER BY position")
            assert [position for (position,) in found] == list(range(1, len(found) + 1))

    assert run(database_url, "db", "dump", f"{file}").code == 0
    assert file.stat().st_mode & 0o077 == 0
    assert run(empty_database_url, "db", "restore", f"{file}").code == 0
    asyncio.run(continue_crawl())
    asked = Counter(site.asked)
    assert set(asked.values()) == {1}, "each page once, and robots.txt, over both"
    assert len(asked) == PAGES + 2
    again = run(empty_database_url, "db", "restore", f"{file}")
    assert again.code == 2
    assert "not empty" in again.complaint
    assert "is not a file" in run(empty_database_url, "db", "restore", f"{tmp_path / 'none'}").complaint
    assert "cannot be written" in run(database_url, "db", "dump", f"{tmp_path / 'none' / 'file'}").complaint


@pytest.mark.soak
def test_restore_needs_a_home_without_domains(site: Site, database_url: str, tmp_path: Path, home: Path) -> None:
    half_crawled(database_url, site)
    file = tmp_path / "crawl.dump"
    dumped = run_here("db", "dump", f"{file}", "--json", database_url=database_url, home=tmp_path)
    assert dumped.json["bytes"] > 1000, dumped.err

    done = run_here("db", "restore", f"{file}", "--json", database_url=None, home=home)

    assert done.code == 0, done.err
    assert done.json["domains"] == 1
    told = run_here("pages", site.name, "--json", database_url=None, home=home)
    assert told.code == 0, told.err
    assert "/aa" in told.out
    again = run_here("db", "restore", f"{file}", database_url=None, home=home)
    assert again.code == 2
    assert "registered domains: 1" in again.complaint


def test_invalid_or_truncated_dump_leaves_the_database_empty(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no dump at all")
    assert run_here("db", "dump", f"{tmp_path / 'whole'}", database_url=database_url, home=tmp_path).code == 0
    (tmp_path / "part").write_bytes((tmp_path / "whole").read_bytes()[:-3000])

    for name in ("text", "part"):
        done = run_here("db", "restore", f"{tmp_path / name}", database_url=empty_database_url, home=tmp_path)

        assert done.code == 1
        assert "cannot be restored" in done.complaint
        assert read_schema_state(empty_database_url) is SchemaState.EMPTY


@pytest.mark.soak
def test_dump_does_not_create_a_missing_database(empty_database_url: str, tmp_path: Path) -> None:
    for words in (("db", "dump", f"{tmp_path / 'crawl.dump'}"), ("db", "check")):
        done = run_here(*words, database_url=None, home=tmp_path / "home")
        assert done.code == 2
        assert "RECRAWL_DATABASE_URL" in done.complaint
        assert not (tmp_path / "home" / "postgres").exists()

        done = run_here(*words, database_url=empty_database_url, home=tmp_path / "home")
        assert done.code == 2
        assert "RECRAWL_DATABASE_URL" in done.complaint
        assert read_schema_state(empty_database_url) is SchemaState.EMPTY
    assert not (tmp_path / "crawl.dump").exists()
