import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest
from psycopg import sql

from crawler.core.budget.ledger import Refund, SharedBudget
from crawler.core.domain import Domain, Lease, Suspension
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, PageKey
from crawler.core.visit.state import State
from crawler.errors import LeaseLost
from crawler.store import claim, domains, frontier, record, report
from crawler.store.database import Connection, Database
from crawler.store.report.duplicates import LOCK_DOMAIN
from tests.patience import PATIENCE_S
from tests.store.conftest import START
from tests.store.made_up import USUAL, crawl, take, targets, url
from tests.store.populated import Bulk, add

TERM = timedelta(seconds=30)
HOUR = timedelta(hours=1)
OVER = timedelta(microseconds=1)  # a term that is over when the next statement runs


async def claimed(db: Database, *, term: timedelta = TERM, days: float = 0.0, holder: str = "me") -> Lease | None:
    return await claim.claim(db, at=START + timedelta(days=days), holder=holder, term=term)


async def test_only_one_of_two_concurrent_claims_gets_the_domain(db: Database, domain: Domain) -> None:
    found = await asyncio.gather(claimed(db), claimed(db))

    assert sum(lease is not None for lease in found) == 1


async def test_a_count_of_all_pages_delays_neither_claims_nor_visits(db: Database, domain: Domain) -> None:
    async with db.transaction() as counting:
        await counting.execute(LOCK_DOMAIN, {"domain_id": domain.id})
        async with asyncio.timeout(PATIENCE_S):
            lease = await take(db, START)
            visits = await crawl(db, lease, {0: [1], 1: []}, START)
            await claim.release(db, lease, at=START)

    assert visits == 2


async def test_a_lease_starts_before_its_claim_is_sent(db: Database, domain: Domain) -> None:
    asked: list[float] = []

    class Noting(Database):
        @asynccontextmanager
        async def transaction(self) -> AsyncIterator[Connection]:
            asked.append(time.monotonic())
            async with db.transaction() as connection:
                yield connection

    before = time.monotonic()
    lease = await claimed(Noting(db.pool))

    assert lease is not None
    assert before <= lease.since <= asked[0]


async def test_an_expired_lease_can_be_claimed_and_its_late_holder_writes_nothing(db: Database, domain: Domain) -> None:
    late = await claimed(db, term=OVER)
    fresh = await claimed(db)

    assert late is not None
    assert fresh is not None
    with pytest.raises(LeaseLost):
        await claim.renew(db, late)
    await claim.renew(db, fresh)


async def test_an_expired_lease_that_nobody_took_stays_valid(db: Database, domain: Domain) -> None:
    lease = await claimed(db, term=OVER)

    assert lease is not None
    await claim.renew(db, lease)


async def test_a_released_domain_can_be_claimed_again_and_release_twice_is_harmless(
    db: Database, domain: Domain
) -> None:
    lease = await claimed(db)
    assert lease is not None

    for _ in range(2):
        await claim.release(db, lease, at=START)

    assert await claimed(db) is not None


async def test_pages_made_due_by_a_killed_holder_wake_their_domain(db: Database, domain: Domain) -> None:
    lease = await claimed(db)
    assert lease is not None
    await crawl(db, lease, {0: [1], 1: [0]}, START)
    await claim.release(db, lease, at=START)
    await domains.request_refresh(db, domain, prefix=domain.root, at=START)
    killed = await claimed(db, term=OVER)
    assert killed is not None
    while await record.drain_inbox(db, killed, at=START):
        pass

    assert await report.check_invariants(db) == []
    assert await claimed(db) is not None


async def test_a_domain_with_nothing_due_sleeps_until_its_inbox_wakes_it(db: Database, domain: Domain) -> None:
    lease = await claimed(db)
    assert lease is not None
    await empty_inbox(db)
    await claim.release(db, lease, at=START)
    asleep = await claimed(db)

    await domains.request_refresh(db, domain, prefix=domain.root, at=START)

    assert asleep is None
    assert await claimed(db) is not None


async def empty_inbox(db: Database) -> None:
    async with db.transaction() as connection:
        await connection.execute("DELETE FROM inbox")


async def test_a_suspended_domain_is_not_claimed_until_its_instant(db: Database, domain: Domain) -> None:
    lease = await claimed(db)
    assert lease is not None
    await claim.suspend_domain(
        db, lease, Suspension(until=START + timedelta(days=2), reason="http_503", rejections=1), at=START
    )
    await claim.release(db, lease, at=START)

    assert await claimed(db, days=1.9) is None
    again = await claimed(db, days=2)
    assert again is not None
    assert again.rejections == 1


