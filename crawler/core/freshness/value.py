"""The value of a look, and the instant at which it is worth its price.

Source: the marginal gain in importance-weighted freshness, from Cho and Garcia-Molina, "Effective page refresh policies
for Web crawlers", TODS 2003, with the threshold form of Azar et al., PNAS 2018; averaged over a Gamma belief.

Each formula stands on float arrays: a, b of the belief, weight w, and times in days. The functions on a Belief call the
same formulas with one page; only `gain_of_one`, which every look needs a few times, is written out for single numbers.
A site that is more active than usual by a factor m has beliefs (a, b / m).
"""

import math
from datetime import timedelta

import numpy as np

from crawler.core.freshness.belief import DAY, Belief
from crawler.core.freshness.gamma import Floats, Numbers

LEAST_IMPORTANCE = 0.05  # a page worth nothing would never be looked at again, and could never prove otherwise
MOST_IMPORTANCE = 1000.0  # and no single page may take its domain's whole budget
SERIES_BELOW = 1e-3  # of (a + 1) y: there the closed form of the gain cancels, and three terms give ten digits
NOT_ZERO = 1e-300  # added where 0/0 has a limit: expm1(x)/x is 1 there


def weights_of(importance: Numbers) -> Floats:
    """Importances (the domain's mean is 1) as weights, within bounds that no estimate may leave."""
    return np.asarray(np.clip(importance, LEAST_IMPORTANCE, MOST_IMPORTANCE))


def gain(a: Numbers, y: Numbers) -> Floats:
    """g_a(y) = [1 - (1 + y)^(1 - a)]/(a - 1) - y (1 + y)^(-a), for a > 0 and y >= 0.

    The mean over a Gamma(a, 1) rate l of (1 - (1 + l y) exp(-l y))/l. Grows with y: to 1/(a - 1), or without end if
    a <= 1.
    """
    log_y = np.log1p(y)
    x = (1 - a) * log_y + NOT_ZERO
    closed = log_y * (np.expm1(x) / x) - y * np.exp(-a * log_y)
    series = a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    return np.where((a + 1) * y < SERIES_BELOW, series, closed)


def gain_of_one(a: float, y: float) -> float:
    """`gain` of one page."""
    if (a + 1) * y < SERIES_BELOW:
        return a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    log_y = math.log1p(y)
    x = (1 - a) * log_y + NOT_ZERO
    return log_y * (math.expm1(x) / x) - y * math.exp(-a * log_y)


def values(a: Numbers, b: Numbers, weight: Numbers, unseen: Numbers) -> Floats:
    """The value of looking now, in importance x days of freshness gained over looking later: w b g_a(t/b)."""
    return np.asarray(weight * b * gain(a, np.maximum(unseen, 0.0) / b))


def first_values(a: Numbers, b: Numbers, weight: Numbers, longest: Numbers) -> Floats:
    """The value of the first fetch of a page: the fresh time that it buys within `longest` days.

    w times the integral of (b/(b + t))^a from 0 to `longest`; compared with the same price as a look at a known page,
    so that a flood of unimportant URLs cannot starve refresh.
    """
    return np.asarray(weight * fresh_days(a, b, longest))


def fresh_days(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """The days of the `gap` after a fetch for which its copy is expected fresh: b [(1 + y)^(1 - a) - 1]/(1 - a)."""
    log_y = np.log1p(np.maximum(gap, 0.0) / b)
    x = (1 - a) * log_y + NOT_ZERO
    return np.asarray(b * log_y * (np.expm1(x) / x))


def values_heard(a: Numbers, b: Numbers, weight: Numbers, aged: Numbers, *, ahead: Numbers, most: Numbers) -> Floats:
    """The value of looking now at pages that signals have made `aged` days old (signals.heard_days).

    ahead: the days of these that signals added. No signal makes a look worth more than the fresh days, within `most`,
    that follow a change that is certain; nor worth less than it would be without: a signal about all pages at once
    would let none be looked at, where each of them changes too often.
    """
    told = np.minimum(values(a, b, weight, aged), most_worth(a, b, weight, ahead=ahead, most=most))
    return np.maximum(told, values(a, b, weight, np.asarray(aged) - ahead))


def most_worth(a: Numbers, b: Numbers, weight: Numbers, *, ahead: Numbers, most: Numbers) -> Floats:
    """The most that a look can be worth; inf where no signal came."""
    return np.where(np.greater(ahead, 0), weight * fresh_days(np.asarray(a) + 1, b, most), np.inf)


def value(belief: Belief, *, importance: float, unseen: timedelta) -> float:
    """The value of looking now, in importance x days of freshness gained over looking later.

    The mean over the belief of w (1 - (1 + l t) exp(-l t)) / l.  importance: 1 is the domain's mean page.
    """
    return float(values(belief.a, belief.b, weight_of(importance), unseen / DAY))


def weight_of(importance: float) -> float:
    """The weight of one importance; see `weights_of`."""
    return min(max(importance, LEAST_IMPORTANCE), MOST_IMPORTANCE)
