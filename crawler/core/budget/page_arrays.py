"""Arrays of many pages for the plan and the labs: change-rate estimates, weights and costs."""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.signals import SignalState, compute_days_ahead
from crawler.core.freshness.visit_value import compute_first_values, solve_gap

SAMPLE_SIZE = 50_000  # pages; prices are then right to a few percent, and freshness is flat around its optimum
MIN_SAMPLE_PER_DOMAIN = 200  # pages of each domain, if it has them, because each domain may have its own price
NEVER_DAYS = 1e6  # a finite bound for gaps that are infinite

Groups = NDArray[np.intp]
Flags = NDArray[np.bool_]


class PageArrays(Struct, frozen=True):
    """Pages of one or many domains; arrays of equal length. Times in days.

    a, b: the current change-rate estimate.  weight: see visit_value.compute_weights.  weight and importance are also
    multiplied by the importance of the domain if the pages are from many domains.
    recall: the probability that the page's source of change signals reports a change.  ratio: recall divided by the
    noise (false signals per page and day).  signals_per_day: expected signals. All three are 0 without a source.
    importance: how much a page counts in the reported freshness.
    requests, received_bytes: the mean cost of a visit.  min_interval, max_interval: bounds of the gap.
    domain: index from 0.  stands_for: the number of pages that this sampled page represents.
    is_ruled: `max_interval` is set by a page rule, or by a revisit policy that is no ValuePolicy.
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
        """Return the number of pages that the arrays represent."""
        return float(self.stands_for.sum())


def build_page_arrays(**columns: Numbers | Groups | Flags) -> PageArrays:
    """Build PageArrays from columns. A scalar applies to all pages."""
    shape = np.broadcast(*columns.values()).shape or (1,)
    kinds = {"domain": np.intp, "is_ruled": np.bool_}
    arrays: dict[str, NDArray[Any]] = {
        name: np.broadcast_to(np.asarray(column, dtype=kinds.get(name, np.float64)), shape)
        for name, column in columns.items()
    }
    return PageArrays(**arrays)


NO_PAGES = build_page_arrays(**dict.fromkeys(PageArrays.__struct_fields__, np.empty(0)))


def select_subset(pages: PageArrays, chosen: Groups | Flags) -> PageArrays:
    """Return a subset of the pages; `stands_for` stays unchanged."""
    return PageArrays(**{name: getattr(pages, name)[chosen] for name in PageArrays.__struct_fields__})


def compute_gaps(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """Return the expected days between successful visits to each page.

    shadow_price: the minimum value of a visit to each page, in importance x days.

    Without a source of change signals, this is compute_due_gap. With one, a page ages by 1 - recall days per day, and
    each signal adds days, until the page is due. If one signal is not enough to make a page due, the mean speed is
    accurate to about 25%.
    """
    full_gap = solve_gap(pages.a, pages.b, pages.weight, shadow_price)
    jump = np.minimum(_compute_jump(pages), np.minimum(full_gap, NEVER_DAYS))
    speed = (1 - pages.recall) + pages.signals_per_day * jump
    return np.asarray(np.maximum(pages.min_interval, np.minimum(full_gap / speed, pages.max_interval)))


def compute_ageing_days(pages: PageArrays, shadow_price: Numbers, gap: Floats) -> Floats:
    """Return by how many days each page has aged before the signal that leads to its visit.

    gap: the result of compute_gaps. Without a source of change signals, the result is the gap.
    """
    full_gap = solve_gap(pages.a, pages.b, pages.weight, shadow_price)
    jump = np.minimum(_compute_jump(pages), full_gap)
    steps = np.where(np.isfinite(full_gap), np.nan_to_num(full_gap) - np.nan_to_num(jump), 0.0)
    aged = np.maximum((1 - pages.recall) * gap, np.minimum(steps, gap))
    return np.asarray(np.where(np.equal(pages.recall, 0), gap, aged))


def _compute_jump(pages: PageArrays) -> Floats:
    """Return how many days one signal adds to the age of a page."""
    return compute_days_ahead(pages.a, pages.b, SignalState(recall=pages.recall, count=1.0, ratio=pages.ratio))


def compute_visits_per_day(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """Return the visits per day to fetched pages at a price per visit: one after each gap."""
    return np.asarray(pages.stands_for / compute_gaps(pages, shadow_price))


def count_first_visits(pages: PageArrays, shadow_price: Numbers) -> Floats:
    """Return how many pages each entry stands for; 0 if the value of a first visit is below the price per visit."""
    value = compute_first_values(pages.a, pages.b, pages.weight, pages.max_interval)
    return np.where(value >= shadow_price, pages.stands_for, 0.0)
