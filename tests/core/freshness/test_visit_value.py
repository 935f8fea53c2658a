import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import DAY, RateEstimate
from crawler.core.freshness.visit_value import (
    compute_due_gap,
    compute_first_values,
    compute_fresh_days,
    compute_gain,
    compute_interval,
    compute_page_gain,
    compute_phase,
    compute_values,
    compute_weight,
    solve_gap,
    solve_page_gap,
)

pytestmark = pytest.mark.filterwarnings("error")

LEAST, MOST = timedelta(minutes=10), timedelta(days=180)
beliefs = st.builds(RateEstimate, a=st.floats(1e-2, 1e4), b=st.floats(1e-2, 1e4))


def mean_value(rate_estimate: RateEstimate, days: float) -> float:
    """Return the value of a visit at a known rate, averaged over the posterior on a fine grid."""
    log_rate = np.linspace(-40, 12, 400_001)
    rate = np.exp(log_rate)
    log_density = rate_estimate.a * log_rate - rate_estimate.b * rate
    weight = np.exp(log_density - log_density.max())
    gain = (1 - (1 + rate * days) * np.exp(-rate * days)) / rate
    return float((gain * weight).sum() / weight.sum())


@pytest.mark.parametrize("a", [0.5, 1.0, 1.0000001, 3.0, 50.0])
@pytest.mark.parametrize("days", [0.1, 1.0, 30.0, 300.0])
def test_value_is_the_mean_over_the_posterior(a: float, days: float) -> None:
    rate_estimate = RateEstimate(a, 10.0)

    assert float(
        compute_values(rate_estimate.a, rate_estimate.b, compute_weight(2.0), timedelta(days=days) / DAY)
    ) == pytest.approx(2 * mean_value(rate_estimate, days), rel=1e-4)


@given(rate_estimate=beliefs, importance=st.floats(0, 1e4), price=st.floats(1e-4, 1e3))
def test_page_is_due_within_bounds_when_its_value_reaches_the_price(
    rate_estimate: RateEstimate, importance: float, price: float
) -> None:
    wait = compute_interval(
        rate_estimate, importance=importance, shadow_price=price, min_interval=LEAST, max_interval=MOST
    )

    assert LEAST <= wait <= MOST
    if LEAST < wait < MOST:
        assert float(
            compute_values(rate_estimate.a, rate_estimate.b, compute_weight(importance), wait / DAY)
        ) == pytest.approx(price, rel=1e-3)


@given(rate_estimate=beliefs, days=st.floats(0, 1e4))
def test_value_grows_with_time(rate_estimate: RateEstimate, days: float) -> None:
    now = float(compute_values(rate_estimate.a, rate_estimate.b, compute_weight(1.0), timedelta(days=days) / DAY))
    later = float(
        compute_values(rate_estimate.a, rate_estimate.b, compute_weight(1.0), timedelta(days=days * 1.5 + 1) / DAY)
    )

    assert 0 <= now <= later * (1 + 1e-9)
    assert math.isfinite(later)


@pytest.mark.parametrize("price", [0.0, 5e-324, 1e308, math.inf])
def test_extreme_prices_give_a_due_time_within_bounds(price: float) -> None:
    for rate_estimate in (
        RateEstimate(0.5, 10.0),
        RateEstimate(1.0, 1e-6),
        RateEstimate(1e6, 1e6),
        RateEstimate(0.1, 1e9),
    ):
        assert (
            LEAST
            <= compute_interval(
                rate_estimate, importance=1.0, shadow_price=price, min_interval=LEAST, max_interval=MOST
            )
            <= MOST
        )


def test_page_that_changes_too_fast_is_visited_at_the_longest_interval() -> None:
    frantic = RateEstimate(a=10_000.0, b=10.0)  # a thousand changes a day

    assert compute_interval(frantic, importance=1.0, shadow_price=0.25, min_interval=LEAST, max_interval=MOST) == MOST


def test_more_important_page_is_due_sooner() -> None:
    rate_estimate = RateEstimate(2.0, 20.0)
    waits = [
        compute_interval(rate_estimate, importance=w, shadow_price=0.25, min_interval=LEAST, max_interval=MOST)
        for w in (0.1, 1.0, 10.0)
    ]

    assert waits == sorted(waits, reverse=True)


@pytest.mark.parametrize("a", [0.3, 1.0, 1.0 + 1e-9, 2.0, 30.0])
@pytest.mark.parametrize("y", [1e-4, 0.01, 1.0, 50.0])
def test_gain_is_the_integral_of_its_slope(a: float, y: float) -> None:
    s = np.linspace(0, y, 200_001)
    slope = a * s * np.exp(-(a + 1) * np.log1p(s))

    assert float(compute_gain(a, y)) == pytest.approx(np.trapezoid(slope, s), rel=1e-5)


@given(a=st.floats(1e-3, 1e5), y=st.floats(1e-9, 1e9))
def test_gain_is_continuous_at_the_end_of_the_series(a: float, y: float) -> None:
    at = 1e-3 / (a + 1)

    assert float(compute_gain(a, at * (1 - 1e-9))) == pytest.approx(float(compute_gain(a, at * (1 + 1e-9))), rel=1e-6)
    assert 0 < float(compute_gain(a, y)) <= float(compute_gain(a, y * 1.1)) * (1 + 1e-9)


