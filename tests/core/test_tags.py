"""The layers of a domain's settings: own values, those of tags, defaults."""

from datetime import timedelta

import pytest

from crawler.core.domain_settings import DomainSettings
from crawler.core.opic.order import Order
from crawler.core.tags import LayeredSettings, Tag, list_own_values, parse_tag

NEWS = Tag("news", {"budget_per_day": 200, "order": "breadth"})
SLOW = Tag("slow", {"delay": timedelta(seconds=9)})


@pytest.mark.parametrize("name", ["news", "a", "2026", "de-at", "kind_1.x"])
def test_short_lower_case_names_are_tags(name: str) -> None:
    assert parse_tag(name) == name


@pytest.mark.parametrize("name", ["", "News", "two words", "-news", "a" * 41, "näws", "a,b", "a\n"])
def test_other_names_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a tag"):
        parse_tag(name)


def test_an_own_value_precedes_a_tag_and_a_tag_precedes_the_default() -> None:
    layers = LayeredSettings({"budget_per_day": 5}, (NEWS, SLOW))

    merged = layers.merge()

    assert (merged.budget_per_day, merged.delay, merged.ordering.order) == (5, timedelta(seconds=9), Order.BREADTH)
    assert merged.max_depth is None
    assert [layers.find_tag(name) for name in ("budget_per_day", "delay", "order", "max_depth")] == [
        *("", "slow", "news", "")
    ]
    assert layers.unset(["budget_per_day"]).merge().budget_per_day == 200


def test_an_own_value_equal_to_the_default_still_precedes_a_tag() -> None:
    assert LayeredSettings({"budget_per_day": None}, (NEWS,)).merge().budget_per_day is None


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"budget_per_day": 201}, "its tags news and other set 'Budget per day' differently"),
        ({"max_age": timedelta(days=1)}, "set 'Freshness target' and 'Maximum age', which replace each other"),
    ],
)
def test_tags_that_disagree_are_an_error_even_if_an_own_value_hides_it(
    values: dict[str, object], complaint: str
) -> None:
    news = Tag("news", {**NEWS.values, "target_freshness": 0.9})
    with pytest.raises(ValueError, match=complaint):
        LayeredSettings({"budget_per_day": 5}, (news, Tag("other", values))).merge()


def test_tags_may_set_a_setting_alike() -> None:
    other = Tag("other", {"budget_per_day": 200})
    layers = LayeredSettings({}, (NEWS, other))

    assert layers.merge().budget_per_day == 200
    assert layers.find_tag("budget_per_day") == "news"


def test_an_own_target_replaces_the_other_target_of_a_tag() -> None:
    layers = LayeredSettings({}, (Tag("fresh", {"target_freshness": 0.9}),)).set_own({"max_age": timedelta(days=1)})

    assert layers.merge() == DomainSettings(max_age=timedelta(days=1))
    assert layers.find_tag("target_freshness") == ""
    assert layers.set_own({"target_freshness": 0.8}).merge() == DomainSettings(target_freshness=0.8)


def test_own_values_are_those_that_differ_from_the_defaults() -> None:
    layers = LayeredSettings({"budget_per_day": 5, "url_weight": 0.7, "seeds": ("http://a.test/b",)})

    assert list_own_values(layers.merge()) == layers.own
