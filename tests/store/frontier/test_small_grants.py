"""Small grants: a single slot finds the same pages as three, and a domain without such pages does not wake at once."""

from datetime import timedelta
from random import Random

import pytest

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import claim, domains, frontier
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.frontier.test_overdue import PRICED
from tests.store.made_up import USUAL, take, targets
from tests.store.populated import Bulk, add

DAY = timedelta(days=1)
NOW = START + 6 * DAY
HELD = 1  # the number of a group whose unfetched pages are deferred
HOLD = """
    INSERT INTO prior (domain_id, no, template, a, b, deferred_until) VALUES (%s, %s, '/held', 1, 50, %s)
"""
KINDS = {
    "new": Bulk(1, state="unfetched"),
    "held back": Bulk(1, state="unfetched", no=HELD),
    "favored": Bulk(1, state="unfetched", no=HELD),
    "named": Bulk(1, state="unfetched", no=HELD),
    "for later": Bulk(1, state="unfetched", no=HELD),
    "of little value": Bulk(1, a=0.1, b=4000.0),
    "of value": Bulk(1, a=50.0, b=50.0),
    "gone": Bulk(1, state="gone"),
}
MARK = """
    UPDATE frontier
       SET due_at = %(due_at)s, section = %(section)s, boosted = %(kind)s = 'favored',
           request_reason = CASE WHEN %(kind)s = 'named' THEN 4 ELSE 0 END
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)
"""
SPENT = """
    UPDATE domain_state SET budget_day = %s, spent_requests = %s, spent_floor = %s WHERE domain_id = %s
"""
WAKE_AT = "SELECT wake_at FROM domain_state WHERE domain_id = %s"


async def small_domain(db: Database, chance: Random, *, number: int) -> Domain:
    """Register a domain with a budget, a price, and a few pages of random kinds, some of them due."""
    budget = chance.randint(2, 12)
    settings = DomainSettings(budget_per_day=budget)
    authority = Authority(f"small-{number}.test")
    domain = await domains.register(db, authority, scheme="http", domain_settings=settings, at=START)
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM inbox WHERE domain_id = %s", (domain.id,))
        await connection.execute("DELETE FROM frontier WHERE domain_id = %s", (domain.id,))
        await connection.execute(HOLD, (domain.id, HELD, NOW + DAY))
        await connection.execute(PRICED, (domain.id, START, chance.choice([1e-6, 1.0, 1e6])))
        spent = chance.randint(0, budget - 1)
        await connection.execute(SPENT, (NOW.date(), spent, chance.randint(0, spent), domain.id))
    for place, kind in enumerate(chance.choices(list(KINDS), k=chance.randint(1, 4))):
        await add_kind(db, domain, kind, first=100 * (place + 1), chance=chance)
    return domain


async def add_kind(db: Database, domain: Domain, kind: str, *, first: int, chance: Random) -> None:
    bulk = KINDS[kind]
    count = 1 if bulk.state == "unfetched" else chance.randint(1, 12)
    keys = await add(db, domain, Bulk(count, bulk.a, bulk.b, bulk.no, bulk.state, first), at=START)
    due_at = None
    if bulk.state != "unfetched" or kind == "for later":
        # A page whose value exceeds the price is due: the plan keeps due times consistent with the price.
        due_at = NOW + chance.choice([-3, -1] if kind == "of value" else [-3, -1, 2]) * DAY
    values = {"domain_id": domain.id, "keys": keys, "section": bulk.no, "kind": kind, "due_at": due_at}
    async with db.transaction() as connection:
        await connection.execute(MARK, values)


async def taken(db: Database, domain: Domain) -> Lease | None:
    return await claim.claim(db, at=NOW, holder="test", term=timedelta(minutes=5), only=[domain])


async def test_a_domain_is_awake_after_a_lease_if_and_only_if_one_slot_finds_a_page(db: Database) -> None:
    chance = Random(28)
    outcomes = set()
    for number in range(24):
        domain = await small_domain(db, chance, number=number)
        async with db.transaction() as connection:
            await connection.execute("UPDATE domain_state SET wake_at = %s WHERE domain_id = %s", (NOW, domain.id))
        lease = await taken(db, domain)
        assert lease is not None
        found = [
            len(await frontier.preview_targets(db, domain, max_targets=slots, at=NOW, defaults=USUAL))
            for slots in (1, 2, 3)
        ]
        handed = await targets(db, lease, NOW, most=1)
        await claim.release(db, lease, claim.LeaseEnd(uses_whole_budget=True), at=NOW)
        async with db.transaction() as connection:
            row = await (await connection.execute(WAKE_AT, (domain.id,))).fetchone()

        assert row is not None
        is_awake = row[0] is not None and row[0] <= NOW
        assert found == [min(slots, found[2]) for slots in (1, 2, 3)], number
        assert len(handed) == found[0], number
        assert is_awake == bool(handed), number
        outcomes.add(is_awake)
    assert outcomes == {True, False}


@pytest.mark.parametrize("spent", range(8))
async def test_a_single_slot_goes_to_an_unfetched_page_at_any_price(db: Database, domain: Domain, spent: int) -> None:
    lease = await take(db, NOW)
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM frontier")  # the root, which its user has named
        await connection.execute(PRICED, (domain.id, START, 1e6))
        await connection.execute(SPENT, (NOW.date(), spent, 0, domain.id))
    await add(db, domain, Bulk(7, state="unfetched"), at=START)

    assert len(await targets(db, lease, NOW, most=1)) == 1


async def test_a_single_slot_finds_a_valuable_page_behind_many_others(db: Database, domain: Domain) -> None:
    """There is no budget, so the due order is read in windows of a few pages."""
    await add(db, domain, Bulk(100, a=0.1, b=4000.0), at=START)
    (valuable,) = await add(db, domain, Bulk(1, a=50.0, b=50.0, first=1000), at=START)
    lease = await take(db, NOW)
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM frontier WHERE state = 'unfetched'")  # the root, which is unfetched
        await connection.execute("UPDATE frontier SET due_at = %s WHERE key <> %s", (NOW - DAY, valuable))
        await connection.execute("UPDATE frontier SET due_at = %s WHERE key = %s", (NOW, valuable))

    assert [target.key for target in await targets(db, lease, NOW, most=1)] == [valuable]
