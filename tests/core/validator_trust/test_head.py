from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.budget.cost import ROUND_TRIP_BYTES, TIME_PRICE, Cost, Costs, ShadowPrice, is_head_cheaper
from crawler.core.change.change import Change, Evidence
from crawler.core.http.response import (
    NO_VALIDATORS,
    FailureReason,
    Fetched,
    NotModified,
    Response,
    Unreached,
    Validators,
)
from crawler.core.validator_trust import (
    NO_TRUST,
    Validator,
    ValidatorStats,
    ValidatorTrust,
    build_spared_visit,
    choose_head_validators,
    is_unchanged_by_head,
    judge_head,
    update_trust,
)
from crawler.core.visit.visit import HeadOutcome, Target
from tests.core.visit.test_visit import NOW, fetched, html, looked, seen

DATED = Validators(None, "Sun, 01 Feb 2026 00:00:00 GMT")
PROVEN = ValidatorStats(changes_seen=4.0)
IGNORED = ValidatorStats(unchanged=4.0, flapped=4.0)
SAME, CHANGED = html("<p>price 19.99"), html("<p>price 19.99, and much besides")


def page(words: Validators = NO_VALIDATORS) -> Target:
    """Return a page that was fetched once and is now requested with HEAD."""
    return replace(seen(SAME), stored_validators=words, validators=NO_VALIDATORS, expected_head=words, sends_head=True)


def head(length: int | None = len(SAME), words: Validators = NO_VALIDATORS, status: int = 200) -> Fetched:
    return fetched(b"", status, validators=words, received_bytes=0, declared_bytes=length)


def test_new_group_and_one_with_304_responses_need_no_head() -> None:
    assert choose_head_validators(DATED, NO_TRUST) is None
    assert (
        choose_head_validators(
            DATED, ValidatorTrust(stats={Validator.CONDITION: ValidatorStats(unchanged=4.0), Validator.LENGTH: PROVEN})
        )
        is None
    )


def test_head_must_repeat_an_honest_date_if_conditional_requests_are_ignored() -> None:
    assert choose_head_validators(DATED, ValidatorTrust(stats={Validator.CONDITION: IGNORED})) == DATED


def test_length_alone_is_trusted_after_five_changes_without_a_miss() -> None:
    trust, length = NO_TRUST, len(SAME)
    for n in range(5):
        assert choose_head_validators(NO_VALIDATORS, trust) is None
        body = html("<p>more " + "and more " * n)
        visit = looked(replace(seen(SAME), received_bytes=length), fetched(body, validators=NO_VALIDATORS))
        trust, length = update_trust(trust, visit), len(body)
    assert choose_head_validators(NO_VALIDATORS, trust) == NO_VALIDATORS

    missed = looked(seen(SAME), fetched(html("<p>price 19.98"), validators=NO_VALIDATORS))
    assert missed.body_bytes == len(SAME)
    assert choose_head_validators(NO_VALIDATORS, update_trust(trust, missed)) is None


def test_two_missing_304_responses_prove_that_conditions_are_ignored() -> None:
    asked = replace(seen(SAME), stored_validators=DATED, validators=DATED)
    once = update_trust(NO_TRUST, looked(asked, fetched(SAME, validators=DATED)))
    twice = update_trust(once, looked(asked, fetched(SAME, validators=DATED)))

    assert choose_head_validators(DATED, once) is None
    assert choose_head_validators(DATED, twice) == DATED


@pytest.mark.parametrize(
    ("words", "said", "is_same"),
    [
        (NO_VALIDATORS, head(), True),
        (NO_VALIDATORS, head(len(SAME) + 1), False),
        (NO_VALIDATORS, head(None), False),  # no validators and no length
        (NO_VALIDATORS, head(status=405), False),
        (NO_VALIDATORS, Unreached(FailureReason.RESET, timedelta(0)), False),
        (DATED, head(words=DATED), True),
        (DATED, head(None, words=DATED), True),
        (DATED, head(len(SAME) + 1, words=DATED), False),
        (DATED, head(), False),
        (DATED, head(words=Validators(None, "Mon, 02 Feb 2026 00:00:00 GMT")), False),
    ],
)
def test_page_is_unchanged_if_length_and_validators_are_equal(words: Validators, said: Response, is_same: bool) -> None:
    assert is_unchanged_by_head(page(words), said) is is_same


