"""When a page is looked at again, by choice of the domain's user: by price, by the likeness of versions, or evenly.

Budget, politeness, rules and bounds hold for all of them; a policy says only when the next look is wanted.
Sources: Dai's additions to Nutch, where the SimHash likeness of two versions sets the next period, and the textbook's
uniform policy (Cho and Garcia-Molina).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from crawler.core.freshness.estimates import DAY, FINGERPRINT_BITS, RateEstimate, convert_magnitude_to_bits
from crawler.core.freshness.value import compute_interval
from crawler.core.http.urls import Url

LENGTHEN_FACTOR = 2.0  # factor on a period at whose end nothing was found, in the first steps
SETTLED_STEP = 0.25  # power of a step in the long run, and how fast it gets there: a period would swing for ever
STEPS_TO_SETTLE = 4.0
# A page that changes by chance once in d days has changed with chance 1 - 1/e after d of them. There, longer and
# shorter steps must cancel out: (1 - 1/e) times this equals 1/e.
SHORTEN_STEP = 0.582
MIN_RATIO, MAX_RATIO = 0.25, 3.0  # of how unlike two versions are, by what the page's versions usually are
DUE_EARLY_BY = timedelta(minutes=1)
SPAN_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SPAN_UNITS["w"] = timedelta(weeks=1)

_FIXED = re.compile(r"fixed (\d+(?:\.\d+)?)([smhdw])")


@dataclass(frozen=True, slots=True)
class VisitResult:
    """A good look that has just ended, as a policy sees it.

    url, at: of the page, and the instant of the look, with its time zone UTC.
    waited: since the good look before it; zero where there is nothing to compare with: at the first, or when a page is
    back.  planned: the wait that was meant; None where the look came for another reason (a user, an audit, a retry).
    changed: something of the page's own was found to differ.
    distance_bits: SimHash distance of the two versions, None where there is no text, or no change.
    usual_magnitude: what a change of this page changes usually, 0 to 1.  visits: at this page, with this one.
    importance: by which the look is weighed; the domain's mean page has 1.  shadow_price: importance x days.
    min_interval, max_interval: bounds of the answer.  recall: the chance that a source of signals will tell the next
    change, in which case it is looked into sooner; 0 without a source.
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
    """A rule for when a page is looked at again."""

    def choose_interval(self, visit: VisitResult) -> timedelta:
        """The time until the next look. It is brought within the look's bounds by who asks."""
        ...

    @property
    def fixed_interval(self) -> timedelta | None:
        """The time between any two looks at any page, where that is one; None: what was said after the last look."""
        ...


@dataclass(frozen=True, slots=True)
class ValuePolicy:
    """The look comes when it will be worth its price; see `interval`. Claims weigh again by the price of their day."""

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


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """Every page after the same span, however often it changes: the textbook's uniform policy.

    Due times are a minute early: the looks of a crawl that begins at its hour every day are some seconds later.
    """

    fixed_interval: timedelta

    def choose_interval(self, visit: VisitResult) -> timedelta:  # noqa: ARG002  whatever it found
        return self.fixed_interval - min(DUE_EARLY_BY, self.fixed_interval / 100)


@dataclass(frozen=True, slots=True)
class SimilarityPolicy:
    """The likeness of the new version with the last one sets the next period: alike lengthens it, unlike shortens it.

    The likeness is 1 - distance/64. How unlike two versions are counts in proportion to what is usual for the page, so
    that the period of a page that changes every d days settles round d, by much or by little. Steps get smaller with
    the number of looks. A look that comes early and finds nothing, or late and finds a change, says less of the period,
    and moves it less.
    """

    fixed_interval: ClassVar[timedelta | None] = None

    def choose_interval(self, visit: VisitResult) -> timedelta:
        if not visit.waited:
            return FIRST_PERIOD if visit.visits <= 1 else _expect_period(visit)
        if visit.visits <= 2 and not visit.changed and visit.waited < FIRST_PERIOD:
            return FIRST_PERIOD  # the first wait was cut, to spread pages that came together
        period = visit.waited if visit.visits <= 2 else visit.planned or _expect_period(visit)
        step = max(SETTLED_STEP, STEPS_TO_SETTLE / (max(visit.visits, 2) + STEPS_TO_SETTLE - 2))
        if visit.changed:
            step *= -SHORTEN_STEP * _compute_difference_ratio(visit) * min(period / visit.waited, 1.0)
        else:
            step *= min(visit.waited / period, 1.0)
        return period * float(LENGTHEN_FACTOR**step)


FIRST_PERIOD = timedelta(days=30)  # Nutch's default


def _expect_period(visit: VisitResult) -> timedelta:
    """The period that the page's belief makes expect, within the look's bounds."""
    days = min(visit.rate_estimate.b / visit.rate_estimate.a, visit.max_interval / DAY)
    return min(max(timedelta(days=days), visit.min_interval), visit.max_interval)


def _compute_difference_ratio(visit: VisitResult) -> float:
    """How unlike the two versions are, by how unlike the page's versions usually are."""
    if visit.distance_bits is None:
        return 1.0
    unlike, usual = (
        max(visit.distance_bits, 1) / FINGERPRINT_BITS,
        float(convert_magnitude_to_bits(visit.usual_magnitude)) / FINGERPRINT_BITS,
    )
    return min(max(unlike / max(usual, 1 / FINGERPRINT_BITS), MIN_RATIO), MAX_RATIO)


VALUE_POLICY = ValuePolicy()
SIMILARITY_POLICY = SimilarityPolicy()


NO_PLUGIN_POLICIES: Mapping[str, RevisitPolicy] = {}


def parse_policy(text: str, plugin_policies: Mapping[str, RevisitPolicy] = NO_PLUGIN_POLICIES) -> RevisitPolicy:
    """The policy that a domain's setting names.

    plugin_policies: those of plugins, by name.  ValueError for one that is none.
    """
    fixed = _FIXED.fullmatch(text)
    if fixed is not None:
        return FixedPolicy(float(fixed[1]) * SPAN_UNITS[fixed[2]])
    policies = {**plugin_policies, "value": VALUE_POLICY, "similarity": SIMILARITY_POLICY}
    if text not in policies:
        raise ValueError(
            f"{text!r} is not a revisit policy: use value, similarity, fixed with a duration such as 'fixed 7d', or an "
            f"enabled plugin ({', '.join(plugin_policies) or 'there is none'})"
        )
    return policies[text]


def parse_policy_or_default(text: str, plugin_policies: Mapping[str, RevisitPolicy]) -> RevisitPolicy:
    """The policy that a domain's setting names; the price where that is a plugin's that is not there any more."""
    try:
        return parse_policy(text, plugin_policies)
    except ValueError:
        return VALUE_POLICY
