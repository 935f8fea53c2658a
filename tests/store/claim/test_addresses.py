"""A lease takes slots of the domain's current addresses, even if they have changed since registration."""

from datetime import timedelta

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import claim, domains
from crawler.store.database import Database
from tests.store.conftest import START

TERM = timedelta(minutes=5)
SHARED = ["192.0.2.7"]


async def offline(db: Database, name: str) -> Domain:
    return await domains.register(db, Authority(name), scheme="http", domain_settings=DomainSettings(), at=START)


async def test_domains_that_turn_out_to_share_an_address_are_crawled_in_turn(db: Database) -> None:
    for name in ("one.test", "two.test"):
        await offline(db, name)
    first = await claim.claim(db, at=START, holder="a", term=TERM)
    second = await claim.claim(db, at=START, holder="b", term=TERM)
    assert first is not None
    assert second is not None
    assert first.slots == second.slots == ()

    moved = await claim.change_addresses(db, first, SHARED, exempt=())
    late = await claim.change_addresses(db, second, SHARED, exempt=())

    assert moved is not None
    assert moved.slots == tuple(SHARED)
    assert late is None
    assert await claim.claim(db, at=START, holder="b", term=TERM) is None
    await claim.release(db, moved, at=START)
    again = await claim.claim(db, at=START + timedelta(seconds=1), holder="b", term=TERM, only=[second.domain])
    assert again is not None
    assert again.slots == tuple(SHARED)


async def test_an_exempt_address_takes_no_slot(db: Database) -> None:
    await offline(db, "one.test")
    lease = await claim.claim(db, at=START, holder="a", term=TERM)
    assert lease is not None

    moved = await claim.change_addresses(db, lease, SHARED, exempt=["192.0.2.0/24"])

    assert moved is not None
    assert moved.slots == ()
