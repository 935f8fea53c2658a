"""Freshness: how often pages change, and the value of a look.

`belief` holds a Gamma over a page's Poisson change rate; `value` is the gain of a look; `due_gap` says when it is
worth its price; `select` takes the best of the pages that are due. Uses cash, page and http.
"""

from crawler.core.freshness.belief import (
    DAY,
    PRIOR,
    Belief,
    chance_fresh,
    change_expected,
    changed,
    changed_at,
    credible_interval,
    credible_rates,
    fade,
    faded,
    fresh_now,
    is_believable,
    learn_changed,
    learn_changed_at,
    learn_same,
    same,
)
from crawler.core.freshness.calibration import Agreement, pooled_agreement
from crawler.core.freshness.drift import UNKNOWN, Scores, blend, blended, chances, drift_of, scores_after, share_redrawn
from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.prior import ELSEWHERE, Moments, group_of, moments, pooled, refit, with_prior, without_prior
from crawler.core.freshness.revisit_time import due_gap, first_gap, gap_worth, interval, phase_of
from crawler.core.freshness.selection import Candidates, Selection, candidates_of, due_again, joined, select
from crawler.core.freshness.shared_schedule import ENOUGH_LOOKS, LEAST_SHARED_BYTES, Twin, rests_until, sharers
from crawler.core.freshness.terms import USUAL_TERMS, Defaults, Terms, Wanted
from crawler.core.freshness.value import NOT_ZERO, first_values, fresh_days, value, weight_of, weights_of

__all__ = [
    "DAY",
    "ELSEWHERE",
    "ENOUGH_LOOKS",
    "LEAST_SHARED_BYTES",
    "NOT_ZERO",
    "PRIOR",
    "UNKNOWN",
    "USUAL_TERMS",
    "Agreement",
    "Belief",
    "Candidates",
    "Defaults",
    "Floats",
    "Moments",
    "Numbers",
    "Scores",
    "Selection",
    "Terms",
    "Twin",
    "Wanted",
    "blend",
    "blended",
    "candidates_of",
    "chance_fresh",
    "chances",
    "change_expected",
    "changed",
    "changed_at",
    "credible_interval",
    "credible_rates",
    "drift_of",
    "due_again",
    "due_gap",
    "fade",
    "faded",
    "first_gap",
    "first_values",
    "fresh_days",
    "fresh_now",
    "gap_worth",
    "group_of",
    "interval",
    "is_believable",
    "joined",
    "learn_changed",
    "learn_changed_at",
    "learn_same",
    "moments",
    "phase_of",
    "pooled",
    "pooled_agreement",
    "refit",
    "rests_until",
    "same",
    "scores_after",
    "select",
    "share_redrawn",
    "sharers",
    "value",
    "weight_of",
    "weights_of",
    "with_prior",
    "without_prior",
]