async def test_a_paused_domain_is_not_claimed(db: Database, domain: Domain) -> None:
    await domains.set_paused(db, domain, paused=True)

    assert await claimed(db) is None


async def test_renewing_reports_that_the_domain_was_paused(db: Database, domain: Domain) -> None:
    lease = await claimed(db)
    assert lease is not None
    before = await claim.renew(db, lease)

    await domains.set_paused(db, domain, paused=True)

    assert before
    assert not await claim.renew(db, lease)


async def test_concurrent_claims_take_different_domains(db: Database) -> None:
    for n in range(3):
        await site(db, f"n{n}.test")

    for _ in range(20):
        found = [lease for lease in await asyncio.gather(*(claimed(db) for _ in range(3))) if lease is not None]

        assert len({lease.domain.id for lease in found}) == 3
        for lease in found:
            await claim.release(db, lease, at=START)


async def test_concurrent_claims_never_share_an_address(db: Database) -> None:
    pairs = [("1", "2"), ("2", "3"), ("3", "1"), ("4",)]
    for n, ends in enumerate(pairs):
        await site(db, f"n{n}.test", *(f"192.0.2.{end}" for end in ends))

    for _ in range(20):
        found = [lease for lease in await asyncio.gather(*(claimed(db) for _ in range(4))) if lease is not None]

        assert sorted(len(lease.slots) for lease in found) == [1, 2]
        for lease in found:
            await claim.release(db, lease, at=START)


async def test_a_free_domain_is_found_behind_many_with_a_busy_address(db: Database) -> None:
    for n in range(20):
        await site(db, f"n{n}.test", "192.0.2.1")
    free = await site(db, "free.test", "192.0.2.9")
    await claimed(db)

    lease = await claimed(db)

    assert lease is not None
    assert lease.domain == free
    assert await claimed(db) is None


async def site(db: Database, name: str, *addresses: str, domain_settings: DomainSettings | None = None) -> Domain:
    domain = await domains.register(
        db, Authority(name), scheme="http", domain_settings=domain_settings or DomainSettings(), at=START
    )
    await set_state(db, domain, "addresses", sorted(addresses))
    return domain


async def set_state(db: Database, domain: Domain, column: str, value: object) -> None:
    async with db.transaction() as connection:
        await connection.execute(
            sql.SQL("UPDATE domain_state SET {} = %s WHERE domain_id = %s").format(sql.Identifier(column)),
            (value, domain.id),
        )


async def test_the_delay_of_a_dead_worker_still_applies(db: Database, domain: Domain) -> None:
    lease = await claimed(db, term=OVER)
    assert lease is not None

    await claim.write_delay(db, lease, delay=HOUR)

    assert await claimed(db) is None
    wait = await claim.compute_claim_wait(db, at=START)
    assert wait is not None
    assert HOUR - timedelta(minutes=1) < wait <= HOUR


async def test_the_next_holder_waits_for_the_delay_and_passes_it_on(db: Database, domain: Domain) -> None:
    dead = await claimed(db, term=OVER)
    assert dead is not None
    await claim.write_delay(db, dead, delay=timedelta(seconds=10))

    heir = await claimed(db)
    assert heir is not None
    await claim.release(db, heir, at=START)  # it has sent no request
    third = await claimed(db)

    assert timedelta(seconds=5) < heir.wait <= timedelta(seconds=10)
    assert third is not None
    assert timedelta(seconds=5) < third.wait <= heir.wait


async def test_before_robots_txt_the_delay_is_that_of_the_user_or_the_default(db: Database) -> None:
    everybody = timedelta(seconds=7)
    for name, address, domain_settings, expected in (
        ("own.test", "192.0.2.1", DomainSettings(delay=timedelta(seconds=3)), 3),
        ("none.test", "192.0.2.2", DomainSettings(), 7),
        ("private.test", "10.0.0.1", DomainSettings(allow_private=True), 0),
        ("public.test", "192.0.2.3", DomainSettings(allow_private=True), 7),
    ):
        domain = await site(db, name, address, domain_settings=domain_settings)
        await claim.claim(db, at=START, holder="dead/1", term=TERM, only=[domain], delay=everybody)
        await domains.expire_leases(db, holder_prefix="dead/")

        lease = await claim.claim(db, at=START, holder="me", term=TERM, only=[domain], delay=everybody)

        assert lease is not None
        assert expected - 3 < lease.wait.total_seconds() <= expected


