"""The intervals that revisit policies choose."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from crawler.core.freshness.estimates import RateEstimate
from crawler.core.freshness.policies import FIRST_PERIOD, SIMILARITY_POLICY, VALUE_POLICY, VisitResult, parse_policy
from crawler.core.freshness.visit_value import compute_interval
from crawler.core.http.urls import Url

DAY = timedelta(days=1)
VISIT = VisitResult(
    url=Url("https://site.example/"),
    at=datetime(2026, 1, 1, tzinfo=UTC),
    waited=10 * DAY,
    planned=10 * DAY,
    changed=False,
    distance_bits=None,
    usual_magnitude=0.2,
    visits=30,
    rate_estimate=RateEstimate(2.0, 16.0),
    importance=1.0,
    shadow_price=0.25,
    min_interval=timedelta(minutes=10),
    max_interval=180 * DAY,
)
CHANGED = replace(VISIT, changed=True, distance_bits=13)  # of 64; 0.2 of a text are 13.1 bits


def test_value_policy_uses_the_interval_of_the_shadow_price() -> None:
    expected = compute_interval(
        VISIT.rate_estimate,
        importance=1.0,
        shadow_price=0.25,
        min_interval=VISIT.min_interval,
        max_interval=VISIT.max_interval,
    )
    assert VALUE_POLICY.choose_interval(VISIT) == expected


def test_fixed_policy_does_not_depend_on_the_findings() -> None:
    policy = parse_policy("fixed 1.5w")

    assert policy.fixed_interval == 10.5 * DAY
    assert policy.choose_interval(VISIT) == policy.choose_interval(CHANGED) == 10.5 * DAY - timedelta(minutes=1)
    assert parse_policy("fixed 10s").choose_interval(VISIT) == timedelta(seconds=9.9)


def test_similar_versions_lengthen_the_interval_and_different_ones_shorten_it() -> None:
    little, much = (SIMILARITY_POLICY.choose_interval(replace(CHANGED, distance_bits=bits)) for bits in (4, 26))

    assert SIMILARITY_POLICY.choose_interval(VISIT) > 10 * DAY
    assert much < SIMILARITY_POLICY.choose_interval(CHANGED) < little < 10 * DAY


def test_interval_is_stable_at_the_expected_change_frequency() -> None:
    longer, shorter = (SIMILARITY_POLICY.choose_interval(each) / (10 * DAY) for each in (VISIT, CHANGED))

    assert shorter**0.632 * longer**0.368 == pytest.approx(1.0, abs=0.01)  # 1 - 1/e and 1/e


def test_first_steps_are_larger() -> None:
    assert SIMILARITY_POLICY.choose_interval(replace(VISIT, visits=3)) > SIMILARITY_POLICY.choose_interval(VISIT)


def test_immediate_user_request_does_not_shorten_the_interval() -> None:
    at_once = replace(VISIT, waited=timedelta(minutes=1), planned=None)

    assert SIMILARITY_POLICY.choose_interval(at_once) / DAY == pytest.approx(8, rel=0.01)  # by the estimate


def test_long_overdue_visit_with_a_change_moves_the_interval_less() -> None:
    overdue = replace(CHANGED, waited=100 * DAY)

    assert SIMILARITY_POLICY.choose_interval(CHANGED) < SIMILARITY_POLICY.choose_interval(overdue) < 10 * DAY


def test_restored_page_has_the_estimated_interval_and_new_page_the_first_period() -> None:
    nothing = replace(VISIT, waited=timedelta(0), planned=None)

    assert SIMILARITY_POLICY.choose_interval(nothing) == 8 * DAY
    assert SIMILARITY_POLICY.choose_interval(replace(nothing, visits=1)) == FIRST_PERIOD


@pytest.mark.parametrize("text", ["", "prices", "fixed", "fixed 7", "fixed 7 d", "fixed -1d", "fixed 1dd", "evenings"])
def test_invalid_policy_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a revisit policy"):
        parse_policy(text)
