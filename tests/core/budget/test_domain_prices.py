"""Plans of domains from samples of pages, budgets and targets, without a store."""

import numpy as np
import pytest
from msgspec.structs import replace

from crawler.core.budget.constraints import MAX_DAYS, DomainLimits, compute_budget, compute_visit_limit
from crawler.core.budget.cost import Costs, ShadowPrice
from crawler.core.budget.domain_plans import has_price_moved, solve_plans
from crawler.core.budget.sample import NO_RULE, PageSample, build_sample, build_workload, refit_all_priors
from crawler.core.budget.shadow_price import Budget, Workload
from crawler.core.freshness.estimates import PRIOR
from crawler.core.freshness.policies import parse_policy
from crawler.core.freshness.prior import NO_KIND


def made_up_page(chance: np.random.Generator, min_interval: float, max_interval: float) -> tuple[float, ...]:
    a, b, weight = chance.exponential(2), chance.exponential(20), chance.pareto(1.5)
    return (0, a, b, 0, weight, 1, min_interval, max_interval, 0, 0, 0, 0, weight)


def sample(known: int, *, new: int = 0, share: float = 1.0, seed: int = 1) -> PageSample:
    chance = np.random.default_rng(seed)
    rows = [
        (
            0,
            chance.exponential(2),
            chance.exponential(20),
            0,
            (weight := chance.pareto(1.5)),
            1,
            NO_RULE,
            NO_RULE,
            0,
            0,
            0,
            0,
            weight,
        )
        for _ in range(known)
    ]
    rows += [(1, 0, 0, 0, 1, 0, NO_RULE, NO_RULE, 0, 0, 0, 0, 1)] * new
    return build_sample(rows, share=share, priors=[PRIOR], costs=Costs())


def ruled(known: int, *, min_interval: float = NO_RULE, max_interval: float = NO_RULE) -> Workload:
    """Return pages with a rule for their interval, and as many without one."""
    chance = np.random.default_rng(1)
    rows = [
        (
            0,
            chance.exponential(2),
            chance.exponential(20),
            0,
            (weight := chance.pareto(1.5)),
            1,
            *bounds,
            0,
            0,
            0,
            0,
            weight,
        )
        for bounds in ((min_interval, max_interval), (NO_RULE, NO_RULE))
        for _ in range(known)
    ]
    found = build_sample(rows, share=1.0, priors=[PRIOR], costs=Costs())
    return build_workload(found, [PRIOR], min_interval_days=1 / 144, max_interval_days=180.0)


def work(known: int, *, new: int = 0, share: float = 1.0, seed: int = 1) -> Workload:
    return build_workload(
        sample(known, new=new, share=share, seed=seed), [PRIOR], min_interval_days=1 / 144, max_interval_days=180.0
    )


def test_intervals_come_from_rules_and_default_to_the_domain() -> None:
    rows = [
        (0, 1.0, 5.0, 0, 1, 1, *bounds, 0, 0, 0, 0, 1)
        for bounds in ((NO_RULE, NO_RULE), (0.5, NO_RULE), (NO_RULE, 2.0), (300.0, NO_RULE))
    ]
    found = build_sample(rows, share=1, priors=[PRIOR], costs=Costs())

    pages = build_workload(found, [PRIOR], min_interval_days=0.1, max_interval_days=180.0).fetched

    assert pages.min_interval.tolist() == [0.1, 0.5, 0.1, 300.0]
    assert pages.max_interval.tolist() == [180.0, 180.0, 2.0, 300.0]


def test_sample_represents_its_domain() -> None:
    half = work(200, new=10, share=0.5)

    assert half.fetched.count == 400
    assert half.unfetched.count == 20
    (sampled,) = solve_plans([half], [DomainLimits(budget=Budget(100))])
    assert sampled.requests == pytest.approx(compute_visit_limit(100), rel=0.01)


def test_domains_without_pages_need_no_requests_and_do_not_affect_others() -> None:
    alone = solve_plans([work(300)], [DomainLimits(budget=Budget(40))])
    with_empty = solve_plans([work(300), work(0)], [DomainLimits(budget=Budget(40)), DomainLimits(budget=Budget(40))])

    assert with_empty[0].shadow_price == alone[0].shadow_price
    assert with_empty[1].shadow_price is None
    assert with_empty[1].requests == 0
    assert solve_plans([], []) == []


def test_overall_budget_never_lowers_a_price_below_that_of_the_domains_own_budget() -> None:
    works = [work(300), work(300, seed=2)]
    own = solve_plans(works, [DomainLimits(budget=Budget(20)), DomainLimits(budget=Budget(60))])
    both = solve_plans(works, [DomainLimits(budget=Budget(20)), DomainLimits(budget=Budget(60))], overall=Budget(50))

    assert sum(each.requests for each in both) == pytest.approx(compute_visit_limit(50), rel=0.01)
    for before, after in zip(own, both, strict=True):
        assert before.shadow_price is not None
        assert after.shadow_price is not None
        assert after.shadow_price.per_request >= before.shadow_price.per_request * (1 - 1e-6)


