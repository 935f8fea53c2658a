import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.belief import PRIOR, Belief, change_expected, changed, changed_at, fresh_now, same

beliefs = st.builds(Belief, a=st.floats(1e-2, 1e3), b=st.floats(1e-3, 1e4))
gaps = st.floats(1e-6, 1e5).map(lambda days: timedelta(days=days))


def posterior_moments(belief: Belief, days: float) -> tuple[float, float]:
    """Mean and variance of rate^(a-1) exp(-b rate) (1 - exp(-rate t)), by adding up a fine grid in log rate."""
    log_rate = np.linspace(-40, 12, 400_001)
    rate = np.exp(log_rate)
    log_density = belief.a * log_rate - belief.b * rate + np.log(-np.expm1(-rate * days))
    weight = np.exp(log_density - log_density.max())
    mean = float((rate * weight).sum() / weight.sum())
    return mean, float(((rate - mean) ** 2 * weight).sum() / weight.sum())


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("days", [0.01, 1.0, 30.0, 1000.0])
def test_a_change_gives_the_exact_mean_and_variance(a: float, days: float) -> None:
    belief = Belief(a, 10.0)

    after = changed(belief, gap=timedelta(days=days))

    mean, variance = posterior_moments(belief, days)
    assert after.a / after.b == pytest.approx(mean, rel=1e-4)
    assert after.a / after.b**2 == pytest.approx(variance, rel=1e-3)


def test_no_change_adds_the_gap_and_nothing_else() -> None:
    assert same(Belief(2.0, 5.0), gap=timedelta(days=3)) == Belief(2.0, 8.0)


def test_a_known_instant_of_change_counts_as_one_event() -> None:
    assert changed_at(Belief(2.0, 5.0), age=timedelta(days=3)) == Belief(3.0, 8.0)


def test_changed_at_once_is_one_event_and_changed_at_last_teaches_nothing() -> None:
    at_once = changed(PRIOR, gap=timedelta(microseconds=1))
    at_last = changed(PRIOR, gap=timedelta(days=1e8))

    assert (at_once.a, at_once.b) == (PRIOR.a + 1, PRIOR.b)
    assert at_last.rate_per_day == pytest.approx(PRIOR.rate_per_day, rel=1e-2)


@given(belief=beliefs, gap=gaps)
def test_updates_stay_numbers_and_move_the_right_way(belief: Belief, gap: timedelta) -> None:
    up, down = changed(belief, gap=gap), same(belief, gap=gap)

    assert all(math.isfinite(x) and x > 0 for x in (up.a, up.b, down.a, down.b))
    assert up.rate_per_day >= belief.rate_per_day * (1 - 1e-9)
    assert down.rate_per_day <= belief.rate_per_day


@given(belief=beliefs, gap=gaps)
def test_freshness_and_expected_change_are_two_sides_of_one_chance(belief: Belief, gap: timedelta) -> None:
    fresh = fresh_now(belief, unseen=gap)

    assert 0 <= fresh <= 1
    assert fresh + change_expected(belief, gap=gap) == pytest.approx(1)
