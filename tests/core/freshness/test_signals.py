import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.freshness.estimates import RateEstimate, compute_fresh_chance, update_changed
from crawler.core.freshness.gamma import compute_digamma
from crawler.core.freshness.signals import (
    MAX_RECALL,
    SignalState,
    SourceQuality,
    build_signal_state,
    combine_signals,
    compute_aged_days,
    compute_days_ahead,
    learn_changed_with_signals,
    update_changed_with_signals,
)
from crawler.core.freshness.source_record import NEW_RECORD, SourceRecord, record_arrivals, update_record
from crawler.core.freshness.visit_value import (
    compute_due_gap,
    compute_first_values,
    compute_max_values,
    compute_values,
    compute_values_with_signals,
)

PAGE = RateEstimate(a=2.0, b=40.0)
GOOD = SourceQuality(recall=0.8, noise=0.01)
DAY = timedelta(days=1)


def signals_of(count: float, source: SourceQuality = GOOD) -> SignalState:
    return build_signal_state(np.array([count]), source)


def fresh(unseen: float, count: float, source: SourceQuality = GOOD, page: RateEstimate = PAGE) -> float:
    return float(
        compute_fresh_chance(page.a, page.b, compute_aged_days(page.a, page.b, unseen, signals_of(count, source)))[0]
    )


def test_freshness_right_after_a_signal_follows_the_paper() -> None:
    rate = PAGE.rate_per_day

    for count in range(4):
        assert fresh(0.0, count) == pytest.approx((GOOD.noise / (GOOD.noise + GOOD.recall * rate)) ** count)


def test_with_a_known_rate_silence_and_signals_follow_the_paper() -> None:
    sure = RateEstimate(a=1e6, b=1e7)  # 0.1 a day, with certainty

    expected = math.exp(-(1 - GOOD.recall) * 0.1 * 5) * (GOOD.noise / (GOOD.noise + GOOD.recall * 0.1)) ** 2

    assert fresh(5.0, 2, page=sure) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("unseen", [0.5, 5.0, 50.0])
def test_with_an_unknown_rate_silence_and_signals_follow_bayes(unseen: float, count: int) -> None:
    log_rate = np.linspace(-30, 8, 200_001)
    rate = np.exp(log_rate)
    prior = np.exp(PAGE.a * log_rate - PAGE.b * rate)
    power = (1 + GOOD.recall / GOOD.noise * rate) ** count
    expected = (prior * np.exp(-rate * unseen)).sum() / (prior * np.exp(-GOOD.recall * rate * unseen) * power).sum()

    assert fresh(unseen, count) == pytest.approx(expected, rel=1e-3)


def test_source_without_recall_has_no_effect() -> None:
    nothing = SourceQuality(recall=0.0, noise=0.5)

    assert compute_aged_days(PAGE.a, PAGE.b, 12.0, signals_of(9, nothing)).tolist() == [pytest.approx(12.0)]
    assert fresh(12.0, 9, nothing) == pytest.approx(float(compute_fresh_chance(PAGE.a, PAGE.b, 12.0)))


@given(st.floats(0, 200), st.integers(0, 255), st.floats(0, 1), st.floats(1e-4, 10))
def test_signals_add_age_and_silence_reduces_it(unseen: float, count: int, recall: float, noise: float) -> None:
    source = SourceQuality(recall, noise)

    silent, signaled = (float(compute_aged_days(PAGE.a, PAGE.b, unseen, signals_of(n, source))[0]) for n in (0, count))

    assert 0 <= silent * (1 + 1e-9) <= unseen * (1 - min(recall, MAX_RECALL)) * (1 + 1e-9) + 1e-9
    assert signaled >= silent


def test_only_the_strongest_of_several_sources_counts() -> None:
    weak = SourceQuality(recall=0.3, noise=0.5)
    rate = np.array([PAGE.rate_per_day])

    both = combine_signals([(2, 1)], [(weak, GOOD)], rate)
    alone = combine_signals([(0, 1)], [(weak, GOOD)], rate)

    assert compute_aged_days(PAGE.a, PAGE.b, 3.0, both) == pytest.approx(compute_aged_days(PAGE.a, PAGE.b, 3.0, alone))
    assert both.recall == pytest.approx(GOOD.recall)


def test_silence_of_a_dead_source_is_no_evidence() -> None:
    assert replace(GOOD, liveliness=0.0).effective_recall == 0.0
    assert compute_aged_days(PAGE.a, PAGE.b, 7.0, signals_of(0, replace(GOOD, liveliness=0.0))).tolist() == [
        pytest.approx(7.0)
    ]


