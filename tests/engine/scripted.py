"""A site on loopback that a test writes page by page, and changes while time goes on."""

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

NAME = "site.test"  # which only the test's own look-up knows


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: a body or a place to go to. wait: its Retry-After."""

    status: int = 200
    body: str = ""
    location: str | None = None
    wait: str = ""


NOT_THERE = Said(404, "<p>no such page")
HUNG_UP = Said(0)  # the line goes dead, and nothing is said


def text(words: str, *links: str, head: str = "") -> Said:
    """A page with enough words of its own to be told from others."""
    own = "".join("abcdefghik"[int(digit)] for digit in str(crc32(words.encode())))
    body = "".join(f"<p>Paragraph {n} of {words} says what {own} has to say of {words}." for n in range(5))
    return Said(body=f"<title>{words}</title>{head}<main>{body}{_anchors(links)}</main>")


def _anchors(links: tuple[str, ...]) -> str:
    return "".join(f'<p><a href="{path}">{path}</a>' for path in links)


@dataclass(slots=True)
class Scripted:
    """What stands where at the moment.

    trouble: what the server says instead, whatever is asked for, or None.  is_named: whether its name resolves.
    modified, etag: of all pages; without them there is no Last-Modified, and the ETag is a digest of the body.
    asked: path and whether it was asked conditionally.  dates, tags: all that came as If-Modified-Since and
    If-None-Match.
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
        """The page stands elsewhere from now on."""
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
        """One shift over what is due, by the real client, whose names the script looks up."""
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
        """The same with every page due whose path begins like that."""
        await domains.request_refresh(db, domain, prefix=Url(domain.root + prefix.removeprefix("/")), at=at)
        return await self.crawl(db, at=at)


@asynccontextmanager
async def scripted(db: Database, pages: dict[str, Said]) -> AsyncIterator[tuple[Scripted, Domain]]:
    """A site with these pages, registered."""
    site = Scripted(dict(pages))
    server = await asyncio.start_server(site.serve, "127.0.0.1", next_port())
    try:
        site.port = server.sockets[0].getsockname()[1]
        yield site, await register(db, f"http://{NAME}:{site.port}")
    finally:
        server.close()


async def events(db: Database, domain: Domain) -> list[tuple[str, str]]:
    """All that the feed would tell but for first sights, in its order: path and what happened."""
    found = await rows(db, "SELECT url, change FROM event WHERE domain_id = %s ORDER BY number", domain.id)
    return [(f"/{url.removeprefix(domain.root)}", change) for url, change in found if change != "added"]


async def states(db: Database, domain: Domain) -> dict[str, str]:
    """Path of every page, and where it stands."""
    found = await rows(
        db,
        "SELECT p.url, f.state FROM page p JOIN frontier f USING (domain_id, key) WHERE p.domain_id = %s",
        domain.id,
    )
    return {f"/{url.removeprefix(domain.root)}": state for url, state in found}
