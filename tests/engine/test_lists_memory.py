"""A sitemap index with hundreds of thousands of entries is streamed in the memory of one list."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crawler.store.database import Database
from crawler.store.report import check_invariants
from tests.engine.crawls import RECRAWL, answered, answering, environ, rows
from tests.patience import SLOW
from tests.peak import peak_of

ENTRIES = 50_000  # per list
PAGES = 300  # the domain's limit


@asynccontextmanager
async def site_of(lists: int) -> AsyncIterator[str]:
    """Serve a front page without links, and an index of this many full sitemaps, each generated on request."""
    root = ""

    def respond(target: str) -> bytes:
        name, _, number = target.strip("/").removesuffix(".xml").partition("-")
        if target == "/robots.txt":
            return answered(200, f"User-agent: *\nSitemap: {root}maps.xml\n".encode())
        if target == "/maps.xml":
            inside = "".join(f"<sitemap><loc>{root}map-{n}.xml</loc></sitemap>" for n in range(lists))
            return answered(200, f"<sitemapindex>{inside}</sitemapindex>".encode())
        if name == "map":
            inside = "".join(
                f"<url><loc>{root}part/{number}/page/{n}</loc><lastmod>2025-11-20T10:00:00+00:00</lastmod></url>"
                for n in range(ENTRIES)
            )
            return answered(200, f"<urlset>{inside}</urlset>".encode())
        return answered(200, f"<p>The page at {target} has something of its own to say.".encode())

    async with answering(respond) as url:
        root = url
        yield url


def peak_of_crawl(url: str, database_url: str, home: Path) -> int:
    """Return the peak memory of a crawl in bytes."""
    at = ("--at", "2026-01-01T00:00:00Z")
    command = [str(RECRAWL), "crawl", url, "--allow-private", "--max-pages", str(PAGES), *at, "--json"]
    return peak_of(
        *command, environment=environ(database_url, home, RECRAWL_PARSER_PROCESSES="1"), output=home / "stdout"
    )


async def peak(db: Database, database_url: str, home: Path, *, lists: int) -> int:
    async with site_of(lists) as url:
        memory = await asyncio.to_thread(peak_of_crawl, url, database_url, home)
    read = "SELECT sum(l.entries) FROM url_list l JOIN page p USING (domain_id, key) WHERE p.url LIKE %s"
    assert await rows(db, read, f"{url}map-%") == [(lists * ENTRIES,)]
    return memory


@pytest.mark.soak
@SLOW
async def test_eight_full_sitemaps_take_no_more_memory_than_one(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    few = await peak(db, database_url, tmp_path, lists=1)
    many = await peak(db, database_url, tmp_path, lists=8)
    assert many - few < 16 << 20
    assert await check_invariants(db) == []
