import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.page_arrays import PageArrays, compute_gaps, compute_visits_per_day, select_subset
from crawler.core.budget.shadow_price import (
    MAX_CORRECTION,
    Budget,
    Shares,
    Workload,
    compute_longest_gap,
    compute_price_decay,
    compute_spending,
    solve_shadow_price,
    solve_shadow_prices,
    update_price_correction,
)
from tests.core.budget.pages import pages_of

pytestmark = pytest.mark.filterwarnings("error")


def known_pages(count: int, *, domains: int = 1, seed: int = 1) -> PageArrays:
    rng = np.random.default_rng(seed)
    return pages_of(
        rng.uniform(0.3, 8, count),
        10 ** rng.uniform(0, 2.5, count),
        np.clip(0.1 * (rng.pareto(1.1, count) + 1), 0.05, 1000),
        received_bytes=10 ** rng.uniform(3, 6, count),
        domain=np.minimum(rng.zipf(1.5, count) - 1, domains - 1),
    )


def with_affordable_interval(pages: PageArrays, limits: NDArray[np.float64]) -> PageArrays:
    """Return the pages with the longest interval that each domain's limit affords."""
    counts = np.bincount(pages.domain, minlength=len(limits)).astype(np.float64)
    return replace(pages, max_interval=compute_longest_gap(counts, limits)[pages.domain])


def requests_at(pages: PageArrays, price: ShadowPrice) -> float:
    cost = price.per_request * pages.requests + price.per_byte * pages.received_bytes
    return float((compute_visits_per_day(pages, cost) * pages.requests).sum())


def bytes_at(pages: PageArrays, price: ShadowPrice) -> float:
    cost = price.per_request * pages.requests + price.per_byte * pages.received_bytes
    return float((compute_visits_per_day(pages, cost) * pages.received_bytes).sum())


@pytest.mark.parametrize("part", [0.01, 0.03, 0.1, 1.0, 30.0])
def test_price_spends_the_budget(part: float) -> None:
    pages = known_pages(5000)

    assert requests_at(pages, solve_shadow_price(Workload(pages), Budget(5000 * part))) == pytest.approx(
        5000 * part, rel=1e-3
    )


def test_one_price_gives_more_freshness_than_nearby_allocations_of_the_same_budget() -> None:
    pages = known_pages(400)
    price = solve_shadow_price(Workload(pages), Budget(40.0)).per_request
    rng = np.random.default_rng(3)

    def fresh(gap: object) -> float:
        y = np.asarray(gap, dtype=np.float64) / pages.b
        return float((pages.weight * (1 - (1 + y) ** (1 - pages.a)) / ((pages.a - 1) * y)).sum())

    best = fresh(compute_gaps(pages, price))
    for _ in range(20):
        rate = (1 / compute_gaps(pages, price)) * np.exp(rng.normal(0, 0.3, 400))
        assert fresh(1 / (rate * 40.0 / rate.sum())) < best


def test_budget_of_zero_has_the_maximum_price() -> None:
    assert solve_shadow_price(Workload(known_pages(100)), Budget(0)).per_request == pytest.approx(1e12)


def test_only_bytes_have_a_price_if_only_bytes_are_scarce() -> None:
    pages = known_pages(2000)
    all_bytes = bytes_at(pages, solve_shadow_price(Workload(pages), Budget(200)))

    scarce = solve_shadow_price(Workload(pages), Budget(10_000, received_bytes=all_bytes))

    assert scarce.per_request == 0
    assert bytes_at(pages, scarce) == pytest.approx(all_bytes, rel=1e-3)
    assert solve_shadow_price(Workload(pages), Budget(200, received_bytes=2 * all_bytes)).per_byte == 0


def test_requests_and_bytes_can_both_be_scarce() -> None:
    pages = known_pages(2000)
    both = Budget(200, received_bytes=0.7 * bytes_at(pages, solve_shadow_price(Workload(pages), Budget(200))))

    price = solve_shadow_price(Workload(pages), both)

    assert price.per_request > 0
    assert price.per_byte > 0
    assert requests_at(pages, price) == pytest.approx(both.requests, rel=0.01)
    assert bytes_at(pages, price) == pytest.approx(both.received_bytes, rel=0.01)


def test_pages_that_cost_more_requests_are_visited_less_often() -> None:
    cheap, expensive = (pages_of(np.full(10, 0.5), 10.0, 1.0, requests=cost) for cost in (1.0, 20.0))

    assert np.all(compute_gaps(expensive, 0.5 * expensive.requests) > compute_gaps(cheap, 0.5 * cheap.requests))


