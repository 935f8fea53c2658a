import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.budget.find_root import MAX_PRICE, MIN_PRICE, find_root
from crawler.core.freshness.gamma import Floats

pytestmark = pytest.mark.filterwarnings("error")


@given(height=st.floats(1e-6, 1e9), near=st.floats(1e-9, 1e12), scale=st.floats(1e-3, 1e6), power=st.floats(0.1, 3))
def test_falling_curve_reaches_the_target_at_the_root(height: float, near: float, scale: float, power: float) -> None:
    def curve(price: Floats) -> Floats:
        return np.asarray(scale / (price**power + price))

    price = find_root(curve, np.array([height]), guess=np.array([near]))

    within = curve(np.array([MIN_PRICE]))[0] > height > curve(np.array([MAX_PRICE]))[0]
    if within:
        assert curve(price)[0] == pytest.approx(height, rel=1e-3)
    else:
        assert price[0] == pytest.approx(MIN_PRICE) or price[0] == pytest.approx(MAX_PRICE)


def test_root_of_a_curve_with_a_step_is_the_step() -> None:
    def stairs(price: Floats) -> Floats:
        return np.where(price < 3.0, 100.0, 1.0)

    assert find_root(stairs, np.array([10.0]), guess=np.array([0.25]))[0] == pytest.approx(3.0, rel=1e-3)


def test_many_roots_are_found_at_once() -> None:
    heights = np.geomspace(1e-3, 1e3, 50)

    assert find_root(lambda price: 1 / price, heights, guess=np.ones(50)) == pytest.approx(1 / heights, rel=1e-3)


def test_good_guess_needs_few_trials() -> None:
    trials = []

    def counted(price: Floats) -> Floats:
        trials.append(price)
        return np.asarray(1 / np.sqrt(price + price**2))

    find_root(counted, np.array([0.3]), guess=np.array([2.5]))

    assert len(trials) <= 7


@pytest.mark.parametrize(("height", "price"), [(0.0, MAX_PRICE), (np.inf, MIN_PRICE)])
def test_targets_of_zero_and_infinity_give_the_extreme_prices(height: float, price: float) -> None:
    assert find_root(lambda price: 1 / price, np.array([height]), guess=np.ones(1))[0] == pytest.approx(price)
