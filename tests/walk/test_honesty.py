"""Servers that lie about their versions, each on a real connection: what a crawl finds out, catches, and forgives."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b

import pytest

from crawler.core.domain import Domain
from crawler.core.trust import Kind
from crawler.store.database import Database
from crawler.store.trusts import Standing, standings
from tests.walk.crawls import DAY, START, page, recrawl, register, rows, versions

PAGES = 4
ROUNDS = 5  # of revisits to every page: 20 in all


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
    """What a server says of a version, and whether it answers 304."""

    etag: str | None = None
    modified: datetime | None = None
    is_304: bool = False


@dataclass(slots=True)
class Liar:
    """Pages whose text tells their edition, and a server that says of it whatever it likes.

    edition, edited: of all pages.  at: the instant on its clock.
    """

    say: "Policy"
    pages: int = PAGES
    edition: int = 0
    edited: datetime = START - DAY
    at: datetime = START
    asked: list[Asked] = field(default_factory=list)
    bodies: int = 0

    def body(self, path: str) -> bytes:
        links = "".join(f'<p><a href="/page/{n}">page {n}</a>' for n in range(1, self.pages + 1)) if path == "/" else ""
        words = f"<p>The book of {path} costs {self.price(path)} crowns, which is what the others cost, too.</p>"
        return f"<title>{path}</title><main><h1>{path}</h1>{words}{links}</main>".encode()

    def price(self, path: str) -> int:
        """Of five digits, in each edition of each page another one."""
        edition = self.edition if path != "/" else 0
        return 10_000 + int.from_bytes(blake2b(f"{path} {edition}".encode(), digest_size=4).digest()) % 90_000

    def tag(self, path: str) -> str:
        return f'"{blake2b(self.body(path), digest_size=8).hexdigest()}"'

    def edit(self, at: datetime) -> None:
        self.edition, self.edited = self.edition + 1, at

    def reply(self, asked: Asked) -> bytes:
        if asked.path == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        self.asked.append(asked)
        said = self.say(self, asked)
        head = f"Date: {date(self.at)}\r\n" + (f"ETag: {said.etag}\r\n" if said.etag else "")
        head += f"Last-Modified: {date(said.modified)}\r\n" if said.modified else ""
        if said.is_304:
            return f"HTTP/1.1 304 Not Modified\r\n{head}\r\n".encode()
        self.bodies += 1
        body = self.body(asked.path)
        head += f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                since = headers.get("if-modified-since")
                asked = Asked(first.split(" ")[1], headers.get("if-none-match"), since, len(self.asked))
                writer.write(self.reply(asked))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


Policy = Callable[[Liar, Asked], Words]


def date(at: datetime) -> str:
    return format_datetime(at.replace(microsecond=0), usegmt=True)


def by(asked: Asked, etag: str | None, modified: datetime | None) -> Words:
    """What a server says that keeps to RFC 9110, section 13.2.2, and believes its own words."""
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


def date_of_the_request(site: Liar, asked: Asked) -> Words:
    return by(asked, None, site.at)


def etag_of_the_minute(site: Liar, asked: Asked) -> Words:
    return by(asked, f'W/"{site.at:%d-%H%M}"', None)


def equal_length(_site: Liar, _asked: Asked) -> Words:
    return Words()


def always_304(site: Liar, asked: Asked) -> Words:
    """Right in all that it says, but what it says to anybody who asks whether something is new."""
    return Words(site.tag(asked.path), site.edited, asked.is_conditional)


def always_304_and_nothing_said_later(site: Liar, asked: Asked) -> Words:
    return Words(site.tag(asked.path) if site.edition == 0 else None, None, asked.is_conditional)


@asynccontextmanager
async def served(db: Database, say: Policy, *, pages: int = PAGES) -> AsyncIterator[tuple[Liar, Domain]]:
    site = Liar(say, pages)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    try:
        yield site, await register(db, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


async def look_again(db: Database, site: Liar, domain: Domain, *, rounds: int, edits: bool) -> None:
    """Go round all pages but the first one so many times, a day apart."""
    for _ in range(rounds):
        site.at += DAY
        if edits:
            site.edit(site.at - timedelta(hours=7))
        await recrawl(db, domain, at=site.at)


async def standing(db: Database, domain: Domain, kind: Kind) -> Standing:
    """How the pages' words of one kind stand."""
    return next(one for one in await standings(db, domain) if (one.template, one.kind) == ("/page/*", kind))


