import numpy as np
import pytest

from crawler.core.budget.page_arrays import (
    NO_PAGES,
    compute_gaps,
    compute_visits_per_day,
    count_first_visits,
    select_subset,
)
from crawler.core.freshness.visit_value import compute_due_gap, compute_first_values
from tests.core.budget.pages import pages_of

pytestmark = pytest.mark.filterwarnings("error")


def test_scalar_columns_apply_to_all_pages() -> None:
    pages = pages_of(np.array([1.0, 2.0]), 10.0, 1.0, domain=np.array([0, 1]))

    assert pages.count == 2
    assert pages.b.tolist() == [10.0, 10.0]
    assert select_subset(pages, pages.domain == 1).a.tolist() == [2.0]
    assert NO_PAGES.count == 0


def test_each_page_is_visited_once_per_gap() -> None:
    pages = pages_of(
        np.array([0.5, 5000.0]), np.array([10.0, 0.1]), 1.0, min_interval=0.01, max_interval=180.0, stands_for=7.0
    )

    assert compute_visits_per_day(pages, 0.5) == pytest.approx(7 / compute_gaps(pages, 0.5))
    assert compute_gaps(pages, 0.5)[1] == 180  # never reaches the price, but is still visited
    assert compute_gaps(pages, 1e-12) == pytest.approx([0.01, 0.01])


def test_unfetched_pages_are_visited_if_their_value_reaches_the_price() -> None:
    pages = pages_of(0.5, 10.0, np.array([1.0, 2.0, 4.0]), stands_for=3.0)
    value = float(compute_first_values(0.5, 10.0, 2.0, 180.0))

    assert count_first_visits(pages, value).tolist() == [0, 3, 3]


def test_recall_lengthens_gaps_and_signals_shorten_them() -> None:
    page, bounds = (2.0, 40.0, 1.0), {"min_interval": 0.01, "max_interval": 180.0}

    usual = compute_gaps(pages_of(*page, **bounds), 5.0)
    silent = compute_gaps(pages_of(*page, **bounds, recall=0.5, ratio=80.0), 5.0)
    signaled = compute_gaps(pages_of(*page, **bounds, recall=0.5, ratio=80.0, signals_per_day=0.05), 5.0)

    assert usual[0] == pytest.approx(float(compute_due_gap(*page, 5.0, **bounds)))
    assert silent == pytest.approx(2 * usual)
    assert signaled < silent
