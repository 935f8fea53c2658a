"""When each policy wants the next look."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.freshness.estimates import RateEstimate
from crawler.core.freshness.policies import FIRST_PERIOD, SIMILARITY_POLICY, VALUE_POLICY, VisitResult, parse_policy
from crawler.core.freshness.value import compute_interval
from crawler.core.http.urls import Url

DAY = timedelta(days=1)
LOOK = VisitResult(
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
CHANGED = replace(LOOK, changed=True, distance_bits=13)  # of 64; 0.2 of a text are 13.1 bits


def test_by_price_the_look_comes_when_it_is_worth_it() -> None:
    worth_it = compute_interval(
        LOOK.rate_estimate,
        importance=1.0,
        shadow_price=0.25,
        min_interval=LOOK.min_interval,
        max_interval=LOOK.max_interval,
    )
    assert VALUE_POLICY.choose_interval(LOOK) == worth_it


def test_fixed_is_the_same_span_whatever_was_found() -> None:
    policy = parse_policy("fixed 1.5w")

    assert policy.fixed_interval == 10.5 * DAY
    assert policy.choose_interval(LOOK) == policy.choose_interval(CHANGED) == 10.5 * DAY - timedelta(minutes=1)
    assert parse_policy("fixed 10s").choose_interval(LOOK) == timedelta(seconds=9.9)


def test_alike_versions_lengthen_the_period_and_unlike_ones_shorten_it_in_proportion() -> None:
    little, much = (SIMILARITY_POLICY.choose_interval(replace(CHANGED, distance_bits=bits)) for bits in (4, 26))

    assert SIMILARITY_POLICY.choose_interval(LOOK) > 10 * DAY
    assert much < SIMILARITY_POLICY.choose_interval(CHANGED) < little < 10 * DAY


def test_where_a_page_has_changed_as_often_as_chance_has_it_its_period_stays() -> None:
    longer, shorter = (SIMILARITY_POLICY.choose_interval(each) / (10 * DAY) for each in (LOOK, CHANGED))

    assert shorter**0.632 * longer**0.368 == pytest.approx(1.0, abs=0.01)  # 1 - 1/e and 1/e


def test_the_first_steps_are_longer() -> None:
    assert SIMILARITY_POLICY.choose_interval(replace(LOOK, visits=3)) > SIMILARITY_POLICY.choose_interval(LOOK)


def test_a_user_who_asks_again_at_once_does_not_shorten_the_period() -> None:
    at_once = replace(LOOK, waited=timedelta(minutes=1), planned=None)

    assert SIMILARITY_POLICY.choose_interval(at_once) / DAY == pytest.approx(8, rel=0.01)  # as believed


def test_a_look_long_overdue_that_finds_a_change_moves_the_period_less() -> None:
    overdue = replace(CHANGED, waited=100 * DAY)

    assert SIMILARITY_POLICY.choose_interval(CHANGED) < SIMILARITY_POLICY.choose_interval(overdue) < 10 * DAY


def test_a_page_that_is_back_has_the_period_that_is_believed_and_a_new_one_the_first() -> None:
    nothing = replace(LOOK, waited=timedelta(0), planned=None)

    assert SIMILARITY_POLICY.choose_interval(nothing) == 8 * DAY
    assert SIMILARITY_POLICY.choose_interval(replace(nothing, visits=1)) == FIRST_PERIOD


@pytest.mark.parametrize("text", ["", "prices", "fixed", "fixed 7", "fixed 7 d", "fixed -1d", "fixed 1dd", "evenings"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a revisit policy"):
        parse_policy(text)
