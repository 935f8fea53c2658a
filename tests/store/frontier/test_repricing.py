"""Stored due times after a change of the price or the rules of a domain."""

from datetime import timedelta

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, PageKey
from crawler.core.page_rules import PageRule
from crawler.core.visit.state import NEVER
from crawler.store import claim, domains
from crawler.store.database import Database
from crawler.store.domain_rows import post_reprice
from crawler.store.frontier import update_due_times
from tests.store.conftest import START
from tests.store.made_up import USUAL, take, targets
from tests.store.populated import Bulk, add, fetched

DAY = timedelta(days=1)
NOW = START + 6 * DAY
QUICK = Bulk(600, a=40.0, b=20.0)  # two changes a day
SLOW = Bulk(40, a=2.0, b=200.0, first=1000)  # one in a hundred days
REPRICES = "SELECT count(*) FROM inbox WHERE kind = 'reprice'"


async def priced(db: Database, domain: Domain, price: float) -> None:
    """Write another price like the plan does."""
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO domain_plan (domain_id, importance, planned_at, price_request, price_byte, longest_s,
                                        price_correction, finding)
               VALUES (%s, 1, %s, 1, 0, 2e7, 1, '') ON CONFLICT DO NOTHING""",
            (domain.id, START),
        )
        await connection.execute("UPDATE domain_plan SET price_request = %s", (price,))
        await post_reprice(connection, domain.id, at=START)


async def all_slices(db: Database, lease: Lease, *, most: int = 10_000) -> int:
    count = 0
    while await update_due_times(db, lease, at=NOW, defaults=USUAL, max_pages=most):
        count += 1
    return count


async def aged(db: Database) -> tuple[Domain, Lease, set[PageKey]]:
    """Add many pages visited hours ago and a few visited days ago, all with due times of a high price."""
    domain = await domains.register(db, Authority("a.test"), scheme="http", domain_settings=DomainSettings(), at=START)
    await add(db, domain, QUICK, at=NOW - 0.3 * DAY)
    slow = await add(db, domain, SLOW, at=START)
    await priced(db, domain, 0.4)
    lease = await take(db, NOW)
    # the root, without the request from registration
    await fetched(db, "DELETE FROM frontier WHERE state = 'unfetched' RETURNING key")
    await all_slices(db, lease)
    assert await targets(db, lease, NOW) == []
    return domain, lease, set(slow)


async def test_a_lower_price_reaches_pages_beyond_the_windows_of_a_selection(db: Database) -> None:
    domain, lease, slow = await aged(db)
    await priced(db, domain, 0.1)

    before = await targets(db, lease, NOW, most=20)
    await all_slices(db, lease)
    after = {target.key for _ in range(2) for target in await targets(db, lease, NOW, most=40)}

    assert before == []  # six hundred pages of too little value come before the valuable ones
    assert after == slow


async def test_pages_are_rescored_in_slices_while_the_domain_stays_awake(db: Database) -> None:
    domain, lease, _ = await aged(db)
    await priced(db, domain, 0.1)
    before = await fetched(db, "SELECT key, due_at FROM frontier ORDER BY key")

    assert await update_due_times(db, lease, at=NOW, defaults=USUAL, max_pages=100)
    await claim.release(db, lease, at=NOW)
    after = await fetched(db, "SELECT key, due_at FROM frontier ORDER BY key")
    lease = await take(db, NOW)  # nothing is due
    rest = await all_slices(db, lease, most=100)

    assert before[100:] == after[100:]
    assert all(old != new for old, new in zip(before[:100], after[:100], strict=True))
    assert rest == 6
    assert await fetched(db, REPRICES) == [(0,)]


async def test_a_price_that_changes_during_rescoring_applies_to_all_pages(db: Database) -> None:
    domain, lease, _ = await aged(db)
    await priced(db, domain, 0.1)
    await priced(db, domain, 0.15)
    asked = await fetched(db, REPRICES)
    await update_due_times(db, lease, at=NOW, defaults=USUAL, max_pages=400)
    await priced(db, domain, 0.2)
    await priced(db, domain, 0.25)
    asked_meanwhile = await fetched(db, REPRICES)

    await all_slices(db, lease, most=400)
    moved = await fetched(db, "SELECT key, due_at FROM frontier ORDER BY key")
    await priced(db, domain, 0.25)
    await all_slices(db, lease)

    assert (asked, asked_meanwhile) == ([(1,)], [(2,)])
    assert moved == await fetched(db, "SELECT key, due_at FROM frontier ORDER BY key")


async def test_new_rules_wait_for_a_lease_with_them_and_apply_to_all_pages(db: Database) -> None:
    domain, lease, slow = await aged(db)
    by_rule = "SELECT count(*) FROM frontier WHERE due_at = %s"
    once = await domains.change_settings(db, domain, DomainSettings(rules=(PageRule("/1", once=True),)), at=NOW)

    waits = await all_slices(db, lease)
    await claim.release(db, lease, at=NOW)
    lease = await take(db, NOW)
    await all_slices(db, lease)
    had = await fetched(db, by_rule, NEVER)
    await domains.change_settings(db, once, DomainSettings(), at=NOW)
    await claim.release(db, lease, at=NOW)
    await all_slices(db, await take(db, NOW))

    assert waits == 0
    assert had == [(111 + len(slow),)]  # 1, 10 to 19, 100 to 199, and 1000 on
    assert await fetched(db, by_rule, NEVER) == [(0,)]


async def test_a_new_revisit_policy_waits_for_a_lease_with_it_and_applies_to_all_pages(db: Database) -> None:
    domain, lease, slow = await aged(db)
    await fetched(
        db, "UPDATE page SET canonical = '\\x00112233445566778899aabbccddeeff' WHERE key = %s RETURNING 1", min(slow)
    )
    await domains.change_settings(db, domain, DomainSettings(revisit="fixed 60d"), at=NOW)
    waits = (
        "SELECT DISTINCT round(date_part('epoch', f.due_at - p.last_good_at)::numeric / 86400, 6)::float8"
        "  FROM frontier f JOIN page p USING (domain_id, key)"
    )

    assert not await update_due_times(db, lease, at=NOW, defaults=USUAL)
    await claim.release(db, lease, at=NOW)
    await all_slices(db, await take(db, NOW))

    assert await fetched(db, REPRICES) == [(0,)]
    assert await fetched(db, "SELECT count(*) FROM page WHERE canonical IS NOT NULL") == [(0,)]
    assert max(await fetched(db, waits)) == (60.0,)
