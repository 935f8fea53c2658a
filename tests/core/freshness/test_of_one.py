"""What every look asks for is said of one page by `math`: the same as whole arrays say."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import (
    DAY,
    Belief,
    chance_changed_of_one,
    chance_fresh,
    fade,
    faded,
    learn_same,
    same,
)
from crawler.core.freshness.signals import SourceWorth, heard_about, heard_days, heard_days_of_one, heard_from

figures = st.floats(0.01, 1e4)
beliefs = st.builds(Belief, figures, figures)
gaps = st.floats(-1, 1e5)
worths = st.builds(
    SourceWorth, recall=st.floats(0, 1), noise=st.floats(1e-6, 10), liveliness=st.floats(0, 1), per_day=st.floats(0, 10)
)


def about(expected: float | tuple[float, float]) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(belief=beliefs, prior=beliefs, gap=gaps)
def test_what_a_belief_says_and_learns_alone(belief: Belief, prior: Belief, gap: float) -> None:
    waited = timedelta(days=gap)
    days = waited / DAY

    assert chance_changed_of_one(belief, days) == about(1 - float(chance_fresh(belief.a, belief.b, days)))
    pairs = [
        (same(belief, gap=waited), learn_same(belief.a, belief.b, days)),
        (fade(belief, prior=prior, gap=waited), faded(belief.a, belief.b, prior.a, prior.b, days)),
    ]
    for one, (a, b) in pairs:
        assert (one.a, one.b) == about((float(a), float(b)))


@given(
    belief=beliefs, gap=gaps, signals=st.lists(st.integers(0, 300), max_size=3), sources=st.lists(worths, max_size=3)
)
def test_what_signals_make_of_a_gap(belief: Belief, gap: float, signals: list[int], sources: list[SourceWorth]) -> None:
    many = heard_from([signals], [sources], np.array([belief.rate_per_day]))
    one = heard_about(belief, signals, sources)
    days = heard_days_of_one(belief, gap, signals, sources)

    assert [one.recall, one.count, one.ratio] == [
        float(np.ravel(each)[0]) for each in (many.recall, many.count, many.ratio)
    ]
    assert days == about(float(heard_days(belief.a, belief.b, gap, many)[0]))