async def test_an_expired_lease_of_a_dead_worker_keeps_its_delay(db: Database) -> None:
    first = await site(db, "first.test", "192.0.2.1")
    twin = await site(db, "twin.test", "192.0.2.1")
    lease = await claim.claim(db, at=START, holder="dead/1", term=TERM, only=[first])
    assert lease is not None
    await claim.write_delay(db, lease, delay=HOUR)

    await domains.expire_leases(db, holder_prefix="dead/")

    for domain in (first, twin):
        assert await claim.claim(db, at=START, holder="me", term=TERM, only=[domain]) is None
        wait = await claim.compute_claim_wait(db, at=START, only=[domain])
        assert wait is not None
        assert HOUR - timedelta(minutes=1) < wait <= HOUR


async def test_a_released_domain_waits_only_for_its_delay(db: Database, domain: Domain) -> None:
    lease = await claimed(db)
    assert lease is not None
    await claim.write_delay(db, lease, delay=HOUR)
    await claim.renew(db, lease)

    await claim.release(db, lease, claim.LeaseEnd(wait=timedelta(seconds=10)), at=START)
    again = await claimed(db)

    assert again is not None
    assert timedelta(seconds=5) < again.wait <= timedelta(seconds=10)


async def test_a_dead_holder_keeps_its_address_for_the_delay(db: Database) -> None:
    await site(db, "first.test", "192.0.2.1")
    dead = await claimed(db, term=OVER)
    assert dead is not None
    await claim.write_delay(db, dead, delay=HOUR)

    twin = await site(db, "twin.test", "192.0.2.1")

    assert await claim.claim(db, at=START, holder="me", term=TERM, only=[twin]) is None


async def test_a_lease_whose_address_was_taken_is_lost(db: Database) -> None:
    await site(db, "first.test", "192.0.2.1")
    late = await claimed(db, term=OVER)
    twin = await site(db, "twin.test", "192.0.2.1")
    fresh = await claim.claim(db, at=START, holder="me", term=TERM, only=[twin])

    assert late is not None
    assert fresh is not None
    with pytest.raises(LeaseLost):
        await claim.renew(db, late)
    await claim.release(db, late, at=START)  # does not affect the other lease
    assert await claim.renew(db, fresh)


async def test_a_claim_waits_for_a_busy_address_but_not_for_a_leased_domain(db: Database) -> None:
    first = await site(db, "first.test", "192.0.2.1")
    lease = await claimed(db)
    assert lease is not None
    await claim.write_delay(db, lease, delay=HOUR)
    alone = await claim.compute_claim_wait(db, at=START)
    twin = await site(db, "twin.test", "192.0.2.1")

    held = await claim.compute_claim_wait(db, at=START)
    exempt = await claim.compute_claim_wait(db, at=START, exempt_addresses=["192.0.2.0/24"])
    await claim.release(db, lease, claim.LeaseEnd(wait=HOUR), at=START)
    given_back = await claim.compute_claim_wait(db, at=START, only=[twin])

    assert first == lease.domain
    assert alone is None
    assert held is not None
    assert timedelta(seconds=20) < held <= TERM  # its holder may release it earlier
    assert exempt == timedelta(seconds=0.05)
    assert given_back is not None
    assert TERM < given_back <= HOUR


async def test_domains_on_one_address_are_crawled_one_at_a_time(db: Database) -> None:
    for name in ("first.test", "twin.test"):
        await site(db, name, "192.0.2.1", "192.0.2.2")
    first = await claimed(db)

    second = await claimed(db)
    exempt = await claim.claim(db, at=START, holder="me", term=TERM, exempt_addresses=["192.0.2.0/24"])

    assert first is not None
    assert first.slots == ("192.0.2.1", "192.0.2.2")
    assert second is None
    assert exempt is not None
    assert exempt.slots == ()


async def debit(db: Database, lease: Lease, most: int, *, at: datetime, paced: bool = False) -> int:
    return (await claim.debit(db, lease, max_requests=most, at=at, paced=paced)).requests


async def test_the_budget_is_a_ledger_of_one_day(db: Database) -> None:
    domain_settings = DomainSettings(budget_per_day=10)
    await domains.register(db, Authority("small.test"), scheme="http", domain_settings=domain_settings, at=START)
    lease = await claimed(db)
    assert lease is not None

    granted = [await debit(db, lease, 6, at=START) for _ in range(3)]
    tomorrow = await debit(db, lease, 6, at=START + timedelta(days=1))

    assert granted == [6, 4, 0]
    assert tomorrow == 6


