from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import comb

import pytest

from crawler.core.http.traffic import TrafficHour, compute_binomial_tail, describe_anomaly

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)


def hour(n: int, *, visits: int = 100, errors: int = 1, latency_ms: float | None = 200.0) -> TrafficHour:
    at = NOON - n * timedelta(hours=1)
    return TrafficHour(
        hour=at, visits=visits, requests=visits, received_bytes=visits * 1000, errors=errors, latency_ms=latency_ms
    )


# A day slower than the night, and an error now and then.
USUAL = [hour(n, errors=n % 3, latency_ms=180.0 + 60 * (n % 24 > 12) + n % 7) for n in range(1, 14 * 24)]


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (hour(0), ""),
        (hour(0, errors=3), ""),
        (hour(0, errors=30), "30 of 100 looks failed, where 1 % is usual"),
        (hour(0, visits=6, errors=4), ""),  # too few for anybody
        (hour(0, latency_ms=300), ""),
        (hour(0, latency_ms=2400), "answers took 2,400 ms, where "),
        (hour(0, visits=3, latency_ms=2400), ""),
        (hour(0, visits=0, errors=0, latency_ms=None), ""),
    ],
)
def test_an_hour_is_off_where_it_is_far_from_what_is_usual(now: TrafficHour, says: str) -> None:
    found = describe_anomaly(now, USUAL)

    assert found.startswith(says)
    assert bool(found) == bool(says)


def test_nothing_is_off_before_anything_is_usual_nor_what_has_been_as_bad_before() -> None:
    bad = hour(0, errors=60, latency_ms=5000)
    worse_before = [replace(bad, hour=NOON - timedelta(hours=30), errors=70), *USUAL]

    assert describe_anomaly(bad, USUAL[:20]) == ""
    assert "failed" in describe_anomaly(bad, USUAL)
    assert "failed" not in describe_anomaly(bad, worse_before)


def test_the_usual_hours_themselves_are_hardly_ever_off() -> None:
    off = [each for n, each in enumerate(USUAL) if describe_anomaly(each, USUAL[:n] + USUAL[n + 1 :])]

    assert off == []


def test_the_tail_is_the_binomial_one() -> None:
    exact = sum(comb(40, n) * 0.1**n * 0.9 ** (40 - n) for n in range(9, 41))

    assert compute_binomial_tail(40, 9, 0.1) == pytest.approx(exact)
    assert compute_binomial_tail(40, 0, 0.1) == pytest.approx(1)
