"""Delays follow the domain's settings, its hours, its robots.txt and its latency; needless waits end early."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from crawler.clock import Clock
from crawler.core.budget.hours import parse_hours
from crawler.core.http.response import FailureReason, Fetched, Unreached
from crawler.engine.requests.pacer import MAX_LATENCY_DELAY, Pacer
from crawler.engine.requests.requester import compute_latency
from crawler.store.database import Database
from labs.demo.server import LivingServer
from tests.engine.crawls import START, crawl, register
from tests.patience import PATIENCE_S

LONG = timedelta(days=1)


async def test_nobody_waits_for_a_turn_that_is_not_wanted_any_more() -> None:
    """After Ctrl-C, eight pages that waited for the delay once took eight delays to end."""
    over = False
    pacer = Pacer(delay=LONG, wait=LONG)

    async def room() -> None:
        pass

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as waiting:
        for _ in range(8):
            waiting.create_task(pacer.wait_for_slot(room, is_over=lambda: over))
        await asyncio.sleep(0)
        over = True

    assert pacer.wait > LONG / 2  # the slot was not used


SECOND = timedelta(seconds=1)


def test_a_slow_server_gets_longer_pauses_up_to_a_bound_and_shorter_ones_when_it_is_fast_again() -> None:
    pacer = Pacer(delay=SECOND, latency_factor=2)
    delays = [pacer.delay]
    for latency in (0.1, 4.1, None, 60):
        pacer.note_response(None if latency is None else latency * SECOND)
        delays.append(pacer.delay)
    for _ in range(40):
        pacer.note_response(0.1 * SECOND)

    assert delays == [SECOND, SECOND, 2.2 * SECOND, 2.2 * SECOND, MAX_LATENCY_DELAY]
    assert pacer.delay == SECOND


def test_latency_makes_no_pause_where_there_is_no_delay_or_it_is_off_and_shortens_none() -> None:
    pacers = [Pacer(delay=0 * SECOND, latency_factor=2), Pacer(delay=SECOND), Pacer(delay=LONG, latency_factor=2)]
    for pacer in pacers:
        pacer.note_response(4 * SECOND)

    assert [pacer.delay for pacer in pacers] == [0 * SECOND, SECOND, LONG]


def test_an_answer_that_never_came_is_a_slow_one_and_a_refused_connection_is_none() -> None:
    slow = Unreached(reason=FailureReason.DEADLINE, elapsed=20 * SECOND)
    refused = Unreached(reason=FailureReason.REFUSED, elapsed=SECOND)
    page = Fetched(status=500, body=b"", received_bytes=0, elapsed=3 * SECOND)

    assert [compute_latency(answer) for answer in (slow, refused, page)] == [20 * SECOND, None, 3 * SECOND]


@pytest.mark.parametrize(("hour", "seconds"), [(12, 8.0), (23, 3.0), (20, 4.0)])
def test_hours_divide_the_delay_by_their_speed_and_robots_txt_bounds_it(hour: int, seconds: float) -> None:
    clock = Clock.from_instant(datetime(2026, 1, 7, hour, tzinfo=UTC))
    pacer = Pacer(delay=4 * SECOND, hours=parse_hours("00-24; 22-06 x2; 06-18 x0.5"), clock=clock)
    pacer.raise_delay(3 * SECOND)

    assert (pacer.delay, pacer.max_delay) == (seconds * SECOND, 8 * SECOND)


@pytest.mark.parametrize("factor", [2.0, pytest.param(0.0, marks=pytest.mark.soak)])
async def test_a_server_that_takes_long_is_asked_more_seldom(db: Database, living: LivingServer, factor: float) -> None:
    await register(db, living.url, delay=0.02 * SECOND, parallelism=1, latency_factor=factor)
    living.slow(0.25)

    await crawl(db, at=START, pages=3)

    pauses = [after.began - before.ended for before, after in pairwise(living.journal.entries)]
    assert (min(pauses[1:]) >= 0.45) == (factor > 0)  # twice the latency, by the clocks of two threads
