"""Planning over real domains in the store: what links between them are worth."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.domain import Domain, Wishes
from crawler.core.urls import Authority, Url
from crawler.plan import plan
from crawler.store import domains, leases, visits
from crawler.store.database import Database
from tests.store.made_up import look, status, take, targets, url

AT = datetime(2026, 3, 1, tzinfo=UTC)


async def registered(db: Database, name: str, *, weight: float = 1.0, aliases: tuple[str, ...] = ()) -> Domain:
    wishes = Wishes(weight=weight)
    names = tuple(map(Authority, aliases))
    return await domains.register(db, Authority(name), scheme="http", aliases=names, wishes=wishes, at=AT)


async def read_root(db: Database, links: dict[str, list[Url]]) -> None:
    """Look at the root of every domain; it links to these."""
    for n in range(len(links)):
        at = AT + timedelta(minutes=n)
        lease = await take(db, at)
        page = "".join(f'<a href="{link}">x</a>' for link in links[lease.domain.authority])
        (target,) = await targets(db, lease, at)
        body = status(200, f"<p>words{page}".encode())
        await visits.record(db, lease, [look(target, body, at, lease.domain)], max_pages=100)
        await leases.release(db, lease, at=at, refund=0, wait=timedelta(0))


async def test_a_domain_to_which_others_link_is_worth_more_and_its_user_has_a_say(db: Database) -> None:
    hub = await registered(db, "hub.test", aliases=("www.hub.test",))
    fan = await registered(db, "fan.test")
    dear = await registered(db, "dear.test", weight=3.0)
    away = Url("http://www.hub.test/deep/page")
    strange = Url("http://unknown.test/")
    await read_root(db, {"hub.test": [], "fan.test": [away, strange], "dear.test": [away, url(dear, 1)]})

    planned = await plan(db, at=AT)

    listed = {each.domain.id: each.importance for each in await domains.every(db)}
    assert planned == listed
    assert planned[hub.id] > planned[fan.id]
    assert planned[dear.id] == pytest.approx(3 * planned[fan.id])
    assert planned[hub.id] + planned[fan.id] + planned[dear.id] / 3 == pytest.approx(3)


async def test_before_anything_was_planned_a_domain_is_worth_its_weight(db: Database) -> None:
    await registered(db, "dear.test", weight=3.0)

    (listed,) = await domains.every(db)

    assert listed.importance == 3.0


async def test_a_plan_without_domains_and_a_domain_removed_meanwhile_are_no_errors(db: Database) -> None:
    assert await plan(db, at=AT) == {}
    gone = await registered(db, "gone.test")
    await domains.remove(db, gone)

    assert await plan(db, at=AT) == {}
