from functools import cache

import numpy as np
import pytest

from crawler.core.freshness.estimates import PRIOR, compute_fresh_chance
from crawler.core.freshness.visit_value import compute_values
from labs.experiments import dai, estimator, optimum
from labs.experiments.comparison import ComparisonRow, Job, Made, WorldSource, compare
from labs.experiments.dai import Timing
from labs.experiments.measures import Copies
from labs.experiments.policies.adaptive import Queue, nutch, stormcrawler
from labs.experiments.policies.informed import Informed
from labs.experiments.policies.listening import Listening
from labs.experiments.policies.named import AMOUNTS, INFORMED, OPTIMUM, OURS, PLAIN, POLICIES, UNIFORM
from labs.experiments.policies.ours import Ours
from labs.experiments.policies.policy import Scene, VisitBatch, best, places
from labs.experiments.simulation import simulate
from labs.experiments.worlds.populations import make_world
from labs.experiments.worlds.signal_sources import Behavior, SignalSource, generate_signals
from tests.labs.experiments.test_time_worlds import world_of

SMALL = Made("log-normal", 400, 240.0)
# Another worker would repeat the simulation of all policies.
pytestmark = pytest.mark.xdist_group("time policies")


@cache
def rows(source: Made = SMALL, share: float = 0.06) -> dict[str, ComparisonRow]:
    """Return the rows of all policies in one small world."""
    found = compare([Job(source, share, policy, 1) for policy in POLICIES], workers=1)
    return {row.policy: row for row in found}


def visit_batch(page: int, *, at: float, gap: float, changed: bool) -> VisitBatch:
    return VisitBatch(
        page=np.array([page]),
        at=np.array([at]),
        gap=np.array([gap]),
        first=np.array([False]),
        changed=np.array([changed]),
        gone=np.array([False]),
        modified_age=np.array([np.nan]),
        distance_bits=np.array([16.0]),
    )


def scene_of(pages: int) -> Scene:
    nobody = np.zeros(pages, np.int64)
    return Scene(np.ones(pages), nobody, nobody, budget_per_day=1, cap_per_day=None)


def test_freshness_and_age_are_exact_integrals_over_the_window() -> None:
    copies = Copies(world_of((0, 12.0), (1, 8.0)), window=10.0)
    copies.refresh(np.array([0, 1]), np.array([0.0, 0.0]))
    copies.refresh(np.array([0]), np.array([15.0]))
    copies.close(np.array([0, 1]), 20.0)

    # Page 0 is fresh for 2 + 5 of the 10 days and at most 3 days old; page 1 is stale since day 8.
    assert copies.freshness(np.ones(2)) == pytest.approx(7 / 20)
    assert copies.age_days(np.ones(2)) == pytest.approx((4.5 + (12**2 - 2**2) / 2) / 20)


def test_value_at_a_known_rate_is_the_limit_of_a_certain_posterior() -> None:
    rate, unseen = np.array([0.01, 0.1, 2.0]), np.array([3.0, 10.0, 30.0])
    sure = compute_values(1e6, 1e6 / rate, 2.0, unseen)

    assert optimum.known_value(rate, np.full(3, 2.0), unseen) == pytest.approx(sure, rel=1e-4)


def analytic(source: WorldSource, *, share: float, seed: int) -> float:
    """Return the freshness of the optimum by formula, for the pages and rates of day 0."""
    world = source.world(seed)
    alive = world.born <= 0
    rates, importance = world.rates_at(0.0)[alive], world.importance[alive]
    visits = optimum.optimum(
        rates, importance, budget_per_day=share * source.pages, host=world.host[alive], cap_per_day=world.cap_per_day
    )
    return float((importance * optimum.freshness(rates, visits)).sum() / importance.sum())


@pytest.mark.soak
def test_greedy_by_true_rates_reaches_the_analytic_optimum() -> None:
    source = Made("equal", 600, 300.0)
    found = compare([Job(source, 0.1, OPTIMUM, 1)], workers=1)[0]

    assert found.freshness.mean == pytest.approx(analytic(source, share=0.1, seed=1), abs=0.01)


@pytest.mark.soak
def test_our_policy_starts_cold_and_is_fresher_than_every_rival() -> None:
    found = rows()
    rivals = [row.ratio.mean for name, row in found.items() if name not in {OURS, AMOUNTS, OPTIMUM, INFORMED}]

    assert found[OURS].ratio.mean > 0.95
    assert found[OURS].ratio.mean > max(rivals)
    assert (1 - found[OURS].ratio.mean) < (1 - max(rivals)) / 2


@pytest.mark.soak
def test_the_budget_is_never_exceeded_and_used_where_there_is_work() -> None:
    for row in rows().values():
        assert row.over_days == 0
        assert row.used.mean <= 1.0 + 1e-9
    assert rows()[OURS].used.mean >= 0.99


def test_zero_budget_sends_nothing() -> None:
    world = make_world("log-normal", pages=50, days=20.0, seed=1)

    assert simulate(world, POLICIES[OURS], budget_per_day=0).requests == 0