def posterior_moments(
    rate_estimate: RateEstimate, days: float, recall: float, count: int, ratio: float
) -> tuple[float, float]:
    """Return the means of rate and ln rate, given a change and the signals, on a fine grid."""
    log_rate = np.linspace(-30, 8, 200_001)
    rate = np.exp(log_rate)
    chance = np.exp(-recall * rate * days + count * np.log1p(ratio * rate)) - np.exp(-rate * days)
    log_density = rate_estimate.a * log_rate - rate_estimate.b * rate + np.log(np.maximum(chance, 1e-300))
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    return float((weight * rate).sum()), float((weight * log_rate).sum())


@pytest.mark.parametrize(
    ("page", "days", "recall", "count", "ratio"),
    [
        (RateEstimate(0.5, 10.0), 20.0, 0.3, 1, 5.0),
        (RateEstimate(2.0, 40.0), 10.0, 0.9, 2, 100.0),
        (RateEstimate(0.5, 10.0), 20.0, 0.9, 0, 0.0),
        (RateEstimate(3.0, 20.0), 60.0, 0.1, 8, 1.0),
    ],
)
def test_signaled_change_gives_the_exact_means(
    page: RateEstimate, days: float, recall: float, count: int, ratio: float
) -> None:
    a, b = learn_changed_with_signals(page.a, page.b, days, SignalState(recall, float(count), ratio))

    mean, mean_log = posterior_moments(page, days, recall, count, ratio)
    signaled_days = page.b + recall * days  # a lower bound of b; otherwise refitted priors diverge
    assert float(a[0] / b[0]) == pytest.approx(mean, rel=1e-6 if b[0] > signaled_days else 0.25)
    if page.a < a[0] and b[0] > signaled_days:
        assert float((compute_digamma(a) - np.log(b))[0]) == pytest.approx(mean_log, rel=1e-5)


def test_change_without_a_source_is_learned_as_before() -> None:
    nothing = SignalState(0.0, 0.0, 0.0)

    assert update_changed_with_signals(PAGE, gap=9 * DAY, signals=nothing) == update_changed(PAGE, gap=9 * DAY)


words = st.builds(SignalState, st.floats(0, 0.95), st.integers(0, 255).map(float), st.floats(0, 1e4))


@given(st.floats(0.1, 50), st.floats(0.1, 500), st.floats(0, 300), words)
def test_evidence_only_grows_with_any_signals(a: float, b: float, days: float, signals: SignalState) -> None:
    after_a, after_b = learn_changed_with_signals(a, b, days, signals)

    assert a <= after_a[0] <= a + min(float(signals.count), 8.0) + 1
    assert b * (1 - 1e-12) <= after_b[0] < math.inf


def test_visits_caused_by_signals_do_not_bias_the_rate() -> None:
    """With a perfect source and a visit at each signal, every gap ends with a change; rates are still unbiased."""
    rng = np.random.default_rng(5)
    rate, naive, fair = 0.1, RateEstimate(0.5, 10.0), RateEstimate(0.5, 10.0)
    source = build_signal_state(np.array([1.0]), SourceQuality(recall=0.95, noise=1e-4))

    for gap in rng.exponential(1 / rate, 400):
        naive = update_changed(naive, gap=timedelta(days=gap))
        fair = update_changed_with_signals(fair, gap=timedelta(days=gap), signals=source)

    assert fair.rate_per_day == pytest.approx(rate, rel=0.12)
    assert naive.rate_per_day > 1.5 * rate


