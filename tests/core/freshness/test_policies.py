"""When each policy wants the next look."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.freshness.estimates import Belief
from crawler.core.freshness.policies import BY_PRICE, BY_SIMILARITY, FIRST_PERIOD, Looked, policy_of
from crawler.core.freshness.value import interval
from crawler.core.http.urls import Url

DAY = timedelta(days=1)
LOOK = Looked(
    url=Url("https://site.example/"),
    at=datetime(2026, 1, 1, tzinfo=UTC),
    waited=10 * DAY,
    planned=10 * DAY,
    changed=False,
    distance_bits=None,
    usual_amount=0.2,
    looks=30,
    belief=Belief(2.0, 16.0),
    importance=1.0,
    price=0.25,
    least=timedelta(minutes=10),
    most=180 * DAY,
)
CHANGED = replace(LOOK, changed=True, distance_bits=13)  # of 64; 0.2 of a text are 13.1 bits


def test_by_price_the_look_comes_when_it_is_worth_it() -> None:
    worth_it = interval(LOOK.belief, importance=1.0, price=0.25, least=LOOK.least, most=LOOK.most)
    assert BY_PRICE.after(LOOK) == worth_it


def test_fixed_is_the_same_span_whatever_was_found() -> None:
    policy = policy_of("fixed 1.5w")

    assert policy.standing == 10.5 * DAY
    assert policy.after(LOOK) == policy.after(CHANGED) == 10.5 * DAY - timedelta(minutes=1)
    assert policy_of("fixed 10s").after(LOOK) == timedelta(seconds=9.9)


def test_alike_versions_lengthen_the_period_and_unlike_ones_shorten_it_in_proportion() -> None:
    little, much = (BY_SIMILARITY.after(replace(CHANGED, distance_bits=bits)) for bits in (4, 26))

    assert BY_SIMILARITY.after(LOOK) > 10 * DAY
    assert much < BY_SIMILARITY.after(CHANGED) < little < 10 * DAY


def test_where_a_page_has_changed_as_often_as_chance_has_it_its_period_stays() -> None:
    longer, shorter = (BY_SIMILARITY.after(each) / (10 * DAY) for each in (LOOK, CHANGED))

    assert shorter**0.632 * longer**0.368 == pytest.approx(1.0, abs=0.01)  # 1 - 1/e and 1/e


def test_the_first_steps_are_longer() -> None:
    assert BY_SIMILARITY.after(replace(LOOK, looks=3)) > BY_SIMILARITY.after(LOOK)


def test_a_user_who_asks_again_at_once_does_not_shorten_the_period() -> None:
    at_once = replace(LOOK, waited=timedelta(minutes=1), planned=None)

    assert BY_SIMILARITY.after(at_once) / DAY == pytest.approx(8, rel=0.01)  # as believed


def test_a_look_long_overdue_that_finds_a_change_moves_the_period_less() -> None:
    overdue = replace(CHANGED, waited=100 * DAY)

    assert BY_SIMILARITY.after(CHANGED) < BY_SIMILARITY.after(overdue) < 10 * DAY


def test_a_page_that_is_back_has_the_period_that_is_believed_and_a_new_one_the_first() -> None:
    nothing = replace(LOOK, waited=timedelta(0), planned=None)

    assert BY_SIMILARITY.after(nothing) == 8 * DAY
    assert BY_SIMILARITY.after(replace(nothing, looks=1)) == FIRST_PERIOD


@pytest.mark.parametrize("text", ["", "prices", "fixed", "fixed 7", "fixed 7 d", "fixed -1d", "fixed 1dd", "evenings"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no revisit policy"):
        policy_of(text)