@pytest.mark.soak
def test_reported_freshness_is_the_true_one() -> None:
    calibration, worst = rows()[OURS].calibration, rows()[OURS].worst_decile

    assert calibration is not None
    assert worst is not None
    assert calibration.mean < 0.03
    assert worst.mean < 0.08  # with fifty pages per decile, chance alone causes some error


@pytest.mark.soak
@pytest.mark.parametrize(("name", "pages"), [("bursts", 300), ("rhythms", 300), ("births", 300), ("hosts", 1500)])
def test_ours_stays_above_uniform_where_its_model_is_wrong(name: str, pages: int) -> None:
    source = Made(name, pages, 80.0)
    found = compare([Job(source, 0.06, policy, 1) for policy in (OURS, UNIFORM)], workers=1)

    assert found[0].freshness.mean > found[1].freshness.mean


@pytest.mark.soak
def test_activity_of_a_site_with_releases_has_more_value_than_known_rates() -> None:
    ours, plain = compare([Job(Made("releases", 150, 100.0), 0.2, name, 2) for name in (OURS, PLAIN)], workers=1)

    assert ours.ratio.mean > 1.0 > plain.ratio.mean


@pytest.mark.soak
def test_on_a_tiny_site_ours_is_not_below_round_robin() -> None:
    source = Made("equal", 100, 300.0)
    ours, robin = compare([Job(source, 0.03, name, seed) for name in (OURS, UNIFORM) for seed in (1, 2)], workers=1)

    assert ours.ratio.mean > robin.ratio.mean


@pytest.mark.soak
def test_a_lying_last_modified_does_no_harm() -> None:
    ratios = {
        name: compare([Job(Made(name, 300, 100.0), 0.06, OURS, 1)], workers=1)[0].ratio.mean
        for name in ("log-normal", "echo", "frozen")
    }

    assert ratios["echo"] == pytest.approx(ratios["log-normal"], abs=1e-9)
    assert ratios["frozen"] == pytest.approx(ratios["log-normal"], abs=1e-9)


@pytest.mark.soak
def test_the_same_jobs_give_the_same_rows_in_processes_of_their_own() -> None:
    jobs = [Job(Made("log-normal", 100, 60.0), 0.1, policy, 1) for policy in (OURS, UNIFORM)]

    assert compare(jobs, workers=2) == compare(jobs, workers=1)


def test_nutch_shortens_by_a_fifth_lengthens_by_two_and_never_waits_longer_than_its_ceiling() -> None:
    rule = nutch(scene_of(1), Queue.DUE)
    rule.meet(np.array([0]), 0.0)
    rule.learn(visit_batch(0, at=30.0, gap=30.0, changed=True))
    assert len(rule.choose(30.0 + 23.9, 1, None)) == 0
    assert len(rule.choose(30.0 + 24.1, 1, None)) == 1

    rule.learn(visit_batch(0, at=54.0, gap=24.0, changed=False))
    # 24 * 1.4 days, less three tenths of the 24 days since the last change.
    assert len(rule.choose(54.0 + 33.6 - 7.2 - 0.1, 1, None)) == 0
    assert len(rule.choose(54.0 + 33.6 - 7.2 + 0.1, 1, None)) == 1
    for at in range(100, 2000, 100):
        rule.learn(visit_batch(0, at=at, gap=100.0, changed=False))
    assert len(rule.choose(1900 + 90.1, 1, None)) == 1


def test_stormcrawler_halves_and_grows_by_half_within_a_fortnight() -> None:
    rule = stormcrawler(scene_of(1))
    rule.meet(np.array([0]), 0.0)
    rule.learn(visit_batch(0, at=1.0, gap=1.0, changed=True))
    assert len(rule.choose(1.49, 1, None)) == 0
    assert len(rule.choose(1.51, 1, None)) == 1
    for at in range(2, 30):
        rule.learn(visit_batch(0, at=at, gap=1.0, changed=False))
    assert len(rule.choose(29 + 14.1, 1, None)) == 1
    assert len(rule.choose(29 + 13.9, 1, None)) == 0


def test_best_pages_are_selected_within_the_limits_of_hosts() -> None:
    score, host = np.array([5.0, 4.0, 3.0, 2.0, -np.inf]), np.array([0, 0, 1, 1, 1])

    assert best(score, 3, host=host, room=np.array([1, 2])).tolist() == [0, 2, 3]
    assert sorted(best(score, 2, host=host, room=None).tolist()) == [0, 1]
    assert sorted(best(score, 9, host=host, room=None).tolist()) == [0, 1, 2, 3]
    assert places(np.array([3, 1, 3, 3, 1])).tolist() == [0, 0, 1, 2, 1]


