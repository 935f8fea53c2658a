import numpy as np
import pytest

from crawler.core.opic.opic import ENDOWMENT
from labs.experiments.fixpoint import errors, fixpoint
from labs.experiments.graph import from_rows, power_law
from labs.experiments.opic import Crawl, SelectionOrder
from labs.experiments.windows import Window, WindowPolicy, _interpolated, estimate, policy_of

GRAPH = power_law(600, seed=1)
TRUTH = fixpoint(GRAPH)


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    crawl = Crawl(GRAPH, selection=SelectionOrder.GREEDY, seed=1)
    crawl.visit(20 * GRAPH.pages)
    return crawl


def test_policies_are_parsed() -> None:
    assert policy_of("interpolation") == WindowPolicy(Window.INTERPOLATION, 24.0)
    assert policy_of("variable") == WindowPolicy(Window.VARIABLE, 8.0)
    assert str(policy_of("fixed:2.5")) == "fixed:2.5"
    assert str(policy_of("interpolation:24")) == "interpolation"


@pytest.mark.parametrize("text", ["", "sliding", "fixed:x", "variable:1.5", "fixed:0", "fixed:nan"])
def test_invalid_policy_is_an_error_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a window such as|the size must be above 0"):
        policy_of(text)


def test_the_replay_of_the_products_window_gives_what_the_product_gives(crawl: Crawl) -> None:
    told = _interpolated(crawl, crawl.economy.window)

    assert np.abs(told - crawl.estimate()).max() < 1e-6


def test_a_longer_window_is_more_exact_while_nothing_changes(crawl: Crawl) -> None:
    found = [errors(estimate(crawl, policy_of(f"interpolation:{size}")).importance, TRUTH).every for size in (4, 8, 16)]

    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("text", ["variable:8", "fixed:24", "improved:24", "blocks:24", "interpolation:16"])
def test_all_windows_agree_on_a_constant_graph(crawl: Crawl, text: str) -> None:
    told = estimate(crawl, policy_of(text))

    assert errors(told.importance, TRUTH).every < 0.1
    assert abs(told.importance.mean() - 1) < 0.03


def test_what_a_window_stores_is_counted(crawl: Crawl) -> None:
    numbers = {text: estimate(crawl, policy_of(text)).numbers_per_page for text in ("interpolation", "variable:2")}
    fixed, improved = (estimate(crawl, policy_of(f"{name}:4")).numbers_per_page for name in ("fixed", "improved"))

    assert numbers == {"interpolation": 2.0, "variable:2": 5.0}
    assert 1.0 < fixed < improved
    assert improved >= 7.0


def test_a_variable_window_counts_exactly_its_last_measures() -> None:
    """Check two pages that pay each other in turn, with measures read from the log by hand."""
    crawl = Crawl(from_rows([[1], [0]]), selection=SelectionOrder.CYCLE, seed=1)
    crawl.visit(10)
    log, now = crawl.log(), crawl.economy.clock

    told = estimate(crawl, policy_of("variable:2")).importance

    for page in (0, 1):
        visits = np.flatnonzero(log.page == page)
        came = log.cash[visits[-2:]].sum() + crawl.cash(page)
        assert abs(told[page] - 2 * came / (now - log.clock[visits[-3]])) < 1e-9


def test_an_endowment_is_no_measure() -> None:
    crawl = Crawl(from_rows([[1], [0]]), selection=SelectionOrder.CYCLE, seed=1, root_cash=1)
    assert crawl.waiting().tolist() == [0.0, 0.0]

    crawl.visit(1)

    assert crawl.log().cash.tolist() == [0.0]
    assert crawl.log().clock.tolist() == [ENDOWMENT]
