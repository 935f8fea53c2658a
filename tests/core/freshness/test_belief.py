import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawler.core.freshness.estimates import (
    DAY,
    PRIOR,
    RateEstimate,
    compute_change_chance,
    compute_credible_interval,
    compute_credible_rates,
    compute_fresh_chance,
    fade_estimate,
    fade_evidence,
    is_credible_age,
    learn_changed,
    learn_unchanged,
    update_changed,
    update_changed_at,
    update_unchanged,
)
from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma

pytestmark = pytest.mark.filterwarnings("error")

beliefs = st.builds(RateEstimate, a=st.floats(1e-2, 1e3), b=st.floats(1e-3, 1e4))
gaps = st.floats(1e-6, 1e5).map(lambda days: timedelta(days=days))


def posterior_moments(rate_estimate: RateEstimate, days: float) -> tuple[float, float]:
    """Return the means of rate and ln rate under rate^(a-1) exp(-b rate) (1 - exp(-rate t)), on a fine grid."""
    log_rate = np.linspace(-60, 12, 400_001)
    rate = np.exp(log_rate)
    log_density = rate_estimate.a * log_rate - rate_estimate.b * rate + np.log(-np.expm1(-rate * days))
    weight = np.exp(log_density - log_density.max())
    return float((rate * weight).sum() / weight.sum()), float((log_rate * weight).sum() / weight.sum())


