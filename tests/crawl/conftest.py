from collections.abc import AsyncIterator, Iterator

import pytest

from crawler.core.domain import Domain
from crawler.demo.server import LivingServer
from crawler.demo.site import make_site
from crawler.store.database import Database, open_database
from tests.crawl.crawls import START, register


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database


@pytest.fixture
def living() -> Iterator[LivingServer]:
    with LivingServer(make_site(7, pages=120, start=START, days=45)) as server:
        yield server


@pytest.fixture
async def domain(db: Database, living: LivingServer) -> Domain:
    return await register(db, living.url, max_depth=12)
