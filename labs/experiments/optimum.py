"""The best possible result: the optimum under a budget when every page's rate is known.

Cho and Garcia-Molina, "Effective page refresh policies for Web crawlers", TODS 2003, with importance after Azar et al.,
PNAS 2018, and politeness caps after Kolobov et al., SIGIR 2019.  Only experiments know the rates; the product's
formulas, averaged over a posterior, are in core.
"""

import numpy as np

from labs.experiments.worlds.world import Floats, Ints

_X = np.geomspace(1e-7, 700.0, 20_000)
_H = np.where(_X < 1e-3, _X**2 / 2 - _X**3 / 3, -np.expm1(-_X) - _X * np.exp(-_X))  # 1 - (1 + x) e^-x
BISECTIONS = 60


def known_value(rate: Floats, importance: Floats, unseen: Floats) -> Floats:
    """Return the value of visits of pages with known rates: w (1 - (1 + x) e^-x) / rate, with x = rate * unseen.

    unseen: days since the last visit.
    """
    x = np.minimum(rate * unseen, 700.0)
    grown = np.where(x < 1e-3, x * x * (0.5 - x / 3), -np.expm1(-x) - x * np.exp(-x))
    return importance * grown / np.maximum(rate, 1e-12)


def freshness(rate: Floats, visits_per_day: Floats) -> Floats:
    """Return the share of time in which a copy is fresh with even visits: (f / rate) (1 - e^(-rate / f)); else 0."""
    x = rate / np.maximum(visits_per_day, 1e-300)
    return np.where(visits_per_day > 0, -np.expm1(-x) / np.maximum(x, 1e-300), 0.0)


def frequencies(rate: Floats, importance: Floats, price: Floats | float) -> Floats:
    """Return the visits per day of pages with known rates if the value of a visit must reach `price`; 0 for never."""
    target = price * rate / importance
    x = np.exp(np.interp(np.log(np.clip(target, _H[0], _H[-1])), np.log(_H), np.log(_X)))
    return np.where(target < 1, rate / x, 0.0)


def optimum(
    rate: Floats, importance: Floats, *, budget_per_day: float, host: Ints, cap_per_day: float | None
) -> Floats:
    """Return the visits per day with the highest importance-weighted freshness.

    cap_per_day: requests that each host allows, or None.
    """
    if cap_per_day is None:
        return frequencies(rate, importance, price_of(rate, importance, budget_per_day))
    own = [
        price_of(rate[host == each], importance[host == each], cap_per_day) if (host == each).any() else 0.0
        for each in range(int(host.max()) + 1)
    ]
    least = np.array(own)[host]  # the price at which each page's host alone uses its cap
    low, high = 1e-12, 1e12
    for _ in range(BISECTIONS):
        price = np.sqrt(low * high)
        if frequencies(rate, importance, np.maximum(price, least)).sum() > budget_per_day:
            low = price
        else:
            high = price
    return frequencies(rate, importance, np.maximum(high, least))


def price_of(rate: Floats, importance: Floats, budget_per_day: float) -> float:
    """Return the price at which these pages together use the budget."""
    low, high = 1e-12, 1e12
    for _ in range(BISECTIONS):
        price = float(np.sqrt(low * high))
        if frequencies(rate, importance, price).sum() > budget_per_day:
            low = price
        else:
            high = price
    return high
