"""Many pages at once, as plan and lab see them: beliefs, weights and costs as arrays, each standing for some pages."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.signals import Heard, days_ahead
from crawler.core.freshness.value import first_values, gap_worth

SAMPLE = 50_000  # pages; a price is then right to a few per cent, and freshness is flat around its optimum
SAMPLE_PER_DOMAIN = 200  # of each domain at least, if it has them: a small domain has a price of its own
FOREVER = 1e6  # days

Groups = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PageArrays:
    """Pages of one or many domains; arrays of equal length. Times in days.

    a, b: of today's beliefs.  weight: see price.weights_of; across domains times the domain's.
    recall, ratio, signals_per_day: of the source of signals about the page: the chance that a change is told, that over
    the source's noise in days, and the signals that come. All 0 without one.
    importance: the weight without what the page's amounts of change make of it: by it freshness is reported.
    requests, received_bytes: what one look costs on average.  least, most: bounds of its gap.
    domain: 0 to domains - 1.  stands_for: pages that this one is a sample of.  is_ruled: `most` is what a rule, or
    another policy than the price, says of the page, not the domain's longest interval.
    """

    a: Floats
    b: Floats
    weight: Floats
    requests: Floats
    received_bytes: Floats
    least: Floats
    most: Floats
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


def page_arrays(**columns: Numbers | Groups | Flags) -> PageArrays:
    """PageArrays from its columns; a number that holds for all pages may be given once."""
    shape = np.broadcast(*columns.values()).shape or (1,)
    kinds = {"domain": np.intp, "is_ruled": np.bool_}
    arrays: dict[str, NDArray[Any]] = {
        name: np.broadcast_to(np.asarray(column, dtype=kinds.get(name, np.float64)), shape)
        for name, column in columns.items()
    }
    return PageArrays(**arrays)


NOBODY = page_arrays(**{each.name: np.empty(0) for each in fields(PageArrays)})


def subset(pages: PageArrays, which: Groups | Flags) -> PageArrays:
    """Some of the pages, each standing for what it stood for."""
    return PageArrays(**{field.name: getattr(pages, field.name)[which] for field in fields(PageArrays)})


def gaps(pages: PageArrays, price: Numbers) -> Floats:
    """The days between good looks at each page to expect on average, at a price of one look (importance x days).

    Without a source of signals it is due_gap.
    A page ages by 1 - recall of a day each day and by what a signal adds, until it is due or beyond. Where a signal is
    worth less than the whole way, that mean speed gives the days to within a quarter; the correction of the price,
    which goes by what is used, does the rest.
    """
    way = gap_worth(pages.a, pages.b, pages.weight, price)
    jump = np.minimum(_jump(pages), np.minimum(way, FOREVER))
    speed = (1 - pages.recall) + pages.signals_per_day * jump
    return np.asarray(np.maximum(pages.least, np.minimum(way / speed, pages.most)))


def ageing(pages: PageArrays, price: Numbers, gap: Floats) -> Floats:
    """The days without a source that a page has aged by before the signal that leads to its look. gap: see gaps.

    Without a source it is the gap.
    """
    way = gap_worth(pages.a, pages.b, pages.weight, price)
    jump = np.minimum(_jump(pages), way)
    steps = np.where(np.isfinite(way), np.nan_to_num(way) - np.nan_to_num(jump), 0.0)
    aged = np.maximum((1 - pages.recall) * gap, np.minimum(steps, gap))
    return np.asarray(np.where(np.equal(pages.recall, 0), gap, aged))


def _jump(pages: PageArrays) -> Floats:
    """The days without a source that one signal adds."""
    return days_ahead(pages.a, pages.b, Heard(recall=pages.recall, count=1.0, ratio=pages.ratio))


def looks_per_day(pages: PageArrays, price: Numbers) -> Floats:
    """How many looks a day these known pages ask for at a price of one look: each is renewed after its gap."""
    return np.asarray(pages.stands_for / gaps(pages, price))


def first_looks(pages: PageArrays, price: Numbers) -> Floats:
    """How many of these never-fetched pages are worth their first fetch at a price of one look."""
    value = first_values(pages.a, pages.b, pages.weight, pages.most)
    return np.where(value >= price, pages.stands_for, 0.0)
