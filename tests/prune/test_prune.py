"""What goes of a domain's past, and what stays whatever happens meanwhile."""

import asyncio
import dataclasses
import os
import random
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.http.urls import Authority, compute_page_key
from crawler.core.retention import DatedVersion, select_stored_versions
from crawler.core.visit.state import State
from crawler.errors import CursorTooOld
from crawler.prune import enforce_quota, prune_domain, prune_domains
from crawler.store import domains, record, report, subscriptions
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind
from crawler.store.retention import versions
from crawler.store.retention.vacuum import vacuum
from crawler.store.subscriptions import SubscriptionOptions
from tests.engine.crawls import rows
from tests.store.conftest import START
from tests.store.made_up import url
from tests.store.many_versions import DAY, PAGES, live, words_of

DAYS = 45
KEEP: dict[str, Any] = {"keep_versions": 3, "keep_daily": 10 * DAY, "keep_weekly": 30 * DAY, "keep_monthly": 365 * DAY}
NOW = START + 400 * DAY
ROUNDS = int(os.environ.get("RECRAWL_PRUNE_KILLS", "2"))


async def keep(db: Database, domain: Domain, **wanted: Any) -> Domain:
    settings = replace(domain.settings, **(KEEP | wanted))
    return await domains.change_settings(db, domain, settings, at=START)


async def kept(db: Database, domain: Domain) -> dict[tuple[str, int], bool]:
    """Every version by page and number, and whether its text is there."""
    found = await rows(
        db,
        "SELECT p.url, s.number, s.is_stored, s.text <> '' FROM snapshot s JOIN page p USING (domain_id, key)"
        " WHERE domain_id = %s",
        domain.id,
    )
    assert all(is_stored == has_text for _, _, is_stored, has_text in found)
    return {(address, number): is_stored for address, number, is_stored, _ in found}


async def bytes_of_versions(db: Database) -> int:
    """What the tables of versions take."""
    found = await rows(
        db,
        "SELECT sum(pg_table_size(k.relid)) FROM unnest(ARRAY['snapshot', 'content']) AS t(name),"
        " pg_partition_tree(t.name::regclass) k WHERE k.isleaf",
    )
    return int(found[0][0])


async def room_is_made(db: Database, *, at_most: float) -> bool:
    """Whether versions take no more once all room is given back; rows that Postgres itself is counting go later."""
    for _ in range(20):
        assert await vacuum(db, full=True) == []
        if await bytes_of_versions(db) < at_most:
            return True
    return False


async def as_settings_say(db: Database, domain: Domain) -> dict[tuple[str, int], bool]:
    """The same as it should be: by the function that chooses, of all versions that there ever were."""
    past: dict[str, list[DatedVersion]] = {}
    for address, number, at in await rows(
        db, "SELECT p.url, s.number, s.at FROM snapshot s JOIN page p USING (domain_id, key) ORDER BY s.number"
    ):
        past.setdefault(address, []).append(DatedVersion(number=number, at=at))
    (last,) = (await rows(db, "SELECT last_visit_at FROM domain_state"))[0]
    stays = {address: select_stored_versions(of, domain.settings, now=last) for address, of in past.items()}
    return {(address, each.number): each.number in stays[address] for address, of in past.items() for each in of}


async def bodies(db: Database, domain: Domain) -> int:
    found = await rows(db, "SELECT count(*), count(DISTINCT digest) FROM content WHERE domain_id = %s", domain.id)
    referenced = await rows(
        db,
        "SELECT count(DISTINCT c.digest) FROM content c JOIN snapshot s ON s.domain_id = c.domain_id"
        " AND s.body_digest = c.digest AND s.is_stored WHERE c.domain_id = %s",
        domain.id,
    )
    assert found[0][0] == found[0][1] == referenced[0][0]
    return int(found[0][0])


