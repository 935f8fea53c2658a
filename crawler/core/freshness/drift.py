"""Drift: how often the change rates of a domain's pages are drawn anew, so that old evidence says little of them.

The model is a change point (Adams and MacKay, "Bayesian Online Changepoint Detection", 2007), with one Gamma a page
instead of one for each run length: within t days a page's rate was drawn anew, from its group's prior, with a chance
of 1 - exp(-t d). The finding of a look shows how likely that was, and evidence fades toward the prior by just as much.
Time fades it besides (belief.faded).

The drift d of a domain is learnt from its own looks: each candidate value gives every finding a chance, and the
logarithms of these chances add up. A domain of few looks keeps the guess that it began with. A belief that has faded
toward the prior is less surprised by a new rate, so that d comes out too low rather than too high; reports of freshness
in the laboratory are calibrated with it.
"""

import math
from collections.abc import Sequence

import numpy as np

from crawler.core.freshness.belief import Belief, Flags, chance_changed, chance_changed_of_one
from crawler.core.freshness.gamma import Floats, Numbers

REDRAWN_EVERY = (np.inf, 2920.0, 1460.0, 730.0, 365.0, 180.0)  # days: the candidates
GUESS = (0.80, 0.07, 0.05, 0.04, 0.03, 0.01)  # prior probability of each: in the mean once in eleven years
REMEMBERED_DAYS = 365.0  # a year-old look counts 1/e
LEAST_CHANCE = 1e-9  # of a finding; nothing is impossible

Scores = Sequence[float]  # log likelihood of each candidate, less that of the best one
UNKNOWN: Scores = (0.0,) * len(REDRAWN_EVERY)


def drift_of(scores: Scores) -> float:
    """The drift per day, as the mean over the candidates. Empty scores count as UNKNOWN."""
    weights = np.log(GUESS) + np.asarray(scores or UNKNOWN)
    weights = np.exp(weights - weights.max())
    return float((weights / REDRAWN_EVERY).sum() / weights.sum())


def scores_after(scores: Scores, *, days: float, before: Numbers, prior: Numbers, gap: Numbers) -> Scores:
    """The scores after a batch of looks.

    days: since the last batch.  before, prior: the chances that the page's belief and its group's prior gave to what
    each look found; see chances.  gap: days since each page's last good look.
    """
    every = np.reshape(REDRAWN_EVERY, (-1, 1))
    redrawn = -np.expm1(-np.maximum(gap, 0.0) / every)
    found = np.log((1 - redrawn) * before + redrawn * prior).sum(axis=1)
    sums = np.asarray(scores or UNKNOWN) * np.exp(-max(days, 0.0) / REMEMBERED_DAYS) + found
    return tuple(map(float, sums - sums.max()))


def chances(a: Numbers, b: Numbers, gap: Numbers, changed: Flags) -> Floats:
    """The chances that beliefs (a, b) gave to the findings of looks after `gap` days. changed: the findings."""
    change = chance_changed(a, b, gap)
    return np.clip(np.where(changed, change, 1 - change), LEAST_CHANCE, 1.0)


def share_redrawn(before: Numbers, prior: Numbers, gap: Numbers, *, drift: float) -> Floats:
    """The chance that a rate was drawn anew since the last good look, given what this one found.

    before, prior: the chances that belief and prior gave to the finding; see chances.  drift: of the domain, per day.
    """
    redrawn = -np.expm1(-np.maximum(gap, 0.0) * drift)
    return np.asarray(redrawn * prior / ((1 - redrawn) * before + redrawn * prior))


def blend(stayed: tuple[Numbers, Numbers], redrawn: tuple[Numbers, Numbers], share: Numbers) -> tuple[Floats, Floats]:
    """Blend two beliefs (a, b), of which the second holds with chance `share`, into one with their mean rate.

    A mean of both (a, b) would keep a page slow whose rate was most likely redrawn: the b of a year without a change
    outweighs all. The result has at least the evidence of the weaker belief.
    """
    (a1, b1), (a2, b2) = stayed, redrawn
    a = np.asarray(a1 + (a2 - a1) * share)
    mean = (1 - share) * a1 / b1 + share * a2 / b2
    return a, np.maximum(a / mean, np.minimum(b1, b2))


def blended(
    stayed: Belief,
    redrawn: Belief,
    *,
    believed: Belief,
    prior: Belief,
    gap_days: float,
    aged_days: tuple[float, float],
    changed: bool,
    drift: float,
) -> Belief:
    """A page's belief after a look, blended for the chance that its rate was drawn anew: `blend` of one page.

    stayed, redrawn: the belief after the look if the rate stayed, and if it was drawn anew.
    believed, prior: the belief in both cases before the look.
    aged_days: by each of these the gap as signals make it (signals.heard_days); the gap itself without any.
    """
    if not drift:
        return stayed
    before, new = (
        _chance_of_one(each, days, changed=changed) for each, days in zip((believed, prior), aged_days, strict=True)
    )
    new_rate = -math.expm1(-max(gap_days, 0.0) * drift)
    share = new_rate * new / ((1 - new_rate) * before + new_rate * new)
    a = stayed.a + (redrawn.a - stayed.a) * share
    mean = (1 - share) * stayed.rate_per_day + share * redrawn.rate_per_day
    return Belief(a, max(a / mean, min(stayed.b, redrawn.b)))


def _chance_of_one(belief: Belief, gap_days: float, *, changed: bool) -> float:
    """`chances` of one page."""
    change = chance_changed_of_one(belief, gap_days)
    return min(max(change if changed else 1 - change, LEAST_CHANCE), 1.0)
