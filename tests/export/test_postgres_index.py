"""The Postgres index after syncs and kills, and the embeddings that it keeps."""

import asyncio
import json
import random
import threading
from collections.abc import Iterator, Sequence

import psycopg
import pytest

from crawler.core.domain import Domain
from crawler.errors import CrawlerError
from crawler.export.page_index import sync
from crawler.export.postgres_index import PostgresIndex
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ExportedPage
from tests.databases import empty_database, execute
from tests.engine.crawls import DAY, START, answering, crawl, recrawl, register
from tests.export.test_sync import Article, Killed, Shop, next_day

TO_EMBED = "SELECT id, text FROM recrawl_index.chunk WHERE embedding IS NULL LIMIT 5"
EMBED = "UPDATE recrawl_index.chunk SET embedding = %s::text::elsewhere.vector WHERE id = %s AND text = %s"
VECTOR_TYPE = """
    SELECT n.nspname || '.' || t.typname
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
     WHERE a.attrelid = 'recrawl_index.chunk'::regclass AND a.attname = 'embedding'
"""


@pytest.fixture
def index_url(postgres_url: str) -> Iterator[str]:
    """Create another database for the index."""
    with empty_database(postgres_url) as url:
        yield url


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def texts(url: str) -> dict[str, str]:
    """Return the joined chunks of each page."""
    found = rows(url, "SELECT url, string_agg(text, ' ' ORDER BY place) FROM recrawl_index.chunk GROUP BY url")
    return {str(page): str(text) for page, text in found}


class Fragile(PostgresIndex):
    """An index that simulates kills before or after its commits."""

    def __init__(self, url: str, chance: random.Random) -> None:
        super().__init__(url)
        self.chance = chance

    def apply_pages(self, domain: str, pages: Sequence[ExportedPage], *, cursor: int | None) -> int:
        if self.chance.random() < 0.25:
            raise Killed
        done = super().apply_pages(domain, pages, cursor=cursor)
        if self.chance.random() < 0.25:
            raise Killed
        return done

    def end_full_sync(self, domain: str, *, cursor: int) -> int:
        if self.chance.random() < 0.3:
            raise Killed
        return super().end_full_sync(domain, cursor=cursor)


async def keep_in_step(db: Database, domain: Domain, url: str, chance: random.Random) -> int:
    """Sync until one is not killed, and return the number of kills."""
    kills = 0
    while True:
        try:
            with Fragile(url, chance) as index:
                await sync(db, domain, index)
            return kills
        except Killed:
            kills += 1


@pytest.mark.soak
async def test_embeddings_stay_until_their_text_changes_despite_kills(db: Database, index_url: str) -> None:
    shop, chance, kills = Shop(), random.Random(7), 0
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        kills += await keep_in_step(db, domain, index_url, chance)
        execute(index_url, "UPDATE recrawl_index.chunk SET embedding = ARRAY[1, 2, 3]")
        ids = rows(index_url, "SELECT id FROM recrawl_index.chunk ORDER BY id")
        for day in range(6):
            if day == 2:
                shop.gone = {8, 9}
            await next_day(db, domain, shop)
            kills += await keep_in_step(db, domain, index_url, chance)
            found = texts(index_url)
            there = set(range(20)) - shop.gone
            assert all(shop.text(n) in found[f"{domain.root}p{n}"] for n in there - {0})

    emptied = {str(url) for (url,) in rows(index_url, "SELECT url FROM recrawl_index.chunk WHERE embedding IS NULL")}
    assert emptied == {f"{domain.root}{f'p{n}' if n else ''}" for n in range(0, 20, 3)} - {f"{domain.root}p9"}
    assert set(found) == {f"{domain.root}{f'p{n}' if n else ''}" for n in set(range(20)) - {8, 9}}
    assert set(rows(index_url, "SELECT id FROM recrawl_index.chunk")) <= set(ids)
    assert rows(index_url, "SELECT domain, cursor FROM recrawl_index.sync") == [
        (domain.authority, await report.read_feed_end(db))
    ]
    assert kills >= 3


