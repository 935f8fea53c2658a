import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness import Activity, after, decayed
from crawler.core.freshness.activity import LEAST_FACTOR, MOST_FACTOR


def test_a_domain_without_looks_is_as_active_as_usual() -> None:
    assert Activity().factor == 1


def test_what_was_expected_leaves_the_factor_alone() -> None:
    activity = Activity()
    for _ in range(50):
        activity = after(activity, days=0.5, found=2, expected=2.0)

    assert activity.factor == pytest.approx(1)


def test_a_wave_is_seen_at_once_and_forgotten_within_weeks() -> None:
    wave = after(Activity(), days=0, found=30, expected=3.0)

    assert wave.factor == pytest.approx(33 / 6)
    assert after(wave, days=7, found=0, expected=0).factor == pytest.approx(
        (30 / 2.71828 + 3) / (3 / 2.71828 + 3), rel=1e-4
    )
    assert after(wave, days=60, found=0, expected=0).factor == pytest.approx(1, abs=0.01)


@given(found=st.floats(0, 1e9), expected=st.floats(0, 1e9), days=st.floats(-1, 1e6))
def test_the_factor_is_bounded(found: float, expected: float, days: float) -> None:
    factor = after(Activity(found, expected), days=days, found=found, expected=expected).factor

    assert LEAST_FACTOR <= factor <= MOST_FACTOR


def test_two_steps_of_decay_are_one() -> None:
    assert float(decayed(decayed(5.0, 2.0), 3.0)) == pytest.approx(float(decayed(5.0, 5.0)))
