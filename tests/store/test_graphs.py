from crawler.core.domain import Domain
from crawler.store.database import Database
from labs.experiments.graphs import Links, links_of
from tests.store.conftest import START
from tests.store.made_up import crawl, take


async def test_the_graph_of_a_domain_has_the_links_of_its_pages(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, {0: [2, 1], 1: [0, 2], 2: []}, START)

    found = await links_of(db, domain)

    names = [url.removeprefix(domain.root) for url in found.urls]
    assert names == ["", "1", "2"]
    assert found.outlinks == ((2, 1), (0, 2), ())


async def test_the_graph_excludes_pages_outside_the_economy(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, {0: [1, 2], 1: [0]}, START)  # 2 is not there

    found = await links_of(db, domain)

    assert [url.removeprefix(domain.root) for url in found.urls] == ["", "1"]
    assert found.outlinks == ((1,), (0,))


async def test_a_domain_that_was_never_crawled_has_an_empty_graph(db: Database, domain: Domain) -> None:
    assert await links_of(db, domain) == Links(urls=(), outlinks=())
