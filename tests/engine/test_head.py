"""Sites that never respond with 304: length and date from HEAD save bodies as long as they are right."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest

from crawler.core.domain import Domain
from crawler.core.validator_trust import Validator
from crawler.store.database import Database
from crawler.store.learned.credibility import list_trust_rows
from tests.engine.crawls import DAY, START, recrawl, register, rows
from tests.ports import next_port

PAGES = 4
FILLER_LINES = 300


def longer(edition: int) -> str:
    """Return an edition's text: each is longer than the one before."""
    return f"It now has {'very ' * edition}much to tell."


def as_long(edition: int) -> str:
    """Return an edition's text; all have the same length."""
    return f"It now costs {10_000 + edition * 137} crowns."


@dataclass(slots=True)
class Site:
    """Pages of 20 kB on loopback. edition, edited: of all of them except the first.

    has_etag: it sends ETags and checks them.  has_date: it sends Last-Modified but ignores If-Modified-Since.
    asked: method and path of each request.
    """

    words: Callable[[int], str] = longer
    has_etag: bool = False
    has_date: bool = False
    takes_head: bool = True
    edition: int = 0
    edited: datetime = START - DAY
    at: datetime = START
    asked: list[tuple[str, str]] = field(default_factory=list)

    def body(self, path: str) -> bytes:
        if path == "/":
            links = "".join(f'<p><a href="/page/{n}">page {n}</a>' for n in range(1, PAGES + 1))
            return f"<title>all</title><main>{links}</main>".encode()
        lines = "".join(
            f"<p>Line {n} of the book {path} says what {path} says of {n}.</p>" for n in range(FILLER_LINES)
        )
        return f"<title>{path}</title><main><p>{path}: {self.words(self.edition)}</p>{lines}</main>".encode()

    def reply(self, method: str, path: str, etag: str | None) -> bytes:
        if path != "/" and not path.startswith("/page/"):
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        self.asked.append((method, path))
        if method == "HEAD" and not self.takes_head:
            return b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n"
        body, tag = self.body(path), f'"{self.edition}"'
        head = f"ETag: {tag}\r\n" if self.has_etag else ""
        head += f"Last-Modified: {format_datetime(self.edited, usegmt=True)}\r\n" if self.has_date else ""
        if self.has_etag and etag == tag:
            return f"HTTP/1.1 304 Not Modified\r\n{head}\r\n".encode()
        head += f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + (b"" if method == "HEAD" else body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                method, path, _ = first.split(" ")
                writer.write(self.reply(method, path, headers.get("if-none-match")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def many(self, method: str) -> int:
        """Return how many requests for pages used this method, except for the first page, since the last clearing."""
        return sum(asked == method and path != "/" for asked, path in self.asked)

    async def look(self, db: Database, domain: Domain, *, rounds: int, edits: bool) -> None:
        """Visit all pages this many times, a day apart."""
        for _ in range(rounds):
            self.at += DAY
            if edits:
                self.edition, self.edited = self.edition + 1, self.at - timedelta(hours=7)
            await recrawl(db, domain, at=self.at)


@asynccontextmanager
async def served(db: Database, site: Site) -> AsyncIterator[Domain]:
    server = await asyncio.start_server(site.serve, "127.0.0.1", next_port())
    try:
        domain = await register(db, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await recrawl(db, domain, at=site.at)
        yield domain
    finally:
        server.close()


async def is_up_to_date(db: Database, site: Site, domain: Domain) -> bool:
    """Return whether the last snapshot of every page is what the server has."""
    kept = await rows(
        db,
        "SELECT s.text FROM snapshot s JOIN page p USING (domain_id, key)"
        " WHERE s.domain_id = %s AND s.number = p.version AND p.url LIKE '%%/page/%%'",
        domain.id,
    )
    return len(kept) == PAGES and all(site.words(site.edition) in text for (text,) in kept)


async def count_evidence(db: Database, domain: Domain) -> dict[str, int]:
    return dict(
        await rows(db, "SELECT evidence, count(*) FROM visit WHERE domain_id = %s GROUP BY evidence", domain.id)
    )


@pytest.mark.soak
async def test_a_site_without_validators_whose_lengths_told_of_changes_is_spared_its_bodies(db: Database) -> None:
    site = Site()
    async with served(db, site) as domain:
        await site.look(db, domain, rounds=2, edits=True)
        assert site.many("HEAD") == 0  # it has had too few changes so far

        site.asked.clear()
        await site.look(db, domain, rounds=10, edits=False)
        bodies, heads = site.many("GET"), site.many("HEAD")
        await site.look(db, domain, rounds=1, edits=True)

        assert bodies + heads == 10 * PAGES
        assert bodies <= 6  # validator checks: 5 of 20 first, then one in 16
        assert (await count_evidence(db, domain))["head"] == heads
        saved = await rows(
            db, "SELECT sum(saved_bytes) FROM visit WHERE domain_id = %s AND evidence = 'head'", domain.id
        )
        assert saved[0][0] > heads * 15_000
        assert await is_up_to_date(db, site, domain)


@pytest.mark.soak
async def test_a_length_that_begins_to_lie_is_found_within_20_revisits_and_the_change_caught(db: Database) -> None:
    site = Site()
    async with served(db, site) as domain:
        await site.look(db, domain, rounds=2, edits=True)

        site.words = as_long
        await site.look(db, domain, rounds=4, edits=True)
        assert site.many("HEAD") > 0  # it was trusted
        site.asked.clear()
        await site.look(db, domain, rounds=1, edits=True)

        assert site.many("HEAD") == 0
        assert await is_up_to_date(db, site, domain)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("words", "has_etag"),
    [pytest.param(as_long, False, id="its length always lies"), pytest.param(longer, True, id="it says 304")],
)
async def test_a_site_of_which_a_head_tells_nothing_more_is_never_asked_by_it(
    db: Database, words: Callable[[int], str], has_etag: bool
) -> None:
    site = Site(words, has_etag=has_etag)
    async with served(db, site) as domain:
        await site.look(db, domain, rounds=3, edits=True)
        await site.look(db, domain, rounds=3, edits=False)
        await site.look(db, domain, rounds=1, edits=True)

        assert site.many("HEAD") == 0
        assert ("not_modified" in await count_evidence(db, domain)) is site.has_etag
        assert await is_up_to_date(db, site, domain)


@pytest.mark.soak
async def test_where_conditional_requests_are_ignored_the_date_by_head_spares_the_bodies(db: Database) -> None:
    site = Site(has_date=True)
    async with served(db, site) as domain:
        await site.look(db, domain, rounds=2, edits=False)
        site.asked.clear()

        await site.look(db, domain, rounds=5, edits=False)
        bodies, heads = site.many("GET"), site.many("HEAD")
        await site.look(db, domain, rounds=1, edits=True)

        assert bodies + heads == 5 * PAGES
        assert heads >= 2 * bodies
        assert await is_up_to_date(db, site, domain)


@pytest.mark.soak
async def test_a_server_that_refuses_head_is_left_alone_after_a_few(db: Database) -> None:
    site = Site(takes_head=False)
    async with served(db, site) as domain:
        await site.look(db, domain, rounds=2, edits=True)
        await site.look(db, domain, rounds=1, edits=False)
        assert 0 < site.many("HEAD") <= PAGES

        site.asked.clear()
        await site.look(db, domain, rounds=10, edits=False)

        assert site.many("HEAD") <= 6  # one in so many is tried again, like validator checks
        assert site.many("GET") == 10 * PAGES
        standing = {one.validator: one.rating for one in await list_trust_rows(db, domain) if one.template == "/page/*"}
        assert standing[Validator.HEAD] == "flaps"
