import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.experiments.estimate import naive_rate, padded_rate, rate

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    "per_gap", [0.1, 2.0, *(pytest.param(each, marks=pytest.mark.soak) for each in (0.2, 0.5, 1.0, 1.5))]
)
def test_bias_of_ten_irregular_visits_is_within_five_percent(per_gap: float) -> None:
    rng = np.random.default_rng(7)
    gaps = rng.uniform(0.5, 1.5, (20_000, 10))
    found = rng.random(gaps.shape) < -np.expm1(-per_gap * gaps)

    assert rate(gaps, found).mean() / per_gap == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("per_gap", [0.1, 2.0])
def test_the_usual_estimates_are_further_off(per_gap: float) -> None:
    rng = np.random.default_rng(7)
    gaps = rng.uniform(0.5, 1.5, (20_000, 10))
    found = rng.random(gaps.shape) < -np.expm1(-per_gap * gaps)

    ours = abs(rate(gaps, found).mean() / per_gap - 1)
    assert abs(naive_rate(gaps, found).mean() / per_gap - 1) > ours
    assert abs(padded_rate(gaps, found).mean() / per_gap - 1) > 0.4


@pytest.mark.parametrize("changes", range(11))
def test_equal_gaps_give_the_published_estimate(changes: int) -> None:
    found = np.arange(10) < changes

    published = -np.log((10 - changes + 0.5) / 10.5) / 3  # Cho and Garcia-Molina, per gap of 3 days
    assert float(rate(np.full(10, 3.0), found)) == pytest.approx(published, rel=1e-9)


def test_nothing_found_is_a_rate_of_nothing_and_always_found_is_finite() -> None:
    gaps = np.array([1.0, 2.0, 5.0])

    assert rate(gaps, np.zeros(3, dtype=np.bool_)) == 0
    assert 0.5 < rate(gaps, np.ones(3, dtype=np.bool_)) < 10


def test_pages_with_fewer_visits_can_share_an_array() -> None:
    gaps, found = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]), np.array([[True, False, True]] * 3)

    short, _, none = rate(gaps, found)

    assert short == pytest.approx(float(rate(gaps[0, :2], found[0, :2])))
    assert none == 0


@given(
    visits=st.lists(st.tuples(st.floats(1e-3, 1e4), st.booleans()), min_size=1, max_size=30), scale=st.floats(1e-3, 1e3)
)
def test_the_unit_of_time_makes_no_difference(visits: list[tuple[float, bool]], scale: float) -> None:
    gaps, found = np.array([gap for gap, _ in visits]), np.array([seen for _, seen in visits])

    assert rate(gaps * scale, found) * scale == pytest.approx(float(rate(gaps, found)), rel=1e-6)
