"""A site that changes text on all its pages: one event for the site, and none for a page."""

import asyncio
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

from crawler.core.domain import Domain
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import BlockChange, ChangeFilter, FeedItem
from crawler.store.report.feed import EventKind
from tests.engine.crawls import DAY, RECRAWL, START, crawl, environ, recrawl, register, rows
from tests.engine.scripted import Said, Scripted, events, scripted

FRUITS = ("apples", "pears", "plums", "grapes", "figs", "dates", "limes", "melons")
PAGES = {f"/{n or ''}": word for n, word in enumerate(FRUITS)}
MENU = ("Home", "News", "Contact")


def site_of(menu: tuple[str, ...] = MENU, *, year: int = 2019) -> dict[str, Said]:
    links = "".join(f'<a href="{path}">{word}</a>' for path, word in PAGES.items())
    entries = "".join(f"<li>{entry}</li>" for entry in menu)
    return {
        path: Said(
            body=f"<title>{word}</title><nav><ul>{entries}</ul></nav><main><h1>{word}</h1>"
            + "".join(f"<p>Paragraph {n} of {word} says what there is to say of {word}." for n in range(5))
            + f"{links}</main><footer>All rights kept {year}</footer>"
        )
        for path, word in PAGES.items()
    }


async def told(db: Database, domain: Domain) -> list[FeedItem]:
    """Return the feed's entries about the site itself."""
    await report.append_to_feed(db, at=START)
    found = await report.read_feed(db, ChangeFilter(domain_id=domain.id), with_blocks=True)
    return [item for item in found if item.change is EventKind.TEMPLATE]


async def visits(db: Database, site: Scripted, domain: Domain, *days: float) -> None:
    for day in days:
        await site.recrawl(db, domain, at=START + day * DAY)


async def test_a_new_entry_of_the_menu_is_one_event_of_the_site_and_no_page_changed(db: Database) -> None:
    async with scripted(db, site_of()) as (site, domain):
        await site.crawl(db, at=START)
        await visits(db, site, domain, 1)
        site.pages = site_of((*MENU, "Shop"), year=2026)
        await visits(db, site, domain, 40, 41, 42)

        assert await events(db, domain) == [("/", "template")]
        (found,) = await told(db, domain)
        assert (found.url, found.pages) == (domain.root, len(PAGES))
        assert set(found.blocks) == {
            BlockChange(found.parts[0], None, "Shop"),
            BlockChange(found.parts[0], "All rights kept 2019", "All rights kept 2026"),
        }


async def test_a_page_with_news_of_its_own_has_its_event_beside_the_sites(db: Database) -> None:
    async with scripted(db, site_of()) as (site, domain):
        await site.crawl(db, at=START)
        site.pages = site_of((*MENU, "Shop"))
        plums = site.pages["/2"]
        site.pages["/2"] = Said(body=plums.body.replace("Paragraph 2", "Paragraph two"))
        await visits(db, site, domain, 2, 3)

        assert sorted(await events(db, domain)) == [("/", "template"), ("/2", "changed")]


async def test_pages_that_change_one_by_one_are_no_event_of_the_site(db: Database) -> None:
    async with scripted(db, site_of()) as (site, domain):
        await site.crawl(db, at=START)
        edited = list(PAGES)[:5]
        for day, path in enumerate(edited, start=1):
            site.pages[path] = Said(body=site.pages[path].body.replace("Paragraph 3", f"On day {day} paragraph 3"))
            await visits(db, site, domain, day)

        assert await told(db, domain) == []
        assert len(await events(db, domain)) == len(edited)


async def test_an_edit_that_is_met_lease_by_lease_is_told_once(db: Database) -> None:
    async with scripted(db, site_of()) as (site, domain):
        await site.crawl(db, at=START)
        site.pages = site_of((*MENU, "Shop"))
        for day, path in enumerate(list(PAGES)[:5], start=1):  # one page per lease; the first two cannot recognize it
            await site.recrawl(db, domain, at=START + day * DAY, prefix=path if path != "/" else "/")

        assert [path for path, kind in await events(db, domain) if kind == "template"] == ["/"]


async def test_killed_wherever_it_is_it_tells_the_edit_once(db: Database, database_url: str, tmp_path: Path) -> None:
    async with scripted(db, site_of()) as (site, _):
        domain = await register(db, f"http://127.0.0.1:{site.port}", delay=timedelta(seconds=0.02), parallelism=1)
        await crawl(db, at=START)
        site.pages = site_of((*MENU, "Shop"))

        kills = 0
        for day, requests in enumerate((4, 6), start=1):  # of nine or more, with a record for every two
            at = START + day * DAY
            await domains.request_refresh(db, domain, prefix=domain.root, at=at)
            kills += await is_killed(site, domain, database_url, tmp_path, at=at, requests=requests)
            await rows(db, "UPDATE domain_state SET leased_until = now() WHERE lease_token IS NOT NULL RETURNING 1")
        await recrawl(db, domain, at=START + 8 * DAY)
        await recrawl(db, domain, at=START + 9 * DAY)

        assert kills == 2
        assert len(await told(db, domain)) == 1
        numbers = await rows(db, "SELECT array_agg(number ORDER BY number) FROM event WHERE domain_id = %s", domain.id)
        assert numbers[0][0] == list(range(1, len(numbers[0][0]) + 1))


async def is_killed(
    site: Scripted, domain: Domain, database_url: str, home: Path, *, at: datetime, requests: int
) -> bool:
    """Run `recrawl crawl` and kill it with -9 after this many requests; return whether it was still running then."""
    enough = len(site.asked) + requests
    process = subprocess.Popen(
        [str(RECRAWL), "crawl", domain.authority, "--at", at.isoformat(), "--json"],
        env=environ(
            database_url, home, RECRAWL_LEASE_TERM="2", RECRAWL_MAX_BATCH_SIZE="2", RECRAWL_MAX_BATCH_AGE="0.2"
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and len(site.asked) < enough:
        await asyncio.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    return await asyncio.to_thread(process.wait) == -signal.SIGKILL
