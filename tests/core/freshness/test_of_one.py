"""The scalar functions for one page agree with the array functions."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import (
    DAY,
    RateEstimate,
    compute_change_chance,
    compute_fresh_chance,
    fade_estimate,
    fade_evidence,
    learn_unchanged,
    update_unchanged,
)
from crawler.core.freshness.signals import (
    SourceQuality,
    combine_page_signals,
    combine_signals,
    compute_aged_days,
    compute_page_aged_days,
)

figures = st.floats(0.01, 1e4)
beliefs = st.builds(RateEstimate, figures, figures)
gaps = st.floats(-1, 1e5)
source_qualities = st.builds(
    SourceQuality,
    recall=st.floats(0, 1),
    noise=st.floats(1e-6, 10),
    liveliness=st.floats(0, 1),
    per_day=st.floats(0, 10),
)


def about(expected: float | tuple[float, float]) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(rate_estimate=beliefs, prior=beliefs, gap=gaps)
def test_scalar_estimate_functions_agree_with_arrays(
    rate_estimate: RateEstimate, prior: RateEstimate, gap: float
) -> None:
    waited = timedelta(days=gap)
    days = waited / DAY

    assert compute_change_chance(rate_estimate, days) == about(
        1 - float(compute_fresh_chance(rate_estimate.a, rate_estimate.b, days))
    )
    pairs = [
        (update_unchanged(rate_estimate, gap=waited), learn_unchanged(rate_estimate.a, rate_estimate.b, days)),
        (
            fade_estimate(rate_estimate, prior=prior, gap=waited),
            fade_evidence(rate_estimate.a, rate_estimate.b, prior.a, prior.b, days),
        ),
    ]
    for one, (a, b) in pairs:
        assert (one.a, one.b) == about((float(a), float(b)))


@given(
    rate_estimate=beliefs,
    gap=gaps,
    signals=st.lists(st.integers(0, 300), max_size=3),
    sources=st.lists(source_qualities, max_size=3),
)
def test_scalar_signal_functions_agree_with_arrays(
    rate_estimate: RateEstimate, gap: float, signals: list[int], sources: list[SourceQuality]
) -> None:
    many = combine_signals([signals], [sources], np.array([rate_estimate.rate_per_day]))
    one = combine_page_signals(rate_estimate, signals, sources)
    days = compute_page_aged_days(rate_estimate, gap, signals, sources)

    assert [one.recall, one.count, one.ratio] == [
        float(np.ravel(each)[0]) for each in (many.recall, many.count, many.ratio)
    ]
    assert days == about(float(compute_aged_days(rate_estimate.a, rate_estimate.b, gap, many)[0]))
