"""Cursors of the feed: how a reader gets on where little is wanted, and what a feed cannot have given."""

import pytest

from crawler.errors import CursorAhead
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind
from tests.store.conftest import START
from tests.store.made_up import crawl
from tests.store.report.test_feed_by_sql import leased

GONE = frozenset({EventKind.GONE})
NEWS = frozenset(EventKind) - {EventKind.ADDED}


async def test_a_reader_gets_on_where_nothing_of_what_came_was_wanted(db: Database) -> None:
    lease = await leased(db, "apple.test")
    await crawl(db, lease, {0: [1, 2, 3, 4], **{n: [0] for n in range(1, 5)}}, START)
    await report.append_to_feed(db, at=START)

    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE)) == ([], 5)
    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE, after=3)) == ([], 5)
    some, cursor = await report.read_feed_from(db, max_count=3)
    assert ([item.position for item in some], cursor) == ([1, 2, 3], 3)
    rest, cursor = await report.read_feed_from(db, ChangeFilter(after=cursor), max_count=3)
    assert ([item.position for item in rest], cursor) == ([4, 5], 5)
    # Else its cursor would be too old one day, although it has asked all the time.
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET forgotten_until = 5")
    assert await report.read_feed_from(db, ChangeFilter(kinds=GONE, after=cursor)) == ([], 5)


async def test_a_cursor_beyond_the_end_is_told_so_and_not_taken_for_nothing_new(db: Database) -> None:
    lease = await leased(db, "apple.test")
    await crawl(db, lease, {0: []}, START)
    await report.append_to_feed(db, at=START)

    assert await report.read_feed(db, ChangeFilter(after=1)) == []
    with pytest.raises(CursorAhead, match="the feed ends at 1, before cursor 2"):
        await report.read_feed(db, ChangeFilter(after=2))
    with pytest.raises(CursorAhead):
        await report.require_stored(db, lease.domain.id, since=2)


def test_behind_a_cursor_the_feed_is_read_in_its_own_order_and_not_all_events() -> None:
    assert ChangeFilter(kinds=NEWS).uses_event_index
    assert not ChangeFilter(kinds=NEWS, after=7).uses_event_index
    assert not ChangeFilter(since=START, after=7).uses_event_index
    assert not ChangeFilter(kinds=NEWS, until=7).uses_event_index
