"""The store operations of a lease wait while Postgres is unavailable, and nothing is applied twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from crawler.clock import Clock
from crawler.core.budget.ledger import Refund
from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.engine.store_port import LeasedStore
from crawler.errors import StoreUnavailable
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Connection, Database
from crawler.store.record import Batch
from tests.engine.crawls import START, rows
from tests.store.made_up import html, look, take, targets


@dataclass(frozen=True, slots=True)
class LosesAnswers(Database):
    """A database that commits but loses the confirmation, `losses` times."""

    losses: list[None] = field(default_factory=list)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with Database.transaction(self) as connection:
            yield connection
        if self.losses:
            self.losses.pop()
            raise StoreUnavailable("the answer was lost")


@pytest.fixture
async def small(db: Database) -> Domain:
    wished = DomainSettings(budget_per_day=10, bytes_per_day=10**6)
    return await domains.register(db, Authority("small.test"), scheme="http", domain_settings=wished, at=START)


def store_of(db: Database, lease: Lease, *, losses: int, patience: timedelta = timedelta(minutes=1)) -> LeasedStore:
    forgetful = LosesAnswers(db.pool, [None] * losses)
    settings = Settings(pace=False)
    return LeasedStore(forgetful, lease, settings=settings, clock=Clock.from_instant(START), patience=patience)


async def test_a_batch_whose_commit_was_not_heard_of_is_recorded_once(db: Database, small: Domain) -> None:
    lease = await take(db, START)
    target = (await targets(db, lease, START))[0]
    visit = look(target, html(small, [1, 2]), START, small)
    store = store_of(db, lease, losses=1)
    await store.debit(1, waiting=0, spare=Refund())

    await store.record(Batch([visit], max_pages=100))

    assert await rows(db, "SELECT count(*) FROM visit") == [(1,)]


async def test_a_debit_whose_answer_was_lost_takes_twice_and_gives_bytes_back_once(db: Database, small: Domain) -> None:
    lease = await take(db, START)
    calm = store_of(db, lease, losses=0)
    first = await calm.debit(1, waiting=0, spare=Refund())
    assert first.received_bytes

    spare = Refund(first.day, received_bytes=first.received_bytes)
    await store_of(db, lease, losses=1).debit(1, waiting=0, spare=spare)

    spent = await rows(db, "SELECT spent_requests, spent_bytes FROM domain_state")
    assert spent == [(3, 2 * first.received_bytes)]


async def test_without_patience_an_answer_that_is_lost_is_told_at_once(db: Database, small: Domain) -> None:
    lease = await take(db, START)

    with pytest.raises(StoreUnavailable):
        await store_of(db, lease, losses=1, patience=timedelta(0)).drain_inbox()
