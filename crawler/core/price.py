"""What a look is worth, and when it will be worth its price.

Source: the marginal gain in importance-weighted freshness, from Cho and Garcia-Molina, "Effective page refresh policies
for Web crawlers", TODS 2003, with the threshold form of Azar et al., PNAS 2018; averaged over a Gamma belief.
"""

import math
from datetime import timedelta

from crawler.core.belief import DAY, Belief

LEAST_IMPORTANCE = 0.05  # a page worth nothing would never be looked at again, and could never prove otherwise
MOST_IMPORTANCE = 1000.0  # and no single page may take its domain's whole budget
NEWTON_STEPS = 30


def value(belief: Belief, *, importance: float, unseen: timedelta) -> float:
    """What looking now is worth, in importance x days of freshness gained over looking later.

    w b g(t/b), the mean over the belief of w (1 - (1 + l t) exp(-l t)) / l.  importance: 1 is the domain's mean page.
    """
    days = max(unseen / DAY, 0.0)
    return weight_of(importance) * belief.b * _gain(belief.a, days / belief.b)


def interval(belief: Belief, *, importance: float, price: float, least: timedelta, most: timedelta) -> timedelta:
    """How long after a good look the next one is worth `price`, within [least, most].

    Never worth it (a page that surely changes faster than it can be followed) gives `most`: nothing is abandoned.
    """
    target = price / (weight_of(importance) * belief.b)
    a = belief.a
    if _gain(a, most / DAY / belief.b) <= target:
        return most
    log_y = 0.5 * math.log(2 * target / a)  # a lower bound of the root; log g is concave in log y, so Newton climbs
    log_target = math.log(target)
    for _ in range(NEWTON_STEPS):
        y = math.exp(log_y)
        gain = _gain(a, y)
        slope = a * y * y * math.exp(-(a + 1) * math.log1p(y)) / gain  # d log g / d log y
        step = (log_target - math.log(gain)) / slope
        log_y += step
        if abs(step) < 1e-9:
            break
    days = min(math.exp(log_y) * belief.b, most / DAY)
    return max(least, timedelta(days=days))


def weight_of(importance: float) -> float:
    """An importance as a weight, within bounds that no estimate may leave."""
    return min(max(importance, LEAST_IMPORTANCE), MOST_IMPORTANCE)


def _gain(a: float, y: float) -> float:
    """g_a(y) = [1 - (1 + y)^(1 - a)]/(a - 1) - y (1 + y)^(-a), without loss of digits for small y or a near 1."""
    if (a + 1) * y < 1e-3:
        # The integral of a s (1 + s)^(-a - 1) from 0 to y, by its series; the closed form would cancel.
        return a * y * y * (0.5 - (a + 1) * y / 3 + (a + 1) * (a + 2) * y * y / 8)
    log_y = math.log1p(y)
    first = log_y if abs(a - 1) < 1e-7 else -math.expm1((1 - a) * log_y) / (a - 1)
    return first - y * math.exp(-a * log_y)
