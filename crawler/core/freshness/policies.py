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

from crawler.core.freshness.estimates import BITS, DAY, Belief, bits_of_amount
from crawler.core.freshness.value import interval
from crawler.core.http.urls import Url

LONGER = 2.0  # factor on a period at whose end nothing was found, in the first steps
SETTLED_STEP = 0.25  # power of a step in the long run, and how fast it gets there: a period would swing for ever
STEPS_TO_SETTLE = 4.0
# A page that changes by chance once in d days has changed with chance 1 - 1/e after d of them. There, longer and
# shorter steps must cancel out: (1 - 1/e) times this equals 1/e.
SHORTER_BY = 0.582
LEAST_RATIO, MOST_RATIO = 0.25, 3.0  # of how unlike two versions are, by what the page's versions usually are
EARLY = timedelta(minutes=1)
SPANS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SPANS["w"] = timedelta(weeks=1)

_FIXED = re.compile(r"fixed (\d+(?:\.\d+)?)([smhdw])")


@dataclass(frozen=True, slots=True)
class Looked:
    """A good look that has just ended, as a policy sees it.

    url, at: of the page, and the instant of the look, with its time zone UTC.
    waited: since the good look before it; zero where there is nothing to compare with: at the first, or when a page is
    back.  planned: the wait that was meant; None where the look came for another reason (a user, an audit, a retry).
    changed: something of the page's own was found to differ.
    distance_bits: SimHash distance of the two versions, None where there is no text, or no change.
    usual_amount: what a change of this page changes usually, 0 to 1.  looks: at this page, with this one.
    importance: by which the look is weighed; the domain's mean page has 1.  price: importance x days.
    least, most: bounds of the answer.  recall: the chance that a source of signals will tell the next change, in which
    case it is looked into sooner; 0 without a source.
    """

    url: Url
    at: datetime
    waited: timedelta
    planned: timedelta | None
    changed: bool
    distance_bits: int | None
    usual_amount: float
    looks: int
    belief: Belief
    importance: float
    price: float
    least: timedelta
    most: timedelta
    recall: float = 0.0


class RevisitPolicy(Protocol):
    """A rule for when a page is looked at again."""

    def after(self, look: Looked) -> timedelta:
        """The time until the next look. It is brought within the look's bounds by who asks."""
        ...

    @property
    def standing(self) -> timedelta | None:
        """The time between any two looks at any page, where that is one; None: what was said after the last look."""
        ...


@dataclass(frozen=True, slots=True)
class PricePolicy:
    """The look comes when it will be worth its price; see `interval`. Claims weigh again by the price of their day."""

    standing: ClassVar[timedelta | None] = None

    def after(self, look: Looked) -> timedelta:
        return interval(
            look.belief,
            importance=look.importance,
            price=look.price,
            least=look.least,
            most=look.most,
            recall=look.recall,
        )


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """Every page after the same span, however often it changes: the textbook's uniform policy.

    Due times are a minute early: the looks of a crawl that begins at its hour every day are some seconds later.
    """

    standing: timedelta

    def after(self, look: Looked) -> timedelta:  # noqa: ARG002  whatever it found
        return self.standing - min(EARLY, self.standing / 100)


@dataclass(frozen=True, slots=True)
class SimilarityPolicy:
    """The likeness of the new version with the last one sets the next period: alike lengthens it, unlike shortens it.

    The likeness is 1 - distance/64. How unlike two versions are counts in proportion to what is usual for the page, so
    that the period of a page that changes every d days settles round d, by much or by little. Steps get smaller with
    the number of looks. A look that comes early and finds nothing, or late and finds a change, says less of the period,
    and moves it less.
    """

    standing: ClassVar[timedelta | None] = None

    def after(self, look: Looked) -> timedelta:
        if not look.waited:
            return FIRST_PERIOD if look.looks <= 1 else _believed(look)
        if look.looks <= 2 and not look.changed and look.waited < FIRST_PERIOD:
            return FIRST_PERIOD  # the first wait was cut, to spread pages that came together
        period = look.waited if look.looks <= 2 else look.planned or _believed(look)
        step = max(SETTLED_STEP, STEPS_TO_SETTLE / (max(look.looks, 2) + STEPS_TO_SETTLE - 2))
        if look.changed:
            step *= -SHORTER_BY * _how_unlike(look) * min(period / look.waited, 1.0)
        else:
            step *= min(look.waited / period, 1.0)
        return period * float(LONGER**step)


FIRST_PERIOD = timedelta(days=30)  # Nutch's default


def _believed(look: Looked) -> timedelta:
    """The period that the page's belief makes expect, within the look's bounds."""
    days = min(look.belief.b / look.belief.a, look.most / DAY)
    return min(max(timedelta(days=days), look.least), look.most)


def _how_unlike(look: Looked) -> float:
    """How unlike the two versions are, by how unlike the page's versions usually are."""
    if look.distance_bits is None:
        return 1.0
    unlike, usual = max(look.distance_bits, 1) / BITS, float(bits_of_amount(look.usual_amount)) / BITS
    return min(max(unlike / max(usual, 1 / BITS), LEAST_RATIO), MOST_RATIO)


BY_PRICE = PricePolicy()
BY_SIMILARITY = SimilarityPolicy()


NO_OTHERS: Mapping[str, RevisitPolicy] = {}


def policy_of(text: str, others: Mapping[str, RevisitPolicy] = NO_OTHERS) -> RevisitPolicy:
    """The policy that a domain's setting names. others: those of plugins, by name.  ValueError for one that is none."""
    fixed = _FIXED.fullmatch(text)
    if fixed is not None:
        return FixedPolicy(float(fixed[1]) * SPANS[fixed[2]])
    policies = {**others, "price": BY_PRICE, "similarity": BY_SIMILARITY}
    if text not in policies:
        raise ValueError(
            f"{text!r} is no revisit policy: price, similarity, fixed with a span such as 'fixed 7d', or a plugin "
            f"that is used; there is {', '.join(others) or 'none'}"
        )
    return policies[text]


def policy_or_price(text: str, others: Mapping[str, RevisitPolicy]) -> RevisitPolicy:
    """The policy that a domain's setting names; the price where that is a plugin's that is not there any more."""
    try:
        return policy_of(text, others)
    except ValueError:
        return BY_PRICE