@pytest.mark.soak
def test_point_rates_are_unbiased_and_intervals_cover() -> None:
    points = estimator.point_biases(seed=1, pages=4000, visits=(10,))
    fits = estimator.prior_fits(seed=1, pages=4000, shapes=(0.5, 3.0), visits=(0, 10))

    assert max(abs(point.ours) for point in points) < 0.05
    assert all(point.naive < point.ours for point in points)
    assert max(abs(fit.bias) for fit in fits) < 0.05
    assert all(0.85 <= fit.covered <= 0.95 for fit in fits)


@pytest.mark.soak
def test_similarity_visits_pages_with_poisson_changes_once_per_period() -> None:
    tracks = dai.dai(timing=Timing.POISSON, seed=1, pages=60, visits=40)
    by_rule = {rule: [track for track in tracks if track.rule == rule] for rule in (dai.SIMILARITY, dai.AS_MANY)}

    for track in by_rule[dai.SIMILARITY]:
        assert track.mean_days[20 - 1] == pytest.approx(track.period_days, rel=0.25)
    for track in by_rule[dai.AS_MANY]:
        assert track.held_days[-1] == pytest.approx(track.period_days, rel=0.3)
    similarity, fixed, as_many, as_fresh = dai.sums(tracks)
    assert fixed.visits_per_day == pytest.approx(similarity.visits_per_day)
    assert as_many.visits_per_day == pytest.approx(similarity.visits_per_day, rel=0.01)
    assert similarity.redundant_per_day < fixed.redundant_per_day
    assert as_many.fresh > fixed.fresh > similarity.fresh
    assert as_fresh.redundant_per_day < similarity.redundant_per_day


@pytest.mark.soak
def test_similarity_visits_pages_with_regular_changes_after_two_thirds_of_their_period() -> None:
    tracks = dai.dai(timing=Timing.CLOCKWORK, seed=1, pages=30, visits=40, periods=(5.0, 20.0))

    for track in tracks[:2]:
        assert track.mean_days[-1] == pytest.approx(0.63 * track.period_days, rel=0.1)


def test_experiments_start_with_the_default_prior() -> None:
    world = make_world("log-normal", pages=50, days=20.0, seed=1)
    ours = POLICIES[OURS](Scene(world.importance, world.host, world.group, 1, None), world)
    ours.meet(np.arange(50), 0.0)
    expected = ours.expects(10.0)

    assert expected is not None
    assert expected[0] == pytest.approx(float(compute_fresh_chance(PRIOR.a, PRIOR.b, 10.0)))


@pytest.mark.soak
def test_informed_policy_is_not_above_the_optimum_and_ours_not_far_above_it() -> None:
    """Check pages of equal importance. If few pages hold most of the importance, chance decides by thousandths."""
    source = Made("equal", 400, 240.0)
    ours, informed, top = compare([Job(source, 0.06, name, 1) for name in (OURS, INFORMED, OPTIMUM)], workers=1)

    assert ours.ratio.mean < informed.ratio.mean + 0.005
    assert max(ours.ratio.mean, informed.ratio.mean) < top.ratio.mean


def test_informed_policy_learns_by_bayes_rule() -> None:
    world = make_world("log-normal", pages=2, days=10.0, seed=1)
    informed = Informed(scene_of(2), world)
    informed.meet(np.arange(2), 0.0)
    slow, fast = np.sort(np.quantile(world.segments.rate, (np.array([0, 47]) + 0.5) / 48))
    gap, rates = 3.0, np.quantile(world.segments.rate, (np.arange(48) + 0.5) / 48)

    informed.learn(visit_batch(0, at=gap, gap=gap, changed=False))
    informed.learn(visit_batch(1, at=gap, gap=gap, changed=True))

    expected = informed.expects(gap + 1.0)
    assert expected is not None
    same, changed = np.exp(-rates * gap), 1 - np.exp(-rates * gap)
    assert expected[0] == pytest.approx((np.exp(-rates) * same).sum() / same.sum())
    assert expected[1] == pytest.approx((np.exp(-rates) * changed).sum() / changed.sum())
    assert np.exp(-fast) < expected[1] < expected[0] < np.exp(-slow)


@pytest.mark.soak
def test_good_signals_lift_a_crawl_above_the_optimum_and_false_ones_hardly_harm_it() -> None:
    world = make_world("log-normal", pages=100, days=120.0, seed=3)
    without_signals = simulate(world, lambda scene, _: Ours(scene), budget_per_day=6).freshness
    best = simulate(world, POLICIES[OPTIMUM], budget_per_day=6).freshness

    def freshness_with(source: SignalSource) -> float:
        signals = generate_signals(source, world, seed=3)
        return simulate(world, lambda scene, _: Listening(scene, signals), budget_per_day=6).freshness

    assert freshness_with(SignalSource()) > best + 0.05
    assert freshness_with(SignalSource(recall=0.6, precision=0.5)) > without_signals
    for liar in (Behavior.TODAY, Behavior.UNCHANGED):
        assert (
            freshness_with(SignalSource(liar)) > without_signals - 0.015
        )  # a small world; docs/freshness.md has larger ones
