"""Change magnitudes: from distances, as learned from a page's changes, and as factors on importance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import (
    DEFAULT_MAGNITUDE,
    MAX_CHANGES,
    MAX_FACTOR,
    MIN_FACTOR,
    NO_MAGNITUDES,
    ExpectedMagnitude,
    add_change,
    compute_clipped_factor,
    compute_expected_magnitude,
    compute_magnitude_factor,
    compute_magnitude_factors,
    convert_bits_to_magnitude,
    convert_magnitude_to_bits,
    measure_magnitude,
    refit_magnitudes,
)
from crawler.core.page.fingerprint import compute_fingerprint, count_distance_bits


def words(rng: np.random.Generator, count: int) -> list[str]:
    return ["".join(rng.choice(list("abcdefghiklmnoprstu"), 7)) for _ in range(count)]


@pytest.mark.parametrize(
    "share",
    [pytest.param(share, marks=() if share == 0.3 else pytest.mark.soak) for share in (0.05, 0.1, 0.3, 0.6, 1.0)],
)
def test_distance_of_real_texts_matches_the_replaced_share(share: float) -> None:
    """A run of words is replaced, so that the share of differing shingles is close to that of differing words."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(60):
        before = words(rng, 400)
        cut = round(share * len(before))
        start = int(rng.integers(len(before) - cut + 1))
        after = [*before[:start], *words(rng, cut), *before[start + cut :]]
        one, other = compute_fingerprint(" ".join(before)), compute_fingerprint(" ".join(after))
        assert one is not None
        assert other is not None
        found.append(convert_bits_to_magnitude(count_distance_bits(one, other)))

    assert np.mean(found) == pytest.approx(share, rel=0.25, abs=0.02)


def test_magnitude_and_bits_are_inverse() -> None:
    bits = np.arange(33.0)

    assert convert_magnitude_to_bits(convert_bits_to_magnitude(bits)) == pytest.approx(bits, abs=1e-6)
    assert float(convert_bits_to_magnitude(40)) == pytest.approx(1)  # as different as an unrelated text


def test_change_below_the_distance_resolution_has_a_small_magnitude() -> None:
    unseen = measure_magnitude(0, 1 / 3)

    assert unseen is not None
    assert 0 < unseen <= float(convert_bits_to_magnitude(2))
    assert measure_magnitude(0, 1 / 2000) == 1 / 2000
    assert measure_magnitude(None, 0.2) == 0.2
    assert measure_magnitude(None, None) is None
    assert add_change(NO_MAGNITUDES, None) == NO_MAGNITUDES


@given(magnitudes=st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=60))
def test_expected_magnitude_is_between_group_and_page(magnitudes: list[float]) -> None:
    known = NO_MAGNITUDES
    for amount in magnitudes:
        known = add_change(known, amount)
    expected = float(compute_expected_magnitude(known.total, known.changes, DEFAULT_MAGNITUDE))

    assert min(*magnitudes, DEFAULT_MAGNITUDE) * 0.999 <= expected <= max(*magnitudes, DEFAULT_MAGNITUDE) * 1.001
    assert known.changes <= MAX_CHANGES + 1e-9


def test_expected_magnitude_adapts_after_some_changes() -> None:
    known = NO_MAGNITUDES
    for amount in [0.02] * 200 + [0.5] * 25:
        known = add_change(known, amount)

    assert float(compute_expected_magnitude(known.total, known.changes, 0.02)) > 0.3


def test_magnitude_factor_is_one_for_the_mean_page_and_bounded() -> None:
    usual = ExpectedMagnitude(group=0.1, mean=0.1)

    assert compute_magnitude_factor(NO_MAGNITUDES, usual) == 1
    assert (
        compute_magnitude_factor(add_change(NO_MAGNITUDES, 0.9), usual)
        > 1
        > compute_magnitude_factor(add_change(NO_MAGNITUDES, 0.001), usual)
    )
    assert compute_magnitude_factor(add_change(NO_MAGNITUDES, 0.9), None) == 1  # all changes count the same
    for amount in (0.9, 0.05, 0.001):
        one = add_change(NO_MAGNITUDES, amount)
        assert compute_magnitude_factor(one, usual) == float(
            compute_clipped_factor(compute_expected_magnitude(one.total, one.changes, 0.1), 0.1)
        )
    assert compute_clipped_factor(np.array([1e-9, 1.0]), 0.1).tolist() == [MIN_FACTOR, MAX_FACTOR]
    assert compute_magnitude_factors([(0.0, 0.0, 0.1), (9.0, 10.0, 0.1)], mean=0.1).tolist() == [1, MAX_FACTOR]
    assert compute_magnitude_factors([], mean=0.1).tolist() == []


def test_each_page_counts_at_most_once_in_its_group() -> None:
    """One page that always changes must not dominate a hundred that rarely change."""
    rng = np.random.default_rng(1)
    changes = np.where(np.arange(400) % 2 == 0, 1.0, MAX_CHANGES)
    magnitudes = np.where(np.arange(400) % 2 == 0, 0.4, 0.05) * rng.uniform(0.8, 1.2, 400)
    group = np.repeat([1, 2], 200)

    by_group, mean = refit_magnitudes(magnitudes * changes, changes, group, groups=4)

    assert 0.1 < by_group[1] < 0.25
    assert by_group[3] == pytest.approx(np.mean(by_group[1:3]), rel=0.05)  # without data: the value of the domain
    assert compute_expected_magnitude(magnitudes * changes, changes, by_group[group]).mean() == pytest.approx(mean)


def test_domain_without_changes_has_the_default_magnitude() -> None:
    nothing = np.zeros(3)

    by_group, mean = refit_magnitudes(nothing, nothing, np.zeros(3, dtype=np.intp), groups=1)

    assert by_group.tolist() == [pytest.approx(DEFAULT_MAGNITUDE)]
    assert mean == pytest.approx(DEFAULT_MAGNITUDE)
    assert refit_magnitudes(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.intp), groups=1)[1] == pytest.approx(
        DEFAULT_MAGNITUDE
    )
