from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.budget import Ledger, debited, floor_left, grantable, today
from crawler.core.budget.ledger import Hours, settled

DAY = date(2026, 3, 1)
HOUR = timedelta(hours=1)
NIGHT = ((22 * HOUR, 6 * HOUR),)
OFFICE = ((8 * HOUR, 12 * HOUR), (13 * HOUR, 17 * HOUR))


def at(hours: float) -> datetime:
    return datetime(2026, 3, 1, tzinfo=UTC) + hours * HOUR


@given(
    budget=st.integers(0, 10_000),
    asks=st.lists(st.tuples(st.floats(0, 23.999), st.integers(0, 2000)), max_size=40),
    hours=st.sampled_from([(), NIGHT, OFFICE]),
)
def test_never_more_than_the_budget_is_granted(budget: int, asks: list[tuple[float, int]], hours: Hours) -> None:
    ledger = Ledger(DAY)
    for hour, wish in sorted(asks):
        ledger = debited(ledger, min(wish, grantable(ledger, budget, now=at(hour), hours=hours)))

    assert ledger.requests <= budget


@given(budget=st.integers(0, 100_000), hours=st.sampled_from([(), NIGHT, OFFICE]))
def test_whoever_asks_every_ten_minutes_can_use_all_of_it(budget: int, hours: Hours) -> None:
    ledger = Ledger(DAY)
    for tenth in range(24 * 6):
        ledger = debited(ledger, grantable(ledger, budget, now=at(tenth / 6), hours=hours))

    assert ledger.requests >= min(0.99 * budget, max(budget - 2, 0))


def test_grants_are_spread_over_the_day() -> None:
    granted = [grantable(Ledger(DAY), 2400, now=at(hour)) for hour in (0, 6, 12, 18, 23.9)]

    assert granted == [25, 625, 1225, 1825, 2400]


def test_a_small_budget_grants_the_first_at_once_and_the_rest_in_turn() -> None:
    assert [grantable(Ledger(DAY), 3, now=at(hour)) for hour in (0, 7.9, 8.1, 16.1)] == [1, 1, 2, 3]
    assert grantable(Ledger(DAY), 0, now=at(12)) == 0


def test_a_budget_that_is_halved_or_doubled_holds_from_now_on() -> None:
    ledger = debited(Ledger(DAY), 500)

    assert grantable(ledger, 500, now=at(12)) == 0
    assert grantable(ledger, 2000, now=at(12)) == 1020 - 500


def test_nothing_is_granted_outside_of_the_open_hours() -> None:
    assert grantable(Ledger(DAY), 100, now=at(12.5), hours=OFFICE) == 0
    assert grantable(Ledger(DAY), 100, now=at(17), hours=OFFICE) == 0
    assert grantable(Ledger(DAY), 100, now=at(16.99), hours=OFFICE) == 100


def test_hours_may_go_over_midnight_and_overlap() -> None:
    twice = ((2 * HOUR, 5 * HOUR), (HOUR, 4 * HOUR))

    assert [grantable(Ledger(DAY), 800, now=at(hour), hours=NIGHT) for hour in (3, 12, 23)] == [325, 0, 725]
    assert grantable(Ledger(DAY), 800, now=at(3), hours=twice) == 450


def test_a_day_is_a_utc_day() -> None:
    tokyo = datetime(2026, 3, 2, 8, tzinfo=timezone(9 * HOUR))  # still the first in UTC
    spent = debited(Ledger(DAY), 7)

    assert today(spent, now=tokyo) == spent
    assert today(spent, now=tokyo + HOUR) == Ledger(date(2026, 3, 2))


def test_what_was_not_needed_is_given_back_on_its_day_only() -> None:
    ledger = debited(Ledger(DAY), 100, floor=5)

    assert settled(ledger, day=DAY, granted=100, made=60, received_bytes=10).requests == 60
    tomorrow = Ledger(DAY + timedelta(days=1), requests=3)
    assert settled(tomorrow, day=DAY, granted=100, made=60, received_bytes=10) == tomorrow


def test_no_bytes_left_is_no_request_granted() -> None:
    ledger = settled(Ledger(DAY), day=DAY, granted=0, made=0, received_bytes=1000)

    assert grantable(ledger, 100, now=at(23), most_bytes=1000) == 0
    assert grantable(ledger, 100, now=at(23), most_bytes=2000) == 96


def test_floor_visits_have_a_share_of_the_day() -> None:
    for turn in range(739_000, 739_010):
        assert floor_left(4, 50, share=0.2, day_number=turn) == 6
        assert floor_left(4, 10, share=0.2, day_number=turn) == 0


@pytest.mark.parametrize(("budget", "in_ten_days"), [(0, 0), (1, 2), (3, 6), (4, 8), (12, 24)])
def test_of_a_small_budget_a_floor_visit_is_left_every_few_days(budget: int, in_ten_days: int) -> None:
    left = [floor_left(0, budget, share=0.2, day_number=739_000 + day) for day in range(10)]

    assert sum(left) == in_ten_days
    assert max(left) - min(left) <= 1
