from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.validator_trust import (
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


def test_5_of_the_first_20_revisits_are_checks_and_later_1_of_100() -> None:
    validator_checks = [n for n in range(10_000) if is_validator_check(n)]

    assert sum(n < 20 for n in validator_checks) == 5
    assert sum(n < 200 for n in validator_checks) == 8
    assert sum(n >= 5_000 for n in validator_checks) == 50


def test_200_revisits_never_pass_without_a_check() -> None:
    validator_checks = [n for n in range(100_000) if is_validator_check(n)]

    assert max(after - before for before, after in pairwise(validator_checks)) < 200


@pytest.mark.soak
def test_honest_group_keeps_95_percent_of_the_savings_within_160_revisits() -> None:
    assert all(sum(map(is_validator_check, range(many))) <= 0.05 * many for many in range(160, 3_000))


@given(pages=st.integers(2, 30))
def test_checks_do_not_always_hit_the_same_page(pages: int) -> None:
    hit = {n % pages for n in range(5_000) if is_validator_check(n)}

    assert len(hit) >= min(pages, 10) / 2


def kept(groups: int, revisits: int) -> float:
    """Return the share of revisits that are not checks, for groups of equal size visited in turn."""
    turns = [is_validator_check_due(ValidatorTrust(revisits=n // groups), n // groups, n) for n in range(revisits)]
    return 1 - sum(turns) / revisits


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 20, 200])
def test_honest_domain_keeps_95_percent_of_its_first_200_revisits(groups: int) -> None:
    assert kept(groups, 200) >= 0.95
    assert kept(groups, 10_000) >= 0.975


@pytest.mark.parametrize("groups", [1, 2, 3, 10, 20])
def test_no_group_has_200_revisits_without_a_check(groups: int) -> None:
    turns = [
        n // groups
        for n in range(groups * 2_000)
        if n % groups == 0 and is_validator_check_due(ValidatorTrust(), n // groups, n)
    ]

    assert max(after - before for before, after in pairwise(turns)) <= 200


def test_group_that_lied_is_checked_as_often_as_a_new_domain() -> None:
    lied = ValidatorTrust(stats={Validator.ETAG: LIES})

    assert sum(is_validator_check_due(lied, n, 9_000) for n in range(20)) == 5
    assert sum(is_validator_check_due(ValidatorTrust(), n, 9_000) for n in range(20)) == 0


def test_validator_is_suspected_if_it_lied_in_every_tested_group() -> None:
    lied, honest = ValidatorTrust(stats={Validator.ETAG: LIES}), ValidatorTrust(stats={Validator.ETAG: TRUE})
    untested = ValidatorTrust(stats={Validator.ETAG: ValidatorStats(unchanged=3)})

    assert find_suspected_validators({1: lied, 2: untested}) == {Validator.ETAG}
    assert (
        find_suspected_validators({1: lied, 2: honest})
        == find_suspected_validators({1: untested})
        == find_suspected_validators({})
        == frozenset()
    )


def test_suspicion_applies_to_young_untested_groups() -> None:
    suspected = frozenset({Validator.ETAG})

    assert not apply_suspicion(NO_TRUST, suspected).get_stats(Validator.ETAG).is_honest
    assert apply_suspicion(NO_TRUST, suspected).get_stats(Validator.LAST_MODIFIED).is_honest
    assert apply_suspicion(ValidatorTrust(revisits=YOUNG_REVISITS), suspected).get_stats(Validator.ETAG).is_honest
    assert apply_suspicion(ValidatorTrust(stats={Validator.ETAG: TRUE}), suspected).get_stats(Validator.ETAG).is_honest
