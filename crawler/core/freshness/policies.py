"""Revisit policies: by value, by the similarity of versions, or at a fixed interval. Plugins can add others.

Budgets, politeness, rules and bounds apply to all policies; a policy only chooses when the next visit is due.
Sources: Dai's additions to Nutch, where the SimHash similarity of two versions sets the next interval, and the uniform
policy of Cho and Garcia-Molina.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from msgspec import Struct

from crawler.core.freshness.estimates import DAY, RateEstimate, convert_magnitude_to_bits
from crawler.core.freshness.visit_value import compute_interval
from crawler.core.http.urls import Url

LENGTHEN_FACTOR = 2.0  # on the interval after a visit without a change, in the first steps
SETTLED_STEP = 0.25  # exponent of LENGTHEN_FACTOR in the long run (1 at first): large steps would make it oscillate
STEPS_TO_SETTLE = 4.0  # after this many more visits than two, the exponent is 1/2
# A page that changes at random once in d days has changed after d days with probability 1 - 1/e. There, lengthening and
# shortening must balance: (1 - 1/e) times this equals 1/e.
SHORTEN_STEP = 0.582
MIN_RATIO, MAX_RATIO = 0.25, 3.0  # bounds of the ratio of a change's distance to the page's usual distance
DUE_EARLY_BY = timedelta(minutes=1)  # see FixedPolicy
SPAN_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SPAN_UNITS["w"] = timedelta(weeks=1)

_FIXED = re.compile(r"fixed (\d+(?:\.\d+)?)([smhdw])")


class VisitResult(Struct, frozen=True):
    """A successful visit that has just ended, as the input of a policy.

    at: the time of the visit, UTC.
    waited: the time since the previous successful visit; zero if there is nothing to compare with (the first visit, or
    a restored page).  planned: the planned wait; None if the visit had another reason (a user, an audit, a retry).
    changed: whether a significant change was found.
    distance_bits: the SimHash distance of the two versions; None without text or without a change.
    usual_magnitude: the usual change magnitude of this page, 0 to 1.  visits: visits to this page, including this one.
    importance: the domain's mean page has 1.  shadow_price: importance x days.
    min_interval, max_interval: the bounds of the result.  recall: the probability that a source of change signals
    reports the next change, which makes the page due sooner; 0 without a source.
    """

    url: Url
    at: datetime
    waited: timedelta
    planned: timedelta | None
    changed: bool
    distance_bits: int | None
    usual_magnitude: float
    visits: int
    rate_estimate: RateEstimate
    importance: float
    shadow_price: float
    min_interval: timedelta
    max_interval: timedelta
    recall: float = 0.0


class RevisitPolicy(Protocol):
    """A policy that chooses when a page is revisited."""

    def choose_interval(self, visit: VisitResult) -> timedelta:
        """Return the time until the next visit. The caller limits it to the bounds of the visit."""
        ...

    @property
    def fixed_interval(self) -> timedelta | None:
        """Return the interval if it is the same for all pages, else None."""
        ...


class ValuePolicy(Struct, frozen=True):
    """Revisit a page when the value of a visit reaches its shadow price."""

    fixed_interval: ClassVar[timedelta | None] = None

    def choose_interval(self, visit: VisitResult) -> timedelta:
        return compute_interval(
            visit.rate_estimate,
            importance=visit.importance,
            shadow_price=visit.shadow_price,
            min_interval=visit.min_interval,
            max_interval=visit.max_interval,
            recall=visit.recall,
        )


class FixedPolicy(Struct, frozen=True):
    """Revisit all pages at the same interval: the uniform policy.

    Due times are up to a minute early, because the visits of a crawl that starts daily at the same time are some
    seconds late.
    """

    fixed_interval: timedelta

    def choose_interval(self, visit: VisitResult) -> timedelta:  # noqa: ARG002
        return self.fixed_interval - min(DUE_EARLY_BY, self.fixed_interval / 100)


class SimilarityPolicy(Struct, frozen=True):
    """Lengthen the interval if the new version is similar to the last one, and shorten it if it is not.

    The SimHash distance counts in proportion to the usual distance of the page's changes, so that the interval of a
    page that changes every d days converges to about d, whether its changes are large or small. Steps get smaller with
    the number of visits. An early visit without a change, or a late visit with one, moves the interval less.
    """

    fixed_interval: ClassVar[timedelta | None] = None

    def choose_interval(self, visit: VisitResult) -> timedelta:
        if not visit.waited:
            return FIRST_PERIOD if visit.visits <= 1 else _expect_period(visit)
        if visit.visits <= 2 and not visit.changed and visit.waited < FIRST_PERIOD:
            return FIRST_PERIOD  # the first wait was shortened to spread pages that were added together
        period = visit.waited if visit.visits <= 2 else visit.planned or _expect_period(visit)
        step = max(SETTLED_STEP, STEPS_TO_SETTLE / (max(visit.visits, 2) + STEPS_TO_SETTLE - 2))
        if visit.changed:
            step *= -SHORTEN_STEP * _compute_difference_ratio(visit) * min(period / visit.waited, 1.0)
        else:
            step *= min(visit.waited / period, 1.0)
        return period * float(LENGTHEN_FACTOR**step)


FIRST_PERIOD = timedelta(days=30)  # Nutch's default


def _expect_period(visit: VisitResult) -> timedelta:
    """Return the mean time between changes by the page's estimate, within the bounds of the visit."""
    days = min(visit.rate_estimate.b / visit.rate_estimate.a, visit.max_interval / DAY)
    return min(max(timedelta(days=days), visit.min_interval), visit.max_interval)


def _compute_difference_ratio(visit: VisitResult) -> float:
    """Return the ratio of the distance of the two versions to the usual distance, within bounds; 1 if unknown."""
    if visit.distance_bits is None:
        return 1.0
    usual_bits = float(convert_magnitude_to_bits(visit.usual_magnitude))
    return min(max(max(visit.distance_bits, 1) / max(usual_bits, 1.0), MIN_RATIO), MAX_RATIO)


VALUE_POLICY = ValuePolicy()
SIMILARITY_POLICY = SimilarityPolicy()


NO_PLUGIN_POLICIES: Mapping[str, RevisitPolicy] = {}


def parse_policy(text: str, plugin_policies: Mapping[str, RevisitPolicy] = NO_PLUGIN_POLICIES) -> RevisitPolicy:
    """Return the policy that a domain's setting names. Raise ValueError if there is none.

    plugin_policies: the policies of enabled plugins, by name.
    """
    fixed = _FIXED.fullmatch(text)
    if fixed is not None:
        return FixedPolicy(float(fixed[1]) * SPAN_UNITS[fixed[2]])
    policies = {**plugin_policies, "value": VALUE_POLICY, "similarity": SIMILARITY_POLICY}
    if text not in policies:
        hint = "use value, similarity, fixed with a duration such as 'fixed 7d', or an enabled plugin"
        raise ValueError(f"{text!r} is not a revisit policy: {hint} ({', '.join(plugin_policies) or 'there is none'})")
    return policies[text]


def parse_policy_or_default(text: str, plugin_policies: Mapping[str, RevisitPolicy]) -> RevisitPolicy:
    """Return the policy that a domain's setting names, or the value policy if its plugin is no longer enabled."""
    try:
        return parse_policy(text, plugin_policies)
    except ValueError:
        return VALUE_POLICY
