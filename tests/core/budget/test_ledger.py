from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.budget.ledger import (
    Ledger,
    Refund,
    compute_next_grant,
    count_floor_left,
    count_grantable_requests,
    count_receivable_bytes,
    debit_ledger,
    roll_over,
    settle_ledger,
)

DAY = date(2026, 3, 1)
HOUR = timedelta(hours=1)


def at(hours: float) -> datetime:
    return datetime(2026, 3, 1, tzinfo=UTC) + hours * HOUR


@given(
    budget=st.integers(0, 10_000),
    claims=st.lists(st.tuples(st.floats(0, 23.999), st.integers(0, 2000)), max_size=40),
)
def test_grants_never_exceed_the_budget(budget: int, claims: list[tuple[float, int]]) -> None:
    ledger = Ledger(DAY)
    for hour, requests in sorted(claims):
        ledger = debit_ledger(ledger, min(requests, count_grantable_requests(ledger, budget, now=at(hour))))

    assert ledger.requests <= budget


@given(budget=st.integers(0, 100_000))
def test_claims_every_ten_minutes_can_use_the_whole_budget(budget: int) -> None:
    ledger = Ledger(DAY)
    for tenth in range(24 * 6):
        ledger = debit_ledger(ledger, count_grantable_requests(ledger, budget, now=at(tenth / 6)))

    assert ledger.requests >= min(0.99 * budget, max(budget - 2, 0))


def test_grants_are_spread_over_the_day() -> None:
    granted = [count_grantable_requests(Ledger(DAY), 2400, now=at(hour)) for hour in (0, 6, 12, 18, 23.9)]

    assert granted == [25, 625, 1225, 1825, 2400]


def test_small_budget_grants_the_first_request_at_once_and_paces_the_rest() -> None:
    assert [count_grantable_requests(Ledger(DAY), 3, now=at(hour)) for hour in (0, 7.9, 8.1, 16.1)] == [1, 1, 2, 3]
    assert count_grantable_requests(Ledger(DAY), 0, now=at(12)) == 0


def test_changed_budget_applies_at_once() -> None:
    ledger = debit_ledger(Ledger(DAY), 500)

    assert count_grantable_requests(ledger, 500, now=at(12)) == 0
    assert count_grantable_requests(ledger, 2000, now=at(12)) == 1020 - 500


def test_day_of_a_ledger_is_a_utc_day() -> None:
    tokyo = datetime(2026, 3, 2, 8, tzinfo=timezone(9 * HOUR))  # still March 1 in UTC
    spent = debit_ledger(Ledger(DAY), 7)

    assert roll_over(spent, now=tokyo) == spent
    assert roll_over(spent, now=tokyo + HOUR) == Ledger(date(2026, 3, 2))


def test_new_day_starts_with_an_empty_ledger() -> None:
    spent = Ledger(DAY, requests=7, received_bytes=1000, floor_visits=2)

    assert roll_over(spent, now=at(24)) == Ledger(DAY + timedelta(days=1))
    assert roll_over(spent, now=at(-1)) == spent  # the ledger of a future day stays unchanged


def test_refund_counts_only_on_the_day_of_the_debit() -> None:
    refund = Refund(DAY, requests=40, received_bytes=300)
    spent = Ledger(DAY, requests=100, received_bytes=1000, floor_visits=5)
    tomorrow = Ledger(DAY + timedelta(days=1), requests=3, received_bytes=10)

    assert settle_ledger(spent, refund) == Ledger(DAY, requests=60, received_bytes=700, floor_visits=5)
    assert settle_ledger(tomorrow, refund) == tomorrow
    assert settle_ledger(spent, Refund(None, requests=40)) == spent


def test_received_bytes_count_even_if_debited_on_another_day() -> None:
    refund = Refund(DAY, received_bytes=300)
    tomorrow = DAY + timedelta(days=1)

    assert settle_ledger(Ledger(DAY, received_bytes=300), refund, received_bytes=250).received_bytes == 250
    assert settle_ledger(Ledger(DAY, received_bytes=300), refund, received_bytes=400).received_bytes == 400
    assert settle_ledger(Ledger(tomorrow), refund, received_bytes=250).received_bytes == 250


def test_ledger_never_falls_below_zero_and_negative_refund_is_a_debit() -> None:
    spent = Ledger(DAY, requests=2, received_bytes=100)

    assert settle_ledger(spent, Refund(DAY, requests=3, received_bytes=500)) == Ledger(DAY)
    assert settle_ledger(spent, Refund(DAY, requests=-3)) == Ledger(DAY, requests=5, received_bytes=100)


@given(spent=st.integers(0, 1000), granted=st.integers(0, 1000), made=st.integers(0, 1000), guess=st.integers(0, 10**6))
def test_debit_minus_refund_is_what_was_used(spent: int, granted: int, made: int, guess: int) -> None:
    before = Ledger(DAY, spent, spent)

    ledger = debit_ledger(before, granted, received_bytes=guess)
    ledger = settle_ledger(ledger, Refund(DAY, max(granted - made, 0), guess), received_bytes=made)

    assert ledger == Ledger(DAY, spent + min(granted, made), spent + made)


def test_no_request_is_granted_without_bytes_left() -> None:
    ledger = debit_ledger(Ledger(DAY), 0, received_bytes=1000)

    assert count_grantable_requests(ledger, 100, now=at(23), max_bytes=1000) == 0
    assert count_grantable_requests(ledger, 100, now=at(23), max_bytes=2000) == 96


def test_bytes_are_spread_over_the_day() -> None:
    ledger = debit_ledger(Ledger(DAY), 0, received_bytes=1000)

    assert [count_receivable_bytes(ledger, 9600, now=at(hour)) for hour in (0, 11.75, 23.9)] == [0, 3800, 8600]


def test_floor_visits_have_a_share_of_the_day() -> None:
    for day_number in range(739_000, 739_010):
        assert count_floor_left(4, 50, share=0.2, day_number=day_number) == 6
        assert count_floor_left(4, 10, share=0.2, day_number=day_number) == 0


@pytest.mark.parametrize(("budget", "in_ten_days"), [(0, 0), (1, 2), (3, 6), (4, 8), (12, 24)])
def test_small_budget_allows_a_floor_visit_every_few_days(budget: int, in_ten_days: int) -> None:
    left = [count_floor_left(0, budget, share=0.2, day_number=739_000 + day) for day in range(10)]

    assert sum(left) == in_ten_days
    assert max(left) - min(left) <= 1


@given(budget=st.integers(1, 3000), spent=st.integers(0, 3000), second=st.integers(0, 86_398))
def test_next_grant_is_the_first_second_at_which_the_pace_allows_a_request(
    budget: int, spent: int, second: int
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=second)
    ledger = Ledger(now.date(), requests=min(spent, budget))

    found = compute_next_grant(ledger, budget, now=now)

    before = found - timedelta(seconds=1)
    assert count_grantable_requests(ledger, budget, now=found) > 0
    assert before < now or count_grantable_requests(ledger, budget, now=before) == 0
