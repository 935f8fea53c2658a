"""What today's price makes of one page: when its next visit would be due, and what a visit now is worth."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.core.freshness.estimates import DAY, compute_fresh_chance, compute_magnitude_factor
from crawler.core.freshness.policies import ValuePolicy
from crawler.core.freshness.signals import SignalState, combine_page_signals, compute_aged_days, compute_days_ahead
from crawler.core.freshness.terms import VisitTerms
from crawler.core.freshness.value import compute_due_gap, compute_phase, compute_values_with_signals, compute_weight
from crawler.core.http.urls import compute_page_key
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import State
from crawler.store.report import Explanation, PageFacts

NO_BOUND_DAYS = 1e6  # no bound: the terms' own are looked at by themselves


class Bound(StrEnum):
    """What says when a page with a version is due."""

    PRICE = "price"  # a visit is worth its price then
    MIN = "least"  # it is worth it sooner, but the page is not to be fetched before
    MAX = "most"  # it is worth it later or never, but no page waits longer
    ONCE = "once"  # the page is not fetched again
    POLICY = "policy"  # another rule than the price, chosen for the domain


@dataclass(frozen=True, slots=True)
class Due:
    """When a page's next visit would be due if it were recorded now: at today's price and by today's rules.

    gap: after its last good visit; None for never.  by_rule: a rule of the user's is the bound.
    """

    bound: Bound
    by_rule: bool
    gap: timedelta | None
    at: datetime | None


def compute_due(explanation: Explanation, page: PageFacts, rules: PageRules) -> Due | None:
    """Return when a page is due by its value and today's price; None if its state alone says when.

    rules: the page rules of its domain, with the scores of plugins.
    """
    terms = explanation.terms
    if (
        page.state is not State.FETCHED
        or page.last_good_at is None
        or not page.version
        or page.failures
        or terms is None
    ):
        return None
    rule_terms = rules.merge_terms(page.url)
    if terms.once:
        return Due(Bound.ONCE, by_rule=True, gap=None, at=None)
    if not isinstance(terms.revisit, ValuePolicy):
        return _compute_policy_due(page, terms)
    weight = compute_weight(
        page.visit_importance
        * rule_terms.weight
        * rules.compute_score(page.url)
        * compute_page_magnitude_factor(page, terms)
    )
    recall, ahead = _compute_signal_terms(page, explanation)
    bounds = {"min_interval": 0.0, "max_interval": NO_BOUND_DAYS, "recall": recall, "ahead": ahead}
    days = (
        float(compute_due_gap(page.belief.a, page.belief.b, weight, terms.shadow_price, **bounds)) - page.activity_ahead
    )
    if days >= terms.max_interval / DAY:
        bound, by_rule, gap = Bound.MAX, rule_terms.max_interval is not None, terms.max_interval
    elif days <= terms.min_interval / DAY:
        bound, by_rule, gap = Bound.MIN, rule_terms.min_interval is not None, terms.min_interval
    else:
        bound, by_rule, gap = Bound.PRICE, False, timedelta(days=days)
    return Due(bound, by_rule, gap, page.last_good_at + gap)


def _compute_policy_due(page: PageFacts, terms: VisitTerms) -> Due | None:
    """Return what the domain's policy makes of a page: one span for all, or what was stored after the last visit.

    The first wait of a page is stored as it was cut (`compute_phase`), and is given here as the policy said it.
    """
    fixed_interval = terms.revisit.fixed_interval
    if page.last_good_at is None or page.due_at is None:
        return None
    phase = compute_phase(compute_page_key(page.url)) if page.visits == 1 else 1.0
    gap = min(max(fixed_interval or (page.due_at - page.last_good_at) / phase, terms.min_interval), terms.max_interval)
    return Due(Bound.POLICY, by_rule=False, gap=gap, at=page.last_good_at + gap)


def compute_visit_value(explanation: Explanation, page: PageFacts, rules: PageRules) -> float | None:
    """Return what a visit now is worth, in importance x days.

    None for a page that has no version to lose, and where another policy than the price decides.
    """
    terms = explanation.terms
    if page.last_good_at is None or page.version == 0 or terms is None or not isinstance(terms.revisit, ValuePolicy):
        return None
    weight = compute_weight(
        page.visit_importance * rules.compute_weight(page.url) * compute_page_magnitude_factor(page, terms)
    )
    recall, ahead = _compute_signal_terms(page, explanation)
    aged_days = (1 - recall) * _compute_unseen_days(page, explanation) + ahead
    return float(
        compute_values_with_signals(
            page.belief.a, page.belief.b, weight, aged_days, ahead=ahead, max_interval=terms.max_interval / DAY
        )
    )


def compute_chance_unchanged(explanation: Explanation, page: PageFacts) -> float | None:
    """Return the chance that a page is as it was at its last good visit; None if that says nothing about it."""
    if not page.freshness or page.last_good_at is None:
        return page.freshness
    rate_estimate = page.belief
    days = compute_aged_days(
        rate_estimate.a, rate_estimate.b, _compute_unseen_days(page, explanation), _combine_signals(page, explanation)
    )
    return float(compute_fresh_chance(rate_estimate.a, rate_estimate.b, days))


def compute_page_magnitude_factor(page: PageFacts, terms: VisitTerms) -> float:
    """Return the factor on a page's importance by how much its changes change, beside the domain's mean page."""
    return compute_magnitude_factor(page.magnitudes, terms.magnitude) if page.version else 1.0


def _combine_signals(page: PageFacts, explanation: Explanation) -> SignalState:
    """Return what change signals have said about the page since its last good visit."""
    return combine_page_signals(
        page.belief, page.signals, explanation.terms.sources if explanation.terms is not None else ()
    )


def _compute_unseen_days(page: PageFacts, explanation: Explanation) -> float:
    """Return the days since the last good visit, in days of the site's activity; 0 without one."""
    if page.last_good_at is None:
        return 0.0
    return max((explanation.at - page.last_good_at) / DAY + page.activity_ahead, 0.0)


def _compute_signal_terms(page: PageFacts, explanation: Explanation) -> tuple[float, float]:
    """Return the chance that a change would have been signalled, and the days by which signals age the page."""
    combined = _combine_signals(page, explanation)
    return float(combined.recall), float(compute_days_ahead(page.belief.a, page.belief.b, combined))
