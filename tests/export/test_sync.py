"""Synchronization of an SQLite index with a crawled site, also with kills between commits."""

import asyncio
import random
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.core.domain import Domain
from crawler.errors import CrawlerError
from crawler.export.page_index import SyncResult, open_in_thread, sync
from crawler.export.sqlite_index import SqliteIndex, is_searchable, search
from crawler.prune import prune_domain
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ExportedPage
from tests.engine.crawls import DAY, START, answered, answering, crawl, recrawl, register

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll", "ledge")


class Shop:
    """A site of twenty pages whose words change daily; some pages are removed."""

    def __init__(self) -> None:
        self.day, self.gone, self.closed = 0, set[int](), set[int]()

    def text(self, number: int) -> str:
        own = random.Random(number)
        words = ["".join(own.choices("abdeghiklmnoprstu", k=7)) for _ in range(60)]
        now = random.Random(f"{number} {self.day if number % 3 == 0 else 0}").choices(WORDS, k=6)
        return " ".join([*words, *now])

    def respond(self, target: str) -> bytes:
        if target == "/robots.txt":
            closed = "".join(f"Disallow: /p{number}$\n" for number in self.closed)
            return answered(200, f"User-agent: *\n{closed}".encode())
        number = int(target[2:]) if target.startswith("/p") and target[2:].isdigit() else 0 if target == "/" else -1
        if not 0 <= number < 20 or number in self.gone:
            return answered(404, b"nothing here")
        links = "".join(f"<a href=/p{n}>{WORDS[n % 12]}</a> " for n in range(1, 20)) if number == 0 else ""
        name = WORDS[number % 12]
        return answered(200, f"<title>{name}</title><h1>{name}</h1><p>{self.text(number)}</p>{links}".encode())


