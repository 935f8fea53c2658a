"""The discovery order of unfetched pages, as the store maintains and selects it."""

from datetime import timedelta

from hypothesis import given
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import RANK_STEPS, Order, Ordering
from crawler.core.visit.state import State
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from tests.store import made_up
from tests.store.conftest import START
from tests.store.graphs import (
    FEW,
    Life,
    Step,
    begin,
    born,
    discovery,
    drained,
    handed_out,
    histories,
    in_order,
    looked,
    named,
    orderings,
    ranked,
    recorded,
    taken,
)
from tests.store.made_up import html, key, look, url

DAY = timedelta(days=1)


def ordered(order: Order, **more: object) -> DomainSettings:
    return DomainSettings(max_pages=1000, ordering=Ordering(order, **more))  # type: ignore[arg-type]


async def see(life: Life, n: int, links: list[int], *, canonical: int | None = None) -> None:
    """Visit page n, which is due or unfetched."""
    life.at += DAY
    async with life.db.transaction() as connection:
        request = "UPDATE frontier SET due_at = %s, request_reason = 1 WHERE state <> 'unfetched' AND key = %s"
        await connection.execute(request, (life.at, key(life.domain, n)))
    found = {target.key: target for target in await handed_out(life, 200)}
    answer = html(life.domain, links, words=f"read at {life.at}")
    if canonical is not None:
        where = f'<link rel="canonical" href="{life.domain.root}{canonical}">'
        answer = replace(answer, body=where.encode() + answer.body)
    await recorded(life, [look(found[key(life.domain, n)], answer, life.at, life.domain)])


async def first(life: Life, most: int = 100) -> list[int]:
    """Return the numbers of the unfetched pages, the next one first."""
    targets = [target for target in await discovery(life, most) if target.state is State.UNFETCHED]
    return [int(target.url.removeprefix(life.domain.root) or 0) for target in targets]


@FEW
@given(ordering=orderings, steps=histories)
async def test_unfetched_pages_come_in_discovery_order_across_both_pools(
    db: Database, ordering: Ordering, steps: list[Step]
) -> None:
    life = await born(db, named(), DomainSettings(max_pages=100, ordering=ordering), START)
    for step in steps:
        await begin(life, step)
        await recorded(life, looked(life, await handed_out(life, len(step.outcomes)), step.outcomes))
        if life.is_in_order:
            await in_order_of_discovery(life)
    await domains.remove(db, life.domain)


async def in_order_of_discovery(life: Life) -> None:
    ordering = life.domain.settings.ordering
    waiting = {row["key"]: row for row in await ranked(life) if row["state"] == State.UNFETCHED}

    def place(page_key: bytes) -> tuple[int, int]:
        row = waiting[page_key]
        if ordering.order.is_by_position:
            return row["rank"], 0
        return ordering.compute_rank(row["cash"], url_score=row["url_score"]), row["cash"]

    handed = [target.key for target in await discovery(life, 1000) if target.state is State.UNFETCHED]
    assert [place(page_key) for page_key in handed] == sorted(map(place, waiting), reverse=True)


async def test_the_first_pages_have_the_most_cash_to_within_a_rank_step(db: Database) -> None:
    life = await born(db, "wide.test", ordered(Order.OPIC, boost=("/1", "/2")), START)
    await see(life, 0, list(range(1, 120)))
    for n in (35, 36, 37, 38):
        await see(life, n, [m for m in range(40, 120) if m % (n - 33) == 0])
    cash = {row["key"]: row["cash"] for row in await ranked(life) if row["state"] == State.UNFETCHED}

    handed = [target.key for target in await discovery(life, 5)]

    poorest = min(cash[page_key] for page_key in handed)
    assert len(handed) == 5
    assert max(cash[page_key] for page_key in cash if page_key not in handed) <= poorest + ENDOWMENT // RANK_STEPS