def test_discovery_and_revisits_cannot_starve_each_other() -> None:
    pages = known_pages(2000)
    many = pages_of(np.full(100_000, 0.5), 10.0, 1.0)
    worthless = pages_of(np.full(1000, 0.5), 10.0, 1e-9)

    revisits = requests_at(pages, solve_shadow_price(Workload(pages, many), Budget(200)))
    assert revisits == pytest.approx(0.3 * 200, rel=1e-3)
    revisits = requests_at(pages, solve_shadow_price(Workload(pages, worthless), Budget(200)))
    assert revisits == pytest.approx(0.7 * 200, rel=1e-3)
    revisits = requests_at(pages, solve_shadow_price(Workload(pages, worthless), Budget(200), shares=Shares(0, 1)))
    assert revisits == pytest.approx(200, rel=1e-3)


def test_domains_at_their_cap_have_their_own_price_and_the_others_share_one() -> None:
    limits = np.full(20, 8.0)
    work = Workload(with_affordable_interval(known_pages(4000, domains=20), limits), domain_count=20)

    prices = solve_shadow_prices(work, limits, 60.0)

    used = compute_spending(work, prices, limits)
    assert used.sum() == pytest.approx(60, rel=1e-3)
    assert np.all(used <= limits * 1.001)
    capped = used > limits * 0.999
    assert 0 < capped.sum() < 20
    assert np.ptp(prices[~capped]) == pytest.approx(0)
    assert prices[capped].min() > prices[~capped].max()


def test_caps_below_the_budget_are_fully_used() -> None:
    limits = np.full(20, 1.0)
    work = Workload(with_affordable_interval(known_pages(4000, domains=20), limits), domain_count=20)

    assert compute_spending(work, solve_shadow_prices(work, limits, 1000.0), limits) == pytest.approx(limits, rel=1e-3)


def test_without_caps_all_domains_have_the_same_price() -> None:
    work = Workload(known_pages(3000, domains=5), domain_count=5)

    prices = solve_shadow_prices(work, np.full(5, np.inf), 100.0)

    assert prices == pytest.approx(solve_shadow_price(Workload(known_pages(3000)), Budget(100)).per_request, rel=1e-3)


def test_price_of_a_sample_is_close_to_the_exact_price() -> None:
    pages = known_pages(60_000)
    drawn = np.random.default_rng(0).choice(60_000, 15_000, replace=False)
    sample = replace(select_subset(pages, drawn), stands_for=np.full(15_000, 4.0))
    exact = solve_shadow_price(Workload(pages), Budget(1800)).per_request

    from_sample = solve_shadow_price(Workload(sample), Budget(1800)).per_request

    assert from_sample == pytest.approx(exact, rel=0.1)


@settings(max_examples=15)
@given(budget=st.floats(1, 1e4), more=st.floats(1.1, 10))
def test_larger_budget_lowers_the_price(budget: float, more: float) -> None:
    work = Workload(known_pages(300))

    assert (
        solve_shadow_price(work, Budget(budget * more)).per_request
        <= solve_shadow_price(work, Budget(budget)).per_request * 1.001
    )


def test_longest_interval_uses_at_most_a_twentieth_of_the_budget() -> None:
    assert compute_longest_gap(1000, 1000) == 180
    assert compute_longest_gap(100_000, 1000) == 2000
    assert compute_longest_gap(1, 0) > 1e9


def test_price_is_corrected_by_the_requests_really_used() -> None:
    assert update_price_correction(1.0, used=60, allowed=100, waiting=0) < 1
    # They wait for a host, not for the budget.
    assert update_price_correction(1.0, used=60, allowed=100, waiting=500) < 1
    assert update_price_correction(1.0, used=100, allowed=100, waiting=50) == 1
    assert update_price_correction(1.0, used=100, allowed=100, waiting=150) > 1


def test_price_that_no_page_reaches_falls_to_a_fiftieth_within_a_day() -> None:
    assert compute_price_decay(0) == 1
    assert compute_price_decay(1) == pytest.approx(compute_price_decay(1 / 24) ** 24)
    assert 1 / 60 < compute_price_decay(1) < 1 / 50


def test_correction_is_bounded() -> None:
    high = low = 1.0
    for _ in range(2000):
        high = update_price_correction(high, used=100, allowed=100, waiting=1000)
        low = update_price_correction(low, used=0, allowed=100, waiting=0)

    assert (low, high) == (1 / MAX_CORRECTION, MAX_CORRECTION)
