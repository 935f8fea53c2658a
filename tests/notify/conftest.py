from collections.abc import AsyncIterator

import pytest

from crawler.store.database import Database, open_database


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database
