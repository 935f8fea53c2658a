"""Cursors of the feed: they advance past changes that were not selected, and invalid ones are detected."""

from datetime import timedelta

import pytest

from crawler.app.changes import read_changes_of_pages
from crawler.app.database import AppDatabase
from crawler.core.http.urls import Url
from crawler.errors import CursorAhead
from crawler.settings import Settings
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind
from tests.store.conftest import START
from tests.store.made_up import crawl
from tests.store.report.test_feed_by_sql import leased

GONE = frozenset({EventKind.GONE})
NEWS = frozenset(EventKind) - {EventKind.ADDED}


async def test_a_cursor_advances_past_changes_that_were_not_selected(db: Database) -> None:
    lease = await leased(db, "apple.test")
    await crawl(db, lease, {0: [1, 2, 3, 4], **{n: [0] for n in range(1, 5)}}, START)
    await report.append_to_feed(db, at=START)

    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE)) == ([], 5)
    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE, after=3)) == ([], 5)
    some, cursor = await report.read_feed_from(db, max_count=3)
    assert ([item.position for item in some], cursor) == ([1, 2, 3], 3)
    rest, cursor = await report.read_feed_from(db, ChangeFilter(after=cursor), max_count=3)
    assert ([item.position for item in rest], cursor) == ([4, 5], 5)
    # Otherwise, its cursor would become too old although it reads regularly.
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET forgotten_until = 5")
    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE, after=cursor)) == ([], 5)


async def test_a_cursor_beyond_the_end_raises_an_error(db: Database) -> None:
    lease = await leased(db, "apple.test")
    await crawl(db, lease, {0: []}, START)
    await report.append_to_feed(db, at=START)

    assert await report.read_feed(db, ChangeFilter(after=1)) == []
    with pytest.raises(CursorAhead, match="the feed ends at 1, before cursor 2"):
        await report.read_feed(db, ChangeFilter(after=2))
    with pytest.raises(CursorAhead):
        await report.require_stored(db, lease.domain.id, since=2)


def test_after_a_cursor_the_feed_is_read_by_position() -> None:
    assert ChangeFilter(kinds=NEWS).uses_event_index
    assert not ChangeFilter(kinds=NEWS, after=7).uses_event_index
    assert not ChangeFilter(since=START, after=7).uses_event_index
    assert not ChangeFilter(kinds=NEWS, until=7).uses_event_index


async def test_changes_of_pages_of_one_domain_are_not_hidden_by_those_of_others(db: Database) -> None:
    other, mine = await leased(db, "apple.test"), await leased(db, "banana.test")
    count = 100
    await crawl(db, other, {0: list(range(1, count + 1)), **{n: [0] for n in range(1, count + 1)}}, START)
    await report.append_to_feed(db, at=START)
    await crawl(db, mine, {0: []}, START)
    roots, app_db = {mine.domain.root, other.domain.root}, AppDatabase(db.pool, Settings())

    changes = await read_changes_of_pages(app_db, {*roots, Url("http://unknown.test/")}, since=START, at=START)
    assert {url: each.change for url, each in changes.items()} == dict.fromkeys(roots, EventKind.ADDED)
    assert await read_changes_of_pages(app_db, roots, since=START + timedelta(1), at=START) == {}
