from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import domains
from crawler.store.database import Database, open_database

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database


@pytest.fixture
async def domain(db: Database) -> Domain:
    return await domains.register(db, Authority("site.test"), scheme="http", domain_settings=DomainSettings(), at=START)
