from itertools import pairwise

import pytest

from crawler.core.http.urls import Url
from labs.experiments.discovery import Way, best_of_all, cover
from labs.experiments.fixpoint import fixpoint
from labs.experiments.graph import from_rows, power_law

GRAPH = power_law(3000, seed=1)
# 0 links to 1, 2, 3; 1 and 2 link to 5 as well; 3 only to 4.
SMALL = from_rows([[1, 2, 3], [5], [5], [4], [], []])


@pytest.mark.parametrize("way", Way)
def test_a_crawl_begins_at_the_root_and_ends_at_its_limit(way: Way) -> None:
    truth = fixpoint(GRAPH)

    found = cover(GRAPH, way, max_pages=300, seed=1)

    assert len(found.shares) == 300
    assert abs(found.shares[0] - truth[0] / GRAPH.pages) < 1e-12
    assert list(found.shares) == sorted(found.shares)
    assert found.shares[-1] <= best_of_all(GRAPH, max_pages=300) + 1e-9


def test_cash_covers_more_than_the_queue_and_that_more_than_chance() -> None:
    opic, queue, omniscient = (
        cover(GRAPH, way, max_pages=300, seed=1) for way in (Way.OPIC, Way.BREADTH, Way.OMNISCIENT)
    )
    random = [cover(GRAPH, Way.RANDOM, max_pages=300, seed=seed).after(1.0) for seed in range(5)]

    assert omniscient.after(1.0) > opic.after(1.0) > queue.after(1.0) > sum(random) / 5 + 0.1


def test_all_of_a_small_site_is_covered() -> None:
    for way in Way:
        assert abs(cover(SMALL, way, max_pages=100, seed=1, claimed=2).after(1.0) - 1.0) < 1e-9


def order_of(way: Way) -> list[int]:
    """Return the order in which the pages of the small site are fetched, one at a time."""
    truth = fixpoint(SMALL) / SMALL.pages
    shares = [0.0, *cover(SMALL, way, max_pages=100, seed=1, claimed=1).shares]
    gains = [b - a for a, b in pairwise(shares)]
    return [min(range(6), key=lambda n: abs(truth[n] - gain)) for gain in gains]


def test_orders_by_hand() -> None:
    """Check the orders. Pages 1, 2 and 3 are equally important and equally deep, and therefore interchangeable."""
    assert [n in {4, 5} for n in order_of(Way.BREADTH)] == [False] * 4 + [True] * 2
    assert [n in {4, 5} for n in order_of(Way.DEPTH)] == [False, False, True, False, False, True]
    assert order_of(Way.OMNISCIENT).index(5) == 2


def test_a_root_with_more_cash_puts_what_it_links_to_before_what_those_link_to() -> None:
    tree = from_rows([list(range(1, 101)), *([[100 + n] for n in range(1, 101)]), *([[] for _ in range(100)])])

    def first_of_root(root_cash: float) -> float:
        return cover(tree, Way.OPIC, max_pages=50, seed=1, claimed=1, root_cash=root_cash).after(1.0)

    children = fixpoint(tree)[1]
    assert abs(first_of_root(1000.0) - (fixpoint(tree)[0] + 49 * children) / tree.pages) < 1e-9
    assert first_of_root(1.0) > first_of_root(1000.0)  # one endowment is enough to reach the grandchildren


def test_mixed_prefers_short_urls() -> None:
    urls = tuple(Url(f"http://a.test/{path}") for path in ("", "x/y/z/a", "x/y/z/b", "c"))
    graph = from_rows([[1, 2, 3], [0], [0], [0, 1, 2]], urls=urls)
    truth = fixpoint(graph) / graph.pages

    shares = cover(graph, Way.MIXED, max_pages=2, seed=1, claimed=1).shares

    assert abs(shares[1] - shares[0] - truth[3]) < 1e-9
