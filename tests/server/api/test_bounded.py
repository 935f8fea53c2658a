"""Limits of the size of one response of the API, and of the time until it is sent."""

from pathlib import Path

import pytest

from crawler.app.database import AppDatabase as OpenDatabase
from crawler.errors import NotFound
from crawler.server.api.endpoints import MAX_CHANGES, Api
from crawler.server.api.writing import Accepted, WritingApi
from crawler.settings import get_settings
from crawler.store import report
from crawler.store.database import Database
from tests.store.conftest import START, db
from tests.store.made_up import crawl
from tests.store.report.test_feed_by_sql import leased

__all__ = ["db"]
PAGES = 250
WRITE_LONG_BLOCKS = """
    UPDATE event SET blocks = (SELECT jsonb_agg(jsonb_build_array('text', repeat('a', 500), repeat('b', 500)))
                                 FROM generate_series(1, 50))
"""


async def test_response_with_long_changes_ends_early_and_the_cursor_continues(db: Database, tmp_path: Path) -> None:
    lease = await leased(db, "apple.test")
    await crawl(db, lease, {0: list(range(1, PAGES)), **{n: [0] for n in range(1, PAGES)}}, START)
    await report.append_to_feed(db, at=START)
    async with db.transaction() as connection:
        await connection.execute(WRITE_LONG_BLOCKS)
    api = Api(db=OpenDatabase(db.pool, get_settings()), home=tmp_path, now=lambda: START, request_index=str)

    first = await api.list_changes(limit=MAX_CHANGES)
    second = await api.list_changes(after=int(first.next or 0), limit=MAX_CHANGES)
    third = await api.list_changes(after=int(second.next or 0), limit=MAX_CHANGES)

    assert [len(each.items) for each in (first, second, third)] == [100, 100, 50]
    assert [each.next for each in (first, second, third)] == ["100", "200", "250"]


async def test_long_removal_continues_after_its_response(db: Database, tmp_path: Path) -> None:
    lease = await leased(db, "apple.test")
    app_db = OpenDatabase(db.pool, get_settings())
    api = WritingApi(db=app_db, home=tmp_path, now=lambda: START, request_index=str, removal_seconds=0.05)

    async with db.transaction() as connection:
        await connection.execute("SELECT FROM domain_state FOR UPDATE")  # the removal waits for this transaction
        first, second = [await api.remove_domain(domain="apple.test") for _ in range(2)]
        (task,) = api.removals.values()
    await task

    assert first == second == Accepted("/domains/apple.test")
    with pytest.raises(NotFound):
        await api.get_domain(domain=lease.domain.authority)
    assert api.removals == {}
