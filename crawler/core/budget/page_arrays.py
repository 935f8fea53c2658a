"""Many pages at once, as plan and lab see them: beliefs, weights and costs as arrays, each standing for some pages."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.signals import SignalState, compute_days_ahead
from crawler.core.freshness.value import compute_first_values, solve_gap

SAMPLE_SIZE = 50_000  # pages; a price is then right to a few per cent, and freshness is flat around its optimum
MIN_SAMPLE_PER_DOMAIN = 200  # of each domain at least, if it has them: a small domain has a price of its own
NEVER_DAYS = 1e6  # days

Groups = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PageArrays:
    """Pages of one or many domains; arrays of equal length. Times in days.

    a, b: of today's beliefs.  weight: see price.weights_of; across domains times the domain's.
    recall, ratio, signals_per_day: of the source of signals about the page: the chance that a change is told, that over
    the source's noise in days, and the signals that come. All 0 without one.
    importance: the weight without what the page's amounts of change make of it: by it freshness is reported.
    requests, received_bytes: what one look costs on average.  min_interval, max_interval: bounds of its gap.
    domain: 0 to domains - 1.  stands_for: pages that this one is a sample of.  is_ruled: `max_interval` is what a rule,
    or another policy than the price, says of the page, not the domain's longest interval.
    """

    a: Floats
    b: Floats
    weight: Floats
    requests: Floats
    received_bytes: Floats
    min_interval: Floats
    max_interval: Floats
    domain: Groups
    stands_for: Floats
    is_ruled: Flags
    importance: Floats
    recall: Floats
    ratio: Floats
    signals_per_day: Floats

    @property
    def count(self) -> float:
        """Number of pages that these stand for."""
        return float(self.stands_for.sum())


def build_page_arrays(**columns: Numbers | Groups | Flags) -> PageArrays:
    """PageArrays from its columns; a number that holds for all pages may be given once."""
    shape = np.broadcast(*columns.values()).shape or (1,)
    kinds = {"domain": np.intp, "is_ruled": np.bool_}
    arrays: dict[str, NDArray[Any]] = {
        name: np.broadcast_to(np.asarray(column, dtype=kinds.get(name, np.float64)), shape)
        for name, column in columns.items()
    }
    return PageArrays(**arrays)


NO_PAGES = build_page_arrays(**{each.name: np.empty(0) for each in fields(PageArrays)})


def select_subset(pages: PageArrays, chosen: Groups | Flags) -> PageArrays:
    """Some of the pages, each standing for what it stood for."""
    return PageArrays(**{field.name: getattr(pages, field.name)[chosen] for field in fields(PageArrays)})


def compute_gaps(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """The days between good looks at each page to expect on average, at a price of one look (importance x days).

    Without a source of signals it is due_gap.
    A page ages by 1 - recall of a day each day and by what a signal adds, until it is due or beyond. Where a signal is
    worth less than the whole way, that mean speed gives the days to within a quarter; the correction of the price,
    which goes by what is used, does the rest.
    """
    full_gap = solve_gap(pages.a, pages.b, pages.weight, shadow_price)
    jump = np.minimum(_compute_jump(pages), np.minimum(full_gap, NEVER_DAYS))
    speed = (1 - pages.recall) + pages.signals_per_day * jump
    return np.asarray(np.maximum(pages.min_interval, np.minimum(full_gap / speed, pages.max_interval)))


def compute_ageing_days(pages: PageArrays, shadow_price: Numbers, gap: Floats) -> Floats:
    """The days without a source that a page has aged by before the signal that leads to its look. gap: see gaps.

    Without a source it is the gap.
    """
    full_gap = solve_gap(pages.a, pages.b, pages.weight, shadow_price)
    jump = np.minimum(_compute_jump(pages), full_gap)
    steps = np.where(np.isfinite(full_gap), np.nan_to_num(full_gap) - np.nan_to_num(jump), 0.0)
    aged = np.maximum((1 - pages.recall) * gap, np.minimum(steps, gap))
    return np.asarray(np.where(np.equal(pages.recall, 0), gap, aged))


def _compute_jump(pages: PageArrays) -> Floats:
    """The days without a source that one signal adds."""
    return compute_days_ahead(pages.a, pages.b, SignalState(recall=pages.recall, count=1.0, ratio=pages.ratio))


def compute_visits_per_day(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """How many looks a day these known pages ask for at a price of one look: each is renewed after its gap."""
    return np.asarray(pages.stands_for / compute_gaps(pages, shadow_price))


def count_first_visits(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """How many of these never-fetched pages are worth their first fetch at a price of one look."""
    value = compute_first_values(pages.a, pages.b, pages.weight, pages.max_interval)
    return np.where(value >= shadow_price, pages.stands_for, 0.0)
