"""Unfetched pages of a deferred template get due times; dispatched ones get theirs later."""

from collections.abc import Collection
from datetime import datetime, timedelta

from crawler.core.domain import Domain, Lease
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.urls import PageKey
from crawler.core.novelty import RETRY_INTERVAL
from crawler.store import record
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.made_up import NOT_MODIFIED, html, key, look, take, targets

PAGES = range(1, 13)
TEMPLATE = (
    "INSERT INTO prior (domain_id, no, template, a, b, deferred_until, is_moving) VALUES (%s, 7, '/0', 1, 9, %s, true)"
)
IN_TEMPLATE = "UPDATE frontier SET section = 7 WHERE domain_id = %s AND state = 'unfetched'"
WAITING = "SELECT key, due_at FROM frontier WHERE domain_id = %s AND state = 'unfetched'"
AGAIN = "UPDATE frontier SET due_at = %s, request_reason = %s WHERE domain_id = %s AND key = %s"
MOVING = "SELECT is_moving FROM prior WHERE domain_id = %s AND no = 7"


async def held(db: Database, domain: Domain) -> Lease:
    """Lease a domain whose root links to pages of a template that has just become unproductive."""
    lease = await take(db, START)
    (root,) = await targets(db, lease, START)
    await record.record_visits(db, lease, record.Batch([look(root, html(domain, PAGES), START, domain)], max_pages=100))
    async with db.transaction() as connection:
        await connection.execute(TEMPLATE, (domain.id, START))
        await connection.execute(IN_TEMPLATE, (domain.id,))
    return lease


async def root_again(db: Database, lease: Lease, *, at: datetime, handed_out: Collection[PageKey]) -> None:
    """Record a visit of the root that teaches nothing about templates."""
    domain = lease.domain
    async with db.transaction() as connection:
        await connection.execute(AGAIN, (at, RequestReason.BY_URL, domain.id, key(domain, 0)))
    found = await targets(db, lease, at, without=list(handed_out))
    (root,) = (each for each in found if each.key == key(domain, 0))
    batch = record.Batch([look(root, NOT_MODIFIED, at, domain)], max_pages=100, dispatched=handed_out)
    await record.record_visits(db, lease, batch)


async def days(db: Database, domain: Domain) -> tuple[dict[PageKey, datetime | None], bool]:
    """Return the due time of each page, and whether more pages must be deferred."""
    async with db.transaction() as connection:
        found = await (await connection.execute(WAITING, (domain.id,))).fetchall()
        moving = await (await connection.execute(MOVING, (domain.id,))).fetchone()
    assert moving is not None
    return dict(found), moving[0]


async def test_waiting_pages_are_deferred_before_dispatched_ones(db: Database, domain: Domain) -> None:
    lease = await held(db, domain)
    out = [key(domain, n) for n in (1, 2, 3, 4)]

    await root_again(db, lease, at=START + timedelta(minutes=1), handed_out=out)

    given, is_moving = await days(db, domain)
    first = START + timedelta(minutes=1)
    assert [given[each] for each in out] == [None] * 4
    assert sorted(day for day in given.values() if day) == [first + n * RETRY_INTERVAL for n in range(1, 9)]
    assert is_moving


async def test_dispatched_pages_that_were_not_fetched_are_deferred_by_the_next_record(
    db: Database, domain: Domain
) -> None:
    lease = await held(db, domain)
    await root_again(db, lease, at=START + timedelta(minutes=1), handed_out=[key(domain, n) for n in (1, 2, 3, 4)])

    await root_again(db, lease, at=START + timedelta(minutes=2), handed_out=())

    given, is_moving = await days(db, domain)
    assert None not in given.values()
    assert len(set(given.values())) == len(PAGES)
    assert not is_moving