def test_overall_budget_that_cannot_afford_the_longest_interval_extends_it_in_every_domain() -> None:
    works = [work(4000, seed=n) for n in range(5)]

    found = solve_plans(works, [DomainLimits()] * 5, overall=Budget(50))  # 20,000 pages in 180 days are 111 per day

    assert [each.longest_days for each in found] == [20_000 / (0.05 * 50)] * 5
    assert all("the shared 50 requests" in each.finding for each in found)
    assert sum(each.requests for each in found) == pytest.approx(compute_visit_limit(50), rel=0.01)
    assert all(each.shadow_price is not None and each.shadow_price.per_request < 1e6 for each in found)


def test_interval_of_a_rule_uses_requests_and_does_not_extend_the_longest_interval() -> None:
    (plain,) = solve_plans([work(1000)], [DomainLimits(budget=Budget(1000))])
    (often,) = solve_plans([ruled(500, max_interval=1.0)], [DomainLimits(budget=Budget(1000))])
    (seldom,) = solve_plans([ruled(500, min_interval=300.0)], [DomainLimits(budget=Budget(1000))])

    assert plain.shadow_price is not None
    assert often.shadow_price is not None
    # The rule requires 500 of 1,000 visits.
    assert often.shadow_price.per_request > 1.2 * plain.shadow_price.per_request
    assert often.requests == pytest.approx(plain.requests, rel=0.01)
    assert (often.finding, seldom.finding) == ("", "")
    assert (seldom.longest_days, seldom.expected.oldest_days) == (180.0, 300.0)


def test_rule_that_the_budget_cannot_afford_is_reported_with_the_delay_of_its_pages() -> None:
    (found,) = solve_plans([ruled(500, max_interval=0.25)], [DomainLimits(budget=Budget(200))])
    shared = solve_plans([ruled(500, max_interval=0.25), work(500)], [DomainLimits()] * 2, overall=Budget(200))

    assert (
        found.finding
        == "Pages wait 10.7 times as long as rules or the policy require, because 200 requests a day are too few"
    )
    assert shared[0].finding == found.finding.replace("200", "the shared 200")
    assert shared[1].finding == ""
    for each in (found, shared[0]):
        assert each.requests <= 197
        assert each.shadow_price is not None
        assert each.shadow_price.per_request < 1e6  # the other pages are still visited


def test_target_is_limited_by_bytes_and_the_overall_budget() -> None:
    (fresh,) = solve_plans([work(1000)], [DomainLimits(target_freshness=0.95)], overall=Budget(50))
    (young,) = solve_plans([work(1000)], [DomainLimits(target_age_days=3)], overall=Budget(50))
    few = DomainLimits(target_age_days=3, budget=Budget(float("inf"), 10_000))
    (thin,) = solve_plans([work(1000)], [few])
    (both,) = solve_plans([work(1000)], [DomainLimits(target_age_days=3)], overall=Budget(float("inf"), 10_000))

    part = "its part of the shared budget, 50 a day,"
    assert fresh.finding.startswith(
        f"A freshness of 95% needs {fresh.target_requests:,.0f} requests a day; {part} gives 7"
    )
    assert young.finding.startswith(
        f"A maximum age of 3 days needs {young.target_requests:,.0f} requests a day; {part} allows one visit"
    )
    assert "the budget of 10,000 bytes a day allows one visit to each page in" in thin.finding
    assert "its part of the shared budget" in both.finding
    for each, max_interval in ((young, 50), (thin, 20), (both, 21)):
        assert each.expected.requests <= max_interval
        assert each.longest_days == pytest.approx(1000 / each.expected.requests, rel=0.2)
        assert each.shadow_price is not None
        assert each.shadow_price.per_request < 1e6
    assert thin.expected.received_bytes == pytest.approx(10_000, rel=0.01)


def test_target_gets_no_requests_from_an_overall_budget_of_zero() -> None:
    (found,) = solve_plans([work(100)], [DomainLimits(target_age_days=3)], overall=Budget(0))

    assert found.requests < 0.001
    assert "its part of the shared budget, 0 a day, " in found.finding


def test_target_age_of_one_domain_leaves_others_their_part_of_an_overall_budget() -> None:
    works = [work(500), work(500, seed=2)]

    young, other = solve_plans(works, [DomainLimits(target_age_days=1), DomainLimits()], overall=Budget(100))
    _, alike = solve_plans(works, [DomainLimits(), DomainLimits()], overall=Budget(100))

    assert young.requests + other.requests == pytest.approx(compute_visit_limit(100), rel=0.01)
    assert other.requests == pytest.approx(alike.requests, rel=0.05)
    assert young.longest_days == pytest.approx(500 / young.requests, rel=0.05)


def test_byte_budget_that_cannot_afford_the_longest_interval_extends_it() -> None:
    (found,) = solve_plans([work(1000)], [DomainLimits(budget=Budget(float("inf"), 10_000))])

    assert found.longest_days == pytest.approx(1000)
    assert found.finding == "A page may wait 1,000 days, not 180, because 10,000 bytes a day are too few"
    assert found.expected.received_bytes == pytest.approx(10_000, rel=0.01)


