"""Compute for one page, at today's shadow price, when its next visit is due and the value of a visit now."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from crawler.core.freshness.estimates import DAY, compute_fresh_chance, compute_magnitude_factor
from crawler.core.freshness.policies import ValuePolicy
from crawler.core.freshness.signals import SignalState, combine_page_signals, compute_aged_days, compute_days_ahead
from crawler.core.freshness.visit_terms import VisitTerms
from crawler.core.freshness.visit_value import (
    compute_due_gap,
    compute_phase,
    compute_values_with_signals,
    compute_weight,
)
from crawler.core.http.urls import compute_page_key
from crawler.core.page_rules import PageRules
from crawler.core.visit.state import State
from crawler.store.report import Explanation, PageFacts

NO_BOUND_DAYS = 1e6  # no upper bound: the interval bounds of the VisitTerms are applied separately


class Bound(StrEnum):
    """What determines when a page with a version is due."""

    PRICE = "price"  # the value of a visit reaches the shadow price at that time
    MIN = "least"  # the value reaches it earlier, but the minimum interval applies
    MAX = "most"  # the value reaches it later or never, but the maximum interval applies
    ONCE = "once"  # the page is not fetched again
    POLICY = "policy"  # the domain's revisit policy is not based on value


class Due(Struct, frozen=True):
    """When a page's next visit is due at today's shadow price and by today's rules.

    gap: the time from its last successful visit to then; None for never.  by_rule: whether a page rule sets the bound.
    """

    bound: Bound
    by_rule: bool
    gap: timedelta | None
    at: datetime | None


def compute_due(explanation: Explanation, page: PageFacts, rules: PageRules) -> Due | None:
    """Return when a page is due; None if its stored due time applies.

    That is so for pages that are not fetched, have no version, or failed at the last visit.
    rules: the page rules of its domain, with the scores of plugins.
    """
    terms = explanation.terms
    if page.state is not State.FETCHED or page.last_good_at is None or terms is None:
        return None
    if not page.version or page.failures:
        return None
    rule_terms = rules.merge_terms(page.url)
    if terms.once:
        return Due(Bound.ONCE, by_rule=True, gap=None, at=None)
    if not isinstance(terms.revisit, ValuePolicy):
        return _compute_policy_due(page, terms)
    importance = page.visit_importance * rule_terms.weight * rules.compute_score(page.url)
    weight = compute_weight(importance * compute_page_magnitude_factor(page, terms))
    (recall, ahead), rate = _compute_signal_terms(page, explanation), page.rate_estimate
    bounds = {"min_interval": 0.0, "max_interval": NO_BOUND_DAYS, "recall": recall, "ahead": ahead}
    days = float(compute_due_gap(rate.a, rate.b, weight, terms.shadow_price, **bounds)) - page.activity_ahead
    if days >= terms.max_interval / DAY:
        bound, by_rule, gap = Bound.MAX, rule_terms.max_interval is not None, terms.max_interval
    elif days <= terms.min_interval / DAY:
        bound, by_rule, gap = Bound.MIN, rule_terms.min_interval is not None, terms.min_interval
    else:
        bound, by_rule, gap = Bound.PRICE, False, timedelta(days=days)
    return Due(bound, by_rule, gap, page.last_good_at + gap)


def _compute_policy_due(page: PageFacts, terms: VisitTerms) -> Due | None:
    """Return when a page is due by the domain's policy: a fixed interval, or the one stored after the last visit.

    The stored interval after a page's first visit is shortened by `compute_phase`; this returns the full interval.
    """
    fixed_interval = terms.revisit.fixed_interval
    if page.last_good_at is None or page.due_at is None:
        return None
    phase = compute_phase(compute_page_key(page.url)) if page.visits == 1 else 1.0
    gap = min(max(fixed_interval or (page.due_at - page.last_good_at) / phase, terms.min_interval), terms.max_interval)
    return Due(Bound.POLICY, by_rule=False, gap=gap, at=page.last_good_at + gap)


def compute_visit_value(explanation: Explanation, page: PageFacts, rules: PageRules) -> float | None:
    """Return the value of a visit now, in importance x days.

    None for a page without a version, and for domains whose policy is not based on value.
    """
    terms = explanation.terms
    if page.last_good_at is None or page.version == 0 or terms is None or not isinstance(terms.revisit, ValuePolicy):
        return None
    importance = page.visit_importance * rules.compute_weight(page.url)
    weight = compute_weight(importance * compute_page_magnitude_factor(page, terms))
    (recall, ahead), rate = _compute_signal_terms(page, explanation), page.rate_estimate
    aged_days, max_interval = (1 - recall) * _compute_unseen_days(page, explanation) + ahead, terms.max_interval / DAY
    value = compute_values_with_signals(rate.a, rate.b, weight, aged_days, ahead=ahead, max_interval=max_interval)
    return float(value)


def compute_chance_unchanged(explanation: Explanation, page: PageFacts) -> float | None:
    """Return the probability that a page has not changed since its last successful visit; None if it is unknown."""
    if not page.freshness or page.last_good_at is None:
        return page.freshness
    rate, unseen_days = page.rate_estimate, _compute_unseen_days(page, explanation)
    days = compute_aged_days(rate.a, rate.b, unseen_days, _combine_signals(page, explanation))
    return float(compute_fresh_chance(rate.a, rate.b, days))


def compute_page_magnitude_factor(page: PageFacts, terms: VisitTerms) -> float:
    """Return the factor on a page's importance for its change magnitude, relative to the domain's mean page."""
    return compute_magnitude_factor(page.magnitudes, terms.magnitude) if page.version else 1.0


def _combine_signals(page: PageFacts, explanation: Explanation) -> SignalState:
    """Return the combined change signals about the page since its last successful visit."""
    sources = explanation.terms.sources if explanation.terms is not None else ()
    return combine_page_signals(page.rate_estimate, page.signals, sources)


def _compute_unseen_days(page: PageFacts, explanation: Explanation) -> float:
    """Return the days since the last successful visit, in days of the site's activity; 0 without one."""
    if page.last_good_at is None:
        return 0.0
    return max((explanation.at - page.last_good_at) / DAY + page.activity_ahead, 0.0)


def _compute_signal_terms(page: PageFacts, explanation: Explanation) -> tuple[float, float]:
    """Return the probability that a change would have been signaled, and the days by which signals age the page."""
    combined = _combine_signals(page, explanation)
    return float(combined.recall), float(compute_days_ahead(page.rate_estimate.a, page.rate_estimate.b, combined))
