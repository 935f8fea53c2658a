import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain, Lease, Suspension
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.response import NO_VALIDATORS, FailureReason, Response, Unreached
from crawler.core.http.urls import Authority, Url
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.page_rules import PageRule
from crawler.core.visit.state import NEVER, State
from crawler.core.visit.visit import Target, Visit
from crawler.errors import LeaseLost
from crawler.store import claim, domains, record, report
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.domain_rows import count_limited_pages
from crawler.store.record import opic, pages
from tests.store import made_up
from tests.store.conftest import START
from tests.store.made_up import NOT_MODIFIED, economy_total, html, key, look, states, status, take, targets, url

SITE = {0: [1, 2, 3], 1: [0, 4], 2: [4], 3: [], 4: [0, 1, 2, 3]}
DAY = timedelta(days=1)


async def recorded(db: Database, lease: Lease, *batch: Visit, max_pages: int = 1000) -> int:
    return await record.record_visits(db, lease, record.Batch(batch, max_pages=max_pages))


async def one(db: Database, lease: Lease, domain: Domain, n: int, day: float = 0) -> Target:
    found = await targets(db, lease, START + day * DAY)
    return next(target for target in found if target.key == key(domain, n))


async def make_due(db: Database) -> None:
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE frontier SET due_at = %s, request_reason = 2 WHERE state <> 'unfetched'", (START,)
        )


