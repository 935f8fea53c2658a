"""The selection when far more pages are overdue than the budget allows to visit."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from crawler.core.budget.shadow_price import compute_price_decay
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, PageKey
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.frontier.selection import MAX_OVERDUE
from crawler.store.rows import fetch_value
from tests.store.conftest import START
from tests.store.made_up import take, targets
from tests.store.populated import Bulk, add

DAY = timedelta(days=1)
NOW = START + 6 * DAY
LITTLE = Bulk(MAX_OVERDUE // 2, a=2.0, b=400.0)  # a change in two hundred days
MUCH = Bulk(10, a=4.0, b=40.0, first=1000)  # a change in ten days
FEW = 5
PRICED = """
    INSERT INTO domain_plan (domain_id, importance, planned_at, price_request, price_byte, longest_s, price_correction,
                             finding)
    VALUES (%s, 1, %s, %s, 0, 2e7, 1, '')
"""
DUE = "UPDATE frontier SET due_at = %s WHERE key = ANY(%s)"


async def all_overdue(db: Database, domain: Domain) -> set[PageKey]:
    """Add pages of little value that were due long ago, and valuable ones that became due an hour ago."""
    little = await add(db, domain, LITTLE, at=START)
    much = await add(db, domain, MUCH, at=START)
    async with db.transaction() as connection:
        await connection.execute(DUE, (NOW - 2 * DAY, little))
        await connection.execute(DUE, (NOW - DAY / 24, much))
    return set(much)


async def handed_out_first(db: Database, *, at: datetime = NOW, slots: int = FEW) -> set[PageKey]:
    lease = await take(db, at)
    async with db.transaction() as connection:
        # the root, without the request from registration
        await connection.execute("DELETE FROM frontier WHERE state = 'unfetched'")
    return {target.key for target in await targets(db, lease, at, most=slots)}


async def test_the_most_valuable_overdue_pages_come_first_under_a_budget(db: Database, domain: Domain) -> None:
    """After a release, nearly every page of a site is overdue, so the order of due times means little."""
    much = await all_overdue(db, domain)
    async with db.transaction() as connection:
        await connection.execute(PRICED, (domain.id, START, 1e-6))

    handed = await handed_out_first(db)

    assert len(handed) == FEW
    assert handed <= much


async def test_the_whole_budget_is_used_and_the_price_falls(db: Database) -> None:
    """The next due pages are selected by value, and a price above the value of all pages is lowered."""
    settings = DomainSettings(budget_per_day=100)
    domain = await domains.register(db, Authority("paid.test"), scheme="http", domain_settings=settings, at=START)
    much = await all_overdue(db, domain)
    async with db.transaction() as connection:
        await connection.execute(PRICED, (domain.id, START, 1e9))
        await connection.execute("UPDATE frontier SET due_at = due_at + interval '30 days' WHERE due_at IS NOT NULL")

    handed = await handed_out_first(db)
    async with db.transaction() as connection:
        row = await (await connection.execute("SELECT price_correction FROM domain_plan")).fetchone()

    assert len(handed) == FEW
    assert handed <= much
    assert row == (pytest.approx(compute_price_decay(FEW / 100)),)


async def test_valuable_pages_are_selected_before_fillers(db: Database) -> None:
    """The valuable pages come later in the due order than the pages that are scored as fillers."""
    settings = DomainSettings(budget_per_day=1000)
    domain = await domains.register(db, Authority("deep.test"), scheme="http", domain_settings=settings, at=START)
    little = await add(db, domain, replace(LITTLE, count=400), at=START)
    much = await add(db, domain, replace(MUCH, count=200), at=START)
    async with db.transaction() as connection:
        await connection.execute(PRICED, (domain.id, START, 0.3))
        for n, keys in enumerate((little[:200], much[:100], little[200:], much[100:])):
            await connection.execute(DUE, (NOW - DAY + n * DAY / 24, keys))

    assert await handed_out_first(db, slots=200) == set(much)


async def test_without_a_budget_only_one_window_is_scored(db: Database, domain: Domain) -> None:
    """All due pages will be visited anyway."""
    much = await all_overdue(db, domain)

    handed = await handed_out_first(db, at=NOW + 20 * DAY)  # by then, even the pages of little value exceed the price

    assert len(handed) == FEW
    assert not handed & much


async def test_due_times_that_are_ahead_are_corrected_when_nothing_is_selected(db: Database, domain: Domain) -> None:
    much = await add(db, domain, MUCH, at=START)
    async with db.transaction() as connection:
        await connection.execute(PRICED, (domain.id, START, 1e9))
        await connection.execute(DUE, (NOW + DAY, much))
    lease = await take(db, NOW)

    async def select_and_count(dispatched: list[PageKey]) -> tuple[list[PageKey], int]:
        found = [target.key for target in await targets(db, lease, NOW, without=dispatched)]
        count = "SELECT count(*) FROM frontier WHERE due_at > %s"
        return found, await fetch_value(db, count, (NOW + 2 * DAY,))

    root, corrected = await select_and_count([])
    assert (len(root), corrected) == (1, 0)
    assert await select_and_count(root) == ([], len(much))