async def test_a_page_keeps_the_rank_that_it_gained_by_waiting(db: Database) -> None:
    """Ranks in octaves of the last cash let it fall behind every page that was paid later."""
    life = await born(db, "old.test", ordered(Order.OPIC), START)
    await see(life, 0, [1, 2, 3])
    for _ in range(20):
        await see(life, 0, [2, 3])  # from now on, only the virtual page pays page 1
        await see(life, 2, [0])
    await see(life, 0, [2, 3, 10])
    cash = {row["key"]: row["cash"] for row in await ranked(life)}

    assert cash[key(life.domain, 3)] > cash[key(life.domain, 1)] > cash[key(life.domain, 10)] > 0
    assert await first(life) == [3, 1, 10]


async def test_a_link_from_a_lower_depth_raises_a_page_without_paying_cash(db: Database) -> None:
    life = await born(db, "near.test", ordered(Order.BREADTH), START)
    await see(life, 0, [1])
    await see(life, 1, [2])
    await see(life, 2, [3, 4])
    await see(life, 0, [1, 4, 5], canonical=1)  # all its cash goes to its canonical page

    assert {row["depth"] for row in await ranked(life) if row["key"] == key(life.domain, 4)} == {1}
    assert await first(life) == [4, 5, 3]
    await in_order(life)


async def test_a_new_order_waits_for_a_lease_with_it(db: Database) -> None:
    life = await born(db, "wish.test", ordered(Order.OPIC), START)
    await see(life, 0, [1, 2, 3])
    await see(life, 1, [4, 5, 2])
    wished = replace(life.domain.settings, ordering=Ordering(Order.BREADTH, boost=("/5",)))
    life.domain = await domains.change_settings(db, life.domain, wished, at=life.at)
    await domains.add_seeds(db, life.domain, [url(life.domain, 7)], at=life.at)

    await drained(db, life.lease, life.at)
    heard_meanwhile = await first(life)
    await claim.release(db, life.lease, at=life.at)
    life.lease = await taken(db, life.domain, life.at)
    await drained(db, life.lease, life.at)

    assert 7 in heard_meanwhile
    await in_order(life)
    assert [row["pool"] for row in await ranked(life) if row["boosted"]] == [2]


async def test_boosted_pages_rank_by_their_cash_times_the_boost_factor(db: Database, domain: Domain) -> None:
    domain_settings = replace(domain.settings, ordering=Ordering(boost=("/2", "/5"), boost_factor=50.0))
    domain = await domains.change_settings(db, domain, domain_settings, at=START)
    lease = await made_up.take(db, START)
    root = (await made_up.targets(db, lease, START))[0]
    visit = made_up.look(root, made_up.html(domain, range(1, 8)), START, domain)
    await record.record_visits(db, lease, record.Batch([visit], max_pages=100))

    found = await made_up.targets(db, lease, START, most=2)

    assert {target.url for target in found} == {made_up.url(domain, 2), made_up.url(domain, 5)}
    defaults = made_up.USUAL
    explained = [
        (await report.explain_url(db, domain, made_up.url(domain, n), at=START, defaults=defaults)).page
        for n in range(1, 8)
    ]
    assert [page.ahead < 2 for page in explained if page and page.ahead is not None] == [
        n in {2, 5} for n in range(1, 8)
    ]


async def test_a_page_that_is_being_fetched_is_paid_but_keeps_its_rank(db: Database) -> None:
    life = await born(db, "busy.test", ordered(Order.OPIC), START)
    await see(life, 0, [1, 2, 3])
    before = {row["key"]: row["rank"] for row in await ranked(life)}
    found = {target.key: target for target in await handed_out(life, 200)}
    visit = look(found[key(life.domain, 1)], html(life.domain, [2, 3]), life.at, life.domain)
    batch = record.Batch([visit], max_pages=100, dispatched=[key(life.domain, n) for n in (1, 2)])
    await record.record_visits(db, life.lease, batch)

    rows = {row["key"]: row for row in await ranked(life)}
    busy, waiting = (rows[key(life.domain, n)] for n in (2, 3))
    assert busy["cash"] == waiting["cash"]
    assert busy["rank"] == before[busy["key"]] < waiting["rank"]