def rows(file: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as db:
        return db.execute(query, values).fetchall()


def texts(file: Path) -> dict[str, str]:
    """Return the joined chunks of each page."""
    found = rows(
        file, "SELECT p.url, group_concat(c.text, ' ') FROM page p JOIN chunk c ON c.page = p.id GROUP BY p.url"
    )
    return {str(url): str(text) for url, text in found}


def is_whole(file: Path) -> bool:
    """Run the integrity check of FTS5, which raises if the full-text index differs from the chunks."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("INSERT INTO chunk_text (chunk_text, rank) VALUES ('integrity-check', 1)")
    return True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pages.sqlite"


async def next_day(db: Database, domain: Domain, shop: Shop) -> None:
    shop.day += 1
    await recrawl(db, domain, at=START + shop.day * DAY)
    await report.append_to_feed(db, at=START + shop.day * DAY)


@pytest.mark.soak
async def test_index_equals_the_site_after_each_sync(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            first = await sync(db, domain, index)
            again = await sync(db, domain, index)
            await next_day(db, domain, shop)
            changed = await sync(db, domain, index)
            whole = await sync(db, domain, index, full=True)
            shop.gone = {4, 5}
            for _ in range(4):  # until they are gone
                await next_day(db, domain, shop)
            last = await sync(db, domain, index)

    assert (first.put, first.removed, first.is_anew) == (20, 0, True)
    assert (again.put, again.removed, again.is_anew) == (0, 0, False)
    assert (changed.put, changed.removed) == (7, 0)  # every third page
    assert (whole.put, whole.removed, whole.is_anew) == (20, 0, True)
    assert last.removed == 2
    found = texts(file)
    assert len(found) == 18
    for number in (1, 3, 6, 7):
        assert shop.text(number) in found[f"{domain.root}p{number}"]
    assert is_whole(file)
    word = shop.text(3).split()[-1]
    hits = rows(file, "SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?", f"text:{word}")
    assert hits == [(sum(word in re.findall(r"\w+", text) for text in found.values()),)]


async def test_excluded_page_is_removed_until_it_is_allowed_again(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            await sync(db, domain, index)
            shop.closed = {4, 5}
            shop.day += 1  # robots.txt is fetched once a day
            await next_day(db, domain, shop)
            closed = await sync(db, domain, index)
            without = texts(file)
            shop.closed, shop.gone = {5}, {4}  # and page 4 is gone, although it is allowed again
            shop.day += 1
            await next_day(db, domain, shop)
            away = await sync(db, domain, index)
            shop.closed, shop.gone = set(), set()
            shop.day += 1
            await next_day(db, domain, shop)
            opened = await sync(db, domain, index)

    assert (closed.removed, closed.is_anew) == (2, False)
    assert not {f"{domain.root}p4", f"{domain.root}p5"} & without.keys()
    assert (away.removed, away.is_anew) == (0, False)
    assert not opened.is_anew
    found = texts(file)
    assert len(found) == 20
    assert shop.text(4) in found[f"{domain.root}p4"]
    assert is_whole(file)


class Killed(Exception):
    """A simulated kill of the process."""


class Fragile(SqliteIndex):
    """An index that simulates kills before or after its commits."""

    def __init__(self, file: Path, chance: random.Random) -> None:
        super().__init__(file)
        self.chance = chance

    def apply_pages(self, domain: str, pages: Sequence[ExportedPage], *, cursor: int | None) -> int:
        if self.chance.random() < 0.2:
            raise Killed
        done = super().apply_pages(domain, pages, cursor=cursor)
        if self.chance.random() < 0.2:
            raise Killed
        return done

    def end_full_sync(self, domain: str, *, cursor: int) -> int:
        if self.chance.random() < 0.3:
            raise Killed
        return super().end_full_sync(domain, cursor=cursor)


async def test_sync_after_kills_misses_nothing(db: Database, file: Path) -> None:
    shop, chance, kills = Shop(), random.Random(7), 0
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        for day in range(5):
            while True:
                try:
                    with Fragile(file, chance) as index:
                        await sync(db, domain, index)
                    break
                except Killed:
                    kills += 1
            found = texts(file)
            there = set(range(20)) - shop.gone
            assert {f"{domain.root}{f'p{n}' if n else ''}" for n in there} <= set(found)
            assert all(shop.text(n) in found[f"{domain.root}p{n}"] for n in there - {0})
            assert is_whole(file)
            if day == 2:
                shop.gone = {8}
            await next_day(db, domain, shop)

    assert kills > 3


async def test_cursor_of_another_database_is_not_used(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            await sync(db, domain, index)
            index.apply_pages(domain.authority, (), cursor=10**6)
            assert index.read_cursor(domain.authority, source="another database") is None
            with closing(sqlite3.connect(file)) as other:  # a page that is not in the database
                known = (domain.authority, "http://x.test/", "", "", 1, 1)
                other.execute(
                    "INSERT INTO page (domain, url, title, language, version, pass) VALUES (?, ?, ?, ?, ?, ?)", known
                )
                other.commit()
            done = await sync(db, domain, index)

    assert (done.is_anew, done.put, done.removed) == (True, 20, 1)
    assert len(texts(file)) == 20


async def test_domain_that_was_registered_again_is_synced_in_full(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            await sync(db, domain, index)
            await domains.remove(db, domain)
            shop.gone = {4, 5}
            domain = await register(db, url)
            await crawl(db, at=START + DAY)
            await report.append_to_feed(db, at=START + DAY)
            done = await sync(db, domain, index)

    assert (done.is_anew, done.put, done.removed) == (True, 18, 2)
    assert len(texts(file)) == 18


class Slow(SqliteIndex):
    """An index whose sync pauses between its last commit and its end."""

    def __init__(self, file: Path, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(file)
        self.meanwhile = meanwhile

    @asynccontextmanager
    async def sync_lock(self) -> AsyncIterator[None]:
        async with super().sync_lock():
            yield
            await self.meanwhile()


async def test_sync_waits_for_another_sync_of_the_file(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as other:
            overtaking: list[asyncio.Task[SyncResult]] = []

            async def begin_another() -> None:
                overtaking.append(asyncio.create_task(sync(db, domain, other)))
                for _ in range(50):  # more statements than a sync without changes runs
                    await report.read_feed_end(db)
                assert not overtaking[0].done()

            with Slow(file, begin_another) as one:
                first = await sync(db, domain, one)
            second = await overtaking[0]

    assert (first.is_anew, first.put) == (True, 20)
    assert (second.is_anew, second.put) == (False, 0)


def test_index_of_an_earlier_release_is_upgraded_and_loses_its_cursors(file: Path) -> None:
    with SqliteIndex(file):
        pass
    with closing(sqlite3.connect(file)) as db:
        db.executescript(
            "ALTER TABLE sync DROP COLUMN source; PRAGMA user_version = 1;"
            "INSERT INTO sync (domain, cursor) VALUES ('a.test', 9);"
        )
    with SqliteIndex(file) as index:
        assert index.list_domains() == ["a.test"]
        assert index.read_cursor("a.test", source="this") is None


class Article:
    """A site of one page with many paragraphs and no headings; new ones are added at the top."""

    def __init__(self) -> None:
        own = random.Random(1)
        self.paragraphs = [" ".join(own.choices(WORDS, k=60)) for _ in range(60)]

    def respond(self, target: str) -> bytes:
        said = "".join(f"<p>{paragraph}</p>" for paragraph in self.paragraphs)
        return answered(200, f"<title>News</title>{said}".encode()) if target == "/" else answered(404, b"nothing")


async def test_next_sync_splits_chunks_of_an_earlier_release_again(db: Database, file: Path) -> None:
    async with answering(Article().respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            await sync(db, domain, index)
        wanted = rows(file, "SELECT id, heading, text FROM chunk ORDER BY id")
        with closing(sqlite3.connect(file)) as older:
            older.executescript(
                "UPDATE chunk SET id = 'old ' || id WHERE rowid > 1;"
                "DELETE FROM chunk WHERE rowid = (SELECT max(rowid) FROM chunk); PRAGMA user_version = 2;"
            )
        assert is_searchable(file)
        with SqliteIndex(file) as index:
            done = await sync(db, domain, index)
            again = await sync(db, domain, index)

    assert (done.is_anew, done.put, done.removed) == (True, 1, 0)
    assert (again.is_anew, again.put) == (False, 0)
    assert len(wanted) > 5
    assert rows(file, "SELECT id, heading, text FROM chunk ORDER BY id") == wanted
    assert is_whole(file)


def test_errors_of_sqlite_are_one_line(file: Path) -> None:
    with SqliteIndex(file) as index:
        with closing(sqlite3.connect(file)) as db:
            db.execute("DROP TABLE sync")
        with pytest.raises(CrawlerError, match="cannot be written: no such table"):
            index.apply_pages("a.test", (), cursor=1)


def test_new_file_can_be_opened_by_several_at_once(tmp_path: Path) -> None:
    def open_and_close(file: Path) -> list[str]:
        begin.wait()
        with SqliteIndex(file) as index:
            return index.list_domains()

    for attempt in range(20):
        begin = threading.Barrier(4)
        file = tmp_path / f"{attempt}.sqlite"
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(open_and_close, [file] * 4)) == [[]] * 4


def test_file_of_another_kind_is_not_changed(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("nothing that SQLite would have written, and long enough to tell")
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE mine (a)")
        db.commit()

    for file, why in ((text, "cannot be written"), (other, "is not an index of this version")):
        with pytest.raises(CrawlerError, match=why), SqliteIndex(file):
            pass
    assert rows(other, "SELECT name FROM sqlite_master") == [("mine",)]


@pytest.mark.soak
async def test_index_with_too_old_cursor_is_synced_in_full(db: Database, file: Path) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url, keep_changes=2 * DAY)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with SqliteIndex(file) as index:
            await sync(db, domain, index)
        for day in range(6):
            shop.gone = {7} if day >= 1 else set()
            await next_day(db, domain, shop)
        await prune_domain(db, domain, at=START)
        assert await report.read_forgotten_until(db, domain.id) > 20

        with SqliteIndex(file) as index:
            done = await sync(db, domain, index)
        with SqliteIndex(file.with_name("new.sqlite")) as index:
            await sync(db, domain, index)

    assert done.is_anew
    assert done.removed == 1
    assert texts(file) == texts(file.with_name("new.sqlite"))
    assert is_whole(file)


async def test_slow_search_is_stopped_with_an_error(db: Database, file: Path) -> None:
    async with answering(Shop().respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        async with open_in_thread(SqliteIndex(file)) as (index, thread):
            await sync(db, domain, index, thread=thread)
    with closing(sqlite3.connect(file)) as other:  # many parts with words of that prefix
        other.execute(
            """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
               INSERT INTO chunk (id, page, heading, text) SELECT 'made ' || i, 1, '', 'amber words' FROM n"""
        )
        other.commit()

    assert search(file, "amber")
    with pytest.raises(CrawlerError, match="took longer than 0 s: use more words"):
        search(file, "a*", timeout=timedelta(0))
