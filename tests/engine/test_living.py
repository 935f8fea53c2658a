"""Crawls of the living site, whose true state is known."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.store.database import Database
from labs.demo.server import LivingServer
from labs.demo.site import CALENDAR, DISALLOWED, LIARS, Behaviour, Serving
from tests.engine.crawls import DAY, QUICK, START, coins_missing, crawl, page, recrawl, rows, versions


async def test_a_first_crawl_stores_every_page_that_a_polite_crawler_can_find_and_asks_once_for_each(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    shift = await crawl(db, at=START)

    asked = Counter(entry.path for entry in living.journal.entries)
    months = [path for path in asked if path.startswith(CALENDAR)]
    refused = await rows(db, "SELECT count(*) FROM frontier WHERE state = 'excluded'")
    assert set(asked.values()) == {1}
    assert "/robots.txt" in asked
    assert not any(path.startswith(DISALLOWED) for path in asked)
    assert refused[0][0] > 0
    assert 0 < len(months) <= 12  # the endless calendar ends at the depth limit
    found = await versions(db, domain)
    broken = {path for path in living.site.paths(START) if (await page(db, domain, path))["status"] == 500}
    assert set(living.site.paths(START)) - broken <= set(found)
    assert shift.stats.changes[Change.ADDED] == len(found)
    assert await coins_missing(db) == 0


@pytest.mark.soak
async def test_the_second_look_sends_both_validators_verbatim(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    living.journal.clear()

    await recrawl(db, domain, at=START + timedelta(hours=1))

    kept = {
        "/" + url.removeprefix(domain.root): (etag, modified)
        for url, etag, modified in await rows(db, "SELECT url, etag, last_modified FROM page WHERE version > 0")
    }
    sent = {entry.path: (entry.if_none_match, entry.if_modified_since) for entry in living.journal.entries}
    both = [path for path in living.site.paths(START) if living.site.serving(path) is Serving.BOTH and path in kept]
    conditional = [path for path in both if sent[path] != (None, None)]  # all others are validator checks
    assert len(conditional) > 10
    assert len(conditional) >= 0.6 * len(both)
    assert all(sent[path] == kept[path] and None not in sent[path] for path in conditional)


@pytest.mark.soak
async def test_an_unchanged_site_is_not_read_again(db: Database, domain: Domain, living: LivingServer) -> None:
    first = await crawl(db, at=START)

    second = await recrawl(db, domain, at=START + timedelta(minutes=1))

    assert second.stats.not_modified > first.stats.visits / 3
    assert second.stats.changes[Change.CHANGED] == 0
    assert second.stats.saved_bytes > 0


@pytest.mark.soak
async def test_changes_are_found_and_clocks_and_tokens_are_none(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    before = await versions(db, domain)
    later = START + 20 * DAY
    living.set_instant(later)

    await recrawl(db, domain, at=later)

    after = await versions(db, domain)
    site = living.site
    honest = [
        path for path in before if site.find(path) and site.exists(path, later) and site.serving(path) not in LIARS
    ]
    wrong = [path for path in honest if (after[path] > before[path]) != bool(site.changes(path, START, later))]
    assert wrong == []
    assert any(site.behaviour(path) is Behaviour.CLOCK for path in honest)
    assert any(after[path] > before[path] for path in honest)


@pytest.mark.soak
async def test_what_vanishes_is_gone_only_when_it_is_confirmed(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    await crawl(db, at=START)
    known = await versions(db, domain)
    end = START + 44 * DAY
    living.set_instant(end)
    gone = [p for p in known if living.site.find(p) and living.site.behaviour(p) is Behaviour.VANISHING]

    await recrawl(db, domain, at=end)
    first = {path: (await page(db, domain, path))["state"] for path in gone}
    await recrawl(db, domain, at=end + 2 * DAY)
    second = {path: (await page(db, domain, path))["state"] for path in gone}

    assert gone
    for path in gone:
        sheet = living.site.sheet(path)
        assert first[path] == ("gone" if sheet.ends_as == 410 else "fetched")
        assert second[path] == "gone"
    assert set(known) <= set(await versions(db, domain))  # fetched pages are still known


@pytest.mark.soak
async def test_a_moved_page_takes_its_cash_along(db: Database, domain: Domain, living: LivingServer) -> None:
    await crawl(db, at=START)
    end = START + 44 * DAY
    living.set_instant(end)

    await recrawl(db, domain, at=end)

    moved = [p for p in living.site.sheets_by_path if living.site.behaviour(p) is Behaviour.MOVED]
    assert moved
    for path in moved:
        target = living.site.sheet(path).moves_to
        assert target is not None
        assert (await page(db, domain, path))["state"] == "moved"
        assert (await page(db, domain, target))["state"] == "fetched"
    assert await coins_missing(db) == 0


async def test_of_two_crawls_at_once_one_takes_the_lease_and_parallelism_holds(
    db: Database, domain: Domain, living: LivingServer
) -> None:
    living.slow(0.002)

    shifts = await asyncio.gather(*(crawl(db, at=START, holder=f"crawl-{n}") for n in range(2)))

    worked = [shift for shift in shifts if shift.stats.leases]
    assert len(worked) == 1
    assert 2 <= living.journal.counts.most_in_flight <= 8


async def test_requests_keep_the_delay_from_the_end_of_an_answer(db: Database, living: LivingServer) -> None:
    from tests.engine.crawls import register

    delay = timedelta(milliseconds=500)
    await register(db, living.url, delay=delay, parallelism=3)

    await crawl(db, at=START, pages=4)

    entries = sorted(living.journal.entries, key=lambda entry: entry.began)
    assert len(entries) == 5
    gaps = [after.began - before.ended for before, after in pairwise(entries)]
    # The server notes the end of a response slightly later than the crawler may have read it.
    assert min(gaps) >= delay.total_seconds() - 0.3


async def test_retry_after_is_kept_across_restarts(db: Database, domain: Domain, living: LivingServer) -> None:
    await crawl(db, at=START, pages=20)
    living.throttle(1000, retry_after="7200")
    at = START + DAY
    refused = await recrawl(db, domain, at=at)
    living.throttle(0, retry_after="0")
    living.journal.clear()

    too_early = await crawl(db, at=at + timedelta(minutes=119))
    asked_too_early = living.journal.counts.requests
    in_time = await crawl(db, at=at + timedelta(minutes=121), pages=10)

    assert set(refused.suspensions) == {domain.authority}
    assert refused.stats.requests <= 8 + 1  # requests in flight when the first one returned
    assert (too_early.stats.leases, asked_too_early) == (0, 0)
    assert in_time.stats.visits == 10


@pytest.mark.soak
async def test_an_outage_says_nothing_about_pages(db: Database, domain: Domain, living: LivingServer) -> None:
    await crawl(db, at=START)
    before = await rows(db, "SELECT key, version, etag, rate_a, rate_b, failures FROM page ORDER BY key")
    living.outage(START + DAY, START + 4 * DAY, status=0)
    at = START + DAY
    spent = 0
    while at < START + 4 * DAY:
        living.set_instant(at)
        shift = await recrawl(db, domain, at=at)
        spent += shift.stats.requests
        at += timedelta(hours=7)

    after = await rows(db, "SELECT key, version, etag, rate_a, rate_b, failures FROM page ORDER BY key")
    gone = await rows(db, "SELECT count(*) FROM visit WHERE change IN ('gone', 'moved') AND at > %s", START + DAY)
    assert before == after
    assert gone[0][0] == 0
    assert spent < 60


@pytest.mark.soak
async def test_a_site_that_comes_back_is_crawled_again(db: Database, domain: Domain, living: LivingServer) -> None:
    await crawl(db, at=START)
    living.outage(START + DAY, START + 2 * DAY, status=503)
    living.set_instant(START + DAY)
    await recrawl(db, domain, at=START + DAY)
    living.set_instant(START + 5 * DAY)

    shift = await crawl(db, at=START + 5 * DAY)

    assert shift.stats.visits > 50
    assert not shift.suspensions


async def test_a_limit_on_pages_is_exact(db: Database, domain: Domain, living: LivingServer) -> None:
    shift = await crawl(db, at=START, pages=17)

    assert shift.stats.visits == 17
    assert living.journal.counts.requests == 18  # 17 pages and robots.txt


@pytest.mark.parametrize("gap", [3 * DAY, pytest.param(DAY, marks=pytest.mark.soak)], ids=["every third day", "daily"])
async def test_a_month_of_shifts_keeps_every_invariant(
    db: Database, domain: Domain, living: LivingServer, gap: timedelta
) -> None:
    at: datetime = START
    while at < START + 30 * DAY:
        living.set_instant(at)
        await crawl(db, at=at, settings=QUICK)
        assert await coins_missing(db) == 0
        at += gap

    due = await rows(db, "SELECT count(*) FROM frontier WHERE state <> 'unfetched' AND due_at <= %s", at - gap)
    assert due[0][0] == 0