async def is_up_to_date(db: Database, site: Liar, domain: Domain) -> bool:
    """Whether the last Snapshot of every page is what the server has."""
    kept = await rows(
        db,
        "SELECT p.url, s.text FROM snapshot s JOIN page p USING (domain_id, key)"
        " WHERE s.domain_id = %s AND s.number = p.version",
        domain.id,
    )
    prices = [f" {site.price('/' + url.removeprefix(domain.root))} crowns" for url, _ in kept]
    return len(kept) == 1 + site.pages and all(price in text for price, (_, text) in zip(prices, kept, strict=True))


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (constant_etag, Kind.ETAG),
        (frozen_date, Kind.LAST_MODIFIED),
        (always_304, Kind.ETAG),
        (always_304, Kind.LAST_MODIFIED),
        (always_304_and_nothing_said_later, Kind.ETAG),
    ],
)
async def test_words_that_hide_changes_are_found_within_20_revisits_and_the_changes_caught(
    db: Database, say: Policy, kind: Kind
) -> None:
    async with served(db, say) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS - 1, edits=True)
        await look_again(db, site, domain, rounds=1, edits=False)

        assert (await standing(db, domain, kind)).standing == "lies"
        assert await is_up_to_date(db, site, domain)


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (etag_per_replica, Kind.ETAG),
        (date_of_the_request, Kind.LAST_MODIFIED),
        (etag_of_the_minute, Kind.ETAG),
    ],
)
async def test_words_that_differ_for_one_body_are_found_within_20_revisits_and_changes_are_caught(
    db: Database, say: Policy, kind: Kind
) -> None:
    async with served(db, say) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS - 1, edits=False)
        await look_again(db, site, domain, rounds=1, edits=True)

        assert (await standing(db, domain, kind)).standing == "flaps"
        assert await is_up_to_date(db, site, domain)


async def test_an_equal_length_is_known_to_say_nothing_and_every_change_is_caught(db: Database) -> None:
    async with served(db, equal_length) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS, edits=True)

        assert (await standing(db, domain, Kind.LENGTH)).standing == "lies"
        assert set((await versions(db, domain)).values()) == {1, 1 + ROUNDS}


async def test_beside_an_etag_per_replica_the_date_alone_spares_the_bodies(db: Database) -> None:
    async with served(db, etag_per_replica) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS, edits=False)
        site.asked.clear()

        await look_again(db, site, domain, rounds=2, edits=False)

        conditional = [asked for asked in site.asked if asked.is_conditional and asked.path != "/"]
        assert conditional
        assert {asked.etag for asked in conditional} == {None}


async def test_a_server_that_was_trusted_is_found_out_within_200_revisits(db: Database) -> None:
    async with served(db, honest, pages=40) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=4, edits=True)
        assert (await standing(db, domain, Kind.ETAG)).standing == "honest"

        site.say = lambda _site, asked: Words('"1"', None, asked.is_conditional)
        before = (await standing(db, domain, Kind.ETAG)).challenges
        await look_again(db, site, domain, rounds=5, edits=True)
        await look_again(db, site, domain, rounds=1, edits=False)

        assert (await standing(db, domain, Kind.ETAG)).challenges > before
        assert await is_up_to_date(db, site, domain)


async def test_honest_challenges_restore_trust(db: Database) -> None:
    async with served(db, always_304, pages=12) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=2, edits=True)
        assert (await standing(db, domain, Kind.ETAG)).standing == "lies"

        site.say = honest
        await look_again(db, site, domain, rounds=7, edits=True)
        site.bodies = 0
        await look_again(db, site, domain, rounds=2, edits=False)

        assert (await standing(db, domain, Kind.ETAG)).standing == "honest"
        assert site.bodies <= 2 + 1  # the first page's challenges are its own


async def test_a_section_that_lies_does_not_spoil_the_rest(db: Database) -> None:
    def one_section_lies(site: Liar, asked: Asked) -> Words:
        return constant_etag(site, asked) if asked.path.startswith("/page/") else honest(site, asked)

    async with served(db, one_section_lies) as (site, domain):
        await recrawl(db, domain, at=site.at)
        await look_again(db, site, domain, rounds=ROUNDS, edits=True)
        site.asked.clear()
        await look_again(db, site, domain, rounds=3, edits=True)

        assert (await standing(db, domain, Kind.ETAG)).standing == "lies"
        assert not any(asked.is_conditional for asked in site.asked if asked.path != "/")
        assert any(asked.is_conditional for asked in site.asked if asked.path == "/")


async def test_an_honest_server_is_spared_95_percent_of_the_bodies(db: Database) -> None:
    rounds, pages = 5, 40
    async with served(db, honest, pages=pages) as (site, domain):
        await recrawl(db, domain, at=site.at)
        site.bodies = 0
        site.asked.clear()

        await look_again(db, site, domain, rounds=rounds, edits=False)

        of_pages = [asked for asked in site.asked if asked.path != "/"]
        assert len(of_pages) == rounds * pages
        assert sum(asked.is_conditional for asked in of_pages) >= 0.95 * len(of_pages)
        etag = (await page(db, domain, "/page/1"))["etag"]
        assert {asked.etag for asked in of_pages if asked.path == "/page/1" and asked.is_conditional} == {etag}
