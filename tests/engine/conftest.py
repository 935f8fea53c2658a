from collections.abc import AsyncIterator, Iterator

import pytest

from crawler.core.domain import Domain
from crawler.store.database import Database, open_database
from labs.demo.server import LivingServer
from labs.demo.site import make_site
from tests.engine.crawls import START, register
from tests.ports import next_port


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database


@pytest.fixture
def living() -> Iterator[LivingServer]:
    with LivingServer(make_site(7, pages=80, start=START, days=45), next_port()) as server:
        yield server


@pytest.fixture
async def domain(db: Database, living: LivingServer) -> Domain:
    return await register(db, living.url, max_depth=12)
