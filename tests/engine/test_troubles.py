"""Servers that hang, reject and fail in part: what is the domain's fault, and what a page's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.errors import BadInput
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, coins_missing, crawl, recrawl, register, rows
from tests.ports import next_port

IMPATIENT = Settings(lease_term=timedelta(seconds=10), request_timeout=timedelta(seconds=1))
HANGS = "hangs"
Answer = Callable[[str], tuple[int, str]]


@asynccontextmanager
async def site(answer: Answer) -> AsyncIterator[tuple[str, list[str]]]:
    """Run a site that responds by path with a status and a body, or hangs; yield its URL and the requested paths."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                asked.append(path)
                status, body = answer(path)
                if body == HANGS:
                    await reader.read()  # until the client has closed
                    break
                head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write((head + body).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port())
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a> ' for path in paths)


async def fetched(db: Database, domain: Domain) -> int:
    found = await rows(db, "SELECT count(*) FROM page WHERE domain_id = %s AND version > 0", domain.id)
    return int(found[0][0])


async def test_pages_that_hang_do_not_keep_the_others_from_being_found(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        if path == "/robots.txt":
            return 404, ""
        if path.startswith("/hang"):
            return 200, HANGS
        hang = [f"/hang{n}" for n in range(8)]
        return 200, links(*hang, *hang, *(f"/page{n}" for n in range(30))) if path == "/" else "<p>well"

    async with site(answer) as (url, _):
        domain = await register(db, url, parallelism=4)
        shift = await crawl(db, at=START, settings=IMPATIENT)

        assert await fetched(db, domain) == 31
        assert not shift.suspensions
        assert await coins_missing(db) == 0


async def test_one_page_that_hangs_is_its_own_fault_where_the_domain_answers(db: Database) -> None:
    broken = False

    def answer(path: str) -> tuple[int, str]:
        return (200, HANGS) if broken and path == "/" else (404, "") if path == "/robots.txt" else (200, "<p>well")

    async with site(answer) as (url, _):
        domain = await register(db, url)
        await crawl(db, at=START, settings=IMPATIENT)
        broken = True
        shift = await recrawl(db, domain, at=START + DAY / 2, settings=IMPATIENT)

    assert not shift.suspensions
    assert await rows(db, "SELECT failures FROM page") == [(1,)]


async def test_a_page_that_is_always_busy_does_not_throttle_its_domain(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        if path in {"/robots.txt", "/busy"}:
            return (404 if path == "/robots.txt" else 503), ""
        pages = [f"/page{n}" for n in range(40)]
        if path != "/" and path not in pages:
            return 404, ""
        own = "".join(chr(97 + int(digit)) for digit in path if digit.isdigit())
        return 200, links("/busy", "/busy#again", *pages) if path == "/" else f"<p>well, says {own} again"

    async with site(answer) as (url, _):
        domain = await register(db, url, parallelism=1)
        at = START
        for _ in range(4):
            await crawl(db, at=at, settings=IMPATIENT)
            at += timedelta(minutes=2)

        assert await fetched(db, domain) == 41
        refusals = await rows(db, "SELECT rejections FROM domain_state")
        assert refusals[0][0] <= 3  # when all others are fetched, only the busy page is requested


async def test_a_budget_counts_robots_txt_and_its_redirects(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        return 200, "User-agent: *\nAllow: /" if path == "/robots.txt" else links("/a", "/b", "/c", "/d")

    async with site(answer) as (url, asked):
        await register(db, url, budget_per_day=3)
        await crawl(db, at=START)
        assert len(asked) == 3
        await crawl(db, at=START + timedelta(hours=1))
        assert len(asked) == 3


async def test_no_more_pages_are_known_than_allowed_whatever_becomes_of_them(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        return 200, "User-agent: *\nDisallow: /secret" if path == "/robots.txt" else links(
            *(f"/secret{n}" for n in range(50)), *(f"/page{n}" for n in range(50))
        )

    async with site(answer) as (url, _):
        domain = await register(db, url, max_pages=20)
        await crawl(db, at=START)

    known = await rows(db, "SELECT count(*) FROM page WHERE domain_id = %s", domain.id)
    counted = await rows(db, "SELECT tracked FROM domain_state")
    assert known == counted == [(20,)]


async def test_after_a_change_of_scope_pages_are_read_again_once(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        return (404, "") if path == "/robots.txt" else (200, links("/a", "/b", "/other/c"))

    async with site(answer) as (url, _):
        domain = await register(db, url, exclude=("/other/",))
        await crawl(db, at=START)
        wider = DomainSettings(allow_private=True, delay=timedelta(0), parallelism=8)
        domain = await domains.change_settings(db, domain, wider, at=START + DAY)
        once = await crawl(db, at=START + DAY)
        again = await recrawl(db, domain, at=START + 2 * DAY)

    assert once.stats.parsed_bodies == 4
    assert again.stats.parsed_bodies == 0
    assert await fetched(db, domain) == 4


async def test_a_paused_domain_is_released_soon(db: Database) -> None:
    quick = Settings(lease_term=timedelta(seconds=2))

    def answer(path: str) -> tuple[int, str]:
        number = int(path.strip("/") or 0) if path != "/robots.txt" else 0
        return (404, "") if path == "/robots.txt" else (200, links(f"/{number + 1}"))

    async with site(answer) as (url, asked):
        domain = await register(db, url, max_depth=30_000)
        crawling = asyncio.create_task(crawl(db, at=START, settings=quick))
        while len(asked) < 10:
            await asyncio.sleep(0.01)
        await domains.set_paused(db, domain, paused=True)
        shift = await crawling

    assert shift.stats.visits < 20_000
    assert await rows(db, "SELECT lease_token FROM domain_state") == [(None,)]


async def test_a_pattern_that_was_stored_before_it_was_refused_holds_up_its_own_domain_alone(db: Database) -> None:
    def answer(path: str) -> tuple[int, str]:
        return (404, "") if path == "/robots.txt" else (200, links("/a"))

    async with site(answer) as (url, asked), site(answer) as (other, _):
        domain, well = await register(db, url), await register(db, other)
        stored = "exclude = ARRAY['re:(?=/private)'], own_settings = array_append(own_settings, 'exclude')"
        await rows(db, f"UPDATE domain SET {stored} WHERE id = %s RETURNING 1", domain.id)
        result = await crawl(db, at=START)
        held = result.suspensions[domain.authority]

        assert asked == []
        assert held.reason == "bad_pattern"
        assert timedelta(hours=1) <= held.until - START < timedelta(hours=2)
        assert await fetched(db, well) == 2
        (found,) = [each.domain for each in await domains.list_domains(db) if each.domain.id == domain.id]
        assert "have no look-around" in found.settings.problems[0]

        with pytest.raises(BadInput, match="could run forever"):
            await domains.change_settings(db, well, replace(well.settings, exclude=(r"re:(a)\1",)), at=START)
        slower = await domains.change_settings(db, found, replace(found.settings, max_depth=3), at=START)
        await domains.change_settings(db, slower, replace(slower.settings, exclude=("/private",)), at=START)
        await crawl(db, at=START + timedelta(hours=3))
        assert await fetched(db, domain) == 2