def record_after_visits(
    *, recall: float, noise: float, days: int = 250, pages: int = 120, seed: int = 3
) -> SourceRecord:
    """Return the record of a source after visits to signaled pages and some others."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(np.log(0.05), 0.8, pages))
    last, count, is_changed = np.zeros(pages), np.zeros(pages, int), np.zeros(pages, bool)
    record = NEW_RECORD
    for day in range(1, days + 1):
        changes = rng.poisson(rate)
        count += rng.binomial(changes, recall) + rng.poisson(noise, pages)
        is_changed |= changes > 0
        signaled, oldest = np.argsort(-(np.minimum(count, 1) + 1e-3 * (day - last))), np.argsort(last)
        for n in {*signaled[: pages // 15], *oldest[: pages // 30]}:
            record = update_record(
                record,
                estimate_before=RateEstimate(1e4 * rate[n], 1e4),
                gap_days=day - last[n],
                signals=int(count[n]),
                changed=bool(is_changed[n]),
            )
            last[n], count[n], is_changed[n] = day, 0, False
    return record


@pytest.mark.parametrize(("recall", "noise"), [(0.3, 0.01), (0.6, 0.03), (0.9, 0.002)])
def test_quality_of_a_source_is_learned_from_visits_that_it_causes(recall: float, noise: float) -> None:
    quality = record_after_visits(recall=recall, noise=noise).quality

    assert quality.recall == pytest.approx(recall, abs=0.12)
    assert quality.noise == pytest.approx(noise, rel=0.35, abs=0.002)


def test_source_that_signals_all_pages_every_day_has_no_effect() -> None:
    record = NEW_RECORD
    rng = np.random.default_rng(1)
    for _ in range(400):
        gap = float(rng.integers(1, 30))
        is_changed = bool(rng.random() < 1 - math.exp(-0.05 * gap))
        record = update_record(
            record, estimate_before=RateEstimate(500.0, 1e4), gap_days=gap, signals=int(gap), changed=is_changed
        )

    assert record.precision is not None
    assert record.precision < 0.05
    assert fresh(10.0, 10, record.quality) == pytest.approx(fresh(10.0, 0, SourceQuality(0.0, 1.0)), abs=0.05)


def test_source_that_starts_to_lie_is_ignored_after_a_few_visits() -> None:
    record = record_after_visits(recall=0.9, noise=0.001)
    assert record.quality.recall > 0.7

    for _ in range(12):
        record = update_record(record, estimate_before=RateEstimate(50.0, 1e3), gap_days=10.0, signals=1, changed=False)

    assert record.quality.recall == 0.0


def test_silence_of_a_source_that_stopped_counts_less() -> None:
    record = record_arrivals(record_after_visits(recall=0.9, noise=0.001), days=30, pages=120, signals=200)

    assert record.quality.effective_recall > 0.5
    assert record_arrivals(record, days=30, pages=120).quality.effective_recall < 0.25


def test_source_is_live_even_if_visited_pages_have_most_signals() -> None:
    """Visits caused by signals go to pages that change; there are many more pages without signals."""
    record = record_after_visits(recall=0.9, noise=0.001)  # the visited pages have one signal in 16 days
    for _ in range(60):
        record = record_arrivals(record, days=1, pages=1000, signals=10)

    assert record.liveliness > 0.95


def test_perfect_list_is_trusted_even_if_some_pages_change_faster_than_it_is_read() -> None:
    rng = np.random.default_rng(1)
    record = NEW_RECORD
    for _ in range(300):
        record = update_record(
            record, estimate_before=RateEstimate(400.0, 100.0), gap_days=1.0, signals=1, changed=True
        )
        gap = min(float(rng.exponential(10.0)), 20.0)
        is_signaled = gap < 20
        record = update_record(
            record,
            estimate_before=RateEstimate(100.0, 1e3),
            gap_days=gap,
            signals=int(is_signaled),
            changed=is_signaled,
        )

    assert record.quality.recall > 0.6


def test_signals_never_raise_the_value_above_the_fresh_days_after_a_visit() -> None:
    ahead = compute_days_ahead(0.3, 10.0, signals_of(200, SourceQuality(0.9, 1e-6)))

    value = compute_values_with_signals(0.3, 10.0, 1.0, ahead, ahead=ahead, max_interval=180.0)

    assert compute_values(0.3, 10.0, 1.0, ahead)[0] > value[0]
    assert value[0] == pytest.approx(float(compute_first_values(1.3, 10.0, 1.0, 180.0)))
    assert compute_max_values(0.3, 10.0, 1.0, ahead=0.0, max_interval=180.0) == math.inf


def test_page_is_due_if_signals_raise_its_value_to_the_price() -> None:
    bounds = {"min_interval": 0.01, "max_interval": 180.0}
    ahead = compute_days_ahead(PAGE.a, PAGE.b, signals_of(1))

    usual = float(compute_due_gap(PAGE.a, PAGE.b, 1.0, 2.0, **bounds))
    silent = float(compute_due_gap(PAGE.a, PAGE.b, 1.0, 2.0, **bounds, recall=0.5))
    signaled = float(compute_due_gap(PAGE.a, PAGE.b, 1.0, 2.0, **bounds, recall=0.5, ahead=ahead)[0])

    assert silent == pytest.approx(2 * usual)
    assert signaled == 0.01
    assert compute_values(PAGE.a, PAGE.b, 1.0, 0.5 * silent) == pytest.approx(2.0)


@pytest.mark.parametrize("ahead", [0.0, 1.0, 30.0, 1000.0])
def test_signals_never_lower_the_value_of_a_visit(ahead: float) -> None:
    a, b, unseen, max_interval = 0.8, 2.0, 20.0, 60.0  # a page that may change too often

    with_it = compute_values_with_signals(a, b, 1.0, unseen + ahead, ahead=ahead, max_interval=max_interval)

    assert with_it >= compute_values(a, b, 1.0, unseen)
    assert (
        with_it
        <= max(compute_values(a, b, 1.0, unseen), compute_first_values(a + 1, b, 1.0, max_interval))
        + (ahead == 0) * 1e9
    )


def test_perfect_source_is_recognized_after_many_visits() -> None:
    """The prior of sources fades like old visits; otherwise the estimate would stay too low forever."""
    record = NEW_RECORD
    for n in range(1500):
        changed = n % 4 == 0
        record = update_record(
            record, estimate_before=RateEstimate(5.0, 100.0), gap_days=5.0, signals=int(changed), changed=changed
        )

    assert record.estimate.recall > 0.95
