"""How well the product's functions estimate rates from yes-or-no visits at irregular times.

Source of the question: Cho and Garcia-Molina, "Estimating frequency of change", TOIT 2003.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator

from crawler.core.freshness.estimates import compute_credible_rates, learn_changed, learn_unchanged
from labs.experiments import estimate
from labs.experiments.worlds.world import Flags, Floats

RATE_TIMES_GAP = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0)
VISITS = (10, 20, 40)
PAGES = 20_000  # so many that the standard error of a bias is below half a point everywhere


class Gaps(StrEnum):
    """How the gaps between visits vary around their mean."""

    EVEN = "half to one and a half"
    WILD = "exponential"


@dataclass(frozen=True, slots=True)
class PointBias:
    """The bias of each estimator at one rate: mean estimate / true rate - 1.

    ours, ours_error: of estimate.rate, and its standard error.  naive, padded: of the functions with these names.
    """

    gaps: Gaps
    visits: int
    rate_times_gap: float
    ours: float
    ours_error: float
    naive: float
    padded: float


@dataclass(frozen=True, slots=True)
class PriorFit:
    """Estimates for pages whose rates were drawn from the prior that is used, after a number of visits.

    bias: mean of the posterior means / mean true rate - 1.  covered: share of the pages whose true rate is within the
    reported 90 % interval.
    """

    shape: float
    visits: int
    bias: float
    covered: float


def point_biases(
    *, seed: int, pages: int = PAGES, visits: Sequence[int] = VISITS, products: Sequence[float] = RATE_TIMES_GAP
) -> list[PointBias]:
    """Return the bias of each estimator at fixed rates. The mean gap is one day, which only sets the unit."""
    rng = np.random.default_rng(seed)
    return [_point_bias(rng, gaps, n, product, pages) for gaps in Gaps for n in visits for product in products]


def _point_bias(rng: Generator, kind: Gaps, visits: int, product: float, pages: int) -> PointBias:
    gaps = _gaps(rng, kind, (pages, visits))
    found = _found(rng, gaps, np.full(pages, product))
    ours = estimate.rate(gaps, found) / product
    return PointBias(
        gaps=kind,
        visits=visits,
        rate_times_gap=product,
        ours=float(ours.mean() - 1),
        ours_error=float(ours.std() / np.sqrt(pages)),
        naive=float(estimate.naive_rate(gaps, found).mean() / product - 1),
        padded=float(estimate.padded_rate(gaps, found).mean() / product - 1),
    )


def prior_fits(
    *,
    seed: int,
    pages: int = PAGES,
    shapes: Sequence[float] = (0.5, 1.0, 3.0),
    visits: Sequence[int] = (0, 3, 10, 30),
) -> list[PriorFit]:
    """Return the quality of estimates after a number of visits; the mean rate is one change per mean gap."""
    rng = np.random.default_rng(seed)
    return [_prior_fit(rng, shape, n, pages) for shape in shapes for n in visits]


def _prior_fit(rng: Generator, shape: float, visits: int, pages: int) -> PriorFit:
    rates = rng.gamma(shape, 1 / shape, pages)
    gaps = _gaps(rng, Gaps.WILD, (pages, visits))
    found = _found(rng, gaps, rates)
    a, b = np.full(pages, shape), np.full(pages, shape)
    for n in range(visits):
        same, changed = learn_unchanged(a, b, gaps[:, n]), learn_changed(a, b, gaps[:, n])
        a, b = (np.where(found[:, n], up, down) for up, down in zip(changed, same, strict=True))
    low, high = compute_credible_rates(a, b, mass=0.9)
    return PriorFit(
        shape=shape,
        visits=visits,
        bias=float((a / b).mean() / rates.mean() - 1),
        covered=float(((rates >= low) & (rates <= high)).mean()),
    )


def _gaps(rng: Generator, kind: Gaps, shape: tuple[int, int]) -> Floats:
    return rng.uniform(0.5, 1.5, shape) if kind is Gaps.EVEN else rng.exponential(1.0, shape)


def _found(rng: Generator, gaps: Floats, rates: Floats) -> Flags:
    """Return whether each visit finds a change since the one before."""
    return np.asarray(rng.random(gaps.shape) < -np.expm1(-rates[:, None] * gaps))
