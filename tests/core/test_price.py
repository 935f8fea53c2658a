import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.belief import Belief
from crawler.core.price import interval, value

LEAST, MOST = timedelta(minutes=10), timedelta(days=180)
beliefs = st.builds(Belief, a=st.floats(1e-2, 1e4), b=st.floats(1e-2, 1e4))


def mean_value(belief: Belief, days: float) -> float:
    """The value of a look at a page of known rate, averaged over the belief by a fine grid."""
    log_rate = np.linspace(-40, 12, 400_001)
    rate = np.exp(log_rate)
    log_density = belief.a * log_rate - belief.b * rate
    weight = np.exp(log_density - log_density.max())
    gain = (1 - (1 + rate * days) * np.exp(-rate * days)) / rate
    return float((gain * weight).sum() / weight.sum())


@pytest.mark.parametrize("a", [0.5, 1.0, 1.0000001, 3.0, 50.0])
@pytest.mark.parametrize("days", [0.1, 1.0, 30.0, 300.0])
def test_value_is_the_mean_over_the_belief(a: float, days: float) -> None:
    belief = Belief(a, 10.0)

    assert value(belief, importance=2.0, unseen=timedelta(days=days)) == pytest.approx(
        2 * mean_value(belief, days), rel=1e-4
    )


@given(belief=beliefs, importance=st.floats(0, 1e4), price=st.floats(1e-4, 1e3))
def test_a_page_is_due_within_bounds_and_exactly_when_it_is_worth_its_price(
    belief: Belief, importance: float, price: float
) -> None:
    wait = interval(belief, importance=importance, price=price, least=LEAST, most=MOST)

    assert LEAST <= wait <= MOST
    if LEAST < wait < MOST:
        assert value(belief, importance=importance, unseen=wait) == pytest.approx(price, rel=1e-3)


@given(belief=beliefs, days=st.floats(0, 1e4))
def test_value_grows_with_time(belief: Belief, days: float) -> None:
    now = value(belief, importance=1.0, unseen=timedelta(days=days))
    later = value(belief, importance=1.0, unseen=timedelta(days=days * 1.5 + 1))

    assert 0 <= now <= later * (1 + 1e-9)
    assert math.isfinite(later)


def test_what_surely_changes_too_fast_waits_longest_and_is_not_abandoned() -> None:
    frantic = Belief(a=10_000.0, b=10.0)  # a thousand changes a day

    assert interval(frantic, importance=1.0, price=0.25, least=LEAST, most=MOST) == MOST


def test_more_importance_means_sooner() -> None:
    belief = Belief(2.0, 20.0)
    waits = [interval(belief, importance=w, price=0.25, least=LEAST, most=MOST) for w in (0.1, 1.0, 10.0)]

    assert waits == sorted(waits, reverse=True)
