"""A site that is rebuilt as a whole: the first changed pages make the others due, but changed boilerplate does not.

The plan learns this from visits, with a delay of some hours.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.store import plan, report
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, rows
from tests.engine.scripted import Said, Scripted, scripted

HOUR = timedelta(hours=1)
FIRST = ("amber", "birch", "cedar", "delta", "ember")
SOME = ("fjord", "grove", "heath", "inlet", "knoll", "ledge", "marsh", "north", "ocean", "plain", "ridge", "shore")
MORE = ("trail", "under", "vista", "woods", "yield", "basin", "cliff", "dunes", "eaves", "field", "glade", "haven")
REST = SOME + MORE
EDITIONS = ("alpha", "bravo", "charlie", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima", "mike", "oscar")


def built(edition: str, frame: str) -> dict[str, Said]:
    """Return the whole site. edition: of the pages' own text.  frame: text that all pages contain."""
    names = {f"/first/{word}": word for word in FIRST} | {f"/rest/{word}": word for word in REST}
    links = "".join(f'<li><a href="{path}">{word}</a>' for path, word in names.items())
    pages = {"/": Said(body=f"<nav>Manual {frame}</nav><main><h1>Contents</h1><ul>{links}</ul></main>")}
    for path, word in names.items():
        body = "".join(
            f"<p>The {word} of {edition} has {word}s in its {place}." for place in ("north", "south", "east")
        )
        pages[path] = Said(
            body=f"<title>{word}</title><nav>Manual {frame}</nav><main>{body}</main><footer>Built {frame}</footer>"
        )
    return pages


@asynccontextmanager
async def schooled(db: Database) -> AsyncIterator[tuple[Scripted, Domain, datetime]]:
    """Yield a site of which ten deploys were crawled, and the next day.

    Each deploy was crawled by five pages first and an hour later by all. A day before each deploy all pages are
    visited, so that hardly one of them is due because of its change rate.
    """
    async with scripted(db, built(EDITIONS[0], "zero")) as (site, domain):
        await site.crawl(db, at=START)
        at = START
        for edition in EDITIONS[1:11]:
            await site.recrawl(db, domain, at=at + 9 * DAY)
            at += 10 * DAY
            site.pages = built(edition, edition)
            await site.recrawl(db, domain, at=at, prefix="/first/")
            await site.recrawl(db, domain, at=at + HOUR)
            await plan.learn_activity(db, domain, at=at + 2 * HOUR)
        yield site, domain, at + DAY


async def rest_visited(site: Scripted, db: Database, domain: Domain, *, at: datetime) -> set[str]:
    """Return which other pages are visited just after a visit of the first pages and a plan."""
    await site.recrawl(db, domain, at=at, prefix="/first/")
    await plan.learn_activity(db, domain, at=at + 6 * HOUR)
    site.asked.clear()
    await site.recrawl(db, domain, at=at + 6 * HOUR, prefix="/first/")
    return {path for path, _ in site.asked if path.startswith("/rest/")}


@pytest.mark.soak
async def test_the_first_pages_found_changed_call_for_the_rest_after_the_next_plan(db: Database) -> None:
    async with schooled(db) as (site, domain, at):
        assert await rest_visited(site, db, domain, at=at) == set()

        site.pages = built(EDITIONS[10], "another")  # changed boilerplate makes nothing due
        assert await rest_visited(site, db, domain, at=at + 7 * HOUR) == set()

        site.pages = built(EDITIONS[11], "new")
        assert await rest_visited(site, db, domain, at=at + 14 * HOUR) == {f"/rest/{word}" for word in REST}


@pytest.mark.soak
async def test_report_and_view_take_pages_for_older_after_a_deploy(db: Database) -> None:
    async with schooled(db) as (_, domain, at):
        old = {line.url: line.freshness for line in await report.list_top_pages(db, domain, top=100, at=at)}
        await leap(db, to=at + HOUR)
        new = {line.url: line.freshness for line in await report.list_top_pages(db, domain, top=100, at=at)}

        for word in REST:
            url = Url(f"{domain.root}rest/{word}")
            assert (old[url] or 0) - (new[url] or 0) > 0.2
        await the_view_takes_pages_for_older_just_as_the_report_does(db, domain)


async def leap(db: Database, *, to: datetime) -> None:
    """Let the site's activity advance by thirty days until then."""
    leapt = """
        UPDATE domain_state
           SET activity_at = activity_at || %s,
               activity_ahead = activity_ahead || activity_ahead[cardinality(activity_ahead)] + 30
     RETURNING 1
    """
    await rows(db, leapt, to)


async def the_view_takes_pages_for_older_just_as_the_report_does(db: Database, domain: Domain) -> None:
    # The view always uses the real time.
    now = datetime.now(UTC)
    await rows(db, "UPDATE page SET last_good_at = %s RETURNING 1", now - DAY)
    await rows(
        db,
        "UPDATE domain_state SET activity_at = ARRAY[%s, %s]::timestamptz[], activity_ahead = '{0, 30}' RETURNING 1",
        now - 2 * HOUR,
        now - HOUR,
    )
    told = {line.url: line.freshness for line in await report.list_top_pages(db, domain, top=100, at=now)}
    shown = dict(await rows(db, "SELECT url, freshness FROM report_page WHERE freshness IS NOT NULL"))
    await rows(db, "UPDATE domain_state SET activity_at = '{}', activity_ahead = '{}' RETURNING 1")
    before = dict(await rows(db, "SELECT url, freshness FROM report_page WHERE freshness IS NOT NULL"))

    assert shown == pytest.approx({url: fresh for url, fresh in told.items() if fresh is not None}, abs=1e-3)
    assert all(before[f"{domain.root}rest/{word}"] - shown[f"{domain.root}rest/{word}"] > 0.2 for word in REST)
