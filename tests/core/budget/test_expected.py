import numpy as np
import pytest

from crawler.core.budget.expected import (
    FACTORS,
    compute_age_cost,
    compute_expectation,
    compute_freshness_cost,
    compute_mean_age,
    compute_mean_freshness,
)
from crawler.core.budget.page_arrays import PageArrays, compute_gaps
from crawler.core.budget.shadow_price import Budget, Workload, solve_shadow_price
from tests.core.budget.pages import pages_of

pytestmark = pytest.mark.filterwarnings("error")


def known_pages(count: int, *, domains: int = 1) -> PageArrays:
    rng = np.random.default_rng(1)
    return pages_of(
        rng.uniform(0.3, 8, count),
        10 ** rng.uniform(0, 2.5, count),
        np.clip(0.1 * (rng.pareto(1.1, count) + 1), 0.05, 1000),
        domain=np.arange(count) % domains,
    )


@pytest.mark.parametrize("a", [0.4, 1.0, 2.0, 20.0])
@pytest.mark.parametrize("gap", [0.01, 1.0, 30.0, 3000.0])
def test_freshness_and_age_are_means_over_rate_and_time(a: float, gap: float) -> None:
    """Compare with the published formulas for one rate (Cho and Garcia-Molina) on a fine grid over ln rate."""
    rate = np.exp(np.linspace(-40, 8, 200_001))
    log_density = a * np.log(rate) - 10 * rate
    weight = np.exp(log_density - log_density.max())
    r = rate * gap
    fresh = -np.expm1(-r) / r
    age = gap * np.where(r < 1e-3, r / 6, 0.5 - 1 / r + -np.expm1(-r) / r**2)

    assert float(compute_mean_freshness(a, 10.0, gap)) == pytest.approx((fresh * weight).sum() / weight.sum(), rel=1e-4)
    assert float(compute_mean_age(a, 10.0, gap)) == pytest.approx((age * weight).sum() / weight.sum(), rel=2e-3)


def test_simulation_agrees_with_the_expectation() -> None:
    pages = known_pages(4000)
    price = solve_shadow_price(Workload(pages), Budget(400))
    expected = compute_expectation(pages, np.array([price.per_request]))

    rng = np.random.default_rng(2)
    rates = rng.gamma(pages.a, 1 / pages.b, (40, 4000))
    gap = compute_gaps(pages, price.per_request)
    since_visit = rng.random((40, 4000)) * gap
    change = rng.exponential(1 / np.maximum(rates, 1e-300))  # after the last visit
    weight = pages.weight / pages.weight.sum()

    assert expected.requests == pytest.approx(400, rel=1e-3)
    assert ((change > since_visit) @ weight).mean() == pytest.approx(expected.freshness, abs=0.01)
    assert (np.maximum(since_visit - change, 0) @ weight).mean() == pytest.approx(expected.age_days, rel=0.05)


def test_more_budget_improves_freshness_and_age_with_diminishing_returns() -> None:
    work = Workload(known_pages(2000))

    prices = [solve_shadow_price(work, Budget(100 * factor)).per_request for factor in FACTORS]

    table = [compute_expectation(work.fetched, np.array([price])) for price in prices]

    fresh, requests = np.array([row.freshness for row in table]), np.array([row.requests for row in table])
    assert np.all(np.diff(fresh) > 0)
    assert np.all(np.diff([row.age_days for row in table]) < 0)
    assert np.all(np.diff(np.diff(fresh) / np.diff(requests)) < 0)
    assert requests[4] == pytest.approx(100, rel=1e-3)


def test_budget_for_a_target_freshness_reaches_it() -> None:
    work = Workload(known_pages(2000))

    need = compute_freshness_cost(work, 0.9, np.array([np.inf]))

    price = solve_shadow_price(work, Budget(need.requests))
    assert need.is_possible
    assert compute_expectation(work.fetched, np.array([price.per_request])).freshness == pytest.approx(0.9, abs=1e-3)


def test_if_politeness_makes_a_target_impossible_the_best_is_reported() -> None:
    work = Workload(known_pages(2000, domains=2), domain_count=2)

    need = compute_freshness_cost(work, 0.95, np.array([10.0, np.inf]))

    assert not need.is_possible
    assert need.reachable < 0.95
    free = compute_freshness_cost(work, 0.95, np.full(2, np.inf))
    assert free.is_possible
    assert need.requests == pytest.approx(free.requests, rel=1e-2)
    assert compute_freshness_cost(work, need.reachable - 0.01, np.array([10.0, np.inf])).is_possible


def test_pages_that_change_every_second_cannot_be_fresh_at_any_budget() -> None:
    need = compute_freshness_cost(Workload(pages_of(np.full(5, 1e5), 1.0, 1.0)), 0.9, np.array([np.inf]))

    assert not need.is_possible
    assert need.requests == np.inf


def test_target_age_of_three_days_needs_a_third_of_the_pages_per_day() -> None:
    work = Workload(known_pages(3000, domains=3), domain_count=3)

    assert compute_age_cost(work, 3.0, np.full(3, np.inf)).requests == pytest.approx(1000)
    assert compute_age_cost(work, 3.0, np.full(3, 400.0)).is_possible
    capped = compute_age_cost(work, 3.0, np.array([400.0, 400.0, 100.0]))
    assert not capped.is_possible
    assert capped.reachable == pytest.approx(10)
