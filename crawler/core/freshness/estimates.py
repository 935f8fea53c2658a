"""What is believed of one page: how often it changes, and how much of it each change changes.

The belief about how often is a Gamma over its Poisson rate, learnt from yes-or-no looks. Formulas stand on float arrays
(a, b, and times in days; any shapes that broadcast). The functions on a Belief and timedeltas are of one page; those
that every look asks for say the same by `math`, which takes a tenth of the time for single numbers.

The amount of a change, from 0 to 1, is the part of the page's own text that differs, from the SimHash distance of the
two versions. The amount to expect of a page is learnt like its rate: its own changes on top of what its group makes
expect, in two numbers. Relative to the domain's mean page it is a factor on the page's importance, so that a look that
would find a headline replaced is worth more than one that would find a comma.
Sources: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, for what a distance says of
likeness. Related: Olston and Pandey, "Recrawl scheduling based on information longevity", WWW 2008, who weigh a change
by what it is worth to have it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma, compute_quantile, solve_shape

Flags = NDArray[np.bool_]

DAY = timedelta(days=1)
MIN_GAP_DAYS = 1e-6  # under a tenth of a second a gap teaches nothing, and divisions stay finite
MIN_AGE_DAYS = 1 / 1440  # of a Last-Modified
MAX_SHAPE = 1e6  # beyond it a belief is a point, and differences of moments drown in rounding
FADING_DAYS = 365.0  # evidence of a year ago counts 1/e of today's


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """Gamma(a, b) over a page's change rate per day: mean a/b. a is a count, b is in days; both above 0."""

    a: float
    b: float

    @property
    def rate_per_day(self) -> float:
        return self.a / self.b


# A page of which nothing is known: about one change in three weeks, give or take an order of magnitude.
PRIOR = RateEstimate(a=0.5, b=10.0)


def learn_unchanged(a: Numbers, b: Numbers, gap: Numbers) -> tuple[Floats, Floats]:
    """(a, b) after looks that found no change since the last good look, `gap` days ago. Exact."""
    return np.asarray(a, dtype=np.float64), np.asarray(b + np.maximum(gap, 0.0))


def learn_changed(a: Numbers, b: Numbers, gap: Numbers) -> tuple[Floats, Floats]:
    """(a, b) after looks that found at least one change within `gap` days.

    The posterior is not a Gamma; the result is the Gamma nearest to it, with its exact mean and mean logarithm. After
    a very short gap it is (a + 1, b); after a very long one (a, b) as it was, since "changed at last" teaches nothing.
    Always: a <= a' <= a + 1 and b <= b', so that evidence only grows.

    A prior is refitted from mean and mean logarithm (prior.moments), so a look adds no error of its own to them. With
    the exact variance in place of the mean logarithm, refits over adaptive looks ran away: in a world of known prior
    their mean rate came to 1.6 times the true one within 500 days, now to 0.98.
    """
    at_once = np.less_equal(gap, MIN_GAP_DAYS)
    log_r = -np.log1p(np.maximum(gap, MIN_GAP_DAYS) / b)  # r = b / (b + t)
    change_term = np.expm1(a * log_r)  # r^a - 1: less the chance of this very finding
    first = np.expm1((a + 1) * log_r) / change_term  # by how much the mean grows,
    second = np.expm1((a + 2) * log_r) / change_term  # and the mean square
    spread = second + a * (second - first * first)  # b^2 / a times the variance
    is_point = ~((spread > 0) & (a * first * first <= MAX_SHAPE * spread))
    near = a * first * first / np.where(is_point, 1.0, spread)  # the shape that has the variance: almost the one sought
    mean_log = compute_digamma(a) - np.log(b) + np.exp(a * log_r) * log_r / change_term
    shape = solve_shape(np.log(a * first / b) - mean_log, near=np.where(is_point, 1.0, near))
    a_after = np.clip(np.where(is_point, a, shape), a, a + 1.0)
    b_after = np.maximum(np.where(is_point, b, shape * b / (a * first)), b)
    return np.where(at_once, a + 1.0, a_after), np.where(at_once, b, b_after)


def learn_changed_at(a: Numbers, b: Numbers, age: Numbers) -> tuple[Floats, Floats]:
    """(a, b) after changes whose instant an honest Last-Modified tells: `age` days before the look. Exact."""
    return np.asarray(a + 1.0), np.asarray(b + np.maximum(age, 0.0))


def is_credible_age(age: Numbers, gap: Numbers) -> Flags:
    """Whether Last-Modified can be true of pages that changed within `gap` days, when it says `age` days ago.

    Later than a minute ago is the server's own clock, and would be an event without exposure; earlier than the last
    look is a lie, since the page has changed since then. NaN, for a page without one, is not believable.
    """
    return np.greater(age, MIN_AGE_DAYS) & np.less_equal(age, gap)


