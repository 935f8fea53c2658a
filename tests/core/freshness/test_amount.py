"""The amount of a change: what a distance says, what a page's own changes teach, and what that is worth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import (
    LEAST_FACTOR,
    MOST_CHANGES,
    MOST_FACTOR,
    NO_AMOUNTS,
    USUAL_AMOUNT,
    UsualAmount,
    amount_factor,
    amount_of,
    amount_of_bits,
    bits_of_amount,
    expected_amount,
    factor_of,
    factors_of,
    refit_amounts,
    with_change,
)
from crawler.core.page.fingerprint import distance_bits, fingerprint_of


def words(rng: np.random.Generator, count: int) -> list[str]:
    return ["".join(rng.choice(list("abcdefghiklmnoprstu"), 7)) for _ in range(count)]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.6, 1.0])
def test_the_distance_of_real_texts_tells_what_part_of_them_was_replaced(share: float) -> None:
    """A run of words is replaced, so that hardly more threes of words differ than words."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(60):
        before = words(rng, 400)
        cut = round(share * len(before))
        start = int(rng.integers(len(before) - cut + 1))
        after = [*before[:start], *words(rng, cut), *before[start + cut :]]
        one, other = fingerprint_of(" ".join(before)), fingerprint_of(" ".join(after))
        assert one is not None
        assert other is not None
        found.append(amount_of_bits(distance_bits(one, other)))

    assert np.mean(found) == pytest.approx(share, rel=0.25, abs=0.02)


def test_amounts_and_bits_are_each_others_inverse() -> None:
    bits = np.arange(33.0)

    assert bits_of_amount(amount_of_bits(bits)) == pytest.approx(bits, abs=1e-6)
    assert float(amount_of_bits(40)) == pytest.approx(1)  # no further from the text than any other text


def test_a_change_that_the_distance_cannot_see_is_a_small_one_and_none_at_all_is_no_amount() -> None:
    unseen = amount_of(0, 1 / 3)

    assert unseen is not None
    assert 0 < unseen <= float(amount_of_bits(2))
    assert amount_of(0, 1 / 2000) == 1 / 2000
    assert amount_of(None, 0.2) == 0.2
    assert amount_of(None, None) is None
    assert with_change(NO_AMOUNTS, None) == NO_AMOUNTS


@given(amounts=st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=60))
def test_what_is_expected_lies_between_the_group_and_the_page_and_takes_two_numbers(amounts: list[float]) -> None:
    known = NO_AMOUNTS
    for amount in amounts:
        known = with_change(known, amount)
    expected = float(expected_amount(known.total, known.changes, USUAL_AMOUNT))

    assert min(*amounts, USUAL_AMOUNT) * 0.999 <= expected <= max(*amounts, USUAL_AMOUNT) * 1.001
    assert known.changes <= MOST_CHANGES + 1e-9


def test_a_page_that_has_become_another_is_believed_after_some_changes() -> None:
    known = NO_AMOUNTS
    for amount in [0.02] * 200 + [0.5] * 25:
        known = with_change(known, amount)

    assert float(expected_amount(known.total, known.changes, 0.02)) > 0.3


def test_the_mean_page_counts_once_and_no_page_counts_beyond_the_bounds() -> None:
    usual = UsualAmount(group=0.1, mean=0.1)

    assert factor_of(NO_AMOUNTS, usual) == 1
    assert factor_of(with_change(NO_AMOUNTS, 0.9), usual) > 1 > factor_of(with_change(NO_AMOUNTS, 0.001), usual)
    assert factor_of(with_change(NO_AMOUNTS, 0.9), None) == 1  # each change alike
    for amount in (0.9, 0.05, 0.001):
        one = with_change(NO_AMOUNTS, amount)
        assert factor_of(one, usual) == float(amount_factor(expected_amount(one.total, one.changes, 0.1), 0.1))
    assert amount_factor(np.array([1e-9, 1.0]), 0.1).tolist() == [LEAST_FACTOR, MOST_FACTOR]
    assert factors_of([(0.0, 0.0, 0.1), (9.0, 10.0, 0.1)], mean=0.1).tolist() == [1, MOST_FACTOR]
    assert factors_of([], mean=0.1).tolist() == []


def test_groups_learn_from_their_pages_each_of_which_counts_at_most_once() -> None:
    """One page that changes all the time must not speak for a hundred that change seldom."""
    rng = np.random.default_rng(1)
    changes = np.where(np.arange(400) % 2 == 0, 1.0, MOST_CHANGES)
    amounts = np.where(np.arange(400) % 2 == 0, 0.4, 0.05) * rng.uniform(0.8, 1.2, 400)
    group = np.repeat([1, 2], 200)

    by_group, mean = refit_amounts(amounts * changes, changes, group, groups=4)

    assert 0.1 < by_group[1] < 0.25
    assert by_group[3] == pytest.approx(np.mean(by_group[1:3]), rel=0.05)  # nothing of its own: as in the domain
    assert expected_amount(amounts * changes, changes, by_group[group]).mean() == pytest.approx(mean)


def test_a_domain_without_changes_expects_what_is_usual() -> None:
    nothing = np.zeros(3)

    by_group, mean = refit_amounts(nothing, nothing, np.zeros(3, dtype=np.intp), groups=1)

    assert by_group.tolist() == [pytest.approx(USUAL_AMOUNT)]
    assert mean == pytest.approx(USUAL_AMOUNT)
    assert refit_amounts(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.intp), groups=1)[1] == pytest.approx(
        USUAL_AMOUNT
    )