@given(
    a=st.floats(1e-2, 1e4),
    b=st.floats(1e-2, 1e4),
    weight=st.floats(0.05, 1000),
    price=st.floats(1e-6, 1e6),
)
@example(a=1.0, b=1.0, weight=1.0, price=1.0)
@example(a=3.0, b=2.0, weight=1.0, price=1.0 - 1e-12)  # almost never reaches the price
@example(a=0.01, b=0.01, weight=0.05, price=1e6)  # reaches the price, but practically never
def test_value_after_the_solved_gap_is_the_price_or_the_gap_is_infinite(
    a: float, b: float, weight: float, price: float
) -> None:
    days = float(solve_gap(a, b, weight, price))

    if math.isfinite(days):
        assert float(compute_values(a, b, weight, days)) == pytest.approx(price, rel=1e-6)
    else:
        assert float(compute_values(a, b, weight, 1e9 * b)) < price


@given(
    a=st.floats(1e-3, 1e4),
    b=st.floats(1e-3, 1e4),
    weight=st.floats(0.05, 1000),
    price=st.floats(1e-9, 1e6),
    y=st.floats(1e-9, 1e9),
)
@example(a=1.0, b=1.0, weight=1.0, price=1.0, y=1e-3 / 2)
@example(a=3.0, b=2.0, weight=1.0, price=1.1, y=1e9)  # never reaches the price
@example(a=0.01, b=0.01, weight=0.05, price=1e6, y=1.0)
def test_scalar_gap_agrees_with_arrays(a: float, b: float, weight: float, price: float, y: float) -> None:
    one, many = solve_page_gap(a, b, weight, price), float(solve_gap(a, b, weight, price))
    forever = 1e11 * b

    assert min(one, forever) == pytest.approx(min(many, forever), rel=1e-7)
    assert compute_page_gain(a, y) == pytest.approx(float(compute_gain(a, y)), rel=1e-9)


@given(rate_estimate=beliefs, price=st.floats(1e-4, 1e3), more=st.floats(1.01, 100))
def test_higher_price_is_later_and_higher_importance_is_sooner(
    rate_estimate: RateEstimate, price: float, more: float
) -> None:
    defaults = float(solve_gap(rate_estimate.a, rate_estimate.b, 1.0, price))

    assert float(solve_gap(rate_estimate.a, rate_estimate.b, 1.0, price * more)) >= defaults * (1 - 1e-9)
    assert float(solve_gap(rate_estimate.a, rate_estimate.b, more, price)) <= defaults * (1 + 1e-9)


def test_due_gaps_of_arrays_agree_with_single_pages() -> None:
    rng = np.random.default_rng(2)
    a, b = 10 ** rng.uniform(-1, 3, 3000), 10 ** rng.uniform(-1, 3, 3000)

    days = compute_due_gap(a, b, 1.0, 0.5, min_interval=LEAST.total_seconds() / 86_400, max_interval=180.0)

    for n in range(0, 3000, 100):
        one = compute_interval(
            RateEstimate(a[n], b[n]), importance=1.0, shadow_price=0.5, min_interval=LEAST, max_interval=MOST
        )
        assert days[n] == pytest.approx(one.total_seconds() / 86_400, abs=1e-6)


def test_visits_at_one_price_are_the_best_use_of_the_requests() -> None:
    """Two pages with known rates share a budget. No other split gives more freshness than one price."""
    rates, price = np.array([0.05, 0.4]), 0.8
    a = np.full(2, 1e5)
    gap = solve_gap(a, a / rates, 1.0, price)
    ours, budget = (compute_fresh_days(a, a / rates, gap) / gap).sum(), (1 / gap).sum()

    share = np.linspace(0.01, 0.99, 2001)[:, None]
    other = 1 / (budget * np.concatenate([share, 1 - share], axis=1))
    best = (-np.expm1(-rates * other) / (rates * other)).sum(axis=1).max()
    assert ours == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("a", [0.5, 1.0, 2.5])
def test_value_of_a_first_visit_is_the_fresh_time_that_it_gains(a: float) -> None:
    days = np.linspace(0, 100, 100_001)
    fresh = (10 / (10 + days)) ** a

    assert float(compute_first_values(a, 10.0, 2.0, 100.0)) == pytest.approx(2 * np.trapezoid(fresh, days), rel=1e-6)
    assert float(compute_fresh_days(a, 10.0, 100.0)) <= 100


@given(key=st.binary(min_size=16, max_size=16), days=st.floats(1e-3, 1e3))
def test_first_gap_is_within_the_gap(key: bytes, days: float) -> None:
    assert timedelta(0) <= timedelta(days=days) * compute_phase(key) <= timedelta(days=days)


def test_first_gaps_of_many_pages_are_uniform() -> None:
    keys = np.random.default_rng(4).bytes(16 * 2000)
    days = [10 * compute_phase(keys[16 * n : 16 * n + 16]) for n in range(2000)]

    assert np.histogram(days, bins=10, range=(0, 10))[0].min() > 150


@pytest.mark.parametrize(("importance", "weight"), [(0.0, 0.05), (1.0, 1.0), (1e9, 1000.0)])
def test_weights_are_bounded(importance: float, weight: float) -> None:
    assert compute_weight(importance) == weight
