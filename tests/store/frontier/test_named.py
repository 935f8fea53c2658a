"""A page that the user names comes before all due pages."""

from datetime import timedelta

from crawler.core.domain import Domain
from crawler.store import domains
from crawler.store.database import Database
from tests.store import made_up
from tests.store.conftest import START
from tests.store.made_up import take, targets, url

SITE = {0: list(range(1, 60)), **{n: [] for n in range(1, 60)}}


async def test_a_fetched_page_named_by_the_user_comes_before_due_pages(db: Database, domain: Domain) -> None:
    await made_up.crawl(db, await take(db, START), SITE, START)
    at = START + timedelta(days=400)
    await expire(db)
    await domains.request_refresh(db, domain, prefix=domain.root, at=at)
    await domains.add_seeds(db, domain, [url(domain, 33)], at=at)

    lease = await take(db, at)

    assert [target.url for target in await targets(db, lease, at, most=1)] == [url(domain, 33)]
    handed = [target.url for target in await targets(db, lease, at, most=1000)]
    assert len(handed) == len(set(handed)) == len(SITE)
    assert handed[0] == url(domain, 33)


async def test_an_unfetched_page_named_by_the_user_comes_before_pages_with_more_cash(
    db: Database, domain: Domain
) -> None:
    lease = await take(db, START)
    await made_up.crawl(db, lease, SITE, START, most=1)
    await domains.add_seeds(db, domain, [url(domain, 700)], at=START)
    await expire(db)

    lease = await take(db, START + timedelta(minutes=1))
    handed = [target.url for target in await targets(db, lease, START + timedelta(minutes=1), most=3)]

    assert handed[0] == url(domain, 700)
    assert len(set(handed)) == 3


async def expire(db: Database) -> None:
    async with db.transaction() as connection:
        await connection.execute("UPDATE domain_state SET leased_until = clock_timestamp() - interval '1 hour'")