async def count(db: Database, table: str) -> int:
    async with db.transaction() as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM {table}".encode())).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize(
    "statement",
    [pages.WRITE_PAGES, pages.WRITE_FRONTIER, pages.LOWER_DEPTHS, opic.PAY, opic.WRITE_RANKS],
    ids=["pages", "frontier", "depths", "pay", "ranks"],
)
async def test_the_pages_of_a_batch_are_found_by_key_without_statistics(
    db: Database, domain: Domain, statement: str
) -> None:
    names = set(re.findall(r"%\((\w+)\)b", statement))
    values: dict[str, Any] = dict.fromkeys(names, [None] * 300) | {
        "key": [bytes([n // 256, n % 256]) * 8 for n in range(300)]
    }
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        values |= {"domain_id": domain.id, "bulk_redirect": "", "most": 1}
        cursor = await connection.execute(f"EXPLAIN {statement}".encode(), values)
        plan = "\n".join(row[0] for row in await cursor.fetchall())

    assert "Join Filter" not in plan, plan


async def test_a_first_crawl_finds_every_page_and_conserves_cash(db: Database, domain: Domain) -> None:
    lease = await take(db, START)

    visits = await made_up.crawl(db, lease, SITE, START)

    assert visits == 5
    assert set((await states(db, domain)).values()) == {"fetched"}
    found, coins = await economy_total(db, domain)
    assert found == coins


async def test_cash_is_conserved_through_errors_moves_losses_and_returns(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    answers: list[dict[int, Response]] = [
        {0: html(domain, [1, 2, 5]), 1: status(404), 2: status(301, location=url(domain, 4)), 3: status(500)},
        {0: NOT_MODIFIED, 1: status(404), 2: html(domain, [0]), 3: Unreached(FailureReason.DEADLINE, timedelta(0))},
        {1: html(domain, [0, 2, 9]), 4: status(410), 3: status(500), 5: status(308, location=Url("http://else.test/"))},
        {0: NOT_MODIFIED, 3: status(503), 4: html(domain, [0], words="back again"), 9: status(200)},
    ]
    for day, round_of_answers in enumerate(answers, start=1):
        await make_due(db)
        at = START + day * DAY
        found = {t.key: t for t in await targets(db, lease, at)}
        batch = [
            look(found[key(domain, n)], answer, at + timedelta(seconds=n), domain)
            for n, answer in round_of_answers.items()
            if key(domain, n) in found
        ]
        await recorded(db, lease, *batch)
        total, coins = await economy_total(db, domain)
        assert total == coins

    assert await states(db, domain) == {
        "": "fetched", "1": "fetched", "2": "fetched", "3": "fetched", "4": "fetched", "5": "moved", "9": "fetched"
    }  # fmt: skip


async def test_a_moved_page_passes_on_its_cash_and_later_payments(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    await make_due(db)
    two, four = await one(db, lease, domain, 2, 1), await one(db, lease, domain, 4, 1)
    await recorded(db, lease, look(two, status(301, location=url(domain, 4)), START + DAY, domain))
    moved = await one(db, lease, domain, 4, 2)

    zero = await one(db, lease, domain, 0, 2)
    await recorded(db, lease, look(zero, NOT_MODIFIED, START + 2 * DAY, domain))
    paid = await one(db, lease, domain, 4, 3)

    assert moved.cash >= two.cash + four.cash - ENDOWMENT  # the endowment of one of the two pages is dormant again
    assert paid.cash - moved.cash >= zero.cash * 0.85 // 3 - 1  # the share that page 2 would have received


async def test_a_failed_visit_keeps_the_target_of_a_move(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    await make_due(db)
    two = await one(db, lease, domain, 2, 1)
    await recorded(db, lease, look(two, status(301, location=url(domain, 4)), START + DAY, domain))
    await make_due(db)

    await recorded(db, lease, look(await one(db, lease, domain, 2, 2), status(500), START + 2 * DAY, domain))

    async with db.transaction() as connection:
        cursor = await connection.execute("SELECT moved_to FROM page WHERE key = %s", (key(domain, 2),))
        assert await cursor.fetchone() == (key(domain, 4),)


async def test_an_unchanged_page_pays_its_stored_links(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    await make_due(db)
    before = {n: (await one(db, lease, domain, n, 1)) for n in (0, 1, 2, 3)}

    await recorded(db, lease, look(before[0], NOT_MODIFIED, START + DAY, domain))

    share = before[0].cash * 85 // 100 // 3
    for n in (1, 2, 3):
        assert (await one(db, lease, domain, n, 2)).cash >= before[n].cash + share - 1


async def test_a_failing_page_keeps_its_cash_for_three_visits_and_its_history_forever(
    db: Database, domain: Domain
) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    cash = []
    await make_due(db)
    before = await one(db, lease, domain, 3)
    for day in range(1, 4):
        await make_due(db)
        target = await one(db, lease, domain, 3, day)
        cash.append(target.cash)
        await recorded(db, lease, look(target, status(500), START + day * DAY, domain))
    await make_due(db)
    after = await one(db, lease, domain, 3, 4)

    assert cash[0] <= cash[1] <= cash[2]
    assert after.cash < cash[2]
    assert (after.version, after.stored_validators, after.rate_estimate) == (
        before.version,
        before.stored_validators,
        before.rate_estimate,
    )


async def test_a_late_holder_records_nothing(db: Database, domain: Domain) -> None:
    late = await take(db, START, term=timedelta(microseconds=1))
    target = (await targets(db, late, START))[0]
    await take(db, START)

    with pytest.raises(LeaseLost):
        await recorded(db, late, look(target, html(domain, [1]), START, domain))

    assert await count(db, "visit") == 0
    assert await count(db, "page") == 1


async def test_a_commit_whose_result_was_lost_is_not_applied_twice(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    target = (await targets(db, lease, START))[0]
    visit = look(target, html(domain, [1, 2]), START, domain)
    await recorded(db, lease, visit)

    await record.record_visits(db, lease, record.Batch([visit], max_pages=1000), retrying=True)

    assert await count(db, "visit") == 1
    total, coins = await economy_total(db, domain)
    assert total == coins


async def test_dispatched_pages_are_not_selected_again(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    first = await targets(db, lease, START)

    second = await targets(db, lease, START, without=[target.key for target in first])

    assert len(first) == 1
    assert second == []


async def test_the_unfetched_page_with_the_most_cash_comes_first(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    root = (await targets(db, lease, START))[0]
    await recorded(db, lease, look(root, html(domain, [1, 2, 3]), START, domain))
    one_ = await one(db, lease, domain, 1)
    await recorded(db, lease, look(one_, html(domain, [3]), START + timedelta(seconds=1), domain))

    found = await targets(db, lease, START)

    assert found[0].url == url(domain, 3)


async def test_discovery_and_revisits_each_get_their_share(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    site = {0: list(range(1, 60))} | {n: [] for n in range(1, 60)}
    await made_up.crawl(db, lease, site, START, most=30)
    await make_due(db)

    found = await targets(db, lease, START + DAY, most=20)

    kinds = [target.state for target in found]
    assert len(found) == 20
    assert kinds.count(State.UNFETCHED) >= 6
    assert kinds.count(State.FETCHED) >= 6


async def test_a_domain_keeps_its_page_limit(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    root = (await targets(db, lease, START))[0]

    admitted = await recorded(db, lease, look(root, html(domain, range(1, 50)), START, domain), max_pages=10)

    assert admitted == 9
    total, coins = await economy_total(db, domain)
    assert total == coins


async def test_an_excluded_page_is_stored_outside_the_economy(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    root = (await targets(db, lease, START))[0]
    visit = look(root, html(domain, [1, 2]), START, domain)
    assert visit.links is not None
    links = tuple(replace(link, exclusion="robots") if link.key == key(domain, 2) else link for link in visit.links)

    await recorded(db, lease, made_up.later(visit, links=links))

    assert await states(db, domain) == {"": "fetched", "1": "unfetched", "2": "excluded"}
    assert await count(db, "cash") == 2


async def test_a_busy_response_suspends_the_domain_in_the_same_transaction(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    target = (await targets(db, lease, START))[0]
    visit = look(target, status(429, retry_after="3600"), START, domain)
    hold = Suspension(until=START + timedelta(hours=1), reason="http_429", rejections=1)

    await record.record_visits(db, lease, record.Batch([visit], max_pages=10, suspension=hold))
    await claim.release(db, lease, at=START)

    assert visit.retry_after == timedelta(hours=1)
    assert await claim.claim(db, at=START + timedelta(minutes=59), holder="x", term=DAY) is None
    assert await claim.claim(db, at=START + timedelta(hours=1), holder="x", term=DAY) is not None
    assert await states(db, domain) == {"": "fetched"}


async def test_any_text_of_a_server_can_be_stored(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    target = (await targets(db, lease, START))[0]
    long = Url(f"{domain.root}{'a' * (8192 - len(domain.root))}")
    body = f"<title>a\0b&#xD800;\udcff</title><p>x\0y &#0; &#xDFFF; z<a href='{long}'>l</a>".encode(
        "utf-8", "surrogatepass"
    )

    await recorded(db, lease, look(target, status(200, body + b"\xff\xfe\x00"), START, domain))

    assert long.removeprefix(domain.root) in await states(db, domain)
    assert await count(db, "snapshot") == 1


async def test_the_feed_has_each_change_once_in_order_with_concurrent_appends(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)

    await asyncio.gather(*(report.append_to_feed(db, at=START) for _ in range(4)))
    await report.append_to_feed(db, at=START)
    items = await report.read_feed(db)
    rest = await report.read_feed(db, report.ChangeFilter(after=items[2].position))

    assert [item.position for item in items] == [1, 2, 3, 4, 5]
    assert rest == items[3:]


async def test_a_refresh_makes_a_prefix_due_and_is_deduplicated(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    at = START + timedelta(minutes=1)
    for _ in range(2):
        await domains.request_refresh(db, domain, prefix=url(domain, 1), at=at)
    assert await count(db, "inbox") == 1

    while await record.drain_inbox(db, lease, at=at):
        pass

    assert [target.url for target in await targets(db, lease, at)] == [url(domain, 1)]
    assert await count(db, "inbox") == 0


async def test_a_full_recrawl_waits_for_a_lease_with_the_current_settings(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START)
    at = START + timedelta(minutes=1)
    await domains.change_settings(db, domain, replace(domain.settings, language="fr"), at=at)

    assert not await record.drain_inbox(db, lease, at=at)
    assert await targets(db, lease, at) == []

    await claim.release(db, lease, at=at)
    lease = await take(db, at)
    again = await targets(db, lease, at)
    assert len(again) == len(SITE)
    assert {target.validators for target in again} == {NO_VALIDATORS}


async def test_a_rule_limits_the_pages_of_its_pattern_only(db: Database) -> None:
    domain_settings = DomainSettings(rules=(PageRule("/1", max_pages=2), PageRule("/", weight=2.0)))
    domain = await domains.register(
        db, Authority("ruled.test"), scheme="http", domain_settings=domain_settings, at=START
    )
    lease = await take(db, START)
    links = {0: [1, 10, 11, 2, 3], 1: [12, 4], 10: [13]}

    await made_up.crawl(db, lease, links, START)

    known = await states(db, domain)
    assert known.keys() == {"", "1", "10", "2", "3", "4"}
    assert await count_limited_pages(db, domain.id) == {"/1": 2}


async def test_a_page_fetched_once_by_rule_is_never_due_again(db: Database) -> None:
    domain_settings = DomainSettings(rules=(PageRule("/1", once=True),))
    domain = await domains.register(
        db, Authority("ruled.test"), scheme="http", domain_settings=domain_settings, at=START
    )
    lease = await take(db, START)
    await made_up.crawl(db, lease, {0: [1, 2], 1: [], 2: []}, START)

    later = await targets(db, lease, START + timedelta(days=5000))

    assert {target.url for target in later} == {url(domain, 0), url(domain, 2)}


async def test_a_rule_to_fetch_once_requests_no_visit_of_fetched_pages(db: Database) -> None:
    domain = await domains.register(
        db, Authority("ruled.test"), scheme="http", domain_settings=DomainSettings(), at=START
    )
    lease = await take(db, START)
    await made_up.crawl(db, lease, {0: [1, 2], 1: [], 2: []}, START)
    later = START + timedelta(days=5000)
    await claim.release(db, lease, at=later)
    domain = await domains.change_settings(db, domain, DomainSettings(rules=(PageRule("/1", once=True),)), at=later)
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE frontier SET request_reason = 2, due_at = %s WHERE key = %s", (START, key(domain, 1))
        )

    lease = await take(db, later)
    handed = await targets(db, lease, later)
    async with db.transaction() as connection:
        never = await (
            await connection.execute("SELECT key, request_reason FROM frontier WHERE due_at = %s", (NEVER,))
        ).fetchall()
    await domains.request_refresh(db, domain, prefix=url(domain, 1), at=later)
    while await record.drain_inbox(db, lease, at=later):
        pass
    asked = await targets(db, lease, later, without=[target.key for target in handed])

    assert {target.url for target in handed} == {url(domain, 0), url(domain, 2)}
    assert never == [(key(domain, 1), RequestReason.NONE)]
    assert [target.url for target in asked] == [url(domain, 1)]
