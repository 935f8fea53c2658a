"""The value of a look, and the gap after which it is worth its price (SCHEDULING, section 5).

Source: the marginal gain in importance-weighted freshness, from Cho and Garcia-Molina, "Effective page refresh policies
for Web crawlers", TODS 2003, with the threshold form of Azar et al., PNAS 2018; averaged over a Gamma belief.

Each formula stands on float arrays: a, b of the belief, weight w, and times in days. The functions on a Belief call the
same formulas with one page; only `compute_page_gain`, which every look needs a few times, is written out for single
numbers. A site that is more active than usual by a factor m has beliefs (a, b / m).
"""

import math
from datetime import timedelta

import numpy as np

from crawler.core.freshness.estimates import DAY, RateEstimate
from crawler.core.freshness.gamma import Floats, Numbers

MIN_IMPORTANCE = 0.05  # a page worth nothing would never be looked at again, and could never prove otherwise
MAX_IMPORTANCE = 1000.0  # and no single page may take its domain's whole budget
SERIES_BELOW = 1e-3  # of (a + 1) y: there the closed form of the gain cancels, and three terms give ten digits
EPSILON = 1e-300  # added where 0/0 has a limit: expm1(x)/x is 1 there
MAX_LOG_Y = 27.6  # of ln y: a gap of 10^12 times b is "never"
TINY_TARGET = 1e-12
LARGE_ARRAY = 1000
MAX_STEPS = 60
MAX_STEP = 3.0  # of ln y
EXACT_STEP = 1e-4  # a step this short leaves an error of about its cube
ROUNDING = 1e-13  # of ln g: where the gain is almost flat, more cannot be asked


def compute_weights(importance: Numbers) -> Floats:
    """Importances (the domain's mean is 1) as weights, within bounds that no estimate may leave."""
    return np.asarray(np.clip(importance, MIN_IMPORTANCE, MAX_IMPORTANCE))


def compute_gain(a: Numbers, y: Numbers) -> Floats:
    """g_a(y) = [1 - (1 + y)^(1 - a)]/(a - 1) - y (1 + y)^(-a), for a > 0 and y >= 0.

    The mean over a Gamma(a, 1) rate l of (1 - (1 + l y) exp(-l y))/l. Grows with y: to 1/(a - 1), or without end if
    a <= 1.
    """
    log_y = np.log1p(y)
    x = (1 - a) * log_y + EPSILON
    closed = log_y * (np.expm1(x) / x) - y * np.exp(-a * log_y)
    series = a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    return np.where((a + 1) * y < SERIES_BELOW, series, closed)


def compute_page_gain(a: float, y: float) -> float:
    """`gain` of one page."""
    if (a + 1) * y < SERIES_BELOW:
        return a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    log_y = math.log1p(y)
    x = (1 - a) * log_y + EPSILON
    return log_y * (math.expm1(x) / x) - y * math.exp(-a * log_y)


def compute_values(a: Numbers, b: Numbers, weight: Numbers, unseen: Numbers) -> Floats:
    """The value of looking now, in importance x days of freshness gained over looking later: w b g_a(t/b)."""
    return np.asarray(weight * b * compute_gain(a, np.maximum(unseen, 0.0) / b))


def compute_first_values(a: Numbers, b: Numbers, weight: Numbers, longest: Numbers) -> Floats:
    """The value of the first fetch of a page: the fresh time that it buys within `longest` days.

    w times the integral of (b/(b + t))^a from 0 to `longest`; compared with the same price as a look at a known page,
    so that a flood of unimportant URLs cannot starve refresh.
    """
    return np.asarray(weight * compute_fresh_days(a, b, longest))


def compute_fresh_days(a: Numbers, b: Numbers, gap: Numbers) -> Floats:
    """The days of the `gap` after a fetch for which its copy is expected fresh: b [(1 + y)^(1 - a) - 1]/(1 - a)."""
    log_y = np.log1p(np.maximum(gap, 0.0) / b)
    x = (1 - a) * log_y + EPSILON
    return np.asarray(b * log_y * (np.expm1(x) / x))


