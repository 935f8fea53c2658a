"""The value of a visit, and the gap after which it reaches the shadow price.

Source: the marginal gain in importance-weighted freshness, from Cho and Garcia-Molina, "Effective page refresh policies
for Web crawlers", TODS 2003, with the threshold form of Azar et al., PNAS 2018; averaged over the Gamma posterior.

Formulas take float arrays: a and b of the estimate, weight w, and times t in days; y is t/b. For formulas that every
visit needs, there is also a function for one page, because scalars are faster.
"""

import math
from datetime import timedelta

import numpy as np

from crawler.core.freshness.estimates import DAY, RateEstimate
from crawler.core.freshness.gamma import Floats, Numbers

MIN_IMPORTANCE = 0.05  # a page with importance 0 would never be revisited, so its importance could never rise
MAX_IMPORTANCE = 1000.0  # limits the share of a domain's budget that one page can use
SERIES_BELOW = 1e-3  # of (a + 1) y; below, the closed form of the gain cancels, and three terms give ten digits
EPSILON = 1e-300  # avoids 0/0 where expm1(x)/x has the limit 1
MAX_LOG_Y = 27.6  # a gap of 10^12 times b counts as never
TINY_TARGET = 1e-12  # a target that is reached at once
LARGE_ARRAY = 1000  # elements; in larger arrays, the solver drops those that have converged
MAX_STEPS = 60  # of the solver
MAX_STEP = 3.0  # of ln y
EXACT_STEP = 1e-4  # the error after a step this short is about its cube
ROUNDING = 1e-13  # of ln g; where the gain is almost flat, more accuracy is not possible


def compute_weights(importance: Numbers) -> Floats:
    """Limit importances (the domain's mean is 1) to [MIN_IMPORTANCE, MAX_IMPORTANCE]."""
    return np.asarray(np.clip(importance, MIN_IMPORTANCE, MAX_IMPORTANCE))


def compute_gain(a: Numbers, y: Numbers) -> Floats:
    """Return g_a(y) = [1 - (1 + y)^(1 - a)]/(a - 1) - y (1 + y)^(-a), for a > 0 and y >= 0.

    It is the mean of (1 - (1 + l y) exp(-l y))/l over a rate l from Gamma(a, 1). It grows with y, to 1/(a - 1), or
    without bound if a <= 1.
    """
    log_y = np.log1p(y)
    x = (1 - a) * log_y + EPSILON
    closed = log_y * (np.expm1(x) / x) - y * np.exp(-a * log_y)
    series = a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    return np.where((a + 1) * y < SERIES_BELOW, series, closed)


def compute_page_gain(a: float, y: float) -> float:
    """Return compute_gain for one page."""
    if (a + 1) * y < SERIES_BELOW:
        return a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    log_y = math.log1p(y)
    x = (1 - a) * log_y + EPSILON
    return log_y * (math.expm1(x) / x) - y * math.exp(-a * log_y)


def compute_values(a: Numbers, b: Numbers, weight: Numbers, unseen: Numbers) -> Floats:
    """Return the value of a visit now, in importance x days of freshness gained over a later one: w b g_a(unseen/b)."""
    return np.asarray(weight * b * compute_gain(a, np.maximum(unseen, 0.0) / b))


def compute_first_values(a: Numbers, b: Numbers, weight: Numbers, longest: Numbers) -> Floats:
    """Return the value of the first visit to a page: the fresh time that it gains within `longest` days.

    w times the integral of (b/(b + t))^a from 0 to `longest`. It is compared with the same price as a revisit, so many
    unimportant URLs cannot starve revisits.
    """
    return np.asarray(weight * compute_fresh_days(a, b, longest))


