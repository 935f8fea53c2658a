import numpy as np
import pytest

from crawler.core.budget.page_arrays import NOBODY, first_looks, gaps, looks_per_day, page_arrays, subset
from crawler.core.freshness.value import first_values

pytestmark = pytest.mark.filterwarnings("error")


def test_what_is_the_same_for_all_is_given_once() -> None:
    pages = page_arrays(np.array([1.0, 2.0]), 10.0, 1.0, domain=np.array([0, 1]))

    assert pages.count == 2
    assert pages.b.tolist() == [10.0, 10.0]
    assert subset(pages, pages.domain == 1).a.tolist() == [2.0]
    assert NOBODY.count == 0


def test_pages_ask_for_a_look_once_in_each_gap() -> None:
    pages = page_arrays(np.array([0.5, 5000.0]), np.array([10.0, 0.1]), 1.0, least=0.01, most=180.0, stands_for=7.0)

    assert looks_per_day(pages, 0.5) == pytest.approx(7 / gaps(pages, 0.5))
    assert gaps(pages, 0.5)[1] == 180  # never worth it, and not abandoned
    assert gaps(pages, 1e-12) == pytest.approx([0.01, 0.01])


def test_new_pages_ask_for_a_first_look_when_it_is_worth_its_price() -> None:
    pages = page_arrays(0.5, 10.0, np.array([1.0, 2.0, 4.0]), stands_for=3.0)
    value = float(first_values(0.5, 10.0, 2.0, 180.0))

    assert first_looks(pages, value).tolist() == [0, 3, 3]
