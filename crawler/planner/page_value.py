"""What today's price makes of one page: when its next visit would be due, and what a visit now is worth."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.core.freshness.estimates import DAY, chance_fresh, factor_of
from crawler.core.freshness.policies import PricePolicy
from crawler.core.freshness.signals import Heard, days_ahead, heard_about, heard_days
from crawler.core.freshness.terms import Terms
from crawler.core.freshness.value import due_gap, phase_of, values_heard, weight_of
from crawler.core.http.urls import key_of
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import State
from crawler.store.report import Explanation, PageFacts

FOREVER_DAYS = 1e6  # no bound: the terms' own are looked at by themselves


class Bound(StrEnum):
    """What says when a page with a version is due."""

    PRICE = "price"  # a visit is worth its price then
    LEAST = "least"  # it is worth it sooner, but the page is not to be fetched before
    MOST = "most"  # it is worth it later or never, but no page waits longer
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


def due_today(known: Explanation, page: PageFacts, rules: PageRules) -> Due | None:
    """Return when a page is due by its value and today's price; None if its state alone says when.

    rules: the page rules of its domain, with the scores of plugins.
    """
    terms = known.terms
    if page.state is not State.KNOWN or page.last_good_at is None or not page.version or page.failures or terms is None:
        return None
    said = rules.terms(page.url)
    if terms.once:
        return Due(Bound.ONCE, by_rule=True, gap=None, at=None)
    if not isinstance(terms.revisit, PricePolicy):
        return _due_by_policy(page, terms)
    weight = weight_of(page.look_importance * said.weight * rules.score(page.url) * amount_factor(page, terms))
    recall, ahead = _recall_and_ahead(page, known)
    bounds = {"least": 0.0, "most": FOREVER_DAYS, "recall": recall, "ahead": ahead}
    days = float(due_gap(page.belief.a, page.belief.b, weight, terms.price, **bounds)) - page.activity_ahead
    if days >= terms.most / DAY:
        bound, by_rule, gap = Bound.MOST, said.most is not None, terms.most
    elif days <= terms.least / DAY:
        bound, by_rule, gap = Bound.LEAST, said.least is not None, terms.least
    else:
        bound, by_rule, gap = Bound.PRICE, False, timedelta(days=days)
    return Due(bound, by_rule, gap, page.last_good_at + gap)


def _due_by_policy(page: PageFacts, terms: Terms) -> Due | None:
    """Return what the domain's policy makes of a page: one span for all, or what was stored after the last visit.

    The first wait of a page is stored as it was cut (`phase_of`), and is given here as the policy said it.
    """
    standing = terms.revisit.standing
    if page.last_good_at is None or page.due_at is None:
        return None
    phase = phase_of(key_of(page.url)) if page.visits == 1 else 1.0
    gap = min(max(standing or (page.due_at - page.last_good_at) / phase, terms.least), terms.most)
    return Due(Bound.POLICY, by_rule=False, gap=gap, at=page.last_good_at + gap)


def value_now(known: Explanation, page: PageFacts, rules: PageRules) -> float | None:
    """Return what a visit now is worth, in importance x days.

    None for a page that has no version to lose, and where another policy than the price decides.
    """
    terms = known.terms
    if page.last_good_at is None or page.version == 0 or terms is None or not isinstance(terms.revisit, PricePolicy):
        return None
    weight = weight_of(page.look_importance * rules.weight(page.url) * amount_factor(page, terms))
    recall, ahead = _recall_and_ahead(page, known)
    aged = (1 - recall) * _unseen_days(page, known) + ahead
    return float(values_heard(page.belief.a, page.belief.b, weight, aged, ahead=ahead, most=terms.most / DAY))


def chance_unchanged(known: Explanation, page: PageFacts) -> float | None:
    """Return the chance that a page is as it was at its last good visit; None if that says nothing about it."""
    if not page.freshness or page.last_good_at is None:
        return page.freshness
    belief = page.belief
    days = heard_days(belief.a, belief.b, _unseen_days(page, known), _heard(page, known))
    return float(chance_fresh(belief.a, belief.b, days))


def amount_factor(page: PageFacts, terms: Terms) -> float:
    """Return the factor on a page's importance by how much its changes change, beside the domain's mean page."""
    return factor_of(page.amounts, terms.amount) if page.version else 1.0


def _heard(page: PageFacts, known: Explanation) -> Heard:
    """Return what change signals have said about the page since its last good visit."""
    return heard_about(page.belief, page.signals, known.terms.sources if known.terms is not None else ())


def _unseen_days(page: PageFacts, known: Explanation) -> float:
    """Return the days since the last good visit, in days of the site's activity; 0 without one."""
    if page.last_good_at is None:
        return 0.0
    return max((known.at - page.last_good_at) / DAY + page.activity_ahead, 0.0)


def _recall_and_ahead(page: PageFacts, known: Explanation) -> tuple[float, float]:
    """Return the chance that a change would have been signalled, and the days by which signals age the page."""
    heard = _heard(page, known)
    return float(heard.recall), float(days_ahead(page.belief.a, page.belief.b, heard))