def fade_evidence(a: Numbers, b: Numbers, a0: Numbers, b0: Numbers, gap: Numbers) -> tuple[Floats, Floats]:
    """(a, b) with evidence aged by `gap` days: drawn toward the group's prior (a0, b0), never toward nothing.

    Fading comes before learning from a look. Evidence learnt under an older prior fades with the rest.
    """
    remaining = np.exp(-np.maximum(gap, 0.0) / FADING_DAYS)
    return np.asarray(a0 + (a - a0) * remaining), np.asarray(b0 + (b - b0) * remaining)


def compute_fresh_chance(a: Numbers, b: Numbers, unseen: Numbers) -> Floats:
    """The chance that pages last seen `unseen` days ago have not changed since: E[exp(-rate t)] = (b / (b + t))^a."""
    return np.asarray(np.exp(-a * np.log1p(np.maximum(unseen, 0.0) / b)))


def compute_credible_rates(a: Numbers, b: Numbers, *, mass: float = 0.9) -> tuple[Floats, Floats]:
    """The rates per day between which the true one lies with chance `mass`, with equal chances below and above."""
    return compute_quantile(a, (1 - mass) / 2) / b, compute_quantile(a, (1 + mass) / 2) / b


def update_unchanged(estimate: RateEstimate, *, gap: timedelta) -> RateEstimate:
    """The belief after a look that found no change since the last good look, `gap` ago. Exact."""
    return RateEstimate(estimate.a, estimate.b + max(gap / DAY, 0.0))


def update_changed(estimate: RateEstimate, *, gap: timedelta) -> RateEstimate:
    """The belief after a look that found at least one change within `gap`; see learn_changed."""
    return _build_estimate(*learn_changed(estimate.a, estimate.b, gap / DAY))


def update_changed_at(estimate: RateEstimate, *, age: timedelta) -> RateEstimate:
    """The belief after a change whose instant an honest Last-Modified tells: `age` before the look. Exact."""
    return _build_estimate(*learn_changed_at(estimate.a, estimate.b, age / DAY))


def fade_estimate(estimate: RateEstimate, *, prior: RateEstimate, gap: timedelta) -> RateEstimate:
    """The belief with its evidence aged by `gap`, toward the prior of the page's group."""
    remaining = math.exp(-max(gap / DAY, 0.0) / FADING_DAYS)
    return RateEstimate(prior.a + (estimate.a - prior.a) * remaining, prior.b + (estimate.b - prior.b) * remaining)


def compute_change_chance(estimate: RateEstimate, gap_days: float) -> float:
    """The chance that a look after a gap finds a change; compared with what looks find, this is calibration."""
    return -math.expm1(-estimate.a * math.log1p(max(gap_days, 0.0) / estimate.b))


def compute_credible_interval(estimate: RateEstimate, *, mass: float = 0.9) -> tuple[float, float]:
    """The rates per day between which the page's true one lies with chance `mass`."""
    low, high = compute_credible_rates(estimate.a, estimate.b, mass=mass)
    return float(low), float(high)


def _build_estimate(a: Floats, b: Floats) -> RateEstimate:
    return RateEstimate(float(a), float(b))


DEFAULT_MAGNITUDE = 0.1  # of a page of which nothing is known: about a tenth of its text
SHRINKAGE_CHANGES = 2.0  # changes' worth of the group in what is expected of a page
GROUP_SHRINKAGE_PAGES = 5.0  # pages' worth of the domain in its groups, and of DEFAULT_MAGNITUDE in the domain
MAX_CHANGES = 20.0  # that are remembered: what a page did before counts less with each further one
MIN_FACTOR, MAX_FACTOR = 0.65, 1.55  # on importance; wider bounds cost more freshness than they bring
FINGERPRINT_BITS = 64  # of a fingerprint
UNDETECTED_BITS = 2  # a change that moves no bit may be as much as one that moves so many

Groups = NDArray[np.intp]


class ChangeWeight(StrEnum):
    """What a change that is found counts."""

    MAGNITUDE = "magnitude"  # by how much of the page it changes
    EQUAL = "equal"  # each the same


@dataclass(frozen=True, slots=True)
class ChangeMagnitudes:
    """The changes found on a page: the sum of their amounts, and how many there were. O(1), however many."""

    total: float = 0.0
    changes: float = 0.0


NO_MAGNITUDES = ChangeMagnitudes()


@dataclass(frozen=True, slots=True)
class ExpectedMagnitude:
    """What a group of pages makes expect of a change, 0 to 1, beside the mean over its domain's pages."""

    group: float = DEFAULT_MAGNITUDE
    mean: float = DEFAULT_MAGNITUDE


def convert_bits_to_magnitude(bits: Numbers) -> Floats:
    """The part of a text that differs where its fingerprints differ in so many of 64 bits.

    A bit of two SimHashes differs with chance arccos(s)/pi, where s is the cosine likeness of the texts' features; so
    the likeness to expect is cos(pi bits/64). 32 bits and more are another text.
    """
    return np.asarray(1.0 - np.cos(np.pi * np.minimum(bits, FINGERPRINT_BITS / 2) / FINGERPRINT_BITS))


