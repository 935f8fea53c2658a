import numpy as np
import pytest

from crawler.core.opic.opic import ENDOWMENT, TOTAL_CASH
from labs.experiments.fixpoint import Errors, errors, fixpoint
from labs.experiments.graph import from_rows, power_law
from labs.experiments.opic import Crawl, SelectionOrder

GRAPH = power_law(2000, seed=1)


def error_after(selection: SelectionOrder, passes: int, *, batch: int = 1) -> Errors:
    crawl = Crawl(GRAPH, selection=selection, seed=1, batch=batch)
    crawl.visit(passes * GRAPH.pages)
    return errors(crawl.estimate(), fixpoint(GRAPH))


def test_greedy_comes_near_the_truth_in_ten_visits_of_each_page() -> None:
    found = error_after(SelectionOrder.GREEDY, 10)

    assert found.every < 0.035
    assert found.top < 0.025
    assert found.spearman > 0.985


@pytest.mark.soak
def test_greedy_is_nearer_than_cycle_and_cycle_than_random() -> None:
    greedy, cycle, random = (error_after(selection, 6) for selection in SelectionOrder)

    assert greedy.every < cycle.every < random.every
    assert greedy.top < cycle.top < random.top


def test_claims_of_a_hundred_pages_do_little_harm() -> None:
    found = error_after(SelectionOrder.GREEDY, 10, batch=100)

    assert found.every < 0.035
    assert found.top < 0.025


@pytest.mark.parametrize("selection", SelectionOrder)
def test_cash_is_conserved(selection: SelectionOrder) -> None:
    crawl = Crawl(GRAPH, selection=selection, seed=1, batch=7)

    crawl.visit(3001)

    books = crawl.economy
    assert sum(map(crawl.cash, range(GRAPH.pages))) + books.virtual_page_cash + books.dormant == TOTAL_CASH
    assert len(crawl.log().page) == 3001


def test_greedy_always_takes_the_page_with_the_most_cash() -> None:
    graph = power_law(60, seed=3)
    crawl = Crawl(graph, selection=SelectionOrder.GREEDY, seed=1)

    for _ in range(2000):
        richest = max(map(crawl.cash, range(graph.pages)))
        crawl.visit(1)
        page = int(crawl.log().page[-1])
        took = crawl.log().clock[-1] - (crawl.log().clock[-2] if len(crawl.log().clock) > 1 else 0.0)
        assert took == richest, page


@pytest.mark.parametrize("selection", SelectionOrder)
def test_a_claim_never_holds_a_page_twice(selection: SelectionOrder) -> None:
    graph = power_law(60, seed=3)
    crawl = Crawl(graph, selection=selection, seed=1, batch=100)

    crawl.visit(600)

    assert all(len(set(claim)) == 60 for claim in np.split(crawl.log().page, 10))


def test_cycle_visits_every_page_once_in_a_pass() -> None:
    crawl = Crawl(GRAPH, selection=SelectionOrder.CYCLE, seed=1)

    crawl.visit(2 * GRAPH.pages)

    first, second = np.split(crawl.log().page, 2)
    assert sorted(first.tolist()) == list(range(GRAPH.pages))
    assert first.tolist() == second.tolist()


def test_visits_see_the_links_as_they_are_by_then() -> None:
    crawl = Crawl(from_rows([[1], [0], [0]]), selection=SelectionOrder.CYCLE, seed=1)
    crawl.visit(300)

    crawl.become(from_rows([[2], [0], [0]]))
    crawl.visit(300)

    assert crawl.estimate()[1] < 0.3
    assert crawl.estimate()[2] > 1.0


def test_initial_cash_of_the_root_comes_from_dormant_cash_and_is_forgotten_in_time() -> None:
    crawl = Crawl(GRAPH, selection=SelectionOrder.GREEDY, seed=1, root_cash=100.0)
    assert crawl.cash(0) == 100 * ENDOWMENT
    assert crawl.economy.dormant == TOTAL_CASH - (GRAPH.pages + 99) * ENDOWMENT

    crawl.visit(10 * GRAPH.pages)

    assert errors(crawl.estimate(), fixpoint(GRAPH)).every < 0.06