def test_visit_decided_by_head_records_it_and_keeps_the_page() -> None:
    visit = build_spared_visit(page(), head(), now=NOW)

    assert (visit.change, visit.verdict.evidence, visit.head_outcome) == (
        Change.UNCHANGED,
        Evidence.HEAD,
        HeadOutcome.BODY_SKIPPED,
    )
    assert (visit.validators, visit.snapshot, visit.received_bytes) == (None, None, 0)
    assert visit.saved_bytes == len(SAME)
    assert visit.recipients == visit.target.outlinks
    assert visit.rate_estimate.b > visit.target.rate_estimate.b


@pytest.mark.parametrize(
    ("said", "answer", "headed"),
    [
        (head(len(CHANGED)), fetched(CHANGED), HeadOutcome.DIFFERED),
        (head(None), fetched(CHANGED), HeadOutcome.DIFFERED),
        (head(len(SAME) + 9), fetched(CHANGED), HeadOutcome.USELESS),
        (head(status=405), fetched(SAME), HeadOutcome.USELESS),
        (head(status=501), fetched(CHANGED), HeadOutcome.USELESS),
        (head(status=404), fetched(b"", 404), HeadOutcome.DIFFERED),
        (Unreached(FailureReason.RESET, timedelta(0)), fetched(SAME), HeadOutcome.USELESS),
        (head(words=DATED), NotModified(timedelta(0)), HeadOutcome.DIFFERED),
    ],
)
def test_head_is_useless_if_rejected_or_wrong(said: Response, answer: Response, headed: HeadOutcome) -> None:
    assert judge_head(said, answer) is headed


@pytest.mark.parametrize(
    ("body", "headed", "is_of_use"),
    [
        (SAME, HeadOutcome.DIFFERED, False),  # the same body with another length or date
        (CHANGED, HeadOutcome.DIFFERED, True),
        (CHANGED, HeadOutcome.USELESS, False),
    ],
)
def test_group_learns_whether_heads_are_useful(body: bytes, headed: HeadOutcome, is_of_use: bool) -> None:
    visit = replace(looked(page(), fetched(body, validators=NO_VALIDATORS)), head_outcome=headed)

    assert update_trust(NO_TRUST, visit).get_stats(Validator.HEAD).is_steady is is_of_use


def test_outage_is_no_evidence_about_heads() -> None:
    visit = replace(looked(page(), Unreached(FailureReason.RESET, timedelta(0))), head_outcome=HeadOutcome.USELESS)

    assert update_trust(NO_TRUST, visit) == NO_TRUST


def test_change_hidden_by_the_length_restarts_the_checks() -> None:
    hidden = looked(replace(page(), sends_head=False, is_validator_check=True), fetched(html("<p>price 19.98")))

    after = update_trust(ValidatorTrust(revisits=500, stats={Validator.LENGTH: PROVEN}), hidden)

    assert (after.revisits, after.validator_checks) == (0, 1)


def test_head_is_cheaper_while_few_bodies_follow() -> None:
    rarely, often = (Costs(head=Cost(1 + share, 0.0, visits=50)) for share in (0.1, 0.9))

    assert is_head_cheaper(TIME_PRICE, rarely, body_bytes=3 * ROUND_TRIP_BYTES)
    assert not is_head_cheaper(TIME_PRICE, often, body_bytes=3 * ROUND_TRIP_BYTES)
    assert not is_head_cheaper(TIME_PRICE, rarely, body_bytes=500)  # so small a body arrives with the headers


def test_scarce_resource_decides_whether_head_is_cheaper() -> None:
    costs = Costs(head=Cost(1.1, 0.0, visits=50))

    assert not is_head_cheaper(ShadowPrice(per_request=1.0), costs, body_bytes=10**6)
    assert is_head_cheaper(ShadowPrice(per_request=1.0, per_byte=1e-3), costs, body_bytes=10**6)
