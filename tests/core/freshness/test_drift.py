"""How fast a domain's rates drift: learnt from its looks, and what it does to a belief."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness import (
    DAY,
    PRIOR,
    UNKNOWN,
    Belief,
    Scores,
    blend,
    blended,
    chances,
    changed,
    drift_of,
    same,
    scores_after,
    share_redrawn,
)

figures = st.floats(0.01, 1e4)
beliefs = st.builds(Belief, figures, figures)
grown = st.builds(lambda a, b: Belief(PRIOR.a + a, PRIOR.b + b), figures, figures)
WEEK = timedelta(days=7)


def after_looks(belief: Belief, *, found: bool, gap: timedelta, drift: float) -> Belief:
    look = changed if found else same
    return blended(
        look(belief, gap=gap),
        look(PRIOR, gap=gap),
        believed=belief,
        prior=PRIOR,
        gap_days=gap / DAY,
        aged_days=(gap / DAY, gap / DAY),
        changed=found,
        drift=drift,
    )


def scores_of(*, pages: int, weeks: int, redrawn_every: int | None, seed: int = 1) -> Scores:
    """Weekly looks at pages whose rates come from the prior, and are drawn anew every so many weeks."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(PRIOR.a, 1 / PRIOR.b, pages)
    a, b = np.full(pages, PRIOR.a), np.full(pages, PRIOR.b)
    scores = UNKNOWN
    for week in range(weeks):
        if redrawn_every is not None:
            anew = np.arange(pages) % redrawn_every == week % redrawn_every
            rates = np.where(anew, rng.gamma(PRIOR.a, 1 / PRIOR.b, pages), rates)
        found = rng.random(pages) < -np.expm1(-7 * rates)
        before, prior = chances(a, b, 7.0, found), chances(PRIOR.a, PRIOR.b, 7.0, found)
        scores = scores_after(scores, days=7, before=before, prior=prior, gap=np.full(pages, 7.0))
        kept = [
            after_looks(Belief(*each), found=bool(f), gap=WEEK, drift=drift_of(scores))
            for *each, f in zip(a, b, found, strict=True)
        ]
        a, b = np.array([each.a for each in kept]), np.array([each.b for each in kept])
    return scores


def test_a_domain_of_which_nothing_is_known_is_held_to_drift_once_in_eleven_years() -> None:
    assert 1 / drift_of(UNKNOWN) == pytest.approx(3986, abs=10)
    assert drift_of(()) == drift_of(UNKNOWN)


def test_where_rates_stay_the_drift_is_learnt_to_be_almost_nothing() -> None:
    assert drift_of(scores_of(pages=100, weeks=50, redrawn_every=None)) < drift_of(UNKNOWN) / 2


def test_where_rates_are_drawn_anew_that_is_learnt_though_beliefs_that_expect_it_are_less_surprised() -> None:
    assert 1 / 182 > drift_of(scores_of(pages=100, weeks=50, redrawn_every=26)) > 1.5 * drift_of(UNKNOWN)


def test_what_was_learnt_of_the_drift_is_forgotten_over_a_year() -> None:
    scores = scores_of(pages=50, weeks=30, redrawn_every=52)
    nothing = np.zeros(0)

    later = scores_after(scores, days=365, before=nothing, prior=nothing, gap=nothing)

    assert later == pytest.approx([each / np.e for each in scores])


@given(belief=grown, found=st.booleans(), gap=st.floats(0.01, 1000), drift=st.floats(0, 0.1))
def test_a_belief_ends_between_what_both_pages_would_have_learnt_and_keeps_the_priors_evidence(
    belief: Belief, found: bool, gap: float, drift: float
) -> None:
    days = timedelta(days=gap)
    learn = changed if found else same
    stayed, redrawn = learn(belief, gap=days), learn(PRIOR, gap=days)

    now = after_looks(belief, found=found, gap=days, drift=drift)

    low, high = sorted((stayed.rate_per_day, redrawn.rate_per_day))
    assert now.rate_per_day <= high * (1 + 1e-9)
    assert now.rate_per_day >= low * (1 - 1e-9) or now.b == pytest.approx(min(stayed.b, redrawn.b))
    assert now.a >= PRIOR.a * (1 - 1e-9)
    assert now.b >= PRIOR.b * (1 - 1e-9)


def test_a_domain_without_drift_forgets_nothing() -> None:
    belief = Belief(3.0, 900.0)

    assert after_looks(belief, found=True, gap=WEEK, drift=0.0) == changed(belief, gap=WEEK)


def test_a_change_of_a_page_that_was_slow_for_years_makes_it_likely_that_its_rate_is_another() -> None:
    slow = Belief(PRIOR.a, PRIOR.b + 2000)

    surprised = after_looks(slow, found=True, gap=WEEK, drift=1 / 365)
    confirmed = after_looks(slow, found=False, gap=WEEK, drift=1 / 365)

    assert surprised.rate_per_day > 30 * slow.rate_per_day
    assert confirmed.rate_per_day < PRIOR.rate_per_day / 10


@given(before=st.floats(1e-9, 1), prior=st.floats(1e-9, 1), gap=st.floats(0, 1e4), drift=st.floats(0, 1))
def test_the_share_that_was_redrawn_is_a_chance(before: float, prior: float, gap: float, drift: float) -> None:
    assert 0 <= float(share_redrawn(before, prior, gap, drift=drift)) <= 1


@given(stayed=beliefs, redrawn=beliefs)
def test_a_certain_share_leaves_one_of_the_two(stayed: Belief, redrawn: Belief) -> None:
    both = (stayed.a, stayed.b), (redrawn.a, redrawn.b)

    assert [float(each) for each in blend(*both, 0.0)] == pytest.approx([stayed.a, stayed.b])
    assert [float(each) for each in blend(*both, 1.0)] == pytest.approx([redrawn.a, redrawn.b])
