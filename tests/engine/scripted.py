"""A site on loopback whose pages a test writes and changes as time passes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from zlib import crc32

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.engine.coordinator import CrawlLimits
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.engine.rendering.browsers import BrowserSource
from crawler.engine.resources import CrawlResources
from crawler.engine.shift import run_shift
from crawler.engine.stats import ShiftResult
from crawler.fetch import Http
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, register, rows
from tests.ports import next_port

NAME = "site.test"  # resolved only by the test's own lookup


@dataclass(frozen=True, slots=True)
class Said:
    """A response: a body or a redirect. wait: its Retry-After."""

    status: int = 200
    body: str = ""
    location: str | None = None
    wait: str = ""


NOT_THERE = Said(404, "<p>no such page")
HUNG_UP = Said(0)  # the connection is closed without a response


def text(words: str, *links: str, head: str = "") -> Said:
    """Return a page with enough unique words to be distinguished from others."""
    own = "".join("abcdefghik"[int(digit)] for digit in str(crc32(words.encode())))
    body = "".join(f"<p>Paragraph {n} of {words} says what {own} has to say of {words}." for n in range(5))
    return Said(body=f"<title>{words}</title>{head}<main>{body}{_anchors(links)}</main>")


def _anchors(links: tuple[str, ...]) -> str:
    return "".join(f'<p><a href="{path}">{path}</a>' for path in links)


@dataclass(slots=True)
class Scripted:
    """The current pages of the site.

    trouble: returns the response to any path while there is trouble, or None.  is_named: whether its name resolves.
    modified, etag: of all pages; by default there is no Last-Modified, and the ETag is a digest of the body.
    asked: path of each request, and whether it was conditional.  dates, tags: all values of If-Modified-Since and
    If-None-Match that were sent.
    """

    pages: dict[str, Said] = field(default_factory=dict)
    trouble: Callable[[str], Said | None] = lambda _path: None
    is_named: bool = True
    modified: str | None = None
    etag: str | None = None
    settings: Settings = QUICK
    port: int = 0
    asked: list[tuple[str, bool]] = field(default_factory=list)
    dates: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)

    def move(self, path: str, to: str) -> None:
        """Move a page: redirect its old path to the new one."""
        self.pages[to] = self.pages[path]
        self.pages[path] = Said(301, location=to)

    def reply(self, path: str, tag: str | None) -> bytes:
        said = self.trouble(path) or self.pages.get(path, NOT_THERE)
        etag = self.etag or f'"{blake2b(said.body.encode(), digest_size=8).hexdigest()}"'
        if said == HUNG_UP:
            return b""
        head = f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(said.body.encode())}\r\n"
        if said.wait:
            head += f"Retry-After: {said.wait}\r\n"
        if said.location is not None:
            head += f"Location: {said.location}\r\n"
        if said.status == 200:
            head += f"ETag: {etag}\r\n" + (f"Last-Modified: {self.modified}\r\n" if self.modified else "")
            if tag == etag:
                return f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode()
        return f"HTTP/1.1 {said.status} Said\r\n{head}\r\n{said.body}".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                path, tag = first.split(" ")[1], headers.get("if-none-match")
                self.asked.append((path, tag is not None))
                self.dates |= {headers["if-modified-since"]} if "if-modified-since" in headers else set()
                self.tags |= {tag} if tag is not None else set()
                if not (reply := self.reply(path, tag)):
                    break
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def look_up(self, host: str) -> tuple[str, ...]:
        if host != NAME or not self.is_named:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return ("127.0.0.1",)

    async def crawl(self, db: Database, *, at: datetime, pages: int | None = None) -> ShiftResult:
        """Run one shift over what is due, with the real client and a lookup that knows the site."""
        async with (
            Http(user_agent="test", allow_private=True, lookup=self.look_up) as http,
            ParserPool(0) as readers,
            AsyncExitStack() as stack,
        ):
            browsers = BrowserSource(browser_name=None, user_agent="test", timeout=DAY)
            stack.push_async_callback(browsers.close)
            webs = CrawlResources(http, http, readers, browsers, self.settings, stack)
            return await run_shift(
                db, webs, settings=self.settings, clock=Clock.from_instant(at), holder="test", limits=CrawlLimits(pages)
            )

    async def recrawl(self, db: Database, domain: Domain, *, at: datetime, prefix: str = "/") -> ShiftResult:
        """Run one shift with every page due whose path starts with the prefix."""
        await domains.request_refresh(db, domain, prefix=Url(domain.root + prefix.removeprefix("/")), at=at)
        return await self.crawl(db, at=at)


@asynccontextmanager
async def scripted(db: Database, pages: dict[str, Said]) -> AsyncIterator[tuple[Scripted, Domain]]:
    """Serve and register a site with these pages."""
    site = Scripted(dict(pages))
    server = await asyncio.start_server(site.serve, "127.0.0.1", next_port())
    try:
        site.port = server.sockets[0].getsockname()[1]
        yield site, await register(db, f"http://{NAME}:{site.port}")
    finally:
        server.close()


async def events(db: Database, domain: Domain) -> list[tuple[str, str]]:
    """Return all changes in the feed except added pages and reports of failures, in order: path and change."""
    return [event for event in await all_events(db, domain) if event[1] not in {"added", "failing", "recovered"}]


async def all_events(db: Database, domain: Domain) -> list[tuple[str, str]]:
    """Return all events in order: path and change."""
    found = await rows(db, "SELECT url, change FROM event WHERE domain_id = %s ORDER BY number", domain.id)
    return [(f"/{url.removeprefix(domain.root)}", change) for url, change in found]


async def states(db: Database, domain: Domain) -> dict[str, str]:
    """Return the path of every page with its state."""
    found = await rows(
        db,
        "SELECT p.url, f.state FROM page p JOIN frontier f USING (domain_id, key) WHERE p.domain_id = %s",
        domain.id,
    )
    return {f"/{url.removeprefix(domain.root)}": state for url, state in found}
