"""Many pages at once, as plan and lab see them: beliefs, weights and costs as arrays, each standing for some pages."""

from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.value import PlannedSource, aged_before_look, first_values, mean_gap

SAMPLE = 50_000  # pages; a price is then right to a few per cent, and freshness is flat around its optimum
SAMPLE_PER_DOMAIN = 200  # of each domain at least, if it has them: a small domain has a price of its own

Groups = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PageArrays:
    """Pages of one or many domains; arrays of equal length. Times in days.

    a, b: of today's beliefs.  weight: see price.weights_of; across domains times the domain's.
    recall, ratio, signals_per_day: of the source of signals about the page (PlannedSource); 0 without one.
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
    def source(self) -> PlannedSource:
        """The source of signals about the pages."""
        return PlannedSource(self.recall, self.ratio, self.signals_per_day)

    @property
    def count(self) -> float:
        """Number of pages that these stand for."""
        return float(self.stands_for.sum())


class OtherColumns(TypedDict, total=False):
    """Columns of PageArrays that have a usual value: one request a look, ten minutes to 180 days between looks."""

    requests: Numbers
    received_bytes: Numbers
    least: Numbers
    most: Numbers
    domain: Groups | int
    stands_for: Numbers
    is_ruled: Flags | bool
    importance: Numbers
    recall: Numbers
    ratio: Numbers
    signals_per_day: Numbers


USUAL: OtherColumns = {
    "requests": 1.0,
    "received_bytes": 0.0,
    "least": 1 / 144,
    "most": 180.0,
    "domain": 0,
    "stands_for": 1.0,
    "is_ruled": False,
    "recall": 0.0,
    "ratio": 0.0,
    "signals_per_day": 0.0,
}


def page_arrays(a: Numbers, b: Numbers, weight: Numbers, **others: Unpack[OtherColumns]) -> PageArrays:
    """PageArrays from columns; a number that holds for all pages may be given once."""
    columns: dict[str, Any] = {"a": a, "b": b, "weight": weight, "importance": weight, **USUAL, **others}
    shape = np.broadcast(*columns.values()).shape or (1,)
    kinds = {"domain": np.intp, "is_ruled": np.bool_}
    arrays: dict[str, NDArray[Any]] = {
        name: np.broadcast_to(np.asarray(column, dtype=kinds.get(name, np.float64)), shape)
        for name, column in columns.items()
    }
    return PageArrays(**arrays)


NOBODY = page_arrays(*(np.empty(0) for _ in range(3)))


def subset(pages: PageArrays, which: Groups | Flags) -> PageArrays:
    """Some of the pages, each standing for what it stood for."""
    return PageArrays(**{field.name: getattr(pages, field.name)[which] for field in fields(PageArrays)})


def gaps(pages: PageArrays, price: Numbers) -> Floats:
    """The mean gap of each page, in days, at a price of one look (importance x days)."""
    return mean_gap(
        pages.a,
        pages.b,
        pages.weight,
        price,
        least=pages.least,
        most=pages.most,
        source=pages.source,
    )


def ageing(pages: PageArrays, price: Numbers, gap: Floats) -> Floats:
    """The days without a source of signals by which each page ages until its look. gap: see gaps."""
    return aged_before_look(pages.a, pages.b, pages.weight, price, gap, source=pages.source)


def looks_per_day(pages: PageArrays, price: Numbers) -> Floats:
    """How many looks a day these known pages ask for at a price of one look: each is renewed after its gap."""
    return np.asarray(pages.stands_for / gaps(pages, price))


def first_looks(pages: PageArrays, price: Numbers) -> Floats:
    """How many of these never-fetched pages are worth their first fetch at a price of one look."""
    value = first_values(pages.a, pages.b, pages.weight, pages.most)
    return np.where(value >= price, pages.stands_for, 0.0)