async def test_a_paced_budget_is_spread_over_the_day_with_the_time_of_the_next_grant(db: Database) -> None:
    await site(db, "small.test", domain_settings=DomainSettings(budget_per_day=96))
    lease = await claimed(db)
    assert lease is not None

    granted = [await debit(db, lease, 50, at=START + timedelta(hours=n), paced=True) for n in (0, 0, 6, 23.9)]
    nothing = await claim.debit(db, lease, max_requests=1, at=START + timedelta(hours=23.9), paced=True)

    assert granted == [1, 0, 24, 50]
    assert sum(granted) < 96
    assert nothing.requests == 1
    early = await claim.debit(db, lease, max_requests=1, at=START + timedelta(days=1), paced=True)
    none = await claim.debit(db, lease, max_requests=1, at=START + timedelta(days=1), paced=True)
    assert early.requests == 1
    assert none.next_at == START + timedelta(days=1, minutes=15)


async def test_requested_pages_are_not_paced_but_limited_by_the_budget(db: Database) -> None:
    found = await domains.register(
        db, Authority("small.test"), scheme="http", domain_settings=DomainSettings(budget_per_day=8), at=START
    )
    links = {0: list(range(1, 20)), **{n: [0] for n in range(1, 20)}}
    lease = await take(db, START, term=OVER)
    await crawl(db, lease, links, START)
    await domains.request_refresh(db, found, prefix=found.root, at=START)
    later = START + timedelta(hours=1)
    lease = await take(db, later)

    grants = [await claim.debit(db, lease, max_requests=6, at=later, paced=True) for _ in range(3)]

    assert [(grant.requests, grant.requested_only) for grant in grants] == [(6, 5), (2, 2), (0, 0)]
    assert grants[-1].next_at == START + timedelta(days=1)


async def test_slots_beyond_the_pace_are_only_for_requested_pages(db: Database, domain: Domain) -> None:
    lease = await take(db, START, term=OVER)
    await crawl(db, lease, {0: [1, 2, 3], 1: [], 2: [], 3: []}, START)
    later = START + timedelta(days=400)  # all are due
    await domains.add_seeds(db, domain, [url(domain, 2)], at=later)
    lease = await take(db, later)

    handed = [
        await frontier.select_targets(
            db, lease, max_targets=3, requested_only=n, at=later, dispatched=(), defaults=USUAL
        )
        for n in (3, 2, 0)
    ]

    assert [len(pages) for pages in handed] == [1, 2, 3]
    assert {pages[0].url for pages in handed} == {url(domain, 2)}


async def test_changed_settings_wake_a_domain_with_a_spent_budget(db: Database) -> None:
    small = await domains.register(
        db, Authority("small.test"), scheme="http", domain_settings=DomainSettings(budget_per_day=1), at=START
    )
    lease = await take(db, START)
    await debit(db, lease, 1, at=START)
    await claim.release(db, lease, claim.LeaseEnd(not_before=START + timedelta(days=1)), at=START)
    asleep = await claimed(db)

    await domains.change_settings(db, small, DomainSettings(budget_per_day=2), at=START)

    assert asleep is None
    assert await claimed(db) is not None


async def test_a_budget_raised_during_a_lease_applies_after_its_release(db: Database) -> None:
    small = await domains.register(
        db, Authority("small.test"), scheme="http", domain_settings=DomainSettings(budget_per_day=1), at=START
    )
    lease = await take(db, START)
    await debit(db, lease, 1, at=START)
    await domains.change_settings(db, small, DomainSettings(budget_per_day=1000), at=START)
    await claim.release(db, lease, claim.LeaseEnd(not_before=START + timedelta(days=1)), at=START)

    assert await claimed(db, days=1 / 24) is not None


