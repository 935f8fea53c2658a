"""Whole crawls of sites that tests serve."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, Url, compute_page_key
from crawler.engine.coordinator import CrawlLimits
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.engine.stats import ShiftResult
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database
from tests.patience import PATIENCE_S
from tests.ports import next_port

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
# As for a user's `recrawl crawl`: budgets are not paced. Pages are parsed without extra processes.
QUICK = Settings(lease_term=timedelta(seconds=10), max_batch_size=50, pace=False, parser_processes=0)
RECRAWL = Path(sys.executable).with_name("recrawl")


async def register(db: Database, url: str, **domain_settings: Any) -> Domain:
    """Register the site at a URL as a private domain without a delay."""
    given: dict[str, Any] = {"allow_private": True, "delay": timedelta(0), "parallelism": 8} | domain_settings
    wished = DomainSettings(**given)
    return await domains.register(db, Authority(url.split("/")[2]), scheme="http", domain_settings=wished, at=START)


async def crawl(
    db: Database, *, at: datetime, settings: Settings = QUICK, holder: str = "test", pages: int | None = None
) -> ShiftResult:
    """Run one shift over everything that is due at an instant."""
    async with open_resources(settings) as webs:
        return await run_shift(
            db, webs, settings=settings, clock=Clock.from_instant(at), holder=holder, limits=CrawlLimits(pages)
        )


async def recrawl(db: Database, domain: Domain, *, at: datetime, settings: Settings = QUICK) -> ShiftResult:
    """Run one shift with every page of the domain due."""
    await domains.request_refresh(db, domain, prefix=domain.root, at=at)
    return await crawl(db, at=at, settings=settings)


async def rows(db: Database, query: str, *values: object) -> list[Any]:
    async with db.transaction() as connection:
        return await (await connection.execute(query.encode(), values)).fetchall()


async def page(db: Database, domain: Domain, path: str) -> Mapping[str, Any]:
    """Return a page's row and its state."""
    url = Url(domain.root + path.removeprefix("/"))
    found = await rows(
        db,
        "SELECT to_jsonb(p) || jsonb_build_object('state', f.state) FROM page p JOIN frontier f USING (domain_id, key)"
        " WHERE domain_id = %s AND key = %s",
        domain.id,
        compute_page_key(url),
    )
    assert found, f"{path} is not known"
    return dict(found[0][0])


async def versions(db: Database, domain: Domain) -> dict[str, int]:
    """Return the path of every page that has a snapshot, with the number of its last version."""
    found = await rows(db, "SELECT url, version FROM page WHERE domain_id = %s AND version > 0", domain.id)
    return {"/" + url.removeprefix(domain.root): version for url, version in found}


async def coins_missing(db: Database) -> int:
    """Return how much cash of all domains is missing."""
    found = await rows(
        db,
        """SELECT coalesce(sum(s.total_cash - s.virtual_page_cash - s.dormant
                      - coalesce((SELECT sum(c.net) FROM cash c WHERE c.domain_id = s.domain_id), 0)
                      - (SELECT sum(p.pages::numeric * p.dividend) FROM pool p WHERE p.domain_id = s.domain_id)), 0)
             FROM domain_state s""",
    )
    return int(found[0][0])


@asynccontextmanager
async def answering(respond: Callable[[str], bytes]) -> AsyncIterator[str]:
    """Run a server that keeps connections open, and yield its root URL. respond: returns the response to a target."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(respond((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:  # a handler that waits is canceled when the loop ends
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port())
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def answered(status: int, body: bytes) -> bytes:
    """Return a response with a page."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def raw_server(answer: bytes) -> AsyncIterator[str]:
    """Run a server that sends the same bytes to every request and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port())
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def command(*arguments: str, database_url: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the `recrawl` command as a user does."""
    return subprocess.run(
        [str(RECRAWL), *arguments],
        env=environ(database_url, home, **environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def environ(database_url: str, home: Path, **more: str) -> dict[str, str]:
    return os.environ | {"RECRAWL_DATABASE_URL": database_url, "RECRAWL_HOME": str(home), "NO_COLOR": "1"} | more


def json_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
