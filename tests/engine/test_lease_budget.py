"""What a lease debits from the day's budgets is used, refunded, or lost with its day."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import cast

from crawler.clock import Clock
from crawler.core.budget.ledger import Refund
from crawler.core.http.response import BrowserRequest, BrowserResponse, Response
from crawler.core.http.urls import Url
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import PacedServer, Requester, WebRequest
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.fetch import Http
from crawler.store.claim import Grant

TODAY = date(2026, 3, 1)
DAY = timedelta(days=1)
TOMORROW = TODAY + timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Budgets:
    """A store that grants all requests on its current day, with a fixed number of bytes per request."""

    day: date = TODAY
    bytes_each: int | None = None
    clock: Clock = field(default_factory=lambda: Clock.from_instant(NOON))
    asked: list[tuple[int, Refund]] = field(default_factory=list)  # requests of pages in progress, and the refund

    async def debit(self, most: int, *, waiting: int, spare: Refund) -> Grant:
        self.asked.append((waiting, spare))
        brings = None if self.bytes_each is None else (most + waiting) * self.bytes_each
        return Grant(most, self.day, brings)


def budget_of(budgets: Budgets) -> LeaseBudget:
    return LeaseBudget(cast(LeasedStore, budgets))


async def test_what_no_page_wanted_and_what_was_decided_without_asking_is_given_back() -> None:
    budget = budget_of(Budgets())
    taken = await budget.take_requests(10)
    budget.assign_to_pages(7)
    budget.return_requests(taken.requests - 7, day=budget.day)
    for requests in (1, 0, 1):
        budget.end_visit(requests)
    budget.return_assigned(4, day=budget.day)

    assert budget.is_idle
    assert budget.settle_record(0) == Refund(TODAY, requests=3 + 1 + 4)
    assert budget.compute_refund() == Refund(TODAY)


async def test_pages_that_are_under_way_count_for_the_bytes_of_the_next_grant() -> None:
    budgets = Budgets(bytes_each=100)
    budget = budget_of(budgets)
    await budget.take_requests(5)
    budget.assign_to_pages(5)
    budget.end_visit(1)
    budget.count_received(80, is_visit=True)

    await budget.take_requests(2)

    assert budgets.asked == [(0, Refund()), (4, Refund(TODAY, received_bytes=420))]
    assert budget.compute_refund() == Refund(TODAY, received_bytes=80 + 600)


async def test_a_new_day_owes_nothing_of_the_one_before() -> None:
    budgets = Budgets(bytes_each=100)
    budget = budget_of(budgets)
    await budget.take_requests(5)
    budget.assign_to_pages(3)
    budget.return_requests(2, day=TODAY)
    budgets.day = TOMORROW

    await budget.take_requests(1)
    budget.return_assigned(3, day=TODAY)
    budget.return_requests(1, day=TOMORROW)

    assert budget.compute_refund() == Refund(TOMORROW, requests=1, received_bytes=400)
    assert budget.is_idle


async def test_bytes_are_used_up_by_looks_and_by_what_is_no_look() -> None:
    budget = budget_of(Budgets(bytes_each=100))
    await budget.take_requests(2)
    budget.count_received(150, is_visit=False)
    before = budget.has_bytes
    budget.count_received(50, is_visit=True)

    assert (before, budget.has_bytes) == (True, False)
    assert budget.settle_record(50) == Refund(TODAY, received_bytes=50)
    assert budget.compute_refund() == Refund(TODAY)


async def test_a_record_gives_back_no_more_bytes_than_were_taken_for_it() -> None:
    budget = budget_of(Budgets(bytes_each=100))
    await budget.take_requests(1)
    budget.count_received(500, is_visit=True)

    assert budget.settle_record(500) == Refund(TODAY, received_bytes=100)
    assert budget.unrecorded_bytes == 0


async def test_without_a_limit_bytes_do_not_run_out() -> None:
    budget = budget_of(Budgets())
    await budget.take_requests(1)
    budget.count_received(10**9, is_visit=True)

    assert budget.has_bytes
    assert budget.settle_record(10**9) == Refund(TODAY)


async def test_two_that_take_at_once_give_the_same_bytes_back_once() -> None:
    class Slow(Budgets):
        async def debit(self, most: int, *, waiting: int, spare: Refund) -> Grant:
            await asyncio.sleep(0)
            return await Budgets.debit(self, most, waiting=waiting, spare=spare)

    budgets = Slow(bytes_each=100)
    budget = budget_of(budgets)
    await budget.take_requests(5)

    await asyncio.gather(budget.take_requests(1), budget.take_requests(1))

    assert [spare.received_bytes for _, spare in budgets.asked] == [0, 500, 100]
    assert budget.compute_refund() == Refund(TODAY, received_bytes=100)


class Nobody:
    """An HTTP client that must not be used."""

    async def fetch(self, url: Url, **_: object) -> Response:
        raise AssertionError(url)

    async def relay(self, request: BrowserRequest, **_: object) -> BrowserResponse:
        raise AssertionError(request)


async def test_a_request_that_is_cancelled_while_it_waits_for_its_turn_was_not_sent() -> None:
    """After a second Ctrl-C, the day's budget was debited for requests that no server ever saw."""
    budget = budget_of(Budgets())
    await budget.take_requests(3)
    budget.assign_to_pages(3)
    server = PacedServer(cast(Http, Nobody()), Pacer(delay=DAY, wait=DAY), deadline=DAY)
    requester = Requester(server, budget, term=3 * DAY, stats=CrawlStats())

    visits = [asyncio.create_task(requester.fetch_target(WebRequest(Url("http://site.test/")))) for _ in range(3)]
    visits.append(asyncio.create_task(requester.request_url(Url("http://site.test/robots.txt"))))
    for _ in range(5):
        await asyncio.sleep(0)
    for look in visits:
        look.cancel()
    await asyncio.gather(*visits, return_exceptions=True)

    assert budget.compute_refund() == Refund(TODAY, requests=4)
    assert budget.is_idle


async def test_a_request_of_the_browser_is_refunded_if_the_hours_close_while_it_waits() -> None:
    class Closing(Pacer):
        closed = False

        def is_closed(self) -> bool:
            return self.closed

        async def wait_for_slot(self, *_: object, **__: object) -> None:
            self.closed = True

    budget, stats = budget_of(Budgets()), CrawlStats()
    server = PacedServer(cast(Http, Nobody()), Closing(delay=timedelta(0)), deadline=DAY)
    requester = Requester(server, budget, term=3 * DAY, stats=stats)

    response = await requester.relay(BrowserRequest(Url("http://site.test/a.js")), is_own=True)

    assert (response, stats.requests) == (None, 0)
    assert budget.compute_refund() == Refund(TODAY, requests=1)
