"""Censuses and tariffs on paper: what comes out of pages, budgets and targets without any store."""

from dataclasses import replace

import numpy as np
import pytest

from crawler.core.belief import PRIOR
from crawler.core.budget import Budget, Work
from crawler.core.census import SAYS_NOTHING as NAN
from crawler.core.census import Census, census_of, refitted, work_in
from crawler.core.cost import Costs, Price
from crawler.core.target import Terms, budget_for, overhead
from crawler.core.tariff import LONGEST_DAYS, has_moved, tariffs


def census(known: int, *, new: int = 0, share: float = 1.0, seed: int = 1) -> Census:
    chance = np.random.default_rng(seed)
    rows = [
        (0, chance.exponential(2), chance.exponential(20), 0, chance.pareto(1.5), 1, NAN, NAN) for _ in range(known)
    ]
    rows += [(1, 0, 0, 0, 1, 0, NAN, NAN)] * new
    return census_of(rows, share=share, priors=[PRIOR], costs=Costs(), activity=1.0)


def work(known: int, *, new: int = 0, share: float = 1.0, seed: int = 1) -> Work:
    return work_in(census(known, new=new, share=share, seed=seed), [PRIOR], least_days=1 / 144, most_days=180.0)


def test_what_rules_say_of_an_interval_holds_and_the_rest_is_as_everywhere() -> None:
    rows = [(0, 1.0, 5.0, 0, 1, 1, *bounds) for bounds in ((NAN, NAN), (0.5, NAN), (NAN, 2.0), (300.0, NAN))]
    found = census_of(rows, share=1, priors=[PRIOR], costs=Costs(), activity=1.0)

    pages = work_in(found, [PRIOR], least_days=0.1, most_days=180.0).known

    assert pages.least.tolist() == [0.1, 0.5, 0.1, 300.0]
    assert pages.most.tolist() == [180.0, 180.0, 2.0, 300.0]


def test_a_sample_stands_for_its_domain() -> None:
    half = work(200, new=10, share=0.5)

    assert half.known.count == 400
    assert half.new.count == 20
    (sampled,) = tariffs([half], [Terms(budget=Budget(100))])
    assert sampled.requests == pytest.approx(100 - overhead(100), rel=0.01)


def test_domains_without_pages_cost_nothing_and_disturb_nobody() -> None:
    alone = tariffs([work(300)], [Terms(budget=Budget(40))])
    with_empty = tariffs([work(300), work(0)], [Terms(budget=Budget(40)), Terms(budget=Budget(40))])

    assert with_empty[0].price == alone[0].price
    assert with_empty[1].price is None
    assert with_empty[1].requests == 0
    assert tariffs([], []) == []


def test_an_overall_budget_never_lowers_a_price_below_what_the_domains_own_budget_asks() -> None:
    works = [work(300), work(300, seed=2)]
    own = tariffs(works, [Terms(budget=Budget(20)), Terms(budget=Budget(60))])
    both = tariffs(works, [Terms(budget=Budget(20)), Terms(budget=Budget(60))], overall=Budget(50))

    assert sum(each.requests for each in both) == pytest.approx(50 - overhead(50), rel=0.01)
    for before, after in zip(own, both, strict=True):
        assert before.price is not None
        assert after.price is not None
        assert after.price.per_request >= before.price.per_request * (1 - 1e-6)


def test_an_overall_budget_that_cannot_bear_the_longest_interval_stretches_it_in_every_domain() -> None:
    works = [work(4000, seed=n) for n in range(5)]

    found = tariffs(works, [Terms()] * 5, overall=Budget(50))  # 20,000 pages in 180 days are 111 a day

    assert [each.longest_days for each in found] == [20_000 / (0.05 * 50)] * 5
    assert all("all domains' 50 requests" in each.finding for each in found)
    assert sum(each.requests for each in found) == pytest.approx(50 - overhead(50), rel=0.01)
    assert all(each.price is not None and each.price.per_request < 1e6 for each in found)


def test_first_looks_of_all_domains_together_keep_within_the_overall_budget() -> None:
    works = [work(100, new=500, seed=n) for n in range(5)]

    found = tariffs(works, [Terms(budget=Budget(200))] * 5, overall=Budget(300))

    assert sum(each.requests for each in found) == pytest.approx(300 - overhead(300), rel=0.01)
    assert sum(each.outlook.requests for each in found) >= 0.29 * 300  # what looking again is guaranteed


@pytest.mark.parametrize("requests", [0.0, 1.0, 3.0, 50.0, 1e6])
def test_no_budget_is_exceeded_and_every_interval_fits_a_calendar(requests: float) -> None:
    (found,) = tariffs([work(500, new=100)], [Terms(budget=Budget(requests))])

    assert found.requests <= requests
    assert found.longest_days <= LONGEST_DAYS


def test_a_target_that_no_number_of_requests_reaches_keeps_the_usual_price() -> None:
    hasty = census_of([(0, 1e6, 1.0, 0, 1, 1, NAN, NAN)] * 50, share=1, priors=[PRIOR], costs=Costs(), activity=1.0)
    pages = work_in(hasty, [PRIOR], least_days=1 / 144, most_days=180.0)

    (found,) = tariffs([pages], [Terms(freshness=0.99)])

    assert found.asked is None
    assert found.price is None
    assert found.finding.startswith("99 % fresh is out of reach; even the least price gives ")


def test_a_target_below_what_the_budget_allows_leaves_the_rest_unspent() -> None:
    (free,) = tariffs([work(500)], [Terms(freshness=0.9)])
    (capped,) = tariffs([work(500)], [Terms(freshness=0.9, budget=Budget(10_000))])

    assert free.asked == capped.asked
    assert capped.requests == pytest.approx(free.requests)
    assert 0.9 <= capped.outlook.freshness < 0.91


@pytest.mark.parametrize(("after", "moved"), [(1.0, False), (1.24, False), (1.26, True), (0.81, False), (0.79, True)])
def test_a_price_has_moved_when_a_look_costs_a_quarter_more_or_less(after: float, moved: bool) -> None:
    assert has_moved(Price(1.0), Price(after), work(10).known) is moved
    assert has_moved(Price(1e-9, 0.01), Price(1e-9, 0.01 * after), work(10).known) is moved


@pytest.mark.parametrize("looks", [0.0, 1.0, 99.0, 12_345.0])
def test_a_budget_for_looks_leaves_so_many_after_all_that_are_no_looks(looks: float) -> None:
    budget = budget_for(looks)

    assert looks <= budget - overhead(budget) or budget < 4  # of a tiny one half is kept for looks
    assert budget - overhead(budget) < looks + 1.01


def test_refitting_again_and_again_settles() -> None:
    found = census(2000)
    priors = found.priors
    rates = []
    for _ in range(30):
        (priors,) = refitted([replace(found, priors=priors)])
        rates.append(priors[0].rate_per_day)

    assert rates[-1] == pytest.approx(rates[-2], rel=0.01)
    assert 0 < priors[0].a < 20
