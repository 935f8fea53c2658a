"""Page rules of a user, and how several rules are merged."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRule, PageRules, RuleTerms

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

spans = st.none() | st.integers(1, 1000).map(lambda hours: hours * HOUR)
patterns = st.sampled_from(["/", "/a", "/a/b", "*.html$", "re:[0-9]", "/c$", "*?q="])
urls = st.sampled_from(["", "a", "a/b", "a/b/1.html", "c", "c?q=2", "d/x.html"]).map(
    lambda path: Url(f"http://site.test/{path}")
)


@st.composite
def some_rules(draw: st.DrawFn) -> tuple[PageRule, ...]:
    found = []
    for pattern in draw(st.lists(patterns, unique=True)):
        least, most = draw(spans), draw(spans)
        if least is not None and most is not None:
            least, most = sorted((least, most))
        weight, pages = draw(st.none() | st.floats(0.01, 100)), draw(st.none() | st.integers(0, 9))
        found.append(
            PageRule(
                pattern, min_interval=least, max_interval=most, weight=weight, once=draw(st.booleans()), max_pages=pages
            )
        )
    return tuple(found)


def at(path: str) -> Url:
    return Url(f"http://site.test{path}")


def test_without_rules_terms_are_the_defaults() -> None:
    assert PageRules().merge_terms(at("/")) == RuleTerms()
    assert PageRules().list_limiting_rules(at("/")) == ()
    assert RuleTerms(min_interval=None, max_interval=None, weight=1.0, once=False) == RuleTerms()


def test_first_matching_rule_that_sets_a_term_applies() -> None:
    rules = PageRules(
        (
            PageRule("/news/", max_interval=HOUR),
            PageRule("/news/old/", weight=0.5, max_interval=DAY),
            PageRule("/", weight=3, once=True),
        )
    )

    assert rules.merge_terms(at("/news/old/1")) == RuleTerms(max_interval=HOUR, weight=0.5, once=True)
    assert rules.merge_terms(at("/news/1")) == RuleTerms(max_interval=HOUR, weight=3, once=True)
    assert rules.merge_terms(at("/else")) == RuleTerms(weight=3, once=True)


def test_earlier_of_two_contradicting_rules_applies() -> None:
    seldom, often = PageRule("/a", min_interval=7 * DAY), PageRule("*", max_interval=DAY)

    assert PageRules((seldom, often)).merge_terms(at("/a")) == RuleTerms(min_interval=7 * DAY, max_interval=7 * DAY)
    assert PageRules((often, seldom)).merge_terms(at("/a")) == RuleTerms(min_interval=DAY, max_interval=DAY)


def test_rules_that_limit_the_number_of_pages_are_listed_by_index() -> None:
    rules = PageRules(
        (PageRule("/", weight=2), PageRule("/a", max_pages=0), PageRule("/b", max_pages=5), PageRule("*", max_pages=9))
    )

    assert rules.list_limiting_rules(at("/a")) == (1, 3)
    assert rules.list_limiting_rules(at("/b?c")) == (2, 3)
    assert rules.list_limiting_rules(at("/")) == (3,)
    assert rules.merge_terms(at("/a")) == RuleTerms(weight=2)


@given(rules=some_rules(), url=urls)
def test_merged_terms_follow_the_first_matching_rule(rules: tuple[PageRule, ...], url: Url) -> None:
    terms = PageRules(rules).merge_terms(url)
    matching = [rule for rule in rules if rule.matches(url)]

    weights = [rule.weight for rule in matching if rule.weight is not None]
    assert terms.weight == (weights[0] if weights else 1.0)
    assert terms.once == any(rule.once for rule in matching)
    assert (terms.min_interval is None) == all(rule.min_interval is None for rule in matching)
    assert (terms.max_interval is None) == all(rule.max_interval is None for rule in matching)
    bounded = [rule for rule in matching if rule.min_interval or rule.max_interval]
    if bounded:
        assert bounded[0].min_interval in (None, terms.min_interval)
        assert bounded[0].max_interval in (None, terms.max_interval)
    assert terms.min_interval is None or terms.max_interval is None or terms.min_interval <= terms.max_interval


@given(rules=some_rules(), url=urls)
def test_rules_for_other_pages_have_no_effect(rules: tuple[PageRule, ...], url: Url) -> None:
    matching = tuple(rule for rule in rules if rule.matches(url))

    assert PageRules(matching).merge_terms(url) == PageRules(rules).merge_terms(url)
    assert [rules[n] for n in PageRules(rules).list_limiting_rules(url)] == [
        r for r in matching if r.max_pages is not None
    ]


def test_rule_has_effect_if_any_term_is_set() -> None:
    assert not PageRule("/").has_effect
    for rule in (
        PageRule("/", once=True),
        PageRule("/", max_pages=0),
        PageRule("/", min_interval=HOUR),
        PageRule("/", weight=1),
    ):
        assert rule.has_effect


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pattern": "docs"}, "must begin with"),
        ({"pattern": "re:("}, "not a regular expression"),
        ({"min_interval": 2 * HOUR, "max_interval": HOUR}, "is longer than the maximum"),
        ({"min_interval": timedelta(0)}, "not above 0"),
        ({"max_interval": -HOUR}, "not above 0"),
        ({"weight": 0.0}, "not above 0"),
        ({"weight": float("nan")}, "not above 0"),
        ({"weight": float("inf")}, "not above 0"),
        ({"max_pages": -1}, "is below 0: -1"),
    ],
)
def test_invalid_rule_raises_value_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PageRule(**({"pattern": "/"} | values))  # type: ignore[arg-type]


def test_domain_has_one_rule_per_pattern() -> None:
    same_pattern = (PageRule("/a", weight=2), PageRule("/a", once=True))

    for build in (PageRules, lambda rules: DomainSettings(rules=rules)):
        with pytest.raises(ValueError, match="two rules for /a"):
            build(same_pattern)


def test_domain_has_one_target() -> None:
    assert DomainSettings(target_freshness=0.95).max_age is None
    with pytest.raises(ValueError, match="only one target"):
        replace(DomainSettings(target_freshness=0.95), max_age=DAY)
    for before in (DomainSettings(), DomainSettings(budget_per_day=5)):
        with pytest.raises(ValueError, match="between 0 and 1"):
            replace(before, target_freshness=1.0)
        with pytest.raises(ValueError, match="above 0"):
            replace(before, max_age=timedelta(0))


def test_page_score_multiplies_the_weight_of_a_rule() -> None:
    rules = PageRules((PageRule("/a", weight=3.0),), page_score=lambda url: 2.0 if url.endswith("x") else 1.0)

    assert [rules.compute_weight(at(path)) for path in ("/a", "/ax", "/x", "/")] == [3.0, 6.0, 2.0, 1.0]
    assert PageRules().compute_weight(at("/ax")) == 1.0