async def test_pages_missing_in_a_restored_database_are_removed(db: Database, index_url: str) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(index_url) as index:
            await sync(db, domain, index)
            execute(
                index_url,
                "UPDATE recrawl_index.sync SET cursor = 1000000",
                "INSERT INTO recrawl_index.page SELECT 'http://x.test/', domain, '', '', 1, NULL, NULL, NULL, 1"
                " FROM recrawl_index.sync",
            )
            done = await sync(db, domain, index)
            names = index.list_domains()
            removed = index.remove_domain(domain.authority)

    assert (done.is_anew, done.put, done.removed) == (True, 20, 1)
    assert names == [domain.authority]
    assert removed == 20
    assert texts(index_url) == {}


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def embedded(text: str) -> str:
    """Return the letter counts of a text in the vector syntax of pgvector, as a simple embedding."""
    return str([text.lower().count(letter) for letter in LETTERS])


def embed(url: str) -> int:
    """Embed the chunks without an embedding, as in docs/export.md."""
    done = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while found := connection.execute(TO_EMBED).fetchall():
            for chunk, text in found:
                done += connection.execute(EMBED, (embedded(text), chunk, text)).rowcount
    return done


@pytest.fixture
def vector_url(index_url: str) -> str:
    """Create a database with pgvector in a schema outside the search path."""
    try:
        execute(index_url, "CREATE SCHEMA elsewhere", "CREATE EXTENSION vector SCHEMA elsewhere")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("pgvector is not installed in this Postgres")
    return index_url


@pytest.mark.soak
async def test_consumer_can_embed_while_pages_change(db: Database, vector_url: str) -> None:
    shop, chance, ended = Shop(), random.Random(11), threading.Event()

    def consume() -> int:
        done = 0
        while not ended.is_set():
            done += embed(vector_url)
        return done + embed(vector_url)

    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(vector_url):
            pass
        assert rows(vector_url, VECTOR_TYPE) == [("elsewhere.vector",)]
        execute(
            vector_url,
            "ALTER TABLE recrawl_index.chunk ALTER embedding TYPE elsewhere.vector(26)",
            "CREATE INDEX ON recrawl_index.chunk USING hnsw (embedding elsewhere.vector_cosine_ops)",
        )
        consuming = asyncio.create_task(asyncio.to_thread(consume))
        try:
            await keep_in_step(db, domain, vector_url, chance)
            for day in range(6):
                if day == 2:
                    shop.gone = {8, 9}
                await next_day(db, domain, shop)
                await keep_in_step(db, domain, vector_url, chance)
        finally:
            ended.set()
            done = await consuming

    found = rows(vector_url, "SELECT text, embedding::text FROM recrawl_index.chunk")
    assert len(found) == len(texts(vector_url)) == 18
    assert all(json.loads(str(vector)) == json.loads(embedded(str(text))) for text, vector in found)
    assert 18 + 6 * 6 <= done <= 20 + 7 * 7  # all chunks at first, later only those that changed
    nearest = "SELECT url FROM recrawl_index.chunk ORDER BY embedding OPERATOR(elsewhere.<=>) '{}' LIMIT 1"
    text = texts(vector_url)[f"{domain.root}p3"]
    assert rows(vector_url, nearest.format(embedded(text))) == [(f"{domain.root}p3",)]


async def test_real_column_can_be_converted_to_vector_later(db: Database, vector_url: str) -> None:
    shop = Shop()
    execute(vector_url, "DROP EXTENSION vector")
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(vector_url) as index:
            await sync(db, domain, index)
        execute(
            vector_url,
            "UPDATE recrawl_index.chunk SET embedding = ARRAY[1, 2, 3]",
            "CREATE EXTENSION vector",
            "ALTER TABLE recrawl_index.chunk ALTER embedding TYPE vector(3)",
        )
        await next_day(db, domain, shop)
        with PostgresIndex(vector_url) as index:
            done = await sync(db, domain, index)

    assert done.put == 7
    kept = rows(vector_url, "SELECT embedding::text, count(*) FROM recrawl_index.chunk GROUP BY 1 ORDER BY 2")
    assert kept == [(None, 7), ("[1,2,3]", 13)]


