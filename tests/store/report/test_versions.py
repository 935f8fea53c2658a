from datetime import datetime, timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.core.visit.state import State
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind
from tests.store.conftest import START
from tests.store.made_up import html, key, look, status, take, targets, url

DAY = timedelta(days=1)
SAYS: dict[int, dict[int, str | None]] = {
    0: {1: "tea costs four", 2: "coffee is brewed here", 3: "shop hours are long"},
    1: {1: "tea costs five", 2: "coffee is brewed here", 3: None},
    2: {1: "tea costs six", 2: "coffee is served here", 3: "shop hours are long"},
}


async def days(db: Database, domain: Domain, *wanted: int) -> None:
    """Visit each page on each of these days; a page with None is gone."""
    numbers = {key(domain, n): n for n in (0, 1, 2, 3)}
    for day in wanted:
        at = START + day * DAY
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        lease = await take(db, at)
        seen: set[int] = set()
        while batch := [target for target in await targets(db, lease, at) if numbers[target.key] not in seen]:
            visits = []
            for target in batch:
                n = numbers[target.key]
                seen.add(n)
                words = "the way to all of it" if n == 0 else SAYS[day][n]
                answer = status(410) if words is None else html(domain, [1, 2, 3] if n == 0 else [], words=words)
                visits.append(look(target, answer, at, domain))
            await record.record_visits(db, lease, record.Batch(visits, max_pages=100))
        await claim.release(db, lease, at=at)
    await report.append_to_feed(db, at=START + 9 * DAY)


async def test_versions_are_listed_newest_first_with_their_changes(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)

    found = await report.list_versions(db, domain, url(domain, 1))

    assert [(version.number, version.at, version.until) for version in found] == [
        (3, START + 2 * DAY, None),
        (2, START + DAY, START + 2 * DAY),
        (1, START, START + DAY),
    ]
    assert [version.change for version in found] == [EventKind.CHANGED, EventKind.CHANGED, EventKind.ADDED]
    assert found[0].title == "page"
    assert found[0].body_bytes is not None
    assert 0 < (found[0].magnitude or 0) <= 1
    assert await report.list_versions(db, domain, url(domain, 1), before=3, max_count=1) == found[1:2]
    assert await report.list_versions(db, domain, Url(f"{domain.root}unknown")) == []


@pytest.mark.parametrize(("at", "words"), [(START, "four"), (START + 1.5 * DAY, "five"), (START + 8 * DAY, "six")])
async def test_the_version_of_a_page_at_an_instant(db: Database, domain: Domain, at: datetime, words: str) -> None:
    await days(db, domain, 0, 1, 2)

    found = await report.read_version(db, domain, url(domain, 1), at=at)

    assert found is not None
    assert found.text == f"tea costs {words}"
    assert f"tea costs {words}".encode() in (found.body or b"")
    assert found.state is State.FETCHED
    assert (found.headers.status, found.headers.content_type) == (200, "text/html; charset=utf-8")
    assert found.headers.etag == ('"v"' if words == "six" else None)


async def test_a_page_has_no_version_before_its_first_visit(db: Database, domain: Domain) -> None:
    await days(db, domain, 0)

    assert await report.read_version(db, domain, url(domain, 1), at=START - DAY) is None
    assert await report.read_version(db, domain, url(domain, 1), number=7) is None


async def test_a_gone_page_has_its_state_and_its_last_version(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)

    gone = await report.read_version(db, domain, url(domain, 3), at=START + DAY)
    back = await report.read_version(db, domain, url(domain, 3))

    assert gone is not None
    assert (gone.state, gone.state_at, gone.text) == (State.GONE, START + DAY, "shop hours are long")
    assert back is not None
    assert back.state is State.FETCHED


async def test_a_missing_body_is_none_and_its_text_remains(db: Database, domain: Domain) -> None:
    await days(db, domain, 0)
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM content")

    found = await report.read_version(db, domain, url(domain, 1))

    assert found is not None
    assert (found.body, found.version.body_bytes, found.text) == (None, None, "tea costs four")


async def test_the_pages_of_a_domain_at_an_instant(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)

    then = await report.list_pages_at(db, domain, at=START + DAY)
    before = await report.list_pages_at(db, domain, at=START - DAY)

    assert [(page.url, page.state, page.version) for page in then] == [
        (url(domain, 0), State.FETCHED, 1),
        (url(domain, 1), State.FETCHED, 2),
        (url(domain, 2), State.FETCHED, 1),
        (url(domain, 3), State.GONE, 1),
    ]
    assert before == []


async def test_the_newest_changes_come_first_with_title_and_importance(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)

    found = await report.list_newest_changes(db, ChangeFilter(kinds=frozenset({EventKind.CHANGED})))

    assert [item.at for item in found] == sorted((item.at for item in found), reverse=True)
    assert {(item.url, item.version) for item in found} == {
        (url(domain, 1), 3),
        (url(domain, 2), 2),
        (url(domain, 1), 2),
    }
    assert {item.title for item in found} == {"page"}
    assert all(item.importance for item in found)


async def test_paging_through_newest_changes_shows_each_change_once(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)
    every = await report.list_newest_changes(db)

    paged = []
    before = None
    while part := await report.list_newest_changes(db, before=before, max_count=2):
        paged += part
        before = part[-1].page_cursor

    assert paged == every
    assert sorted(item.position for item in every) == list(range(1, len(every) + 1))


async def test_changes_are_filtered_by_page_prefix_kind_time_and_cursor(db: Database, domain: Domain) -> None:
    await days(db, domain, 0, 1, 2)

    async def told(wanted: ChangeFilter) -> set[tuple[str, str]]:
        newest = await report.list_newest_changes(db, wanted)
        in_order = await report.read_feed(db, wanted)
        assert sorted(item.position for item in newest) == [item.position for item in in_order]
        counts = await report.count_changes(db, wanted)
        assert sum(counts.values()) == len(newest)
        return {(item.url.removeprefix(domain.root), item.change.value) for item in newest}

    of_page = await told(ChangeFilter(domain_id=domain.id, key=key(domain, 3)))
    beneath = await told(ChangeFilter(prefix=url(domain, 2)))
    news = await told(ChangeFilter(kinds=frozenset({EventKind.GONE, EventKind.RESTORED})))
    late = await told(ChangeFilter(since=START + 2 * DAY))
    cursor = await told(ChangeFilter(after=4))

    assert of_page == {("3", "added"), ("3", "gone"), ("3", "restored")}
    assert beneath == {("2", "added"), ("2", "changed")}
    assert news == {("3", "gone"), ("3", "restored")}
    assert late == {("1", "changed"), ("2", "changed"), ("3", "restored")}
    assert cursor == {("1", "changed"), ("3", "gone"), ("2", "changed"), ("3", "restored")}
    assert await told(ChangeFilter(domain_id=domain.id + 1)) == set()