def compute_values_with_signals(
    a: Numbers, b: Numbers, weight: Numbers, aged: Numbers, *, ahead: Numbers, max_interval: Numbers
) -> Floats:
    """The value of looking now at pages that signals have made `aged` days old (signals.heard_days).

    ahead: the days of these that signals added. No signal makes a look worth more than the fresh days, within
    `max_interval`, that follow a change that is certain; nor worth less than it would be without: a signal about all
    pages at once would let none be looked at, where each of them changes too often.
    """
    value = np.minimum(
        compute_values(a, b, weight, aged), compute_max_values(a, b, weight, ahead=ahead, max_interval=max_interval)
    )
    return np.maximum(value, compute_values(a, b, weight, np.asarray(aged) - ahead))


def compute_max_values(a: Numbers, b: Numbers, weight: Numbers, *, ahead: Numbers, max_interval: Numbers) -> Floats:
    """The most that a look can be worth; inf where no signal came."""
    return np.where(np.greater(ahead, 0), weight * compute_fresh_days(np.asarray(a) + 1, b, max_interval), np.inf)


def compute_weight(importance: float) -> float:
    """The weight of one importance; see `compute_weights`."""
    return min(max(importance, MIN_IMPORTANCE), MAX_IMPORTANCE)


def solve_gap(a: Numbers, b: Numbers, weight: Numbers, shadow_price: Numbers) -> Floats:
    """The days after a good look when the next one is worth `price`: the root of w b g_a(t/b) = price.

    shadow_price: importance x days that this look must be worth, above 0.  The result is inf where a look is never
    worth it; that takes a > 1, evidence that the page changes faster than it can be followed. Newton on ln g over ln y,
    with the second derivative (Halley): 3 to 6 steps. y = sqrt(2 price/(a w b)) is a lower bound of the root, and ln g
    is concave in ln y, so it climbs.
    """
    target = np.clip(np.asarray(shadow_price / (weight * b), dtype=np.float64), EPSILON, 1 / EPSILON)
    never = target * np.maximum(a - 1.0, 0.0) >= 1.0
    reach = np.where(never, TINY_TARGET / a, target)  # a root that is found at once, where there is none
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
        if far.size > LARGE_ARRAY and far.sum() < far.size / 2:  # the last few need not keep all the others busy
            log_y[far] = _climb_to_root(a[far], log_y[far], log_target[far])
            break
    return log_y


def _compute_step(a: Numbers, log_y: Floats, log_target: Floats) -> Floats:
    """Halley's step toward ln g_a(y) = log_target, held short where the curve is too flat to be trusted."""
    y = np.exp(log_y)
    reached = compute_gain(a, y)
    slope = a * y * y * np.exp(-(a + 1) * np.log1p(y)) / reached  # d ln g / d ln y
    bend = 2 - (a + 1) * y / (1 + y) - slope  # its own, relative slope
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
    """The days after a good look when the next one is due: when it is worth `price`, within [least, most].

    recall, ahead: what sources of signals make of the time (signals.heard_days).
    All are days of the site's activity; by the calendar the gap is shorter by the days that this is ahead.
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
    """The time after a good look when the next one is worth `price`, within [least, most].

    A page that surely changes faster than it can be followed gets `max_interval`: nothing is abandoned.
    recall: the chance that a source of signals tells the next change.
    """
    days = solve_page_gap(estimate.a, estimate.b, compute_weight(importance), shadow_price) / (1 - recall)
    return max(
        min_interval,
        max_interval if days * DAY.total_seconds() >= max_interval.total_seconds() else timedelta(days=days),
    )


def solve_page_gap(a: float, b: float, weight: float, shadow_price: float) -> float:
    """`solve_gap` of one page, equal to it within 10^-9 of itself: numpy takes ten times as long for single numbers.

    Each look asks for its own page's.
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
    """`_step` of one page."""
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
    """The part of its first gap that a page waits, by its key (a hash): above 0, at most 1, and spread evenly.

    Many pages that came in together would be due at once otherwise, and again after each gap for ever.
    """
    return (int.from_bytes(key[:6], "big") + 1) / (1 << 48)
