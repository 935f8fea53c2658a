"""The Gamma function, its derivatives, and quantiles of the Gamma distribution, for arrays.

Sources: the asymptotic series 6.1.40, 6.3.18 and 6.4.12 and the series 6.5.29 of Abramowitz and Stegun, "Handbook of
Mathematical Functions"; the cube-root approximation of Wilson and Hilferty, PNAS 1931.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = float | Floats

SERIES_SHIFT = 8  # added to arguments, because the asymptotic series are accurate to 1e-12 from there
CUBE_ROOT_FROM = 1000.0  # shape from which Wilson and Hilferty's quantile is accurate to 1e-6
MAX_TERMS = 3000  # of the series; shapes below 1000 need a tenth of them
MAX_STEPS = 100


def compute_log_gamma(x: Numbers) -> Floats:
    """Return ln Gamma(x) for x > 0, with an error of at most 1e-12 times the larger of 1 and the result."""
    below = np.log(x)
    for n in range(1, SERIES_SHIFT):
        below = below + np.log(x + n)
    z = x + SERIES_SHIFT
    tail = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / z**2) / z**2) / z**2) / z
    return np.asarray((z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi) + tail - below)


def compute_digamma(x: Numbers) -> Floats:
    """Return the derivative of ln Gamma(x) for x > 0."""
    z = x + SERIES_SHIFT
    w = 1 / (z * z)
    tail = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))
    return np.asarray(np.log(z) - 0.5 / z - tail - sum(1 / (x + n) for n in range(SERIES_SHIFT)))


def compute_trigamma(x: Numbers) -> Floats:
    """Return the second derivative of ln Gamma(x) for x > 0."""
    z = x + SERIES_SHIFT
    w = 1 / (z * z)
    tail = (1 + w * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w / 30)))) / z + w / 2
    return np.asarray(tail + sum(1 / (x + n) ** 2 for n in range(SERIES_SHIFT)))


def solve_shape(spread: Numbers, *, near: Numbers | None = None) -> Floats:
    """Return the shape a > 0 of a Gamma with ln a - digamma(a) = spread: ln of the mean minus the mean of the ln.

    spread: above 0.  near: a first guess, which saves steps.
    Source: Minka, "Estimating a Gamma distribution", 2002: a start within 1.5%, and Newton on 1/a.
    """
    s = np.asarray(spread, dtype=np.float64)
    a = (3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s) if near is None else near
    for _ in range(5 if near is None else 3):
        a = 1 / (1 / a + (np.log(a) - compute_digamma(a) - s) / (a * a * (1 / a - compute_trigamma(a))))
    return np.asarray(a)


def compute_quantile(a: Numbers, chance: float) -> Floats:
    """Return the quantile of a Gamma with shape a > 0 and rate 1 at probability `chance` (above 0 and below 1).

    Newton on ln P over ln x. The curve is concave, so Newton from the left converges monotonically.
    """
    shape, z = np.atleast_1d(np.asarray(a, dtype=np.float64)), NormalDist().inv_cdf(chance)
    root = shape * (1 - 1 / (9 * shape) + z / (3 * np.sqrt(shape))) ** 3  # Wilson and Hilferty
    small = shape < CUBE_ROOT_FROM
    if small.any():
        root[small] = _climb_to_quantile(shape[small], root[small], chance)
    return root.reshape(np.shape(a))


def _climb_to_quantile(a: Floats, near: Floats, chance: float) -> Floats:
    lower_bound = (np.log(chance) + compute_log_gamma(a + 1)) / a  # P(a, x) <= x^a / Gamma(a + 1)
    log_x = np.where(near > 0, np.maximum(np.log(np.maximum(near, 1e-300)), lower_bound), lower_bound)
    for _ in range(MAX_STEPS):
        log_p = _compute_log_cdf(a, log_x)
        slope = np.exp(a * log_x - np.exp(log_x) - compute_log_gamma(a) - log_p)
        step = (np.log(chance) - log_p) / slope
        log_x = log_x + step
        if np.max(np.abs(step)) < 1e-10:
            break
    return np.asarray(np.exp(log_x))


def _compute_log_cdf(a: Floats, log_x: Floats) -> Floats:
    x = np.exp(log_x)  # may underflow for small a; its logarithm does not
    term = np.ones(np.broadcast(a, x).shape)
    total = term.copy()
    for n in range(1, MAX_TERMS):
        term = term * (x / (a + n))
        total = total + term
        if np.all(term <= 1e-17 * total):
            break
    return np.asarray(a * log_x - x - compute_log_gamma(a + 1) + np.log(total))