async def test_what_goes_is_what_the_settings_say_and_nothing_else(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain)
    await live(db, domain, range(DAYS))
    before = await bodies(db, domain)
    told = [await report.list_versions(db, domain, url(domain, n)) for n in range(PAGES + 1)]
    foretold = await prune_domain(db, domain, at=NOW, dry_run=True)
    assert set((await kept(db, domain)).values()) == {True}

    done = await prune_domain(db, domain, at=NOW)

    assert await kept(db, domain) == await as_settings_say(db, domain)
    after = await bodies(db, domain)
    assert done.versions > 50
    assert done.bodies == before - after
    assert replace(foretold, freed_bytes=0, stored_bytes=0) == replace(done, freed_bytes=0, stored_bytes=0)
    assert abs(foretold.freed_bytes - done.freed_bytes) < done.freed_bytes / 10
    assert (
        done.stored_bytes
        == await versions.compute_stored_bytes(db, domain)
        < 0.4 * (done.freed_bytes + done.stored_bytes)
    )
    # When each version was seen, and what it changed, is told as before.
    again = [await report.list_versions(db, domain, url(domain, n)) for n in range(PAGES + 1)]
    assert [[(v.number, v.at, v.until, v.change, v.title) for v in of] for of in again] == [
        [(v.number, v.at, v.until, v.change, v.title) for v in of] for of in told
    ]
    assert await report.check_invariants(db) == []
    assert await room_is_made(db, at_most=0.7 * await bytes_of_versions(db))
    nothing = await prune_domain(db, domain, at=NOW)
    assert (nothing.versions, nothing.bodies, nothing.changes, nothing.visits) == (0, 0, 0, 0)
    await live(db, domain, range(DAYS, DAYS + 2))  # and it is compared with what was there
    newest = await report.read_version(db, domain, url(domain, 1))
    assert newest is not None
    assert newest.body is not None
    assert words_of(1, DAYS + 1).encode() in newest.body
    assert await report.check_invariants(db) == []


