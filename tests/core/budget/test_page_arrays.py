import numpy as np
import pytest

from crawler.core.budget.page_arrays import NOBODY, first_looks, gaps, looks_per_day, subset
from crawler.core.freshness.value import due_gap, first_values
from tests.core.budget.pages import pages_of

pytestmark = pytest.mark.filterwarnings("error")


def test_what_is_the_same_for_all_is_given_once() -> None:
    pages = pages_of(np.array([1.0, 2.0]), 10.0, 1.0, domain=np.array([0, 1]))

    assert pages.count == 2
    assert pages.b.tolist() == [10.0, 10.0]
    assert subset(pages, pages.domain == 1).a.tolist() == [2.0]
    assert NOBODY.count == 0


def test_pages_ask_for_a_look_once_in_each_gap() -> None:
    pages = pages_of(np.array([0.5, 5000.0]), np.array([10.0, 0.1]), 1.0, least=0.01, most=180.0, stands_for=7.0)

    assert looks_per_day(pages, 0.5) == pytest.approx(7 / gaps(pages, 0.5))
    assert gaps(pages, 0.5)[1] == 180  # never worth it, and not abandoned
    assert gaps(pages, 1e-12) == pytest.approx([0.01, 0.01])


def test_new_pages_ask_for_a_first_look_when_it_is_worth_its_price() -> None:
    pages = pages_of(0.5, 10.0, np.array([1.0, 2.0, 4.0]), stands_for=3.0)
    value = float(first_values(0.5, 10.0, 2.0, 180.0))

    assert first_looks(pages, value).tolist() == [0, 3, 3]


def test_a_plan_expects_the_looks_that_signals_bring_and_no_others() -> None:
    page, bounds = (2.0, 40.0, 1.0), {"least": 0.01, "most": 180.0}

    usual = gaps(pages_of(*page, **bounds), 5.0)
    dead = gaps(pages_of(*page, **bounds, recall=0.5, ratio=80.0), 5.0)
    lively = gaps(pages_of(*page, **bounds, recall=0.5, ratio=80.0, signals_per_day=0.05), 5.0)

    assert usual[0] == pytest.approx(float(due_gap(*page, 5.0, **bounds)))
    assert dead == pytest.approx(2 * usual)
    assert lively < dead
