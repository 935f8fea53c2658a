"""The Scrapy spider with an item pipeline that stores what recrawl stores: body, text, links and digests.

It follows Scrapy's documentation: a pipeline writes items with psycopg, a hundred per transaction. The table is created
at the start, with only a primary key index.

Run as DATABASE_URL=... python -m benchmarks.crawling.rivals.scrapy_postgres URL [--parallelism N].
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import scrapy
from scrapy.http import HtmlResponse, Response

from benchmarks.crawling.rivals.scrapy_walk import Walker, options, walk

BATCH = 100  # pages per transaction, as many as recrawl records in one
TEXT = "//title//text() | //body//text()[not(ancestor::script or ancestor::style)]"
TABLE = """
    CREATE TABLE IF NOT EXISTS scraped (
        url text PRIMARY KEY, fetched_at timestamptz NOT NULL, status int NOT NULL, body bytea NOT NULL,
        text text NOT NULL, links text[] NOT NULL, body_digest bytea NOT NULL, text_digest bytea NOT NULL)
"""
STORE = """
    INSERT INTO scraped (url, fetched_at, status, body, text, links, body_digest, text_digest)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (url) DO UPDATE
       SET fetched_at = excluded.fetched_at, status = excluded.status, body = excluded.body, text = excluded.text,
           links = excluded.links, body_digest = excluded.body_digest, text_digest = excluded.text_digest
"""


@dataclass(slots=True)
class Scraped:
    """The stored data of a page."""

    url: str
    status: int
    body: bytes
    text: str
    links: list[str]

    @property
    def row(self) -> tuple[object, ...]:
        digests = [hashlib.blake2b(each, digest_size=16).digest() for each in (self.body, self.text.encode())]
        return (self.url, datetime.now(UTC), self.status, self.body, self.text, self.links, *digests)


class StoringWalker(Walker):
    """A spider that requests every page it finds a link to and yields each page as an item."""

    def parse(self, response: Response) -> Iterator[object]:
        if isinstance(response, HtmlResponse):
            links = [link.url for link in self.extractor.extract_links(response)]
            for url in links:
                yield scrapy.Request(url)
            # Postgres text cannot contain NUL.
            text = " ".join(" ".join(response.xpath(TEXT).getall()).split()).replace("\0", "")
            yield Scraped(response.url, response.status, response.body, text, links)


class PostgresPipeline:
    """Write items in batches."""

    def open_spider(self) -> None:
        self._connection = psycopg.connect(os.environ["DATABASE_URL"])
        self._connection.execute(TABLE)
        self._rows: list[tuple[object, ...]] = []

    def close_spider(self) -> None:
        self._write()
        self._connection.close()

    def process_item(self, item: Scraped) -> Scraped:
        self._rows.append(item.row)
        if len(self._rows) >= BATCH:
            self._write()
        return item

    def _write(self) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(STORE, self._rows)
        self._connection.commit()
        self._rows.clear()


def main() -> None:
    walk(StoringWalker, options().parse_args(), {"ITEM_PIPELINES": {PostgresPipeline: 300}})


if __name__ == "__main__":
    main()
