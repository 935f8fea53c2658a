from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.http.response import NO_VALIDATORS, NotModified, Validators
from crawler.core.http.urls import PageKey
from crawler.core.validator_trust import (
    NO_TRUST,
    Validator,
    ValidatorStats,
    ValidatorTrust,
    choose_validators,
    choose_validators_to_verify,
    is_validator_check,
    update_trust,
)
from crawler.core.visit.visit import Target, Visit
from tests.core.visit.test_visit import fetched, html, looked, seen

BOTH = Validators('"1"', "Sun, 01 Feb 2026 00:00:00 GMT")
OTHER = Validators('"2"', "Sat, 28 Feb 2026 12:00:00 GMT")
CHANGED, SAME = html("<p>price 20.99"), html("<p>price 19.99")


def validator_check() -> Target:
    """Return a page with validators that is requested without them, as a validator check."""
    return replace(seen(SAME), stored_validators=BOTH, validators=NO_VALIDATORS, is_validator_check=True)


def conditional() -> Target:
    """Return the same page, requested conditionally."""
    return replace(validator_check(), validators=BOTH, is_validator_check=False)


def full(page: Target, body: bytes, said: Validators) -> Visit:
    return looked(page, fetched(body, validators=said))


def learned(*visits: Visit, trust: ValidatorTrust = NO_TRUST) -> ValidatorTrust:
    for visit in visits:
        trust = update_trust(trust, visit)
    return trust


def test_validators_that_missed_a_change_are_no_longer_sent() -> None:
    trust = learned(full(validator_check(), CHANGED, BOTH))

    assert trust.get_stats(Validator.ETAG).missed == trust.get_stats(Validator.LAST_MODIFIED).missed == 1
    assert choose_validators(BOTH, trust) == NO_VALIDATORS


def test_only_the_date_is_sent_if_the_etag_lies() -> None:
    frozen = replace(OTHER, etag=BOTH.etag)

    trust = learned(full(conditional(), CHANGED, frozen))

    assert choose_validators(BOTH, trust) == Validators(None, BOTH.last_modified)


def test_weak_etag_equals_the_strong_one() -> None:
    trust = learned(full(validator_check(), CHANGED, replace(OTHER, etag=f"W/{BOTH.etag}")))

    assert trust.get_stats(Validator.ETAG).missed == 1


def test_changing_validators_for_the_same_body_are_useless_but_no_lie() -> None:
    flapping = replace(BOTH, etag='"2"')

    trust = learned(full(conditional(), SAME, flapping), full(conditional(), SAME, flapping))

    assert trust.get_stats(Validator.ETAG).is_honest
    assert not trust.get_stats(Validator.ETAG).is_steady
    assert choose_validators(BOTH, trust) == Validators(None, BOTH.last_modified)
    assert choose_validators(Validators('"1"'), trust) == Validators(
        '"1"'
    )  # without an alternative, it may save a body


def test_new_validators_prove_nothing_until_the_old_ones_are_tested() -> None:
    visit = full(validator_check(), CHANGED, OTHER)

    assert choose_validators_to_verify(visit) == BOTH
    assert learned(visit).get_stats(Validator.ETAG) == ValidatorStats()
    assert learned(replace(visit, refused_304=True)).get_stats(Validator.ETAG) == ValidatorStats(changes_seen=1)
    assert learned(replace(visit, refused_304=False)).get_stats(Validator.ETAG) == ValidatorStats(
        changes_seen=1, missed=1
    )


def test_no_test_is_needed_without_a_change_or_with_equal_validators() -> None:
    assert choose_validators_to_verify(full(validator_check(), SAME, OTHER)) == NO_VALIDATORS
    assert choose_validators_to_verify(full(validator_check(), CHANGED, BOTH)) == NO_VALIDATORS
    assert choose_validators_to_verify(full(conditional(), CHANGED, OTHER)) == NO_VALIDATORS


