from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.validators import (
    NO_TRUST,
    YOUNG_REVISITS,
    Validator,
    ValidatorStats,
    ValidatorTrust,
    apply_suspicion,
    find_suspected_validators,
    is_validator_check,
    is_validator_check_due,
)

LIES, TRUE = ValidatorStats(changes_seen=1, missed=1), ValidatorStats(changes_seen=1)


def test_of_the_first_20_revisits_5_are_challenges_and_later_1_of_100() -> None:
    validator_checks = [n for n in range(10_000) if is_validator_check(n)]

    assert sum(n < 20 for n in validator_checks) == 5
    assert sum(n < 200 for n in validator_checks) == 8
    assert sum(n >= 5_000 for n in validator_checks) == 50


def test_200_revisits_never_go_by_without_a_challenge() -> None:
    validator_checks = [n for n in range(100_000) if is_validator_check(n)]

    assert max(after - before for before, after in pairwise(validator_checks)) < 200


@pytest.mark.soak
def test_an_honest_group_keeps_95_percent_of_what_validators_spare_within_160_revisits() -> None:
    assert all(sum(map(is_validator_check, range(many))) <= 0.05 * many for many in range(160, 3_000))


@given(pages=st.integers(2, 30))
def test_challenges_do_not_fall_on_the_same_page_of_a_round_for_ever(pages: int) -> None:
    hit = {n % pages for n in range(5_000) if is_validator_check(n)}

    assert len(hit) >= min(pages, 10) / 2


def kept(groups: int, revisits: int) -> float:
    """The part of the revisits to groups of one size, taken in turn, that are no challenges."""
    turns = [is_validator_check_due(ValidatorTrust(revisits=n // groups), n // groups, n) for n in range(revisits)]
    return 1 - sum(turns) / revisits


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 20, 200])
def test_an_honest_domain_keeps_95_percent_of_its_first_200_revisits_however_many_groups_it_has(groups: int) -> None:
    assert kept(groups, 200) >= 0.95
    assert kept(groups, 10_000) >= 0.975


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 20])
def test_no_group_goes_200_revisits_without_a_challenge(groups: int) -> None:
    turns = [
        n // groups
        for n in range(groups * 2_000)
        if n % groups == 0 and is_validator_check_due(ValidatorTrust(), n // groups, n)
    ]

    assert max(after - before for before, after in pairwise(turns)) <= 200


def test_a_group_that_has_lied_is_challenged_as_often_as_a_new_domain() -> None:
    lied = ValidatorTrust(stats={Validator.ETAG: LIES})

    assert sum(is_validator_check_due(lied, n, 9_000) for n in range(20)) == 5
    assert sum(is_validator_check_due(ValidatorTrust(), n, 9_000) for n in range(20)) == 0


def test_words_are_suspected_where_each_group_that_was_tested_was_lied_to() -> None:
    lied, honest = ValidatorTrust(stats={Validator.ETAG: LIES}), ValidatorTrust(stats={Validator.ETAG: TRUE})
    untested = ValidatorTrust(stats={Validator.ETAG: ValidatorStats(unchanged=3)})

    assert find_suspected_validators({1: lied, 2: untested}) == {Validator.ETAG}
    assert (
        find_suspected_validators({1: lied, 2: honest})
        == find_suspected_validators({1: untested})
        == find_suspected_validators({})
        == frozenset()
    )


def test_a_suspicion_counts_for_young_groups_that_know_nothing_of_their_own() -> None:
    suspected = frozenset({Validator.ETAG})

    assert not apply_suspicion(NO_TRUST, suspected).get_stats(Validator.ETAG).is_honest
    assert apply_suspicion(NO_TRUST, suspected).get_stats(Validator.LAST_MODIFIED).is_honest
    assert apply_suspicion(ValidatorTrust(revisits=YOUNG_REVISITS), suspected).get_stats(Validator.ETAG).is_honest
    assert apply_suspicion(ValidatorTrust(stats={Validator.ETAG: TRUE}), suspected).get_stats(Validator.ETAG).is_honest
