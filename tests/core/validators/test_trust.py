from dataclasses import replace
from datetime import timedelta

import pytest

from crawler.core.http.response import NO_VALIDATORS, NotModified, Validators
from crawler.core.http.urls import PageKey
from crawler.core.validators import (
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


def challenged() -> Target:
    """A page that was fetched once and is asked for in full although it has validators."""
    return replace(seen(SAME), stored_validators=BOTH, validators=NO_VALIDATORS, is_validator_check=True)


def asked() -> Target:
    """The same, asked for conditionally."""
    return replace(challenged(), validators=BOTH, is_validator_check=False)


def full(page: Target, body: bytes, said: Validators) -> Visit:
    return looked(page, fetched(body, validators=said))


def taught(*visits: Visit, trust: ValidatorTrust = NO_TRUST) -> ValidatorTrust:
    for visit in visits:
        trust = update_trust(trust, visit)
    return trust


def test_a_changed_body_under_the_same_words_is_a_lie_and_they_are_not_sent_any_more() -> None:
    trust = taught(full(challenged(), CHANGED, BOTH))

    assert trust.get_stats(Validator.ETAG).missed == trust.get_stats(Validator.LAST_MODIFIED).missed == 1
    assert choose_validators(BOTH, trust) == NO_VALIDATORS


def test_where_only_the_etag_lies_the_date_is_sent_alone() -> None:
    frozen = replace(OTHER, etag=BOTH.etag)

    trust = taught(full(asked(), CHANGED, frozen))

    assert choose_validators(BOTH, trust) == Validators(None, BOTH.last_modified)


def test_a_weak_etag_is_the_same_word_as_the_strong_one() -> None:
    trust = taught(full(challenged(), CHANGED, replace(OTHER, etag=f"W/{BOTH.etag}")))

    assert trust.get_stats(Validator.ETAG).missed == 1


def test_other_words_for_the_same_body_are_no_lie_but_useless() -> None:
    flapping = replace(BOTH, etag='"2"')

    trust = taught(full(asked(), SAME, flapping), full(asked(), SAME, flapping))

    assert trust.get_stats(Validator.ETAG).is_honest
    assert not trust.get_stats(Validator.ETAG).is_steady
    assert choose_validators(BOTH, trust) == Validators(None, BOTH.last_modified)
    assert choose_validators(Validators('"1"'), trust) == Validators('"1"')  # alone it may spare a body


def test_other_words_after_a_challenge_prove_nothing_until_the_server_was_asked_with_the_old_ones() -> None:
    visit = full(challenged(), CHANGED, OTHER)

    assert choose_validators_to_verify(visit) == BOTH
    assert taught(visit).get_stats(Validator.ETAG) == ValidatorStats()
    assert taught(replace(visit, refused_304=True)).get_stats(Validator.ETAG) == ValidatorStats(changes_seen=1)
    assert taught(replace(visit, refused_304=False)).get_stats(Validator.ETAG) == ValidatorStats(
        changes_seen=1, missed=1
    )


def test_nothing_is_in_doubt_where_nothing_changed_or_the_words_are_as_before() -> None:
    assert choose_validators_to_verify(full(challenged(), SAME, OTHER)) == NO_VALIDATORS
    assert choose_validators_to_verify(full(challenged(), CHANGED, BOTH)) == NO_VALIDATORS
    assert choose_validators_to_verify(full(asked(), CHANGED, OTHER)) == NO_VALIDATORS


def test_a_conditional_look_that_finds_a_change_is_proof_of_honesty() -> None:
    assert taught(full(asked(), CHANGED, OTHER)).get_stats(Validator.LAST_MODIFIED) == ValidatorStats(changes_seen=1)


def test_a_304_says_that_the_words_are_steady_and_nothing_about_lies() -> None:
    trust = taught(looked(asked(), NotModified(elapsed=timedelta(0))))

    assert trust.get_stats(Validator.ETAG) == ValidatorStats(unchanged=1)


def test_a_trusted_group_loses_its_trust_by_two_lies_and_not_by_one() -> None:
    trusted = taught(*[full(asked(), CHANGED, OTHER)] * 20)
    lie = full(challenged(), CHANGED, BOTH)

    assert choose_validators(BOTH, taught(lie, trust=trusted)) == BOTH
    assert choose_validators(BOTH, taught(lie, lie, trust=trusted)) == NO_VALIDATORS


def test_a_trusted_group_that_begins_to_lie_is_found_within_200_revisits_whenever_it_begins() -> None:
    lie, told_same = full(challenged(), CHANGED, BOTH), looked(asked(), NotModified(elapsed=timedelta(0)))
    honest = taught(*[full(asked(), CHANGED, OTHER)] * 20)

    taken = [revisits_until_found(replace(honest, revisits=start), lie, told_same) for start in range(200, 6_000, 13)]

    assert max(taken) <= 200


def revisits_until_found(trust: ValidatorTrust, lie: Visit, told_same: Visit) -> int:
    """After how many revisits to pages that all change the words are not sent any more."""
    for revisits in range(10_000):
        if not choose_validators(BOTH, trust):
            return revisits
        turn = is_validator_check(trust.revisits)
        trust = update_trust(replace(trust, revisits=trust.revisits + 1), lie if turn else told_same)
    return 10_000


def test_where_nothing_is_believed_one_change_of_four_is_a_test_too() -> None:
    pages = [replace(challenged(), is_validator_check=False, key=PageKey(bytes([n]) * 16)) for n in range(256)]

    tested = [choose_validators_to_verify(full(each, CHANGED, OTHER)) for each in pages]

    assert tested.count(BOTH) == 64
    assert tested.count(NO_VALIDATORS) == 192
    date_alone = [replace(each, validators=Validators(None, BOTH.last_modified)) for each in pages]
    assert all(choose_validators_to_verify(full(each, CHANGED, OTHER)) == NO_VALIDATORS for each in date_alone)


def test_a_lie_brings_the_challenges_of_the_beginning_back() -> None:
    assert taught(full(challenged(), CHANGED, BOTH), trust=ValidatorTrust(revisits=900)).revisits == 0


@pytest.mark.parametrize("lies", [1, 3, 100])
def test_six_honest_challenges_restore_trust(lies: int) -> None:
    honest = replace(full(challenged(), CHANGED, OTHER), refused_304=True)

    trust = taught(*[full(challenged(), CHANGED, BOTH)] * lies, *[honest] * 6)

    assert choose_validators(BOTH, trust) == BOTH


def test_an_equal_length_of_another_body_is_noted_and_no_reason_for_challenges() -> None:
    visit = full(replace(asked(), received_bytes=len(CHANGED)), CHANGED, OTHER)

    trust = taught(visit, trust=ValidatorTrust(revisits=900))

    assert not trust.get_stats(Validator.LENGTH).is_honest
    assert trust.revisits == 900


def test_full_looks_in_spite_of_validators_are_counted() -> None:
    assert taught(full(challenged(), SAME, BOTH), full(asked(), SAME, BOTH)).validator_checks == 1


def test_last_modified_tells_when_a_page_changed_after_five_times_it_was_right() -> None:
    right = replace(full(asked(), CHANGED, OTHER), modified_honest=True)
    wrong = replace(right, modified_honest=False)

    assert not taught(*[right] * 4).get_stats(Validator.DATE).is_proven
    assert taught(*[right] * 5).get_stats(Validator.DATE).is_proven
    assert not taught(*[right] * 9, wrong, wrong).get_stats(Validator.DATE).is_proven