async def test_a_text_that_returns_is_known_for_one_although_it_was_thinned_out(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
    await live(db, domain, range(12))
    await prune_domain(db, domain, at=NOW)
    first = await report.read_version(db, domain, url(domain, 3), number=1)
    assert first is not None
    assert not first.version.is_stored
    assert (first.text, first.body) == ("", None)
    text_digest = (
        await rows(db, "SELECT text_digest FROM snapshot WHERE key = %s AND number = 1", compute_page_key(first.url))
    )[0]
    newest = (await rows(db, "SELECT version FROM page WHERE key = %s", compute_page_key(first.url)))[0]

    found = await record.load_stored_body(
        db, domain.id, compute_page_key(first.url), newest[0], text_digest=text_digest[0]
    )

    assert found is not None
    assert found.has_returned


async def test_a_quota_takes_the_oldest_first_and_never_the_newest(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_versions=1000)
    await live(db, domain, range(16))
    all_of_it = await versions.compute_stored_bytes(db, domain)
    domain = await keep(db, domain, keep_versions=1000, quota=all_of_it // 2)
    foretold = await prune_domain(db, domain, at=NOW, dry_run=True)

    done = await prune_domain(db, domain, at=NOW)

    assert all_of_it // 3 < done.stored_bytes <= all_of_it // 2
    assert done.excess_bytes == 0
    assert abs(foretold.versions - done.versions) <= 3
    gone = [
        number
        for (address, number), is_stored in (await kept(db, domain)).items()
        if address.endswith("/1") and not is_stored
    ]
    assert gone == list(range(1, len(gone) + 1))
    domain = await keep(db, domain, keep_versions=1000, quota=1)
    done = await prune_domain(db, domain, at=NOW)
    assert done.excess_bytes == done.stored_bytes - 1 > 0
    assert sum((await kept(db, domain)).values()) == PAGES + 1
    assert await report.check_invariants(db) == []


async def test_what_a_reader_of_the_feed_has_not_read_stays(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_changes=5 * DAY)
    await live(db, domain, range(15))
    end = await report.read_feed_end(db)
    await rows(db, "INSERT INTO feed_reader (name, position) VALUES ('slow', %s) RETURNING 1", end - 20)

    done = await prune_domain(db, domain, at=NOW)

    assert done.reader == "reader slow"
    assert done.unread > 0
    waiting = await rows(db, "SELECT url, version FROM report_change WHERE position > %s AND version > 0", end - 20)
    assert len(waiting) == 20
    there = await kept(db, domain)
    assert all(there[address, number] for address, number in waiting)
    assert all(there[address, number - 1] for address, number in waiting if number > 1)
    assert await report.read_forgotten_until(db, domain.id) == end - 20
    assert len(await report.read_feed(db, ChangeFilter(after=end - 20))) == 20

    await rows(db, "UPDATE feed_reader SET position = %s RETURNING 1", end)
    done = await prune_domain(db, domain, at=NOW)
    assert (done.unread, done.reader) == (0, "")
    with pytest.raises(CursorTooOld, match="export all pages again"):
        await report.read_feed(db, ChangeFilter(after=end - 20))
    assert await report.check_invariants(db) == []


async def test_what_a_subscriber_is_still_to_be_told_stays(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_changes=5 * DAY)
    wish = SubscriptionOptions(
        target="https://example.com/told", kinds=frozenset({EventKind.CHANGED}), domain_id=domain.id
    )
    subscription = await subscriptions.add_subscription(db, wish, at=START)
    begin = await report.read_feed_end(db)
    await live(db, domain, range(15))

    await prune_domain(db, domain, at=NOW)

    assert await report.read_forgotten_until(db, domain.id) <= begin
    assert await report.read_feed(db, ChangeFilter(after=begin))
    assert await subscriptions.remove_subscription(db, subscription.id)
    await prune_domain(db, domain, at=NOW)
    assert await report.read_forgotten_until(db, domain.id) > begin


async def test_a_paused_subscription_that_holds_versions_back_is_named_and_what_to_do(
    db: Database, domain: Domain
) -> None:
    domain = await keep(db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
    wish = SubscriptionOptions(target="https://example.com/told", kinds=frozenset({EventKind.CHANGED}))
    await live(db, domain, range(2))
    subscription = await subscriptions.add_subscription(db, wish, at=START)
    await subscriptions.pause_subscription(db, subscription.id, at=START + 2 * DAY)
    await live(db, domain, range(2, 16))
    foretold = await prune_domain(db, domain, at=NOW, dry_run=True)

    done = await prune_domain(db, domain, at=NOW)

    assert (foretold.deferred_versions, foretold.deferral_note) == (done.deferred_versions, done.deferral_note)
    assert (done.reader, done.unread) == (f"subscription {subscription.id}", 0)
    assert done.reader_since is not None
    assert START + DAY < done.reader_since < START + 3 * DAY
    assert f"recrawl notify resume {subscription.id}, or recrawl notify remove {subscription.id}" in done.deferral_note
    assert f"{done.deferred_versions} versions are kept for subscription {subscription.id}" in done.deferral_note
    stay = sum((await kept(db, domain)).values())
    full = await keep(db, domain, keep_versions=1000, quota=1)
    over = await prune_domain(db, full, at=NOW)
    assert sum((await kept(db, domain)).values()) == stay  # what is still to be told is kept against the quota, too
    assert over.excess_bytes > 0
    assert over.deferred_versions == stay - PAGES - 1
    hourly = await enforce_quota(db, full)
    assert hourly is not None
    assert (hourly.reader, hourly.deferred_versions) == (over.reader, over.deferred_versions)

    await subscriptions.resume_subscription(db, subscription.id, include_missed=False, at=NOW)
    domain = await keep(db, full, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY, quota=None)
    last = await prune_domain(db, domain, at=NOW)
    assert last.versions == done.deferred_versions > 30
    assert (last.deferred_versions, last.reader, last.deferral_note) == (0, "", "")


async def test_a_named_cursor_that_does_not_read_is_told_with_the_way_to_forget_it(
    db: Database, domain: Domain
) -> None:
    domain = await keep(db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
    await rows(db, "INSERT INTO feed_reader (name) VALUES ('it''s mine') RETURNING 1")
    await live(db, domain, range(6))

    done = await prune_domain(db, domain, at=NOW)

    assert done.deferred_versions > 0
    assert done.reader == "reader it's mine"
    assert "DELETE FROM feed_reader WHERE name = 'it''s mine';" in done.remedy
    await rows(db, "DELETE FROM feed_reader WHERE name = 'it''s mine' RETURNING 1")
    assert (await prune_domain(db, domain, at=NOW)).versions == done.deferred_versions


async def test_positions_go_on_where_they_were_although_nearly_all_is_forgotten(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_changes=DAY / 2)
    await live(db, domain, range(10))
    end = await report.read_feed_end(db)
    await prune_domain(db, domain, at=NOW)
    assert (await rows(db, "SELECT count(*) < 10 FROM feed"))[0][0]

    await live(db, domain, range(10, 12))

    found = await report.read_feed(db, ChangeFilter(after=end))
    assert [item.position for item in found] == list(range(end + 1, end + 1 + len(found)))
    assert await report.check_invariants(db) == []
    other = await domains.find_domain(db, domain.authority)
    assert other is not None
    await domains.remove(db, other)
    assert await report.check_invariants(db) == []


async def test_a_page_that_went_long_ago_is_gone_although_the_feed_has_forgotten_it(
    db: Database, domain: Domain
) -> None:
    domain = await keep(db, domain, keep_changes=2 * DAY)
    await live(db, domain, range(2))
    await live(db, domain, range(2, 9), gone=PAGES)

    await prune_domain(db, domain, at=NOW)

    assert await rows(db, "SELECT change FROM event WHERE key = %s", compute_page_key(url(domain, PAGES))) == []
    found = await report.read_version(db, domain, url(domain, PAGES))
    assert found is not None
    assert (found.state, found.state_at) == (State.GONE, None)
    (then,) = [page for page in await report.list_pages_at(db, domain, at=NOW) if page.url == url(domain, PAGES)]
    assert then.state is State.GONE


PRUNING = """
import asyncio, sys
from crawler.prune import prune_domains
from crawler.store import domains
from crawler.store.database import open_database
from datetime import datetime, UTC

async def main() -> None:
    async with open_database(sys.argv[1]) as db:
        print("ready", flush=True)
        sys.stdin.readline()
        all_domains = [listed.domain for listed in await domains.list_domains(db)]
        await prune_domains(db, all_domains, at=datetime(2027, 6, 1, tzinfo=UTC))

asyncio.run(main())
"""


async def killed_after(database_url: str, seconds: float) -> None:
    """One pass that is killed with -9 so long after it began."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRUNING, database_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    process.stdin.write("\n")
    process.stdin.flush()
    await asyncio.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    process.stdin.close()
    process.stdout.close()


async def test_killed_at_random_nothing_is_lost_and_the_next_pass_goes_on(
    db: Database, domain: Domain, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = await keep(db, domain, keep_changes=10 * DAY)
    await live(db, domain, range(14))
    chance = random.Random(17)
    visits = int((await rows(db, "SELECT count(*) FROM every_visit"))[0][0])
    for _ in range(ROUNDS):
        await killed_after(database_url, chance.uniform(0, 0.25))
        assert await report.check_invariants(db) == []
        assert (await rows(db, "SELECT count(*) FROM every_visit"))[0][0] == visits
        expected = await as_settings_say(db, domain)
        there = await kept(db, domain)
        assert all(there[version] for version, stays in expected.items() if stays)
        await bodies(db, domain)

    await prune_domains(db, [domain], at=NOW)

    assert await kept(db, domain) == await as_settings_say(db, domain)
    assert await report.check_invariants(db) == []


@pytest.mark.soak
async def test_a_crawl_goes_on_beside_it(db: Database, domain: Domain) -> None:
    domain = await keep(
        db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY, keep_changes=3 * DAY
    )
    await live(db, domain, range(8))
    done = asyncio.Event()

    async def pruning() -> int:
        passes = 0
        while not done.is_set():
            await prune_domain(db, domain, at=NOW)
            passes += 1
        return passes

    async with asyncio.TaskGroup() as tasks:
        passes = tasks.create_task(pruning())
        await live(db, domain, range(8, 24))
        done.set()

    assert passes.result() > 1
    await bodies(db, domain)
    assert await report.check_invariants(db) == []
    for n in range(1, PAGES + 1):
        newest = await report.read_version(db, domain, url(domain, n))
        assert newest is not None
        assert newest.body is not None


async def test_what_is_set_or_removed_while_others_are_pruned_counts(db: Database, domain: Domain) -> None:
    listed = await keep(db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
    await live(db, domain, range(6))
    removed = dataclasses.replace(listed, authority=Authority("removed.test"), id=domain.id + 1000)
    await keep(db, domain, keep_versions=4, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)

    done = await prune_domains(db, [removed, listed], at=NOW)

    assert [each.domain for each in done] == [domain.authority]
    there = await kept(db, domain)
    assert [number for (address, number), is_stored in there.items() if address.endswith("/1") and is_stored] == [
        3,
        4,
        5,
        6,
    ]


async def test_a_domain_that_nobody_looks_at_loses_nothing(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain)
    await live(db, domain, range(3))

    done = await prune_domains(db, [domain], at=datetime(2040, 1, 1, tzinfo=START.tzinfo))

    assert (done[0].versions, done[0].visits, done[0].changes) == (0, 0, 0)
    assert done[0].domain == domain.authority
    assert timedelta(0) < domain.settings.keep_daily