def convert_magnitude_to_bits(magnitude: Numbers) -> Floats:
    """The mean number of bits in which fingerprints differ, where so much of the text differs."""
    return np.asarray(np.arccos(1.0 - np.clip(magnitude, 0.0, 1.0)) / np.pi * FINGERPRINT_BITS)


MAX_UNDETECTED = float(convert_bits_to_magnitude(UNDETECTED_BITS))  # the most that a change which moves no bit may be


def measure_magnitude(bits: int | None, changed_share: float | None) -> float | None:
    """The amount of a change, above 0. None where neither text nor blocks can tell.

    bits: the distance of the versions' fingerprints.  changed_share: of the page's blocks, those that differ. They
    count where the distance cannot see: one digit of a long page moves no bit, and is a change.
    """
    if bits is None:
        return changed_share
    undetected = MAX_UNDETECTED if changed_share is None else min(changed_share, MAX_UNDETECTED)
    return max(float(convert_bits_to_magnitude(bits)), undetected)


def learn_magnitude(total: Numbers, changes: Numbers, magnitude: Numbers) -> tuple[Floats, Floats]:
    """(total, changes) after one more change of this amount; old ones count less, beyond MOST_CHANGES of them."""
    weight = np.minimum(1.0, (MAX_CHANGES - 1.0) / np.maximum(changes, 1.0))
    return np.asarray(total * weight + magnitude), np.asarray(changes * weight + 1.0)


def compute_expected_magnitude(total: Numbers, changes: Numbers, group: Numbers) -> Floats:
    """The amount to expect of a page's next change: its own so far, with LEAN changes of its group mixed in."""
    return np.asarray((total + SHRINKAGE_CHANGES * group) / (changes + SHRINKAGE_CHANGES))


def compute_clipped_factor(expected: Numbers, mean: Numbers) -> Floats:
    """The factor on a page's importance: 1 for the domain's mean page, within [MIN_FACTOR, MAX_FACTOR]."""
    return np.asarray(np.clip(expected / mean, MIN_FACTOR, MAX_FACTOR))


def compute_magnitude_factors(pages: Sequence[tuple[float, float, float]], *, mean: float) -> Floats:
    """The factor on the importance of each page, from its total, its changes, and its group's amount."""
    total, changes, group = np.array(pages, dtype=np.float64).reshape(-1, 3).T
    return compute_clipped_factor(compute_expected_magnitude(total, changes, group), mean)


def refit_magnitudes(total: Floats, changes: Floats, group: Groups, *, groups: int) -> tuple[Floats, float]:
    """What each of `groups` groups makes expect, and the mean of what is expected over all the pages.

    total, changes, group: of each page; group[i] is 0 to groups - 1. A page counts in its group by how much its own
    changes say of it, at most once: pages that change often must not speak for all. A group leans on its domain; number
    0 is the domain, from which groups begin.
    """
    page_weight = changes / (changes + SHRINKAGE_CHANGES)
    weighted_magnitude = page_weight * total / np.maximum(changes, 1e-9)
    domain = (weighted_magnitude.sum() + GROUP_SHRINKAGE_PAGES * DEFAULT_MAGNITUDE) / (
        page_weight.sum() + GROUP_SHRINKAGE_PAGES
    )
    each = np.bincount(group, weights=weighted_magnitude, minlength=groups) + GROUP_SHRINKAGE_PAGES * domain
    by_group = each / (np.bincount(group, weights=page_weight, minlength=groups) + GROUP_SHRINKAGE_PAGES)
    by_group[0] = domain  # the group of the domain itself, as of beliefs: a new template begins with it
    expected = compute_expected_magnitude(total, changes, by_group[group])
    return by_group, float(expected.mean()) if len(expected) else float(domain)


def add_change(magnitudes: ChangeMagnitudes, magnitude: float | None) -> ChangeMagnitudes:
    """A page's amounts after one more change; None: nobody can tell by how much, and nothing is learnt."""
    if magnitude is None:
        return magnitudes
    total, changes = learn_magnitude(magnitudes.total, magnitudes.changes, magnitude)
    return ChangeMagnitudes(float(total), float(changes))


def compute_magnitude_factor(magnitudes: ChangeMagnitudes, group: ExpectedMagnitude | None) -> float:
    """The factor on one page's importance; 1 where each change counts alike (group: None)."""
    if group is None:
        return 1.0
    # numpy takes twenty times as long for one
    expected = (magnitudes.total + SHRINKAGE_CHANGES * group.group) / (magnitudes.changes + SHRINKAGE_CHANGES)
    return min(max(expected / group.mean, MIN_FACTOR), MAX_FACTOR)