async def test_index_of_an_earlier_release_is_upgraded_and_keeps_embeddings(db: Database, index_url: str) -> None:
    shop = Shop()
    async with answering(shop.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(index_url) as index:
            await sync(db, domain, index)
        execute(
            index_url,
            "ALTER TABLE recrawl_index.sync DROP COLUMN source",
            "COMMENT ON SCHEMA recrawl_index IS 'recrawl sync, schema version 1'",
            "UPDATE recrawl_index.chunk SET embedding = ARRAY[1, 2, 3]",
        )
        with PostgresIndex(index_url) as index:
            done = await sync(db, domain, index)
            again = await sync(db, domain, index)

    assert (done.is_anew, done.put, done.removed) == (True, 20, 0)
    assert (again.is_anew, again.put) == (False, 0)
    assert rows(index_url, "SELECT count(*) FROM recrawl_index.chunk WHERE embedding IS NULL") == [(0,)]


async def test_upgrade_splits_chunks_again_and_keeps_embeddings_of_the_others(db: Database, index_url: str) -> None:
    chunks = "SELECT id, place, text FROM recrawl_index.chunk ORDER BY place"
    async with answering(Article().respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(index_url) as index:
            await sync(db, domain, index)
        wanted = rows(index_url, chunks)
        execute(
            index_url,
            "UPDATE recrawl_index.chunk SET embedding = ARRAY[1, 2, 3]",
            "UPDATE recrawl_index.chunk SET id = 'old ' || id WHERE place > 1",
            "UPDATE recrawl_index.chunk SET text = 'old ' || text WHERE place = 0",
            "COMMENT ON SCHEMA recrawl_index IS 'recrawl sync, schema version 2'",
        )
        with PostgresIndex(index_url) as index:
            done = await sync(db, domain, index)
            again = await sync(db, domain, index)

    assert (done.is_anew, done.put, done.removed) == (True, 1, 0)
    assert (again.is_anew, again.put) == (False, 0)
    assert len(wanted) > 5
    assert rows(index_url, chunks) == wanted
    assert rows(index_url, "SELECT place FROM recrawl_index.chunk WHERE embedding IS NOT NULL") == [(1,)]


async def test_paragraph_at_the_top_of_a_long_page_resets_few_embeddings(db: Database, index_url: str) -> None:
    site = Article()
    async with answering(site.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        with PostgresIndex(index_url) as index:
            await sync(db, domain, index)
            execute(index_url, "UPDATE recrawl_index.chunk SET embedding = ARRAY[1, 2, 3]")
            site.paragraphs.insert(0, "What is new today stands at the top, and nothing else has changed at all.")
            await recrawl(db, domain, at=START + DAY)
            await report.append_to_feed(db, at=START + DAY)
            done = await sync(db, domain, index)

    assert (done.is_anew, done.put) == (False, 1)
    (found,) = rows(index_url, "SELECT count(*), count(embedding) FROM recrawl_index.chunk")
    many, embedded_still = (int(str(each)) for each in found)
    assert many > 5
    assert many - embedded_still <= 2
    assert "What is new today" in texts(index_url)[domain.root]


def test_foreign_schema_is_not_changed(index_url: str) -> None:
    execute(index_url, "CREATE SCHEMA recrawl_index")
    with pytest.raises(CrawlerError, match="was not created by this version"), PostgresIndex(index_url):
        pass
    with pytest.raises(CrawlerError, match="cannot be opened"), PostgresIndex("postgresql://127.0.0.1:9/none"):
        pass
