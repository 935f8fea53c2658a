"""What a site shows instead of its pages: walls, soft 404s, truncated bodies. No stored content is lost."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.engine.stats import ShiftResult
from crawler.format.explanation import format_due
from crawler.store.database import Database
from crawler.store.report import explain_url, read_domain_report
from tests.engine.crawls import DAY, QUICK, START, coins_missing, crawl, page, recrawl, register, rows, versions
from tests.ports import next_port

HOUR = timedelta(hours=1)
PAGES = [f"/page{n}" for n in range(8)]
Show = Callable[[str], bytes]


def prose(seed: int, words: int = 120) -> str:
    chance = random.Random(seed)
    return " ".join("".join(chance.choices("abcdefghiklmnoprstu", k=chance.randint(3, 9))) for _ in range(words))


def html(inside: str, *, title: str = "A site") -> str:
    links = "".join(f"<li><a href='{path}'>{path}</a>" for path in PAGES)
    return f"<html><head><title>{title}</title></head><body><ul>{links}</ul><div>{inside}</div></body></html>"


def answer(body: str, *, status: int = 200, length: int | None = None, etag: str = "") -> bytes:
    """Build a response. length: the Content-Length; negative: none is sent, and the connection ends the body."""
    data = body.encode()
    said = len(data) if length is None else length
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
    head += f"Content-Length: {said}\r\n" if said >= 0 else ""
    head += f'ETag: "{etag}"\r\n' if etag else ""
    return head.encode() + b"\r\n" + data


def well(path: str, *, more: str = "") -> bytes:
    """Return the normal content of a page; 404 for a missing one."""
    if path not in {"/", *PAGES}:
        return answer("not here", status=404)
    seed = sum(path.encode())
    text = f"<h1>{path}</h1><p>{prose(seed)}</p><p class=end>{prose(-seed - 1)}</p><p>{more}</p>"
    return answer(html(text), etag=f"{path}{more}")


def everywhere(inside: str) -> Show:
    """Show one text on every page, with the address and a unique number."""
    numbers = iter(range(10**6, 10**7, 7919))

    def show(path: str) -> bytes:
        if path == "/robots.txt":
            return answer("", status=404)
        return answer(
            f"<html><body>{inside}<p>You wanted {path}. Number {next(numbers)}.</p></body></html>", etag="wall"
        )

    return show


class Site:
    """The current content, and all requests. It does not take HEAD: visits without a body are no evidence here."""

    def __init__(self) -> None:
        self.show: Show = well
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
        self.asked.append(path)
        writer.write(self.show(path) if method == "GET" else answer("", status=405))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", next_port())
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


async def events(db: Database) -> list[tuple[str, str]]:
    """Return the events but those of added pages and of failures."""
    return await rows(
        db,
        "SELECT change, substring(url from '[^/]*$') FROM event"
        " WHERE change NOT IN ('added', 'failing', 'recovered') ORDER BY number",
    )


async def knowledge(db: Database) -> list[tuple[object, ...]]:
    """Return what was learned about each page."""
    return await rows(
        db, "SELECT url, version, main_digest, etag, rate_a, rate_b, received_bytes FROM page ORDER BY url"
    )


async def begun(db: Database, made: Site) -> tuple[Domain, datetime]:
    """Return a domain that was crawled once and revisited once."""
    domain = await register(db, made.url)
    await crawl(db, at=START)
    await recrawl(db, domain, at=START + DAY)
    assert await versions(db, domain) == dict.fromkeys(["/", *PAGES], 1)
    return domain, START + DAY


def found(shift: ShiftResult) -> dict[str, int]:
    return {change.value: count for change, count in shift.stats.changes.items() if count}


async def test_a_login_wall_for_a_day_and_a_half_loses_nothing(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        before = await knowledge(db)

        made.show = everywhere("<form><p>Who are you? <input name=n> <INPUT TYPE='password' NAME=p> Enter</form>")
        for n in range(1, 4):
            shift = await recrawl(db, domain, at=at + n * DAY / 2)
            assert set(found(shift)) == {"unknown"}
            assert shift.stats.reasons["login"] == 9
        assert await knowledge(db) == before

        made.show = lambda path: well(path, more="One thing more." if path == "/page3" else "")
        back = await recrawl(db, domain, at=at + 4 * DAY)

    assert found(back) == {"unchanged": 8, "changed": 1}
    assert await events(db) == [("changed", "page3")]
    assert await coins_missing(db) == 0


async def test_a_login_wall_is_told_two_days_after_it_came(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = everywhere("<form><p>Who are you? <input name=n> <INPUT TYPE='password' NAME=p> Enter</form>")
        start = at + DAY
        await recrawl(db, domain, at=start)
        withheld = await rows(db, "SELECT count(*), min(withheld_since) FROM page WHERE withheld_since IS NOT NULL")
        at = start
        while not await events(db):
            at = max((await rows(db, "SELECT min(due_at) FROM frontier"))[0][0], at + timedelta(minutes=1))
            assert at < start + 3 * DAY
            await crawl(db, at=at)
        await crawl(db, at=at + timedelta(minutes=1))

    assert withheld[0][0] == 9
    assert timedelta(0) <= withheld[0][1] - start < HOUR
    assert timedelta(0) <= at - start - 2 * DAY < HOUR
    assert {change for change, _ in await events(db)} <= {"changed", "template"}  # the same text everywhere
    assert await rows(db, "SELECT count(*) FROM page WHERE version = 2 AND withheld_since IS NULL") == [(9,)]


async def test_a_page_whose_content_was_withheld_for_two_days_comes_before_all_others(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        lost = {"/page3"}
        made.show = lambda path: (
            answer(html("<form><p>Who are you? <input name=n> <INPUT TYPE='password' NAME=p> Enter</form>"))
            if path in lost
            else well(path)
        )
        await recrawl(db, domain, at=at + DAY)
        assert (await page(db, domain, "/page3"))["reason"] == "login"
        later = at + DAY + 20 * DAY  # all pages are due, and page3 has the least value
        await rows(db, "UPDATE frontier SET due_at = %s RETURNING 1", later)
        await rows(db, "UPDATE page SET rate_b = 1e6 WHERE right(url, 5) = 'page3' RETURNING 1")
        made.asked.clear()
        await crawl(db, at=later, pages=1)

    assert made.asked[-1] == "/page3"


def coded(page: int, day: int) -> str:
    """Return text of which nine tenths are codes that are new each day."""
    return " ".join([f"w{n}page{page}" for n in range(20)] + [f"w{page}ord{day}x{n}" for n in range(180)])


def parts_list(page: int, day: int) -> str:
    lines = (f"<tr><td>M{page}x{day}{n}<td>{page}.{day}{n:02}<td>{1000 * page + 100 * day + n}" for n in range(30))
    return f"<table><tr><th>Part<th>Price<th>Stock{''.join(lines)}</table>"


async def test_pages_made_of_codes_and_numbers_are_told_when_all_of_their_rows_are_replaced(db: Database) -> None:
    paths = [f"/{kind}{n}" for kind in ("codes", "parts") for n in range(12)]
    days = dict.fromkeys(paths, 1)

    def show(path: str) -> bytes:
        if path == "/":
            return answer(html("".join(f"<a href='{each}'>{each}</a> " for each in paths)))
        if path not in paths:
            return answer("not here", status=404)
        kind, number = path[1:6], int(path[6:])
        return answer(f"<html><body><div>{(coded if kind == 'codes' else parts_list)(number, days[path])}</div>")

    async with site() as made:
        made.show = show
        domain = await register(db, made.url)
        await crawl(db, at=START)
        await recrawl(db, domain, at=START + DAY)
        replaced = [*paths[:6], *paths[12:]]
        days |= dict.fromkeys(replaced, 2)
        await recrawl(db, domain, at=START + 2 * DAY)

    assert sorted(await events(db)) == sorted(("changed", path[1:]) for path in replaced)


async def test_a_block_page_on_all_pages_for_an_hour_is_nobodys_version(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        before = await knowledge(db)

        made.show = everywhere("<h1>One moment</h1><p>We want to know whether a person is asking.</p>")
        in_a_row = await recrawl(db, domain, at=at + DAY)
        assert found(in_a_row) == {"unknown": 9}
        assert await knowledge(db) == before

        made.show = well
        back = await recrawl(db, domain, at=at + DAY + HOUR)

    assert found(back) == {"unchanged": 9}
    assert await events(db) == []


async def test_a_long_notice_on_all_pages_is_nobodys_version_either(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = everywhere(f"<p>{prose(1, 200)}</p>")
        in_a_row = await recrawl(db, domain, at=at + DAY)
        still = await recrawl(db, domain, at=at + 2 * DAY)
        made.show = well
        back = await recrawl(db, domain, at=at + 3 * DAY)

    assert found(in_a_row) == found(still) == {"unknown": 9}
    assert found(back) == {"unchanged": 9}


async def test_a_page_that_was_taken_away_without_a_404_is_gone_when_that_is_confirmed(db: Database) -> None:
    sorry = everywhere("<h1>Sorry</h1><p>Nothing of this name is here any more, or it never was.</p>")
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = lambda path: sorry(path) if path not in {"/", *PAGES} or path == "/page5" else well(path)

        await recrawl(db, domain, at=at + DAY)
        once = await page(db, domain, "/page5")
        assert (once["state"], once["reason"], once["version"]) == ("fetched", "soft_404", 1)
        await recrawl(db, domain, at=at + 2 * DAY)
        twice = await page(db, domain, "/page5")
        assert (twice["state"], twice["reason"], twice["version"]) == ("gone", "soft_404", 1)
        await recrawl(db, domain, at=at + 3 * DAY)

        made.show = well
        await recrawl(db, domain, at=at + 9 * DAY)

    assert await events(db) == [("gone", "page5"), ("restored", "page5")]
    assert len([path for path in made.asked if path not in {"/", "/robots.txt", *PAGES}]) <= 3
    assert await coins_missing(db) == 0


async def test_links_to_what_never_was_make_no_pages_where_a_domain_hides_its_404(db: Database) -> None:
    sorry = everywhere("<h1>Sorry</h1><p>Nothing of this name is here any more, or it never was.</p>")
    dead = [f"/dead{n}" for n in range(30)]
    async with site() as made:
        links = "".join(f"<a href='{path}'>there</a> " for path in dead)
        made.show = lambda path: (
            answer(html(links)) if path == "/" else sorry(path) if path not in PAGES else well(path)
        )
        domain = await register(db, made.url, parallelism=1)
        first = await crawl(db, at=START)
        assert first.stats.requests == len(made.asked)
        await recrawl(db, domain, at=START + DAY)

        kept = await versions(db, domain)

    assert sum(path in kept for path in dead) <= 6  # a probe is sent when four are nearly the same
    assert set(PAGES) <= set(kept)


async def test_a_body_that_ends_too_early_is_no_version(db: Database) -> None:
    full = well("/page2")
    body = full.split(b"\r\n\r\n", 1)[1].decode()
    cut = {
        "its length says more": answer(body[: len(body) // 2], length=len(body)),
        "within a tag": answer(body[: body.index("class=end")], length=-1),
        "half of the text": answer(body[: body.index("class=end") - 40], length=-1),
        "nothing at all": answer(""),
    }
    async with site() as made:
        domain, at = await begun(db, made)
        before = await knowledge(db)
        for n, (how, short) in enumerate(cut.items(), start=1):
            made.show = lambda path, short=short: short if path == "/page2" else well(path)  # type: ignore[misc]
            await recrawl(db, domain, at=at + 2 * n * HOUR)
            assert (await page(db, domain, "/page2"))["failures"] == n, how
        made.show = well
        back = await recrawl(db, domain, at=at + DAY)

    assert found(back) == {"unchanged": 9}
    assert [row[:4] for row in await knowledge(db)] == [row[:4] for row in before]
    assert await events(db) == []


async def test_a_page_that_becomes_short_is_changed_when_a_second_look_says_so(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = lambda path: answer(html("<p>It moved to the cellar.")) if path == "/page4" else well(path)

        await recrawl(db, domain, at=at + DAY)
        assert (await page(db, domain, "/page4"))["reason"] == "shrunk"
        await crawl(db, at=at + DAY + 2 * HOUR)  # it is due anyway

    assert await events(db) == [("changed", "page4")]
    assert (await page(db, domain, "/page4"))["version"] == 2


async def test_explain_says_what_stands_in_place_of_a_page(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = lambda path: answer("") if path == "/page4" else well(path)
        await recrawl(db, domain, at=at + DAY)

        url = Url(f"{domain.root}page4")
        known = await explain_url(db, domain, url, at=at + DAY, defaults=QUICK.defaults)

    assert known.page is not None
    assert "1 visit in a row failed (its body is empty)" in format_due(known, known.page, today=None, exclusion="")
    redirect = replace(known.page, failures=0, version=0, reason="http_302")
    assert "it has no text of its own (302 Found)" in format_due(known, redirect, today=None, exclusion="")
    interrupted = replace(known.page, failures=0, reason="lease")
    assert "its last visit gave no result (interrupted by" in format_due(known, interrupted, today=None, exclusion="")


async def test_withheld_content_is_counted_in_the_report_and_told_by_explain(db: Database) -> None:
    async with site() as made:
        domain, at = await begun(db, made)
        made.show = lambda path: (
            answer(html("<form><p>Who are you? <input name=n> <INPUT TYPE='password' NAME=p> Enter</form>"))
            if path == "/page4"
            else well(path)
        )
        at += DAY
        await recrawl(db, domain, at=at)
        known = await explain_url(db, domain, Url(f"{domain.root}page4"), at=at, defaults=QUICK.defaults)
        told = await read_domain_report(db, domain, at=at + HOUR, window=DAY)
        made.show = well
        await crawl(db, at=at + 2 * HOUR)
        after = await read_domain_report(db, domain, at=at + 3 * HOUR, window=DAY)

    assert known.page is not None
    assert "Its new content has been withheld since 2026-01-03 00:00" in format_due(
        known, known.page, today=None, exclusion=""
    )
    assert "visit from 2026-01-05 00:00" in format_due(known, known.page, today=None, exclusion="")
    assert (told and told.withheld, after and after.withheld) == (1, 0)
