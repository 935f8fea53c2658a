"""A server that sends wrong or right validators, as a test chooses, on a real connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b
from string import ascii_lowercase

from crawler.core.domain import Domain
from crawler.core.validator_trust import Validator
from crawler.store.database import Database
from crawler.store.learned.credibility import TrustRow, list_trust_rows
from tests.engine.crawls import DAY, START, recrawl, register, rows
from tests.ports import next_port

PAGES = 4
FILLER_LINES = 600  # some 25 kB, so that HEAD requests are useful


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. number: how many came before it."""

    path: str
    etag: str | None
    since: str | None
    number: int

    @property
    def is_conditional(self) -> bool:
        return self.etag is not None or self.since is not None


@dataclass(frozen=True, slots=True)
class Words:
    """The validators that a server sends, and whether it responds with 304."""

    etag: str | None = None
    modified: datetime | None = None
    is_304: bool = False


@dataclass(slots=True)
class Liar:
    """Pages whose text contains their edition, and a server that sends any validators for them.

    edition, edited: of all pages.  at: the server's time.  is_large: pages have 25 kB.
    grows: each edition is longer than the one before.  sections: number of folders for the pages; 0: none.
    """

    say: "Policy"
    pages: int = PAGES
    edition: int = 0
    edited: datetime = START - DAY
    at: datetime = START
    is_large: bool = False
    grows: bool = False
    sections: int = 0
    asked: list[Asked] = field(default_factory=list)
    bodies: int = 0

    def body(self, path: str) -> bytes:
        numbers = range(1, self.pages + 1) if path == "/" else ()
        links = "".join(f'<p><a href="{self.path(n)}">page {n}</a>' for n in numbers)
        words = f"<p>The book of {path} costs {self.price(path)} crowns, which is what the others cost, too.</p>"
        more = "".join(
            f"<p>Line {n} of {path} says what {path} says of {n}." for n in range(FILLER_LINES * self.is_large)
        )
        very = "very " * (self.edition * self.grows)
        return f"<title>{path}</title><main><h1>A {very}good {path}</h1>{words}{links}{more}</main>".encode()

    def path(self, n: int) -> str:
        return f"/{ascii_lowercase[n % self.sections] * 4}/{n}" if self.sections else f"/page/{n}"

    def price(self, path: str) -> int:
        """Return a number of five digits that is different in each edition of each page."""
        edition = self.edition if path != "/" else 0
        return 10_000 + int.from_bytes(blake2b(f"{path} {edition}".encode(), digest_size=4).digest()) % 90_000

    def tag(self, path: str) -> str:
        return f'"{blake2b(self.body(path), digest_size=8).hexdigest()}"'

    def edit(self, at: datetime) -> None:
        self.edition, self.edited = self.edition + 1, at

    def reply(self, asked: Asked, *, is_head: bool) -> bytes:
        if asked.path == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        self.asked.append(asked)
        said = self.say(self, asked)
        head = f"Date: {date(self.at)}\r\n" + (f"ETag: {said.etag}\r\n" if said.etag else "")
        head += f"Last-Modified: {date(said.modified)}\r\n" if said.modified else ""
        if said.is_304:
            return f"HTTP/1.1 304 Not Modified\r\n{head}\r\n".encode()
        self.bodies += not is_head
        body = self.body(asked.path)
        head += f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + (b"" if is_head else body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                since = headers.get("if-modified-since")
                method, path, _ = first.split(" ")
                asked = Asked(path, headers.get("if-none-match"), since, len(self.asked))
                writer.write(self.reply(asked, is_head=method == "HEAD"))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


Policy = Callable[[Liar, Asked], Words]


def date(at: datetime) -> str:
    return format_datetime(at.replace(microsecond=0), usegmt=True)


def by(asked: Asked, etag: str | None, modified: datetime | None) -> Words:
    """Return the words of a server that follows RFC 9110, section 13.2.2, with these validators."""
    if asked.etag is not None:
        return Words(etag, modified, asked.etag == etag)
    return Words(etag, modified, modified is not None and asked.since == date(modified))


def honest(site: Liar, asked: Asked) -> Words:
    return by(asked, site.tag(asked.path), site.edited)


def constant_etag(_site: Liar, asked: Asked) -> Words:
    return by(asked, '"1"', None)


def frozen_date(_site: Liar, asked: Asked) -> Words:
    return by(asked, None, START - 9 * DAY)


def etag_per_replica(site: Liar, asked: Asked) -> Words:
    replica = blake2b(asked.number.to_bytes(4), digest_size=1).digest()[0] % 5
    return by(asked, f'{site.tag(asked.path)[:-1]}-{replica}"', site.edited)


def etag_per_replica_alone(site: Liar, asked: Asked) -> Words:
    return by(asked, etag_per_replica(site, asked).etag, None)


def date_of_the_request(site: Liar, asked: Asked) -> Words:
    return by(asked, None, site.at)


def etag_of_the_minute(site: Liar, asked: Asked) -> Words:
    return by(asked, f'W/"{site.at:%d-%H%M}"', None)


def equal_length(_site: Liar, _asked: Asked) -> Words:
    return Words()


def always_304(site: Liar, asked: Asked) -> Words:
    """Send right validators, but respond to every conditional request with 304."""
    return Words(site.tag(asked.path), site.edited, asked.is_conditional)


def always_304_and_nothing_said_later(site: Liar, asked: Asked) -> Words:
    return Words(site.tag(asked.path) if site.edition == 0 else None, None, asked.is_conditional)


@asynccontextmanager
async def served(
    db: Database, say: Policy, *, pages: int = PAGES, sections: int = 0
) -> AsyncIterator[tuple[Liar, Domain]]:
    site = Liar(say, pages, sections=sections)
    server = await asyncio.start_server(site.serve, "127.0.0.1", next_port())
    try:
        yield site, await register(db, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


async def look_again(db: Database, site: Liar, domain: Domain, *, rounds: int, edits: bool) -> None:
    """Visit all pages except the first this many times, a day apart."""
    for _ in range(rounds):
        site.at += DAY
        if edits:
            site.edit(site.at - timedelta(hours=7))
        await recrawl(db, domain, at=site.at)


async def standing(db: Database, domain: Domain, kind: Validator) -> TrustRow:
    """Return the stored trust in one kind of validators of the pages."""
    return next(one for one in await list_trust_rows(db, domain) if (one.template, one.validator) == ("/page/*", kind))


async def is_up_to_date(db: Database, site: Liar, domain: Domain) -> bool:
    """Return whether the last snapshot of every page is what the server has."""
    kept = await rows(
        db,
        "SELECT p.url, s.text FROM snapshot s JOIN page p USING (domain_id, key)"
        " WHERE s.domain_id = %s AND s.number = p.version",
        domain.id,
    )
    prices = [f" {site.price('/' + url.removeprefix(domain.root))} crowns" for url, _ in kept]
    return len(kept) == 1 + site.pages and all(price in text for price, (_, text) in zip(prices, kept, strict=True))