def compute_fresh_days(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """Return the days of a gap t in which a copy is expected to be fresh: b [(1 + y)^(1 - a) - 1]/(1 - a)."""
    log_y = np.log1p(np.maximum(gap, 0.0) / b)
    x = (1 - a) * log_y + EPSILON
    return np.asarray(b * log_y * (np.expm1(x) / x))


def compute_values_with_signals(
    a: Numbers, b: Numbers, weight: Numbers, aged: Numbers, *, ahead: Numbers, max_interval: Numbers
) -> Floats:
    """Return the value of a visit now to pages that are `aged` days old with signals (signals.compute_aged_days).

    ahead: the days that signals added. The value is at most that of the fresh days within `max_interval` if a change is
    certain. It is at least the value without signals: otherwise, if a signal concerned all pages at once and each of
    them changed too often to follow, none would be visited.
    """
    max_value = compute_max_values(a, b, weight, ahead=ahead, max_interval=max_interval)
    value = np.minimum(compute_values(a, b, weight, aged), max_value)
    return np.maximum(value, compute_values(a, b, weight, np.asarray(aged) - ahead))


def compute_max_values(a: Numbers, b: Numbers, weight: Numbers, *, ahead: Numbers, max_interval: Numbers) -> Floats:
    """Return the maximum value of a visit; inf without signals."""
    return np.where(np.greater(ahead, 0), weight * compute_fresh_days(np.asarray(a) + 1, b, max_interval), np.inf)


def compute_weight(importance: float) -> float:
    """Return compute_weights for one page."""
    return min(max(importance, MIN_IMPORTANCE), MAX_IMPORTANCE)


def solve_gap(a: Numbers, b: Numbers, weight: Numbers, shadow_price: Numbers) -> Floats:
    """Return the days until the next visit has the value `shadow_price`: the root of w b g_a(t/b) = shadow_price.

    shadow_price: the minimum value of this visit in importance x days, above 0.
    The result is inf if no visit reaches the price. That requires a > 1: evidence that the page changes faster than it
    can be followed. Newton on ln g over ln y with the second derivative (Halley) takes 3 to 6 steps. It starts at
    y = sqrt(2 shadow_price/(a w b)), a lower bound of the root; ln g is concave in ln y, so convergence is monotonic.
    """
    target = np.clip(np.asarray(shadow_price / (weight * b), dtype=np.float64), EPSILON, 1 / EPSILON)
    never = target * np.maximum(a - 1.0, 0.0) >= 1.0
    reach = np.where(never, TINY_TARGET / a, target)
    start = np.minimum(0.5 * (np.log(2 / a) + np.log(reach)), MAX_LOG_Y)
    log_y = _climb_to_root(a + 0.0 * reach, start, np.log(reach))
    return np.where(never | (log_y >= MAX_LOG_Y), np.inf, b * np.exp(log_y))


def _climb_to_root(a: Floats, log_y: Floats, log_target: Floats) -> Floats:
    for _ in range(MAX_STEPS):
        before = log_y
        log_y = np.minimum(before + _compute_step(a, before, log_target), MAX_LOG_Y)
        far = np.abs(log_y - before) > EXACT_STEP
        if not far.any():
            break
        if far.size > LARGE_ARRAY and far.sum() < far.size / 2:  # continue only with elements that have not converged
            log_y[far] = _climb_to_root(a[far], log_y[far], log_target[far])
            break
    return log_y


def _compute_step(a: Numbers, log_y: Floats, log_target: Floats) -> Floats:
    """Return Halley's step toward ln g_a(y) = log_target, limited where the curve is too flat."""
    y = np.exp(log_y)
    reached = compute_gain(a, y)
    slope = a * y * y * np.exp(-(a + 1) * np.log1p(y)) / reached  # d ln g / d ln y
    bend = 2 - (a + 1) * y / (1 + y) - slope  # d ln slope / d ln y
    missing = log_target - np.log(reached)
    newton = np.maximum(np.minimum(missing / np.maximum(slope, EPSILON), MAX_STEP), -MAX_STEP)
    return np.asarray((np.abs(missing) > ROUNDING) * newton / np.maximum(1 + 0.5 * newton * bend, 0.5))


def compute_due_gap(
    a: Numbers,
    b: Numbers,
    weight: Numbers,
    shadow_price: Numbers,
    *,
    min_interval: Numbers,
    max_interval: Numbers,
    recall: Numbers = 0.0,
    ahead: Numbers = 0.0,
) -> Floats:
    """Return the days until the next visit is due: when its value reaches the price, within the interval bounds.

    recall: of the sources of change signals.  ahead: days that signals add to the age (signals.compute_days_ahead).
    All days are days of site activity; in calendar days the gap is shorter by the days that activity is ahead.
    """
    full_gap = solve_gap(a, b, weight, shadow_price)
    is_reached_by_signals = compute_max_values(a, b, weight, ahead=ahead, max_interval=max_interval) >= shadow_price
    gap = np.where(is_reached_by_signals, full_gap - ahead, full_gap) / (1 - recall)
    return np.asarray(np.maximum(min_interval, np.minimum(gap, max_interval)))


def compute_interval(
    estimate: RateEstimate,
    *,
    importance: float,
    shadow_price: float,
    min_interval: timedelta,
    max_interval: timedelta,
    recall: float = 0.0,
) -> timedelta:
    """Return the time until the value of the next visit reaches the price, within the interval bounds.

    A page that changes too fast to follow gets `max_interval`, so it is still visited.
    recall: the probability that a source of change signals reports the next change.
    """
    days = solve_page_gap(estimate.a, estimate.b, compute_weight(importance), shadow_price) / (1 - recall)
    is_longer = days * DAY.total_seconds() >= max_interval.total_seconds()
    return max(min_interval, max_interval if is_longer else timedelta(days=days))


def solve_page_gap(a: float, b: float, weight: float, shadow_price: float) -> float:
    """Return solve_gap for one page, with a relative difference of at most 1e-9.

    Every visit needs it, and numpy takes ten times as long for scalars.
    """
    target = min(max(shadow_price / (weight * b), EPSILON), 1 / EPSILON)
    if target * max(a - 1.0, 0.0) >= 1.0:
        return math.inf
    log_target = math.log(target)
    log_y = min(0.5 * (math.log(2 / a) + log_target), MAX_LOG_Y)
    for _ in range(MAX_STEPS):
        before = log_y
        log_y = min(before + _compute_page_step(a, before, log_target), MAX_LOG_Y)
        if abs(log_y - before) <= EXACT_STEP:
            break
    return math.inf if log_y >= MAX_LOG_Y else b * math.exp(log_y)


def _compute_page_step(a: float, log_y: float, log_target: float) -> float:
    """Return _compute_step for one page."""
    y = math.exp(log_y)
    reached = compute_page_gain(a, y)
    slope = a * y * y * math.exp(-(a + 1) * math.log1p(y)) / reached
    bend = 2 - (a + 1) * y / (1 + y) - slope
    missing = log_target - math.log(reached)
    if abs(missing) <= ROUNDING:
        return 0.0
    newton = max(min(missing / max(slope, EPSILON), MAX_STEP), -MAX_STEP)
    return newton / max(1 + 0.5 * newton * bend, 0.5)


def compute_phase(key: bytes) -> float:
    """Return the share of its first gap that a page waits, from its key (a hash): above 0, at most 1, uniform.

    Otherwise pages that were added together would all be due at once, again and again.
    """
    return (int.from_bytes(key[:6], "big") + 1) / (1 << 48)
