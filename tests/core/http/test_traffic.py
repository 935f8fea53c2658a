from datetime import UTC, datetime, timedelta
from math import comb

import pytest
from msgspec.structs import replace

from crawler.core.http.traffic import TrafficHour, compute_binomial_tail, describe_anomaly

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)


def hour(n: int, *, visits: int = 100, errors: int = 1, latency_ms: float | None = 200.0) -> TrafficHour:
    at = NOON - n * timedelta(hours=1)
    return TrafficHour(
        hour=at, visits=visits, requests=visits, received_bytes=visits * 1000, errors=errors, latency_ms=latency_ms
    )


# Slower by day than by night, with occasional errors.
USUAL = [hour(n, errors=n % 3, latency_ms=180.0 + 60 * (n % 24 > 12) + n % 7) for n in range(1, 14 * 24)]


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (hour(0), ""),
        (hour(0, errors=3), ""),
        (hour(0, errors=30), "30 of 100 visits failed; 1% is usual"),
        (hour(0, visits=6, errors=4), ""),  # too few visits
        (hour(0, latency_ms=300), ""),
        (hour(0, latency_ms=2400), "responses took 2,400 ms; "),
        (hour(0, visits=3, latency_ms=2400), ""),
        (hour(0, visits=0, errors=0, latency_ms=None), ""),
    ],
)
def test_hour_far_from_the_baseline_is_an_anomaly(now: TrafficHour, message: str) -> None:
    found = describe_anomaly(now, USUAL)

    assert found.startswith(message)
    assert bool(found) == bool(message)


def test_no_anomaly_without_baseline_or_if_it_was_as_bad_before() -> None:
    bad = hour(0, errors=60, latency_ms=5000)
    worse_before = [replace(bad, hour=NOON - timedelta(hours=30), errors=70), *USUAL]

    assert describe_anomaly(bad, USUAL[:20]) == ""
    assert "failed" in describe_anomaly(bad, USUAL)
    assert "failed" not in describe_anomaly(bad, worse_before)


def test_usual_hours_are_no_anomalies() -> None:
    off = [each for n, each in enumerate(USUAL) if describe_anomaly(each, USUAL[:n] + USUAL[n + 1 :])]

    assert off == []


def test_binomial_tail_agrees_with_the_exact_sum() -> None:
    exact = sum(comb(40, n) * 0.1**n * 0.9 ** (40 - n) for n in range(9, 41))

    assert compute_binomial_tail(40, 9, 0.1) == pytest.approx(exact)
    assert compute_binomial_tail(40, 0, 0.1) == pytest.approx(1)
