import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.gamma import (
    compute_digamma,
    compute_log_gamma,
    compute_quantile,
    compute_trigamma,
    solve_shape,
)

pytestmark = pytest.mark.filterwarnings("error")


def test_log_gamma_agrees_with_the_standard_library() -> None:
    x = np.geomspace(1e-6, 1e8, 500)

    assert compute_log_gamma(x) == pytest.approx([math.lgamma(v) for v in x], rel=1e-11, abs=1e-11)


def test_derivatives_have_their_known_values() -> None:
    euler = 0.5772156649015329

    assert float(compute_digamma(1.0)) == pytest.approx(-euler, abs=1e-12)
    assert float(compute_digamma(0.5)) == pytest.approx(-euler - 2 * math.log(2), abs=1e-12)
    assert float(compute_trigamma(1.0)) == pytest.approx(math.pi**2 / 6, abs=1e-10)
    assert float(compute_trigamma(0.5)) == pytest.approx(math.pi**2 / 2, abs=1e-10)


@given(x=st.floats(1e-3, 1e5))
def test_derivatives_satisfy_the_recurrence(x: float) -> None:
    assert float(compute_digamma(x + 1) - compute_digamma(x)) == pytest.approx(1 / x, rel=1e-6, abs=1e-10)
    assert float(compute_trigamma(x) - compute_trigamma(x + 1)) == pytest.approx(1 / x**2, rel=1e-6, abs=1e-9)


@given(a=st.floats(0.01, 1e5))
def test_shape_is_solved_from_the_spread(a: float) -> None:
    assert float(solve_shape(np.log(a) - compute_digamma(a))) == pytest.approx(a, rel=1e-6)


# Quantiles of chi-squared with k degrees of freedom, which is twice a Gamma of shape k/2.
@pytest.mark.parametrize(
    ("freedom", "chance", "value"),
    [
        (1, 0.95, 3.841458820694124),
        (10, 0.95, 18.307038053275146),
        (10, 0.05, 3.9402991361190605),
        (2, 0.5, 1.3862943611198906),
        (100, 0.95, 124.34211340400407),
        (100, 0.05, 77.92946516501726),
    ],
)
def test_quantiles_agree_with_published_tables(freedom: int, chance: float, value: float) -> None:
    assert 2 * float(compute_quantile(freedom / 2, chance)) == pytest.approx(value, rel=1e-9)


@given(a=st.integers(1, 100), chance=st.floats(1e-4, 1 - 1e-4))
def test_probability_below_a_quantile_is_the_requested_one(a: int, chance: float) -> None:
    """A Gamma with integer shape a is below x with the probability that a Poisson with mean x is at least a."""
    x = float(compute_quantile(a, chance))

    fewer = math.fsum(math.exp(n * math.log(x) - x - math.lgamma(n + 1)) for n in range(a))
    assert 1 - fewer == pytest.approx(chance, abs=1e-9)


@given(a=st.floats(0.02, 0.5), chance=st.floats(1e-4, 0.5))
def test_quantiles_of_small_shapes_are_within_the_bounds_of_the_first_term(a: float, chance: float) -> None:
    """For every x: x^a e^-x <= P(a, x) Gamma(a + 1) <= x^a."""
    x = float(compute_quantile(a, chance))

    asked = math.log(chance) + math.lgamma(a + 1)
    assert a * math.log(x) - x <= asked + 1e-9
    assert asked <= a * math.log(x) + 1e-9


def test_approximation_for_large_shapes_is_continuous() -> None:
    below, above = compute_quantile(np.array([999.999, 1000.001]), 0.05)

    assert above / below == pytest.approx(1, abs=1e-5)


def test_quantiles_have_the_shape_of_the_argument() -> None:
    assert compute_quantile(np.ones((3, 2)), 0.5).shape == (3, 2)
    assert compute_quantile(1.0, 0.5).shape == ()
