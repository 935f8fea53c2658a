"""Point estimates of a page's change rate from visits alone, without a prior, for comparison.

The scheduler never uses these: it uses the posterior. All functions take gaps (days between visits) and whether each
visit found a change, of shape (pages, visits) or (visits,), and return rates per day of shape (pages,) or (). A gap of
0 means no visit, so that pages with fewer visits can be padded.
"""

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats

Flags = NDArray[np.bool_]
HALVINGS = 45
MIN_CHANGES, MAX_CHANGES = 1e-30, 700.0  # in one gap, so that 1/(e^x - 1) is finite
NOT_ZERO = 1e-300  # smallest divisor; without visits, 0 divided by it is 0
PSEUDO_VISITS = 0.5  # Firth's correction amounts to half a visit without a change; see `rate`


def rate(gaps: Floats, found: Flags) -> Floats:
    """Return the maximum-likelihood rate, corrected for its bias of order 1/visits; 0 if nothing was found.

    The root of  sum_found t/(e^(r t) - 1) = sum_same t + t*/2, where t* is the mean gap weighted by the information of
    each visit, t^2/(e^(r t) - 1). Without t*/2 it is Cho and Garcia-Molina's likelihood for irregular visits; t*/2 is
    the correction of Firth, "Bias reduction of maximum likelihood estimates", Biometrika 1993, and for equal gaps it is
    the half visit in Cho and Garcia-Molina's -ln((n - x + 0.5)/(n + 0.5)) per gap.
    """
    counted, changed = gaps > 0, found & (gaps > 0)
    same_days = np.where(changed, 0.0, gaps).sum(axis=-1)
    changes = changed.sum(axis=-1)
    shortest = np.where(counted, gaps, np.inf).min(axis=-1)
    # 1/r - t/2 <= t/(e^(r t) - 1) <= 1/r bounds the root on both sides.
    high = changes / (same_days + PSEUDO_VISITS * shortest)
    most_days = same_days + PSEUDO_VISITS * (np.where(changed, gaps, 0.0).sum(axis=-1) + gaps.max(axis=-1))
    low = changes / np.maximum(most_days, NOT_ZERO)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        is_below = _excess(middle, gaps, changed, same_days) > 0
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(0.5 * (low + high))


def _excess(rates: Floats, gaps: Floats, changed: Flags, same_days: Floats) -> Floats:
    """Return the corrected score, which is above 0 while the rate is too low."""
    odds = 1 / np.expm1(np.clip(rates[..., None] * gaps, MIN_CHANGES, MAX_CHANGES))
    information = gaps * gaps * odds
    mean_gap = (information * gaps).sum(axis=-1) / np.maximum(information.sum(axis=-1), NOT_ZERO)
    return np.asarray(np.where(changed, gaps * odds, 0.0).sum(axis=-1) - same_days - PSEUDO_VISITS * mean_gap)


def naive_rate(gaps: Floats, found: Flags) -> Floats:
    """Return changes found per day: too low for pages that change about as often as they are visited, or more."""
    return np.asarray(found.sum(axis=-1) / np.maximum(gaps.sum(axis=-1), NOT_ZERO))


def padded_rate(gaps: Floats, found: Flags) -> Floats:
    """Return (changes + 1)/time, as in Aduana: too high for new pages, too low for fast ones. Needs a visit."""
    return np.asarray((found.sum(axis=-1) + 1) / np.maximum(gaps.sum(axis=-1), NOT_ZERO))
