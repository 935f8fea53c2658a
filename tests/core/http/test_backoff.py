from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.backoff import MIN_BACKOFF, compute_backoff, parse_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY, MONTH = timedelta(days=1), timedelta(days=30)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120), (" 7 ", 7), ("0", 0), ("Thu, 01 Jan 2026 00:02:00 GMT", 120), ("Wed, 31 Dec 2025 00:00:00 GMT", 0)],
)
def test_retry_after_is_parsed_in_both_forms(value: str, seconds: int) -> None:
    assert parse_retry_after(value, now=NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "1.5", "٣", "99999 Foo 9999"])
def test_invalid_retry_after_is_ignored(value: str | None) -> None:
    assert parse_retry_after(value, now=NOW) is None


def test_retry_after_date_is_relative_to_the_servers_clock() -> None:
    asked = parse_retry_after("Fri, 02 Jan 2015 00:01:00 GMT", now=NOW, server_date="Fri, 02 Jan 2015 00:00:00 GMT")

    assert asked == timedelta(minutes=1)


def test_retry_after_of_zero_does_not_disable_the_backoff() -> None:
    assert compute_backoff(1, requested_wait=timedelta(0), max_backoff=DAY, max_requested_wait=MONTH) >= MIN_BACKOFF


def test_backoff_doubles_and_respects_retry_after() -> None:
    first, second = (compute_backoff(n, requested_wait=None, max_backoff=DAY, max_requested_wait=MONTH) for n in (1, 2))

    assert second == 2 * first
    assert compute_backoff(
        1, requested_wait=timedelta(hours=5), max_backoff=DAY, max_requested_wait=MONTH
    ) == timedelta(hours=5)
    assert compute_backoff(1, requested_wait=timedelta(days=3), max_backoff=DAY, max_requested_wait=MONTH) == timedelta(
        days=3
    )


@given(rejections=st.integers(1, 10**6), asked=st.none() | st.timedeltas(timedelta(0)))
def test_backoff_is_bounded(rejections: int, asked: timedelta | None) -> None:
    assert (
        MIN_BACKOFF
        <= compute_backoff(rejections, requested_wait=asked, max_backoff=DAY, max_requested_wait=MONTH)
        <= MONTH
    )