def test_conditional_visit_that_finds_a_change_proves_honesty() -> None:
    assert learned(full(conditional(), CHANGED, OTHER)).get_stats(Validator.LAST_MODIFIED) == ValidatorStats(
        changes_seen=1
    )


def test_304_proves_steadiness_and_nothing_about_lies() -> None:
    trust = learned(looked(conditional(), NotModified(elapsed=timedelta(0))))

    assert trust.get_stats(Validator.ETAG) == ValidatorStats(unchanged=1)


def test_trusted_group_loses_trust_after_two_lies() -> None:
    trusted = learned(*[full(conditional(), CHANGED, OTHER)] * 20)
    lie = full(validator_check(), CHANGED, BOTH)

    assert choose_validators(BOTH, learned(lie, trust=trusted)) == BOTH
    assert choose_validators(BOTH, learned(lie, lie, trust=trusted)) == NO_VALIDATORS


@pytest.mark.soak
def test_trusted_group_that_starts_to_lie_is_found_within_200_revisits() -> None:
    lie, told_same = full(validator_check(), CHANGED, BOTH), looked(conditional(), NotModified(elapsed=timedelta(0)))
    honest = learned(*[full(conditional(), CHANGED, OTHER)] * 20)

    taken = [revisits_until_found(replace(honest, revisits=start), lie, told_same) for start in range(200, 6_000, 13)]

    assert max(taken) <= 200


def revisits_until_found(trust: ValidatorTrust, lie: Visit, told_same: Visit) -> int:
    """Return after how many revisits of changing pages the validators are no longer sent."""
    for revisits in range(10_000):
        if not choose_validators(BOTH, trust):
            return revisits
        turn = is_validator_check(trust.revisits)
        trust = update_trust(replace(trust, revisits=trust.revisits + 1), lie if turn else told_same)
    return 10_000


def test_one_of_four_changes_is_a_test_without_any_trust() -> None:
    pages = [replace(validator_check(), is_validator_check=False, key=PageKey(bytes([n]) * 16)) for n in range(256)]

    tested = [choose_validators_to_verify(full(each, CHANGED, OTHER)) for each in pages]

    assert tested.count(BOTH) == 64
    assert tested.count(NO_VALIDATORS) == 192
    date_alone = [replace(each, validators=Validators(None, BOTH.last_modified)) for each in pages]
    assert all(choose_validators_to_verify(full(each, CHANGED, OTHER)) == NO_VALIDATORS for each in date_alone)


def test_lie_restarts_the_checks() -> None:
    assert learned(full(validator_check(), CHANGED, BOTH), trust=ValidatorTrust(revisits=900)).revisits == 0


@pytest.mark.parametrize("lies", [1, 3, 100])
def test_six_honest_checks_restore_trust(lies: int) -> None:
    honest = replace(full(validator_check(), CHANGED, OTHER), refused_304=True)

    trust = learned(*[full(validator_check(), CHANGED, BOTH)] * lies, *[honest] * 6)

    assert choose_validators(BOTH, trust) == BOTH


def test_equal_length_of_another_body_is_recorded_without_more_checks() -> None:
    visit = full(replace(conditional(), received_bytes=len(CHANGED)), CHANGED, OTHER)

    trust = learned(visit, trust=ValidatorTrust(revisits=900))

    assert not trust.get_stats(Validator.LENGTH).is_honest
    assert trust.revisits == 900


def test_full_visits_despite_validators_are_counted() -> None:
    assert learned(full(validator_check(), SAME, BOTH), full(conditional(), SAME, BOTH)).validator_checks == 1


def test_last_modified_dates_changes_after_five_correct_ones() -> None:
    right = replace(full(conditional(), CHANGED, OTHER), modified_honest=True)
    wrong = replace(right, modified_honest=False)

    assert not learned(*[right] * 4).get_stats(Validator.DATE).is_proven
    assert learned(*[right] * 5).get_stats(Validator.DATE).is_proven
    assert not learned(*[right] * 9, wrong, wrong).get_stats(Validator.DATE).is_proven
