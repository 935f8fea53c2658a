"""When a page is looked at again: the gap after which a look is worth its price (SCHEDULING, section 5)."""

from datetime import timedelta

import numpy as np

from crawler.core.freshness.belief import DAY, Belief
from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.value import NOT_ZERO, gain, weight_of

LOG_MOST = 27.6  # of ln y: a gap of 10^12 times b is "never"

NEXT_TO_NOTHING = 1e-12

MANY = 1000

MOST_STEPS = 60

LONGEST_STEP = 3.0  # of ln y

EXACT = 1e-4  # a step this short leaves an error of about its cube

ROUNDING = 1e-13  # of ln g: where the gain is almost flat, more cannot be asked


def gap_worth(a: Numbers, b: Numbers, weight: Numbers, price: Numbers) -> Floats:
    """The days after a good look when the next one is worth `price`: the root of w b g_a(t/b) = price.

    price: importance x days that this look must be worth, above 0.  The result is inf where a look is never worth it;
    that takes a > 1, evidence that the page changes faster than it can be followed.
    Newton on ln g over ln y, with the second derivative (Halley): 3 to 6 steps. y = sqrt(2 price/(a w b)) is a lower
    bound of the root, and ln g is concave in ln y, so it climbs.
    """
    target = np.clip(np.asarray(price / (weight * b), dtype=np.float64), NOT_ZERO, 1 / NOT_ZERO)
    never = target * np.maximum(a - 1.0, 0.0) >= 1.0
    reach = np.where(never, NEXT_TO_NOTHING / a, target)  # a root that is found at once, where there is none
    start = np.minimum(0.5 * (np.log(2 / a) + np.log(reach)), LOG_MOST)
    log_y = _climbed(a + 0.0 * reach, start, np.log(reach))
    return np.where(never | (log_y >= LOG_MOST), np.inf, b * np.exp(log_y))


def _climbed(a: Floats, log_y: Floats, log_target: Floats) -> Floats:
    for _ in range(MOST_STEPS):
        before = log_y
        log_y = np.minimum(before + _step(a, before, log_target), LOG_MOST)
        far = np.abs(log_y - before) > EXACT
        if not far.any():
            break
        if far.size > MANY and far.sum() < far.size / 2:  # the last few need not keep all the others busy
            log_y[far] = _climbed(a[far], log_y[far], log_target[far])
            break
    return log_y


def _step(a: Numbers, log_y: Floats, log_target: Floats) -> Floats:
    """Halley's step toward ln g_a(y) = log_target, held short where the curve is too flat to be trusted."""
    y = np.exp(log_y)
    reached = gain(a, y)
    slope = a * y * y * np.exp(-(a + 1) * np.log1p(y)) / reached  # d ln g / d ln y
    bend = 2 - (a + 1) * y / (1 + y) - slope  # its own, relative slope
    missing = log_target - np.log(reached)
    newton = np.maximum(np.minimum(missing / np.maximum(slope, NOT_ZERO), LONGEST_STEP), -LONGEST_STEP)
    return np.asarray((np.abs(missing) > ROUNDING) * newton / np.maximum(1 + 0.5 * newton * bend, 0.5))


def due_gap(a: Numbers, b: Numbers, weight: Numbers, price: Numbers, *, least: Numbers, most: Numbers) -> Floats:
    """The days after a good look when the next one is due: when it is worth `price`, within [least, most]."""
    return np.asarray(np.maximum(least, np.minimum(gap_worth(a, b, weight, price), most)))


def interval(belief: Belief, *, importance: float, price: float, least: timedelta, most: timedelta) -> timedelta:
    """The time after a good look when the next one is worth `price`, within [least, most].

    A page that surely changes faster than it can be followed gets `most`: nothing is abandoned.
    """
    days = gap_worth(belief.a, belief.b, weight_of(importance), price)
    return max(least, most if days * DAY.total_seconds() >= most.total_seconds() else timedelta(days=float(days)))


def first_gap(gap: timedelta, *, key: bytes) -> timedelta:
    """The first gap of a page, spread evenly over [0, gap] by its key (a hash).

    Many pages that came in together would be due at once otherwise, and again after each gap for ever.
    """
    return gap * phase_of(key)


def phase_of(key: bytes) -> float:
    """The part of its first gap that a page waits, by its key: above 0, at most 1."""
    return (int.from_bytes(key[:6], "big") + 1) / (1 << 48)