async def test_an_audit_keeps_the_request_of_a_user(db: Database, domain: Domain) -> None:
    lease = await take(db, START, term=OVER)
    await crawl(db, lease, {0: [1], 1: []}, START)
    await domains.request_refresh(db, domain, prefix=domain.root, at=START)
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO inbox (domain_id, kind, payload, arrived_at)
               SELECT %s, 'audit', jsonb_build_object('keys', jsonb_agg(encode(key, 'hex'))), %s FROM frontier""",
            (domain.id, START),
        )

    await take(db, START + HOUR)

    assert (await domains.read_status(db, domain, at=START)).requested == 2


async def test_a_byte_budget_ends_when_the_bytes_are_received(db: Database) -> None:
    await site(db, "small.test", domain_settings=DomainSettings(bytes_per_day=1000))
    lease = await claimed(db)
    assert lease is not None
    before = await debit(db, lease, 5, at=START)
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET spent_bytes = 1000")

    after = await debit(db, lease, 5, at=START)

    assert (before, after) == (5, 0)


async def test_all_domains_together_have_a_ledger(db: Database) -> None:
    together = SharedBudget(requests=10)
    held = []
    for name in ("a.test", "b.test"):
        await site(db, name)
        lease = await claimed(db)
        assert lease is not None
        held.append(lease)

    granted = [
        (await claim.debit(db, lease, max_requests=7, at=START, paced=False, shared=together)).requests
        for lease in held
    ]
    end = claim.LeaseEnd(Refund(START.date(), requests=2), is_shared=True)
    await claim.release(db, held[0], end, at=START)
    more = await claim.debit(db, held[1], max_requests=7, at=START, paced=False, shared=together)

    assert granted == [7, 3]
    assert more.requests == 2


async def test_unsent_requests_are_refunded(db: Database) -> None:
    domain_settings = DomainSettings(budget_per_day=10)
    await domains.register(db, Authority("small.test"), scheme="http", domain_settings=domain_settings, at=START)
    lease = await claimed(db)
    assert lease is not None
    await debit(db, lease, 10, at=START)
    await claim.release(db, lease, claim.LeaseEnd(Refund(START.date(), requests=4)), at=START)

    again = await claimed(db)

    assert again is not None
    assert await debit(db, again, 10, at=START) == 4


async def test_a_refund_applies_only_to_its_day(db: Database) -> None:
    await site(db, "small.test", domain_settings=DomainSettings(budget_per_day=10))
    lease = await claimed(db)
    assert lease is not None
    await debit(db, lease, 10, at=START)
    tomorrow = START + timedelta(days=1)
    await debit(db, lease, 10, at=tomorrow)

    await claim.release(db, lease, claim.LeaseEnd(Refund(START.date(), requests=10)), at=tomorrow)

    assert await claimed(db, days=1) is None


async def test_domains_with_a_spent_or_zero_budget_are_not_claimed(db: Database) -> None:
    for name, budget in (("none.test", 0), ("spent.test", 3)):
        await domains.register(
            db, Authority(name), scheme="http", domain_settings=DomainSettings(budget_per_day=budget), at=START
        )
    lease = await claimed(db)
    assert lease is not None
    assert lease.domain.authority == "spent.test"
    await debit(db, lease, 3, at=START)
    await claim.release(db, lease, at=START)

    assert await claimed(db) is None
    tomorrow = await claimed(db, days=1)
    assert tomorrow is not None
    assert tomorrow.domain.authority == "spent.test"


async def test_leases_of_dead_workers_are_expired_by_holder_name(db: Database, domain: Domain) -> None:
    await claimed(db, holder="machine/1/shift")

    assert await domains.expire_leases(db, holder_prefix="machine/2/") == 0
    assert await domains.expire_leases(db, holder_prefix="machine/1/") == 1
    assert await claimed(db) is not None


async def test_nothing_is_claimed_at_an_instant_before_the_last_visit(db: Database, domain: Domain) -> None:
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET last_visit_at = %s", (START + timedelta(days=1),))

    assert await claimed(db) is None
    assert await claimed(db, days=1) is not None


async def test_grants_of_one_request_keep_the_shares_of_discovery_and_revisits(db: Database) -> None:
    domain = await domains.register(
        db, Authority("few.test"), scheme="http", domain_settings=DomainSettings(), at=START
    )
    await add(db, domain, Bulk(60), at=START)
    await add(db, domain, Bulk(60, state="unfetched", first=100), at=START)
    later = START + timedelta(days=170)  # each revisit has more value than most unfetched pages
    lease = await take(db, later)
    counts = {State.UNFETCHED: 0, State.FETCHED: 0}
    handed: list[PageKey] = []
    for day in range(3):
        at = later + timedelta(days=day)
        for _ in range(7):
            await claim.debit(db, lease, max_requests=1, at=at, paced=False)
            (target,) = await targets(db, lease, at, most=1, without=handed)
            counts[target.state] += 1
            handed.append(target.key)

    assert all(count >= 5 for count in counts.values())  # 0.3 of 21 is 6.3