@pytest.mark.parametrize("a", [0.1, 0.5, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("days", [0.01, 1.0, 30.0, 1000.0])
def test_change_gives_the_exact_mean_and_mean_logarithm(a: float, days: float) -> None:
    rate_estimate = RateEstimate(a, 10.0)

    after = update_changed(rate_estimate, gap=timedelta(days=days))

    mean, mean_log = posterior_moments(rate_estimate, days)
    assert after.a / after.b == pytest.approx(mean, rel=1e-4)
    assert float(compute_digamma(after.a)) - math.log(after.b) == pytest.approx(mean_log, abs=1e-4)


def test_no_change_only_adds_the_gap() -> None:
    assert update_unchanged(RateEstimate(2.0, 5.0), gap=timedelta(days=3)) == RateEstimate(2.0, 8.0)


def test_change_at_a_known_time_counts_as_one_event() -> None:
    assert update_changed_at(RateEstimate(2.0, 5.0), age=timedelta(days=3)) == RateEstimate(3.0, 8.0)


def test_change_after_a_very_short_gap_is_one_event_and_after_a_very_long_gap_no_evidence() -> None:
    at_once = update_changed(PRIOR, gap=timedelta(microseconds=1))
    at_last = update_changed(PRIOR, gap=timedelta(days=1e8))

    assert (at_once.a, at_once.b) == (PRIOR.a + 1, PRIOR.b)
    assert at_last.rate_per_day == pytest.approx(PRIOR.rate_per_day, rel=1e-2)


@given(rate_estimate=beliefs, gap=gaps)
def test_updates_are_finite_and_move_in_the_right_direction(rate_estimate: RateEstimate, gap: timedelta) -> None:
    up, down = update_changed(rate_estimate, gap=gap), update_unchanged(rate_estimate, gap=gap)

    assert all(math.isfinite(x) and x > 0 for x in (up.a, up.b, down.a, down.b))
    assert up.rate_per_day >= rate_estimate.rate_per_day * (1 - 1e-9)
    assert down.rate_per_day <= rate_estimate.rate_per_day


@given(rate_estimate=beliefs, gap=gaps)
def test_fresh_and_change_probability_add_up_to_one(rate_estimate: RateEstimate, gap: timedelta) -> None:
    fresh = float(compute_fresh_chance(rate_estimate.a, rate_estimate.b, gap / DAY))

    assert 0 <= fresh <= 1
    assert fresh + compute_change_chance(rate_estimate, gap / DAY) == pytest.approx(1)


@given(a=st.floats(1e-2, 1e5), b=st.floats(1e-3, 1e4), gap=st.floats(0, 1e6))
@example(a=1.0, b=1e4, gap=2e-6)
@example(a=1e-2, b=1e-3, gap=1e6)
def test_evidence_only_grows(a: float, b: float, gap: float) -> None:
    a_after, b_after = learn_changed(a, b, gap)

    assert a <= a_after <= a + 1
    assert b <= b_after <= b + gap + 1e-9


def test_arrays_learn_the_same_as_single_pages() -> None:
    a, b, days = np.array([0.5, 1.0, 40.0]), np.array([10.0, 3.0, 0.5]), np.array([0.0, 1.0, 1e5])

    a_after, b_after = learn_changed(a, b, days)

    each = [update_changed(RateEstimate(*pair), gap=timedelta(days=t)) for *pair, t in zip(a, b, days, strict=True)]
    assert list(zip(a_after, b_after, strict=True)) == [(rate_estimate.a, rate_estimate.b) for rate_estimate in each]


def test_many_visits_converge_to_the_exact_posterior_mean() -> None:
    rng = np.random.default_rng(5)
    rate = rng.gamma(0.8, 1 / 20, 2000)
    days = rng.exponential(15, (12, 2000))
    found = rng.random(days.shape) < -np.expm1(-rate * days)

    a, b = np.full(2000, 0.8), np.full(2000, 20.0)
    for gap, seen in zip(days, found, strict=True):
        up, down = learn_changed(a, b, gap), learn_unchanged(a, b, gap)
        a, b = np.where(seen, up[0], down[0]), np.where(seen, up[1], down[1])

    exact = exact_means(0.8, 20.0, days[:, :50], found[:, :50])
    assert np.median(np.abs((a / b)[:50] / exact - 1)) < 0.01
    assert (a / b).mean() == pytest.approx(rate.mean(), rel=0.05)  # unbiased over the prior
    low, high = compute_credible_rates(a, b)
    assert 0.85 <= ((low < rate) & (rate < high)).mean() <= 0.95


def exact_means(a: float, b: float, days: Numbers, found: NDArray[np.bool_]) -> Floats:
    """Return posterior means on a fine grid, without approximation by a Gamma."""
    log_rate = np.linspace(-30, 5, 20_001)
    rate = np.exp(log_rate)
    means = []
    for gaps_of_page, seen in zip(np.asarray(days).T, found.T, strict=True):
        log_density = a * log_rate - b * rate
        for gap, is_changed in zip(gaps_of_page, seen, strict=True):
            log_density = log_density + (np.log(-np.expm1(-rate * gap)) if is_changed else -rate * gap)
        weight = np.exp(log_density - log_density.max())
        means.append((rate * weight).sum() / weight.sum())
    return np.array(means)


@given(rate_estimate=beliefs, prior=beliefs, gap=gaps)
def test_fading_moves_toward_the_prior_and_never_past_it(
    rate_estimate: RateEstimate, prior: RateEstimate, gap: timedelta
) -> None:
    after = fade_estimate(rate_estimate, prior=prior, gap=gap)

    for now, then, at in ((after.a, rate_estimate.a, prior.a), (after.b, rate_estimate.b, prior.b)):
        assert min(then, at) * (1 - 1e-9) <= now <= max(then, at) * (1 + 1e-9)


def test_one_year_leaves_about_a_third_of_old_evidence() -> None:
    a, b = np.asarray(10.5), np.asarray(1010.0)
    for _ in range(52):
        a, b = fade_evidence(a, b, PRIOR.a, PRIOR.b, 7.0)

    assert float(a - PRIOR.a) == pytest.approx(10 * math.exp(-52 * 7 / 365))
    assert float(b - PRIOR.b) == pytest.approx(1000 * math.exp(-52 * 7 / 365))
    assert float(a) == pytest.approx(float(fade_evidence(10.5, 1010.0, PRIOR.a, PRIOR.b, 52 * 7.0)[0]))


def test_credible_interval_contains_its_mass() -> None:
    rate_estimate = RateEstimate(3.0, 20.0)
    drawn = np.random.default_rng(1).gamma(rate_estimate.a, 1 / rate_estimate.b, 100_000)

    low, high = compute_credible_interval(rate_estimate)

    assert (drawn < low).mean() == pytest.approx(0.05, abs=0.003)
    assert (drawn > high).mean() == pytest.approx(0.05, abs=0.003)


@given(rate_estimate=beliefs, mass=st.floats(0.01, 0.99))
def test_credible_interval_has_ordered_finite_bounds(rate_estimate: RateEstimate, mass: float) -> None:
    low, high = compute_credible_interval(rate_estimate, mass=mass)

    assert 0 <= low <= high < math.inf


def test_last_modified_of_now_or_before_the_last_visit_is_not_credible() -> None:
    ages = np.array([0.0, 30 / 86_400, 0.5, 3.0, 3.1, 365.0, np.nan, -1.0])

    assert is_credible_age(ages, 3.0).tolist() == [False, False, True, True, False, False, False, False]