def test_target_age_of_seconds_is_limited_by_the_minimum_interval_and_reported() -> None:
    (found,) = solve_plans([work(100)], [DomainLimits(target_age_days=1 / 86_400)])

    assert found.target_requests == compute_budget(100 * 144)  # each page every ten minutes
    assert found.longest_days == pytest.approx(1 / 144)
    assert found.finding == (
        "A maximum age of 1 second is out of reach; "
        "a minimum interval or a rule keeps a page from being visited for 10 minutes"
    )


def test_target_age_beyond_the_longest_interval_is_no_finding() -> None:
    (found,) = solve_plans([work(1000)], [DomainLimits(target_age_days=365)])

    assert (found.longest_days, found.finding) == (365, "")


def test_rules_with_longer_intervals_override_a_target_age() -> None:
    (found,) = solve_plans([ruled(500, max_interval=30.0, min_interval=30.0)], [DomainLimits(target_age_days=5)])

    assert found.target_requests == compute_budget(500 / 5 + 500 / 30)
    assert (found.longest_days, found.expected.oldest_days) == (5, 30)
    assert found.finding.endswith("a minimum interval or a rule keeps a page from being visited for 30 days")


def test_first_visits_of_all_domains_together_stay_within_the_overall_budget() -> None:
    works = [work(100, new=500, seed=n) for n in range(5)]

    found = solve_plans(works, [DomainLimits(budget=Budget(200))] * 5, overall=Budget(300))

    assert sum(each.requests for each in found) == pytest.approx(compute_visit_limit(300), rel=0.01)
    assert sum(each.expected.requests for each in found) >= 0.29 * 300  # the guaranteed share of revisits


@pytest.mark.parametrize("requests", [0.0, 1.0, 3.0, 50.0, 1e6])
def test_no_budget_is_exceeded_and_no_interval_exceeds_max_days(requests: float) -> None:
    (found,) = solve_plans([work(500, new=100)], [DomainLimits(budget=Budget(requests))])

    assert found.requests <= requests
    assert found.longest_days <= MAX_DAYS


def test_unreachable_target_keeps_the_default_price() -> None:
    hasty = build_sample(
        [(0, 1e6, 1.0, 0, 1, 1, NO_RULE, NO_RULE, 0, 0, 0, 0, 1)] * 50, share=1, priors=[PRIOR], costs=Costs()
    )
    pages = build_workload(hasty, [PRIOR], min_interval_days=1 / 144, max_interval_days=180.0)

    (found,) = solve_plans([pages], [DomainLimits(target_freshness=0.99)])

    assert found.target_requests is None
    assert found.shadow_price is None
    assert found.finding.startswith("A freshness of 99% is out of reach; even an unlimited budget gives ")


def test_target_that_needs_less_than_the_budget_leaves_the_rest_unspent() -> None:
    (free,) = solve_plans([work(500)], [DomainLimits(target_freshness=0.9)])
    (capped,) = solve_plans([work(500)], [DomainLimits(target_freshness=0.9, budget=Budget(10_000))])

    assert free.target_requests == capped.target_requests
    assert capped.requests == pytest.approx(free.requests)
    assert 0.9 <= capped.expected.freshness < 0.91


@pytest.mark.parametrize(("after", "moved"), [(1.0, False), (1.24, False), (1.26, True), (0.81, False), (0.79, True)])
def test_price_has_moved_if_a_visit_costs_a_quarter_more_or_less(after: float, moved: bool) -> None:
    assert has_price_moved(ShadowPrice(1.0), ShadowPrice(after), work(10).fetched) is moved
    assert has_price_moved(ShadowPrice(1e-9, 0.01), ShadowPrice(1e-9, 0.01 * after), work(10).fetched) is moved


@pytest.mark.parametrize("visits", [0.0, 1.0, 99.0, 12_345.0])
def test_budget_for_visits_leaves_that_many_after_overhead(visits: float) -> None:
    budget = compute_budget(visits)

    assert visits <= compute_visit_limit(budget) or budget < 4  # half of a tiny budget is for visits
    assert compute_visit_limit(budget) < visits + 1.01


def test_repeated_refitting_converges() -> None:
    found = sample(2000)
    priors = found.priors
    rates = []
    for _ in range(30):
        (priors,) = refit_all_priors([replace(found, priors=priors)], [NO_KIND]).domains
        rates.append(priors[0].rate_per_day)

    assert rates[-1] == pytest.approx(rates[-2], rel=0.01)
    assert 0 < priors[0].a < 20


@pytest.mark.parametrize("requests", [12.0, 1000.0])
def test_pages_of_a_fixed_policy_use_the_requests_that_the_policy_needs(requests: float) -> None:
    """With a budget that is too small they wait longer, which is reported; they are never visited sooner."""
    found = sample(140)
    bound = build_workload(
        found, [PRIOR], min_interval_days=1 / 144, max_interval_days=180.0, revisit=parse_policy("fixed 7d")
    )

    (plan,) = solve_plans([bound], [DomainLimits(budget=Budget(requests))])

    assert plan.requests == pytest.approx(min(140 / 7, requests), rel=0.15)
    assert ("as long as rules or the policy require" in plan.finding) == (requests < 20)
